/** Orders to one tenant's task: those that make sense as it stands. */
import { Text } from '@mantine/core'
import { IconBan, IconPlayerPause, IconPlayerPlay, IconRefresh } from '@tabler/icons-react'
import { useState } from 'react'
import { request } from '@/api/client'
import type { Topic } from '@/api/queries'
import type { Plan } from '@/api/shapes'
import { useT } from '@/i18n'
import { Action } from '@/parts/actions'
import { hasEnded } from '@/states'
import { FromCheckpoint } from './plan-actions'
import type { Task } from './tasks'

const TOUCHES: readonly Topic[] = ['plan', 'plans']

export function TenantActions({ plan, task }: { plan: Plan; task: Task }) {
  const t = useT()
  const { tenantId, status, pauseRequested } = task
  const which = { path: { tenantId }, query: { planId: plan.planId } }
  const open = !hasEnded(status)
  const resumable = status === 'PAUSED' || pauseRequested
  const retryable = (status === 'FAILED' || status === 'CANCELLED') && plan.status !== 'CANCELLED'
  const ask = { touches: TOUCHES, reason: true } as const
  return (
    <>
      {retryable && <Retry task={task} planId={plan.planId} />}
      {open && resumable && <Action {...ask} label={t('plans.resume')} icon={IconPlayerPlay} confirm={t('plans.resumeTaskAsk', { tenant: tenantId })} primary
        call={(reason) => request('POST', '/api/v1/tenants/{tenantId}/task:resume', { ...which, body: { reason: reason || undefined } })} />}
      {open && !resumable && <Action {...ask} label={t('plans.pause')} icon={IconPlayerPause} confirm={t('plans.pauseTaskAsk', { tenant: tenantId })}
        call={(reason) => request('POST', '/api/v1/tenants/{tenantId}/task:pause', { ...which, body: { reason: reason || undefined } })} />}
      {open && <Action {...ask} label={t('plans.cancel')} icon={IconBan} confirm={t('plans.cancelTaskAsk', { tenant: tenantId })} danger
        call={(reason) => request('POST', '/api/v1/tenants/{tenantId}/task:cancel', { ...which, body: { reason: reason || undefined } })} />}
    </>
  )
}

function Retry({ task: { tenantId, hasCheckpoint }, planId }: { task: Task; planId: string }) {
  const t = useT()
  const [fromCheckpoint, setFromCheckpoint] = useState(true)
  return (
    <Action label={t('plans.retry')} icon={IconRefresh} touches={TOUCHES} confirm={t('plans.retryTaskAsk', { tenant: tenantId })} reason primary
      call={(reason) => request('POST', '/api/v1/tenants/{tenantId}/task:retry', { path: { tenantId }, query: { planId }, body: { fromCheckpoint, reason: reason || undefined } })}>
      {hasCheckpoint ? <FromCheckpoint value={fromCheckpoint} onChange={setFromCheckpoint} /> : <Text size="sm">{t('plans.removeCheckpointHint')}</Text>}
    </Action>
  )
}
