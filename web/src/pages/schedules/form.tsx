/** A schedule is written, or changed. */
import { Button, Paper, Stack } from '@mantine/core'
import { Link, getRouteApi, useNavigate } from '@tanstack/react-router'
import { type ReactNode, useState } from 'react'
import { type Call, type Refusal, request } from '@/api/client'
import { useAnswer, useSend } from '@/api/queries'
import type { Schedule } from '@/api/shapes'
import { useT } from '@/i18n'
import { useFirstProblem } from '@/parts/first-problem'
import { ErrorBox, Loading, PageTitle } from '@/parts/page'
import { type ScheduleDraft, bodyOf, changeOf, draftOf, emptyDraft, isAtField, isWhole } from '@/parts/schedule/draft'
import { ScheduleEditor } from '@/parts/schedule/editor'
import { SaveSchedule } from '@/parts/schedule/save'
import { type Owner, TargetInput } from './target'
import { TOUCHES } from '@/parts/schedule/touches'

const creating = getRouteApi('/schedules/new')
const editing = getRouteApi('/schedules/$scheduleId/edit')
const OWNERS = ['jobId', 'workflowId']

/** Sends it, and goes to the schedule that it answers. */
function useSaving() {
  const navigate = useNavigate()
  const change = useSend<Schedule>(TOUCHES)
  const save = (call: Call<Schedule>) => change.mutate(call, { onSuccess: ({ id }) => void navigate({ to: '/schedules/$scheduleId', params: { scheduleId: id } }) })
  return { save, error: change.error, saving: change.isPending, forget: change.reset }
}

export function NewSchedulePage() {
  const t = useT()
  const given = creating.useSearch()
  const [owner, setOwner] = useState<Owner>(given.workflowId ? { workflowId: given.workflowId } : given.jobId ? { jobId: given.jobId } : {})
  const [draft, setDraft] = useState(emptyDraft)
  const { save, error, saving, forget } = useSaving()
  const call = request('POST', '/api/v1/schedules', { body: { ...owner, ...bodyOf(draft) } })
  const known = owner.jobId !== undefined || owner.workflowId !== undefined
  return (
    <Form title={t('schedules.create')} error={error}>
      <TargetInput value={owner} onChange={(next) => { forget(); setOwner(next) }} error={error?.field === 'jobId' || error?.field === 'workflowId' ? error.atField : undefined} />
      <ScheduleEditor value={draft} onChange={(next) => { forget(); setDraft(next) }} saved={null} error={error} />
      <SaveSchedule call={call} ready={known && isWhole(draft)} saving={saving} save={save} back={<Button component={Link} to="/schedules" size="xs" variant="default">{t('app.cancel')}</Button>} />
    </Form>
  )
}

export function EditSchedulePage() {
  const t = useT()
  const { scheduleId } = editing.useParams()
  const { data, error, refetch } = useAnswer('schedules', request('GET', '/api/v1/schedules/{id}', { path: { id: scheduleId } }))
  if (data === undefined) return <><PageTitle title={t('schedules.one')} />{error ? <ErrorBox error={error} retry={() => void refetch()} /> : <Loading />}</>
  return <Editing key={scheduleId} schedule={data} />
}

/** The schedule as it was when somebody began to change it: a later change of another is refused by its version. */
function Editing({ schedule }: { schedule: Schedule }) {
  const t = useT()
  const [before] = useState(schedule)
  const [draft, setDraft] = useState<ScheduleDraft>(() => draftOf(schedule))
  const { save, error, saving, forget } = useSaving()
  const path = { id: before.id }
  const call = request('PATCH', '/api/v1/schedules/{id}', { path, body: changeOf(before, draft) })
  const back = <Button renderRoot={(props) => <Link {...props} to="/schedules/$scheduleId" params={{ scheduleId: before.id }} />} size="xs" variant="default">{t('app.cancel')}</Button>
  return (
    <Form title={before.jobName ?? before.workflowName ?? t('schedules.one')} error={error}>
      <ScheduleEditor value={draft} onChange={(next) => { forget(); setDraft(next) }} saved={before} error={error} />
      <SaveSchedule call={call} ready={isWhole(draft)} saving={saving} save={save} back={back} />
    </Form>
  )
}

function Form({ title, error, children }: { title: string; error: Refusal | null; children: ReactNode }) {
  const around = useFirstProblem<HTMLDivElement>(error)
  return (
    <>
      <PageTitle title={title} />
      <Paper withBorder p="md" maw={1080} ref={around}>
        <Stack gap="md">
          {error && !isAtField(error, OWNERS) && <ErrorBox error={error} />}
          {children}
        </Stack>
      </Paper>
    </>
  )
}
