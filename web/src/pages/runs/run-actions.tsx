/** What a person can order a run to do, as its kind and its state allow. */
import { Switch, Text } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { IconBan, IconPlayerPlay, IconPlayerStop, IconRefresh, IconSquareX } from '@tabler/icons-react'
import { getRouteApi } from '@tanstack/react-router'
import { useState } from 'react'
import { request } from '@/api/client'
import { useT } from '@/i18n'
import { Action } from '@/parts/actions'
import { TextLink } from '@/parts/link'
import { hasEnded, lookOf } from '@/states'
import type { RunDetail } from './run'

const route = getRouteApi('/runs/$runId')
const TOUCHES = ['run', 'activity', 'overview'] as const
const REOPENED = ['FAILED', 'STOPPED']

/** Orders to a node, or to a tenant's task, are given where that is. */
export function RunActions({ run }: { run: RunDetail }) {
  const t = useT()
  if (run.planId !== null) return <Text size="sm" c="dimmed">{t('runs.steeredByPlan')} <TextLink to="/plans/$planId" params={{ planId: run.planId }}>{run.target.name}</TextLink></Text>
  if (run.kind === 'workflow') return <WorkflowRunActions run={run} />
  return run.parent === null ? <JobRunActions run={run} /> : null
}

function JobRunActions({ run }: { run: RunDetail }) {
  const t = useT()
  const navigate = route.useNavigate()
  const failed = lookOf(run.status).tone === 'bad'
  if (hasEnded(run.status)) {
    if (run.target.deleted) return null
    return (
      <Action label={t('runs.retry')} icon={IconRefresh} primary={failed} reason confirm={t('runs.retryAsk', { name: run.target.name })} touches={TOUCHES}
        call={(reason) => request('POST', '/api/v1/runs/{runId}:retry', { path: { runId: run.id }, body: { reason: reason || undefined } })}
        done={(made) => {
          notifications.show({ message: t('runs.retried', { id: made.runId }) })
          void navigate({ to: '/runs/$runId', params: { runId: made.runId }, search: {} })
        }} />
    )
  }
  return (
    <Action label={t('runs.cancel')} icon={IconBan} danger reason confirm={t('runs.cancelAsk', { id: run.id })} touches={TOUCHES}
      call={(reason) => request('POST', '/api/v1/activity:cancel', { body: { ids: [run.id], reason: reason || undefined, dryRun: false } })}
      done={({ refused: [refused] }) => refused && notifications.show({ color: 'red', title: refused.code, message: refused.message })} />
  )
}

function WorkflowRunActions({ run }: { run: RunDetail }) {
  const t = useT()
  const path = { runId: run.id }
  const said = (reason: string) => ({ reason: reason || undefined })
  const reopened = REOPENED.includes(run.status)
  if (run.status === 'CLOSED') return null
  return (
    <>
      {run.status === 'FAILED' && <Action label={t('runs.retryFailed')} icon={IconRefresh} primary reason confirm={t('runs.retryFailedAsk')} touches={TOUCHES} call={(reason) => request('POST', '/api/v1/runs/{runId}:retry-failed', { path, body: said(reason) })} />}
      {reopened && <Action label={t('runs.resume')} icon={IconPlayerPlay} primary={run.status === 'STOPPED'} reason confirm={t('runs.resumeAsk')} touches={TOUCHES} call={(reason) => request('POST', '/api/v1/runs/{runId}:resume', { path, body: said(reason) })} />}
      {!hasEnded(run.status) && <StopAction run={run} />}
      {(reopened || !hasEnded(run.status)) && <Action label={t('runs.close')} icon={IconSquareX} danger reason confirm={t('runs.closeAsk')} touches={TOUCHES} call={(reason) => request('POST', '/api/v1/runs/{runId}:close', { path, body: said(reason) })} />}
    </>
  )
}

function StopAction({ run }: { run: RunDetail }) {
  const t = useT()
  const [force, setForce] = useState(false)
  const forced = force || run.status === 'STOPPING'
  return (
    <Action label={run.status === 'STOPPING' ? t('runs.breakOff') : t('runs.stop')} icon={IconPlayerStop} danger reason confirm={t('runs.stopAsk')} touches={TOUCHES}
      call={(reason) => request('POST', '/api/v1/runs/{runId}:stop', { path: { runId: run.id }, body: { force: forced, reason: reason || undefined } })}>
      <Text size="sm">{t('runs.stopMeans')}</Text>
      <Switch label={t('runs.stopForce')} checked={forced} disabled={run.status === 'STOPPING'} onChange={(event) => setForce(event.currentTarget.checked)} />
    </Action>
  )
}
