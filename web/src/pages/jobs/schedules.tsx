/** The schedules of a job, each with its next instants. */
import { Paper } from '@mantine/core'
import { IconPencil } from '@tabler/icons-react'
import { request } from '@/api/client'
import { useAnswer } from '@/api/queries'
import type { JobFound } from '@/api/shapes'
import { useT } from '@/i18n'
import { ButtonLink } from '@/parts/link'
import { EmptyState, ErrorBox, Loading, Section } from '@/parts/page'
import { ScheduleCards } from '@/parts/schedule/cards'

/** More than so many belong into the list of all schedules. */
const MOST = 50

export function useSchedulesOf(jobId: string | undefined) {
  return useAnswer('schedules', jobId === undefined ? null : request('GET', '/api/v1/schedules', { query: { jobId, pageSize: MOST } }))
}

export function SchedulesOf({ job }: { job: JobFound }) {
  const t = useT()
  const { data, error, refetch } = useSchedulesOf(job.jobId)
  return (
    <Section title={t('jobs.schedules')} actions={<EditLink job={job} />}>
      {error && <ErrorBox error={error} retry={() => void refetch()} />}
      {data === undefined && !error && <Loading />}
      {data?.items.length === 0 && <Paper withBorder><EmptyState title={t('jobs.noSchedule')} hint={t('jobs.noScheduleHint')} /></Paper>}
      {data && <ScheduleCards schedules={data.items} />}
    </Section>
  )
}

function EditLink({ job }: { job: JobFound }) {
  const t = useT()
  return <ButtonLink to="/jobs/$jobId/edit" params={{ jobId: job.jobId }} hash="schedules" size="compact-xs" leftSection={<IconPencil size={13} />}>{t('app.edit')}</ButtonLink>
}
