/** Orders to a whole plan: those that make sense as it stands. */
import { Checkbox, Text } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { IconBan, IconPlayerPause, IconPlayerPlay, IconRefresh } from '@tabler/icons-react'
import { useState } from 'react'
import { request } from '@/api/client'
import type { Topic } from '@/api/queries'
import type { Plan } from '@/api/shapes'
import { useT } from '@/i18n'
import { Action } from '@/parts/actions'

const TOUCHES: readonly Topic[] = ['plan', 'plans']

export function PlanActions({ plan }: { plan: Plan }) {
  const { status } = plan
  const goesOn = status === 'RUNNING' || status === 'PAUSED'
  return (
    <>
      {status === 'READY' && <Start plan={plan} />}
      {status === 'RUNNING' && <Pause plan={plan} />}
      {plan.tasks.failed > 0 && status !== 'CANCELLED' && <RetryFailed plan={plan} />}
      {status === 'PAUSED' && <Resume plan={plan} />}
      {(status === 'READY' || goesOn) && <Cancel plan={plan} />}
    </>
  )
}

function Start({ plan: { planId } }: { plan: Plan }) {
  const t = useT()
  const call = (reason: string) => request('POST', '/api/v1/plans/{planId}:start', { path: { planId }, body: { reason: reason || undefined } })
  return <Action label={t('plans.start')} icon={IconPlayerPlay} call={call} touches={TOUCHES} confirm={t('plans.startAsk')} reason primary />
}

function Pause({ plan: { planId } }: { plan: Plan }) {
  const t = useT()
  const [tasks, setTasks] = useState(true)
  const call = (reason: string) => request('POST', '/api/v1/plans/{planId}:pause', { path: { planId }, body: { tasks, reason: reason || undefined } })
  return (
    <Action label={t('plans.pause')} icon={IconPlayerPause} call={call} touches={TOUCHES} confirm={t('plans.pauseAsk')} reason>
      <Checkbox label={t('plans.pauseTasks')} description={t('plans.pauseTasksHint')} checked={tasks} onChange={(event) => setTasks(event.currentTarget.checked)} />
    </Action>
  )
}

/** What a shut gate, or a budget that is used up, would refuse is asked for in so many words. */
function Resume({ plan: { planId, pauseReason } }: { plan: Plan }) {
  const t = useT()
  const [override, setOverride] = useState(false)
  const refusable = pauseReason === 'gate' || pauseReason === 'failure_budget'
  const call = (reason: string) => request('POST', '/api/v1/plans/{planId}:resume', { path: { planId }, body: { override: refusable && override, reason: reason || undefined } })
  return (
    <Action label={t('plans.resume')} icon={IconPlayerPlay} call={call} touches={TOUCHES} confirm={t('plans.resumeAsk')} reason primary done={() => setOverride(false)}>
      {refusable && <Checkbox label={t('plans.override')} description={t('plans.overrideHint')} checked={override} onChange={(event) => setOverride(event.currentTarget.checked)} />}
    </Action>
  )
}

function RetryFailed({ plan: { planId, tasks } }: { plan: Plan }) {
  const t = useT()
  const [fromCheckpoint, setFromCheckpoint] = useState(true)
  const call = (reason: string) => request('POST', '/api/v1/plans/{planId}:retry-failed', { path: { planId }, body: { fromCheckpoint, reason: reason || undefined } })
  const tell = ({ retried, busyTenants }: { retried: number; busyTenants: string[] }) => {
    const left = busyTenants.length > 0 ? `. ${t('plans.retriedBusy', { tenants: busyTenants.join(', ') })}` : ''
    notifications.show({ message: t('plans.retried', { n: retried }) + left })
  }
  return (
    <Action label={t('plans.retryFailed')} icon={IconRefresh} call={call} touches={TOUCHES} confirm={t('plans.retryFailedAsk', { n: tasks.failed })} reason done={tell}>
      <FromCheckpoint value={fromCheckpoint} onChange={setFromCheckpoint} />
    </Action>
  )
}

export function FromCheckpoint({ value, onChange }: { value: boolean; onChange: (next: boolean) => void }) {
  const t = useT()
  return <Checkbox label={t('plans.fromCheckpoint')} description={t('plans.fromCheckpointHint')} checked={value} onChange={(event) => onChange(event.currentTarget.checked)} />
}

function Cancel({ plan: { planId } }: { plan: Plan }) {
  const t = useT()
  const call = (reason: string) => request('POST', '/api/v1/plans/{planId}:cancel', { path: { planId }, body: { reason: reason || undefined } })
  return (
    <Action label={t('plans.cancelPlan')} icon={IconBan} call={call} touches={TOUCHES} confirm={t('plans.cancelAsk')} reason danger>
      <Text size="sm">{t('plans.cancelHint')}</Text>
    </Action>
  )
}
