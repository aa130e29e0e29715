/** A job and its schedules on one page: made, changed, or made as a copy of another. */
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { request } from '@/api/client'
import { useAnswer } from '@/api/queries'
import type { Job, Schedule } from '@/api/shapes'
import { useT } from '@/i18n'
import { ErrorBox, Loading, PageTitle } from '@/parts/page'
import { draftOf as scheduleDraftOf, emptyDraft } from '@/parts/schedule/draft'
import { draftOf, emptyJob } from './draft'
import { JobForm, type Start } from './job-form'
import { useSchedulesOf } from './schedules'

const newRoute = getRouteApi('/jobs/new')
const editRoute = getRouteApi('/jobs/$jobId/edit')

export function NewJobPage() {
  const t = useT()
  const { from } = newRoute.useSearch()
  return (
    <>
      <PageTitle title={t('jobs.create')} />
      {from === undefined ? <Filled start={empty()} /> : <Read jobId={from} startOf={(job, schedules) => copyOf(job, schedules, t('jobs.copyName', { name: job.name }))} />}
    </>
  )
}

export function EditJobPage() {
  const t = useT()
  const { jobId } = editRoute.useParams()
  return (
    <>
      <PageTitle title={t('jobs.edit')} />
      <Read key={jobId} jobId={jobId} startOf={existing} />
    </>
  )
}

/** Every five minutes: whoever does not look fires it all the same. */
const empty = (): Start => ({ draft: emptyJob(), schedules: [{ key: 'first', draft: { ...emptyDraft(), kind: 'every', every: '5m' }, saved: null }], saved: null })

function existing(job: Job, schedules: readonly Schedule[]): Start {
  const draft = draftOf(job)
  return { draft, schedules: schedules.map((saved) => ({ key: saved.id, draft: scheduleDraftOf(saved), saved })), saved: { jobId: job.jobId, draft, schedules } }
}

function copyOf(job: Job, schedules: readonly Schedule[], name: string): Start {
  return { draft: { ...draftOf(job), name }, schedules: schedules.map(({ ...each }) => ({ key: each.id, draft: scheduleDraftOf(each), saved: null })), saved: null }
}

/** Begins with what there is now, and is not changed by what others do meanwhile. */
function Read({ jobId, startOf }: { jobId: string; startOf: (job: Job, schedules: readonly Schedule[]) => Start }) {
  const job = useAnswer('job', request('GET', '/api/v1/jobs/{jobId}', { path: { jobId } }))
  const schedules = useSchedulesOf(jobId)
  const [start, setStart] = useState<Start>()
  const fresh = !job.isFetching && !job.isPlaceholderData && !schedules.isFetching && !schedules.isPlaceholderData
  if (start === undefined && fresh && job.data && schedules.data) setStart(startOf(job.data, schedules.data.items))
  const error = job.error ?? schedules.error
  if (start !== undefined) return <Filled start={start} />
  return error ? <ErrorBox error={error} retry={() => { void job.refetch(); void schedules.refetch() }} /> : <Loading />
}

function Filled({ start }: { start: Start }) {
  const navigate = useNavigate()
  const done = (jobId: string) => void navigate({ to: '/jobs/$jobId', params: { jobId }, search: start.saved === null ? { made: 'true' } : {} })
  return <JobForm start={start} done={done} />
}
