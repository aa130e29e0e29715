/** All jobs, each with what became of it last and when it runs next. */
import { Text } from '@mantine/core'
import { IconPlayerPause, IconPlayerPlay, IconPlayerTrackNext, IconPlus } from '@tabler/icons-react'
import { getRouteApi } from '@tanstack/react-router'
import { useMemo } from 'react'
import { request } from '@/api/client'
import { useRows } from '@/api/queries'
import type { JobRow } from '@/api/shapes'
import { useT } from '@/i18n'
import { type RowAction, RowMenu } from '@/parts/actions'
import { type Field, FilterBar } from '@/parts/filters'
import { ButtonLink, RowLink, TextLink } from '@/parts/link'
import { EmptyState, PageTitle } from '@/parts/page'
import { type Column, Table } from '@/parts/table'
import { StateBadge } from '@/states'
import { Instant } from '@/time'
import type { jobsSearch } from './search'
import { TYPES } from './types'

const route = getRouteApi('/jobs')
type Search = ReturnType<typeof jobsSearch>

export function JobsPage() {
  const t = useT()
  const search = route.useSearch()
  const navigate = route.useNavigate()
  const enabled = search.enabled === undefined ? undefined : search.enabled === 'true'
  const rows = useRows<JobRow>('jobs', request('GET', '/api/v1/jobs', { query: { ...search, enabled, include: 'runs', size: 100 } }))
  const filtered = Object.keys(search).length > 0
  return (
    <>
      <PageTitle title={t('jobs.title')}><CreateButton /></PageTitle>
      <FilterBar fields={useFields(search)} search={search} onChange={(patch) => void navigate({ search: (before) => ({ ...before, ...patch }), replace: true })} />
      <Table label={t('jobs.title')} rows={rows} idOf={(each) => each.jobId} columns={useColumns()}
        empty={filtered ? <EmptyState title={t('jobs.noMatch')} /> : <EmptyState title={t('jobs.empty')} hint={t('jobs.emptyHint')}><CreateButton /></EmptyState>} />
    </>
  )
}

function CreateButton() {
  const t = useT()
  return <ButtonLink to="/jobs/new" variant="filled" leftSection={<IconPlus size={15} />}>{t('jobs.create')}</ButtonLink>
}

function useFields({ type }: Search): readonly Field<keyof Search>[] {
  const t = useT()
  const types = [...new Set<string>([...TYPES, ...(type === undefined ? [] : [type])])]
  return [
    { kind: 'text', name: 'keyword', label: t('app.name') },
    { kind: 'one', name: 'type', label: t('app.type'), width: 120, choices: types.map((value) => ({ value, label: value })) },
    { kind: 'one', name: 'enabled', label: t('app.enabled'), width: 130, choices: [{ value: 'true', label: t('app.enabled') }, { value: 'false', label: t('app.disabled') }] },
  ]
}

function useColumns(): readonly Column<JobRow>[] {
  const t = useT()
  return useMemo(
    () => [
      { key: 'name', header: t('app.name'), width: 'minmax(90px, 2.2fr)', render: (job) => <Name job={job} /> },
      { key: 'status', header: t('jobs.lastStatus'), width: 'minmax(108px, 1.2fr)', render: (job) => <LastStatus job={job} /> },
      { key: 'last', header: t('jobs.lastRun'), width: '110px', wide: true, render: (job) => <Instant at={job.lastRun?.startedAt ?? job.lastRun?.createdAt} /> },
      { key: 'next', header: t('jobs.nextRun'), width: 'minmax(84px, 110px)', render: (job) => <NextRun job={job} /> },
      { key: 'schedules', header: t('jobs.schedules'), width: '84px', wide: true, align: 'end', render: (job) => <span className="figures">{job.schedules}</span> },
      { key: 'type', header: t('app.type'), width: '80px', wide: true, render: (job) => job.type },
      { key: 'more', header: '', width: '30px', align: 'end', render: (job) => <Menu job={job} /> },
    ],
    [t],
  )
}

function Name({ job }: { job: JobRow }) {
  return (
    <>
      <RowLink to="/jobs/$jobId" params={{ jobId: job.jobId }} title={job.name}>{job.name}</RowLink>
      {job.description && <Text span c="dimmed" size="xs" ml={8} title={job.description}>{job.description}</Text>}
    </>
  )
}

function LastStatus({ job: { lastRun } }: { job: JobRow }) {
  const t = useT()
  if (!lastRun) return <Text span inherit c="dimmed">{t('jobs.neverRan')}</Text>
  return <TextLink to="/runs/$runId" params={{ runId: lastRun.id }} underline="never" title={lastRun.error ?? undefined}><StateBadge status={lastRun.status} /></TextLink>
}

function NextRun({ job }: { job: JobRow }) {
  if (!job.enabled) return <StateBadge status="DISABLED" />
  return job.paused ? <StateBadge status="PAUSED" /> : <Instant at={job.nextRunAt} />
}

function Menu({ job }: { job: JobRow }) {
  const t = useT()
  const path = { jobId: job.jobId }
  const run: RowAction = { label: t('jobs.runNow'), icon: IconPlayerTrackNext, call: request('POST', '/api/v1/jobs/{jobId}:run', { path }), touches: ['jobs', 'activity'], done: t('jobs.running', { name: job.name }) }
  const hold: RowAction = { label: t('jobs.disable'), icon: IconPlayerPause, call: request('POST', '/api/v1/jobs/{jobId}:disable', { path }), touches: ['jobs'] }
  const go: RowAction = { label: t('jobs.enable'), icon: IconPlayerPlay, call: request('POST', '/api/v1/jobs/{jobId}:enable', { path }), touches: ['jobs'] }
  return <RowMenu name={job.name} actions={[run, job.enabled ? hold : go]} />
}
