/** All plans, newest first, with how far each is. */
import { Button, Text } from '@mantine/core'
import { IconPlus, IconRocket } from '@tabler/icons-react'
import { Link, getRouteApi } from '@tanstack/react-router'
import { useMemo } from 'react'
import { request } from '@/api/client'
import { useRows } from '@/api/queries'
import type { PlanRow } from '@/api/shapes'
import { useT } from '@/i18n'
import { FilterBar } from '@/parts/filters'
import { RowLink } from '@/parts/link'
import { EmptyState, PageTitle } from '@/parts/page'
import { type Column, Table } from '@/parts/table'
import { StateBadge, useStateText } from '@/states'
import { Instant } from '@/time'
import { ProgressCell } from './progress'
import { PLAN_STATES } from './search'

const route = getRouteApi('/plans')

export function PlansPage() {
  const t = useT()
  const stateText = useStateText()
  const search = route.useSearch()
  const navigate = route.useNavigate()
  const rows = useRows<PlanRow>('plans', request('GET', '/api/v1/plans', { query: { ...search, include: 'tasks', size: 50 } }))
  const filtered = search.keyword !== undefined || search.status !== undefined
  return (
    <>
      <PageTitle title={t('plans.title')}><NewPlan /></PageTitle>
      <FilterBar search={search} onChange={(patch) => void navigate({ search: (before) => ({ ...before, ...patch }), replace: true })}
        fields={[
          { kind: 'text', name: 'keyword', label: t('app.name') },
          { kind: 'one', name: 'status', label: t('app.status'), width: 150, choices: PLAN_STATES.map((value) => ({ value, label: stateText(value) })) },
        ]} />
      <Table label={t('plans.title')} rows={rows} idOf={(each) => each.planId} columns={useColumns()}
        empty={filtered ? <EmptyState title={t('plans.noneFound')} icon={IconRocket} /> : <EmptyState title={t('plans.empty')} hint={t('plans.emptyHint')} icon={IconRocket}><NewPlan /></EmptyState>} />
    </>
  )
}

function NewPlan() {
  const t = useT()
  return <Button component={Link} to="/plans/new" size="xs" leftSection={<IconPlus size={15} />}>{t('plans.new')}</Button>
}

function useColumns(): readonly Column<PlanRow>[] {
  const t = useT()
  return useMemo(
    () => [
      { key: 'status', header: t('app.status'), width: 'minmax(104px, 130px)', render: (plan) => <StateBadge status={plan.status} /> },
      { key: 'name', header: t('app.name'), width: 'minmax(90px, 2fr)', render: (plan) => <RowLink to="/plans/$planId" params={{ planId: plan.planId }}>{plan.name}</RowLink> },
      { key: 'id', header: t('plans.ownId'), width: 'minmax(80px, 1fr)', wide: true, render: (plan) => <Text span inherit ff="monospace" size="xs" c="dimmed">{plan.planId}</Text> },
      { key: 'progress', header: t('plans.progress'), width: 'minmax(92px, 1.6fr)', render: (plan) => plan.tasks && <ProgressCell counts={plan.tasks} /> },
      { key: 'wave', header: t('plans.wave'), width: '84px', wide: true, align: 'end', render: (plan) => plan.totalWaves && t('plans.waveOf', { wave: Math.min(plan.currentWave, plan.totalWaves), total: plan.totalWaves }) },
      { key: 'created', header: t('app.created'), width: '120px', wide: true, align: 'end', render: (plan) => <Instant at={plan.createdAt} /> },
    ],
    [t],
  )
}
