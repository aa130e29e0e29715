/** One plan: how it stands and why, its waves, and the stages of all of its tenants. */
import { Tabs, Text } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import { useState } from 'react'
import { request } from '@/api/client'
import { useAnswer } from '@/api/queries'
import type { Plan } from '@/api/shapes'
import { useT } from '@/i18n'
import { Beside } from '@/parts/beside'
import { FilterBar } from '@/parts/filters'
import { JsonView } from '@/parts/json'
import { ErrorBox, Loading, PageTitle } from '@/parts/page'
import { StateBadge, useStateText } from '@/states'
import { Instant } from '@/time'
import { BulkActions } from './bulk'
import { PlanHistory } from './history'
import { Matrix } from './matrix'
import { PlanActions } from './plan-actions'
import classes from './plan.module.css'
import { ProgressBar, ProgressLegend } from './progress'
import { type PlanSearch, TASK_STATES } from './search'
import { Standing } from './standing'
import { TenantPanel } from './tenant'
import { Waves } from './waves'

const route = getRouteApi('/plans/$planId')

function usePatch() {
  const navigate = route.useNavigate()
  return (patch: Partial<PlanSearch>) => void navigate({ search: (before) => ({ ...before, ...patch }), replace: true, resetScroll: false })
}

export function PlanPage() {
  const t = useT()
  const stateText = useStateText()
  const { planId } = route.useParams()
  const search = route.useSearch()
  const patch = usePatch()
  const { data: plan, error, refetch } = useAnswer('plan', request('GET', '/api/v1/plans/{planId}', { path: { planId } }))
  if (plan === undefined) return <><PageTitle title={t('plans.one', { name: planId })} />{error ? <ErrorBox error={error} retry={() => void refetch()} /> : <Loading />}</>
  const show = (status: string | undefined) => patch({ status: status as PlanSearch['status'], tab: undefined })
  return (
    <>
      <PageTitle title={plan.name} windowTitle={`${stateText(plan.status)} · ${plan.name}`} before={<StateBadge status={plan.status} />}><PlanActions plan={plan} /></PageTitle>
      <Facts plan={plan} />
      {error && <ErrorBox error={error} retry={() => void refetch()} />}
      <Standing plan={plan} />
      <ProgressBar counts={plan.tasks} thick />
      <ProgressLegend counts={plan.tasks} chosen={search.status} onChoose={show} />
      <Waves plan={plan} chosen={search.wave} onChoose={(wave) => patch({ wave, tab: undefined })} />
      <Parts plan={plan} />
    </>
  )
}

function Facts({ plan }: { plan: Plan }) {
  const t = useT()
  return (
    <div className={classes.facts}>
      <Text span inherit ff="monospace" size="xs">{plan.planId}</Text>
      <span><b>{t('plans.tenantCount', { n: plan.tenants })}</b>, {t('plans.atATime', { n: plan.maxConcurrency })}</span>
      <span>{t('plans.budget')}: <b>{plan.failureBudget ?? t('plans.noBudget')}</b></span>
      {plan.startedAt && <span>{t('plans.started')}: <b><Instant at={plan.startedAt} /></b></span>}
      {plan.endedAt && <span>{t('plans.ended')}: <b><Instant at={plan.endedAt} /></b></span>}
      {plan.description && <span>{plan.description}</span>}
    </div>
  )
}

function Parts({ plan }: { plan: Plan }) {
  const t = useT()
  const { tab = 'tenants' } = route.useSearch()
  const patch = usePatch()
  return (
    <Tabs value={tab} onChange={(next) => patch({ tab: next === 'tenants' ? undefined : (next as PlanSearch['tab']) })} keepMounted={false} mt="lg">
      <Tabs.List mb="sm">
        <Tabs.Tab value="tenants">{t('plans.tenants')}</Tabs.Tab>
        <Tabs.Tab value="history">{t('plans.history')}</Tabs.Tab>
        <Tabs.Tab value="details">{t('plans.details')}</Tabs.Tab>
      </Tabs.List>
      <Tabs.Panel value="tenants"><Tenants plan={plan} /></Tabs.Panel>
      <Tabs.Panel value="history"><PlanHistory planId={plan.planId} /></Tabs.Panel>
      <Tabs.Panel value="details"><JsonView label={t('plans.details')} value={plan} /></Tabs.Panel>
    </Tabs>
  )
}

/** The matrix, and beside it the tenant that is looked at. */
function Tenants({ plan }: { plan: Plan }) {
  const t = useT()
  const stateText = useStateText()
  const { keyword, status, wave, tenant } = route.useSearch()
  const patch = usePatch()
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set())
  const close = () => patch({ tenant: undefined, part: undefined })
  const panel = tenant === undefined ? null : <TenantPanel key={tenant} plan={plan} tenantId={tenant} onClose={close} />
  return (
    <Beside label={t('plans.tenantNamed', { name: tenant ?? '' })} panel={panel} onClose={close}>
      <FilterBar search={{ keyword, status }} onChange={patch}
        fields={[
          { kind: 'text', name: 'keyword', label: t('plans.filterTenant') },
          { kind: 'one', name: 'status', label: t('app.status'), width: 170, choices: TASK_STATES.map((value) => ({ value, label: stateText(value) })) },
        ]} />
      <BulkActions planId={plan.planId} tenants={[...chosen]} done={() => setChosen(new Set())} />
      <Matrix plan={plan} filter={{ keyword, status, wave }} looked={tenant} chosen={chosen} onChosen={setChosen} />
    </Beside>
  )
}
