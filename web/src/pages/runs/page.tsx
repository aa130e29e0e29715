/** All runs of jobs and workflows, newest first. The worked example of a list: read web/README.md beside it. */
import { Text } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import { useCallback, useState } from 'react'
import { request } from '@/api/client'
import { useRows } from '@/api/queries'
import type { Run } from '@/api/shapes'
import { useT } from '@/i18n'
import { type Field, FilterBar } from '@/parts/filters'
import { EmptyState, PageTitle } from '@/parts/page'
import { Table } from '@/parts/table'
import { TargetPicker } from '@/parts/target-picker'
import { RUN_STATES, useStateText } from '@/states'
import { TRIGGERS, triggerText } from '@/triggers'
import { BulkActions } from './bulk'
import { useColumns } from './columns'
import { type RunsSearch, SPANS } from './search'
import { TimeFilter } from './time-filter'

const route = getRouteApi('/runs')
/** Of how many the longest and the shortest are found. */
const WITHIN = 10_000

export function RunsPage() {
  const t = useT()
  const search = route.useSearch()
  const navigate = route.useNavigate()
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set())
  const asked = useAsked(search)
  const change = useCallback((patch: Partial<RunsSearch>) => void navigate({ search: (before) => ({ ...before, ...patch }), replace: true }), [navigate])
  const rows = useRows<Run>('activity', request('GET', '/api/v1/activity', { query: { ...asked, status: asked.status?.join(','), sort: search.sort, size: 100 } }))
  const columns = useColumns(search.sort, change)
  return (
    <>
      <PageTitle title={t('runs.title')}><BulkActions ids={[...chosen]} filter={asked} done={() => setChosen(new Set())} /></PageTitle>
      <FilterBar fields={useFields(search, change)} search={search} onChange={change} />
      {search.sort && search.sort !== 'newest' && <Text size="xs" c="dimmed" mb="xs" role="status">{t('runs.within', { n: WITHIN })}</Text>}
      <Table label={t('runs.title')} rows={rows} idOf={(run) => run.id} columns={columns} selection={{ chosen, change: setChosen }}
        empty={<EmptyState title={t('runs.empty')} hint={t('runs.emptyHint')} />} />
    </>
  )
}

/** What the list is asked: the last hours are those before it was opened. */
function useAsked({ last, sort: _, ...filter }: RunsSearch): Omit<RunsSearch, 'last' | 'sort'> {
  const [opened] = useState(() => Date.now())
  return last === undefined ? filter : { ...filter, from: new Date(opened - SPANS[last]).toISOString() }
}

function useFields(search: RunsSearch, change: (patch: Partial<RunsSearch>) => void): readonly Field<keyof RunsSearch>[] {
  const t = useT()
  const stateText = useStateText()
  return [
    { kind: 'own', name: 'jobId', also: ['workflowId'], label: t('runs.jobOrWorkflow'), show: () => <TargetPicker label={t('runs.jobOrWorkflow')} value={search} onChange={change} width={195} isFirst /> },
    { kind: 'many', name: 'status', label: t('app.status'), width: 150, choices: RUN_STATES.map((value) => ({ value, label: stateText(value) })) },
    { kind: 'one', name: 'kind', label: t('runs.kind'), width: 110, choices: [{ value: 'job', label: t('runs.job') }, { value: 'workflow', label: t('runs.workflow') }] },
    { kind: 'one', name: 'trigger', label: t('runs.trigger'), width: 120, choices: TRIGGERS.map((value) => ({ value, label: triggerText(t, value) })) },
    { kind: 'text', name: 'tenantId', label: t('runs.tenant'), width: 115 },
    { kind: 'own', name: 'last', also: ['from', 'to'], label: t('runs.time'), show: () => <TimeFilter search={search} onChange={change} /> },
  ]
}
