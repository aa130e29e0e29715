/** One tenant of a plan: how its task stands, stage by stage, its checkpoint, who did what to it, and what can be done about it. */
import { Group, Stack, Tabs, Text } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import { type Schemas, request } from '@/api/client'
import { useAnswer } from '@/api/queries'
import type { Plan } from '@/api/shapes'
import { type Key, useT } from '@/i18n'
import { en } from '@/i18n/en'
import { PanelTitle } from '@/parts/beside'
import { ErrorText } from '@/parts/error-text'
import { Fact, Facts } from '@/parts/facts'
import { JsonView } from '@/parts/json'
import { TextLink } from '@/parts/link'
import { ErrorBox, Loading } from '@/parts/page'
import { StateBadge, hasEnded } from '@/states'
import { Duration, Instant } from '@/time'
import { Checkpoint } from './checkpoint'
import { TaskHistory } from './history'
import classes from './plan.module.css'
import type { PlanSearch } from './search'
import { TenantActions } from './tenant-actions'

const route = getRouteApi('/plans/$planId')
type TaskDetail = Schemas['TaskShown']
type Stage = TaskDetail['stages'][number]

export function TenantPanel({ plan, tenantId, onClose }: { plan: Plan; tenantId: string; onClose: () => void }) {
  const { data, error, refetch } = useAnswer('plan', request('GET', '/api/v1/tenants/{tenantId}/task', { path: { tenantId }, query: { planId: plan.planId } }))
  return (
    <Stack gap="sm">
      <PanelTitle title={tenantId} onClose={onClose} />
      {data === undefined ? (error ? <ErrorBox error={error} retry={() => void refetch()} /> : <Loading />) : <Content plan={plan} task={data} />}
    </Stack>
  )
}

function Content({ plan, task }: { plan: Plan; task: TaskDetail }) {
  const t = useT()
  return (
    <>
      <Group gap="xs"><StateBadge status={task.status} />{task.pauseRequested && <Text size="xs" c="dimmed">{t('plans.pausing')}</Text>}</Group>
      <Group gap="xs"><TenantActions plan={plan} task={task} /></Group>
      <Known task={task} />
      {task.error && <ErrorText text={task.error} />}
      <Parts task={task} />
    </>
  )
}

function reasonText(t: ReturnType<typeof useT>, reason: string): string {
  const name = `because_${reason}`
  return name in en.plans ? t(`plans.${name}` as Key) : reason
}

function Known({ task }: { task: TaskDetail }) {
  const t = useT()
  const since = task.startedAt === null ? null : Date.parse(task.startedAt)
  return (
    <Facts>
      <Fact name={t('plans.wave')}>{task.wave}</Fact>
      {task.startedAt && <Fact name={t('plans.started')}><Instant at={task.startedAt} exact /></Fact>}
      {since !== null && <Fact name={t('plans.duration')}><Duration millis={task.endedAt ? Date.parse(task.endedAt) - since : null} since={hasEnded(task.status) ? null : task.startedAt} /></Fact>}
      {task.attempt > 1 && <Fact name={t('plans.attempt')}>{task.attempt}</Fact>}
      {task.reason && <Fact name={t('plans.reason')}>{reasonText(t, task.reason)}</Fact>}
      {task.runId && <Fact name={t('plans.run')}><TextLink to="/runs/$runId" params={{ runId: task.runId }}>{task.runId}</TextLink></Fact>}
    </Facts>
  )
}

function Parts({ task }: { task: TaskDetail }) {
  const t = useT()
  const { part = 'stages' } = route.useSearch()
  const navigate = route.useNavigate()
  const choose = (next: string | null) => void navigate({ search: (before) => ({ ...before, part: next === 'stages' ? undefined : (next as PlanSearch['part']) }), replace: true, resetScroll: false })
  return (
    <Tabs value={part} onChange={choose} keepMounted={false} classNames={{ tab: classes.tab }} aria-label={t('plans.parts')}>
      <Tabs.List mb="xs">
        <Tabs.Tab value="stages">{t('plans.stages')}</Tabs.Tab>
        <Tabs.Tab value="checkpoint">{t('plans.checkpoint')}</Tabs.Tab>
        <Tabs.Tab value="history">{t('plans.history')}</Tabs.Tab>
      </Tabs.List>
      <Tabs.Panel value="stages"><Stages task={task} /></Tabs.Panel>
      <Tabs.Panel value="checkpoint"><Checkpoint task={task} /></Tabs.Panel>
      <Tabs.Panel value="history"><TaskHistory planId={task.planId} tenantId={task.tenantId} taskId={task.taskId} /></Tabs.Panel>
    </Tabs>
  )
}

function Stages({ task }: { task: TaskDetail }) {
  const t = useT()
  return (
    <Stack gap="sm">
      <ol className={classes.stages} aria-label={t('plans.stages')}>{task.stages.map((stage) => <StageRow key={stage.name} stage={stage} runId={task.runId} />)}</ol>
      {Object.keys(task.params).length > 0 && <><Text size="xs" c="dimmed">{t('plans.params')}</Text><JsonView label={t('plans.params')} value={task.params} /></>}
    </Stack>
  )
}

function StageRow({ stage, runId }: { stage: Stage; runId: string | null }) {
  const t = useT()
  const { startedAt, endedAt, attempts } = stage
  return (
    <li className={classes.stage}>
      <span className={classes.stageName}><StateBadge status={stage.status} compact /> {stage.name}{attempts > 1 && <Text span size="xs" c="dimmed">{t('plans.attempts', { n: attempts })}</Text>}</span>
      {startedAt ? <Duration millis={endedAt ? Date.parse(endedAt) - Date.parse(startedAt) : null} since={endedAt ? null : startedAt} /> : <span />}
      {runId && attempts > 0 ? <TextLink to="/runs/$runId" params={{ runId }} search={{ node: stage.name }} size="xs" aria-label={t('plans.logs', { stage: stage.name })}>{t('plans.openLogs')}</TextLink> : <span />}
      {stage.error && <span className={classes.stageError}>{stage.error}</span>}
    </li>
  )
}
