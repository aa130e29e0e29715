/** All workflows: how their last runs went, and when they run next. */
import { IconPlus } from '@tabler/icons-react'
import { getRouteApi } from '@tanstack/react-router'
import { useMemo } from 'react'
import { request } from '@/api/client'
import { useRows } from '@/api/queries'
import type { Run, WorkflowRow } from '@/api/shapes'
import { type Translate, useT } from '@/i18n'
import { type Field, FilterBar } from '@/parts/filters'
import { ButtonLink, RowLink } from '@/parts/link'
import { EmptyState, PageTitle } from '@/parts/page'
import { type Column, Table } from '@/parts/table'
import { StateBadge } from '@/states'
import { Duration, Instant } from '@/time'
import { RecentRuns } from './recent-runs'
import type { WorkflowsSearch } from './search'

const route = getRouteApi('/workflows')

export function WorkflowsPage() {
  const t = useT()
  const search = route.useSearch()
  const navigate = route.useNavigate()
  const rows = useRows<WorkflowRow>('workflows', request('GET', '/api/v1/workflows', { query: { ...search, enabled: search.enabled === undefined ? undefined : search.enabled === 'true', include: 'runs', size: 50 } }))
  const columns = useMemo(() => columnsOf(t), [t])
  const fields: readonly Field<keyof WorkflowsSearch>[] = [
    { kind: 'text', name: 'keyword', label: t('app.name') },
    { kind: 'one', name: 'enabled', label: t('app.status'), width: 140, choices: [{ value: 'true', label: t('app.enabled') }, { value: 'false', label: t('app.disabled') }] },
  ]
  return (
    <>
      <PageTitle title={t('workflows.title')}><New primary /></PageTitle>
      <FilterBar fields={fields} search={search} onChange={(patch) => void navigate({ search: (before) => ({ ...before, ...patch }), replace: true })} />
      <Table label={t('workflows.title')} rows={rows} idOf={(each) => each.workflowId} columns={columns}
        empty={search.keyword || search.enabled ? <EmptyState title={t('workflows.noMatch')} /> : <EmptyState title={t('workflows.empty')} hint={t('workflows.emptyHint')}><New /></EmptyState>} />
    </>
  )
}

function New({ primary = false }: { primary?: boolean }) {
  const t = useT()
  return <ButtonLink to="/workflows/new" variant={primary ? 'filled' : 'default'} leftSection={<IconPlus size={15} />} mt={primary ? 0 : 'xs'}>{t('workflows.create')}</ButtonLink>
}

const newest = (each: WorkflowRow): Run | undefined => each.recentRuns?.[0]

const columnsOf = (t: Translate): readonly Column<WorkflowRow>[] => [
  { key: 'name', header: t('app.name'), width: 'minmax(110px, 2fr)', render: (each) => <RowLink to="/workflows/$workflowId" params={{ workflowId: each.workflowId }}>{each.name}</RowLink> },
  { key: 'status', header: t('app.status'), width: '110px', wide: true, render: (each) => <StateBadge status={each.enabled ? (each.paused ? 'PAUSED' : 'ENABLED') : 'DISABLED'} /> },
  { key: 'recent', header: t('workflows.recent'), width: 'minmax(120px, 190px)', render: (each) => <RecentRuns runs={each.recentRuns ?? []} name={each.name} /> },
  { key: 'last', header: t('workflows.lastRun'), width: '112px', wide: true, render: (each) => <Instant at={newest(each)?.startedAt ?? newest(each)?.createdAt} /> },
  { key: 'took', header: t('workflows.duration'), width: '90px', wide: true, align: 'end', render: (each) => <Duration millis={newest(each)?.durationMillis} since={newest(each)?.endedAt ? null : newest(each)?.startedAt} /> },
  { key: 'next', header: t('workflows.nextRun'), width: '112px', render: (each) => <Instant at={each.nextRunAt} /> },
  { key: 'version', header: t('workflows.version'), width: '70px', wide: true, align: 'end', render: (each) => each.version },
  { key: 'updated', header: t('app.updated'), width: '112px', wide: true, render: (each) => <Instant at={each.updatedAt} /> },
]
