/** When a workflow runs: its schedules, each with its next instants, and a form for another. */
import { Button, Group, Modal, Stack } from '@mantine/core'
import { IconCalendarPlus, IconPencil, IconTrash } from '@tabler/icons-react'
import { useState } from 'react'
import { request } from '@/api/client'
import { useAnswer, useSend } from '@/api/queries'
import type { Schedule } from '@/api/shapes'
import { useT } from '@/i18n'
import { Action } from '@/parts/actions'
import { useFirstProblem } from '@/parts/first-problem'
import { EmptyState, ErrorBox, Loading } from '@/parts/page'
import { ScheduleCards } from '@/parts/schedule/cards'
import { bodyOf, changeOf, draftOf, emptyDraft, isAtField, isWhole } from '@/parts/schedule/draft'
import { ScheduleEditor } from '@/parts/schedule/editor'
import { SaveSchedule } from '@/parts/schedule/save'
import { TOUCHES } from '@/parts/schedule/touches'

export function WorkflowSchedules({ workflowId }: { workflowId: string }) {
  const t = useT()
  const [open, setOpen] = useState<Schedule | 'new' | null>(null)
  const { data, error, refetch } = useAnswer('schedules', request('GET', '/api/v1/schedules', { query: { workflowId, pageSize: 100 } }))
  if (data === undefined) return error ? <ErrorBox error={error} retry={() => void refetch()} /> : <Loading />
  const add = <Button size="xs" variant="default" leftSection={<IconCalendarPlus size={15} />} onClick={() => setOpen('new')}>{t('workflows.addSchedule')}</Button>
  return (
    <>
      {data.items.length === 0 ? <EmptyState title={t('workflows.noSchedule')} hint={t('workflows.noScheduleHint')}>{add}</EmptyState> : (
        <Stack gap="sm">
          <ScheduleCards schedules={data.items} orders={(schedule) => <Orders schedule={schedule} edit={() => setOpen(schedule)} />} />
          <Group>{add}</Group>
        </Stack>
      )}
      <Modal opened={open !== null} onClose={() => setOpen(null)} size="xl" title={open === 'new' ? t('workflows.addSchedule') : t('workflows.editSchedule')} closeButtonProps={{ 'aria-label': t('app.close') }}>
        {open !== null && <ScheduleForm key={open === 'new' ? 'new' : open.id} workflowId={workflowId} schedule={open === 'new' ? null : open} done={() => setOpen(null)} />}
      </Modal>
    </>
  )
}

function ScheduleForm({ workflowId, schedule, done }: { workflowId: string; schedule: Schedule | null; done: () => void }) {
  const t = useT()
  const [draft, setDraft] = useState(() => (schedule === null ? emptyDraft() : draftOf(schedule)))
  const change = useSend<Schedule>(TOUCHES)
  const around = useFirstProblem<HTMLDivElement>(change.error)
  const call = schedule === null ? request('POST', '/api/v1/schedules', { body: { ...bodyOf(draft), workflowId } }) : request('PATCH', '/api/v1/schedules/{id}', { path: { id: schedule.id }, body: changeOf(schedule, draft) })
  return (
    <Stack ref={around}>
      <ScheduleEditor value={draft} onChange={(next) => { change.reset(); setDraft(next) }} saved={schedule} error={change.error} />
      {change.error && !isAtField(change.error) && <ErrorBox error={change.error} />}
      <SaveSchedule call={call} ready={isWhole(draft)} saving={change.isPending} save={(made) => change.mutate(made, { onSuccess: done })} back={<Button size="xs" variant="default" onClick={done}>{t('app.cancel')}</Button>} />
    </Stack>
  )
}

function Orders({ schedule: { id }, edit }: { schedule: Schedule; edit: () => void }) {
  const t = useT()
  return (
    <>
      <Button size="xs" variant="default" leftSection={<IconPencil size={15} />} onClick={edit}>{t('app.edit')}</Button>
      <Action label={t('workflows.delete')} icon={IconTrash} danger confirm={t('workflows.deleteScheduleAsk')} touches={TOUCHES} call={() => request('DELETE', '/api/v1/schedules/{id}', { path: { id } })} />
    </>
  )
}
