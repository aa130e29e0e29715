/** What failed and nobody has acknowledged: the newest first, but none moves while the pointer is on it. */
import { Badge, Button, Group, Paper, Text } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { IconArrowUp, IconCheck, IconChecks, IconCircleCheck, IconRefresh } from '@tabler/icons-react'
import { useState } from 'react'
import { type Schemas, request } from '@/api/client'
import type { Topic } from '@/api/queries'
import { useT } from '@/i18n'
import { Action } from '@/parts/actions'
import { TargetLink, TextLink } from '@/parts/link'
import { Section } from '@/parts/page'
import { useSteady } from '@/parts/steady'
import { FAILED_STATES, StateBadge } from '@/states'
import { Instant } from '@/time'
import classes from './home.module.css'

type Failures = Schemas['FailuresShown']
type Failure = Schemas['FailureShown']

const SEEN: readonly Topic[] = ['failures', 'overview']
const STARTED: readonly Topic[] = ['activity', 'overview']
const idOf = ({ target }: Failure) => `${target.kind} ${target.id}`

export function FailuresPanel({ failures }: { failures: Failures }) {
  const t = useT()
  const [held, setHeld] = useState(false)
  const { rows, waiting, adopt } = useSteady(failures.items, idOf, held)
  const until = failures.items[0]?.lastAt
  return (
    <Section title={t('home.inbox')} actions={until !== undefined && failures.total > 1 && (
      <Action label={t('home.acknowledgeAll')} icon={IconChecks} touches={SEEN} confirm={t('home.acknowledgeAllAsk', { n: failures.total })} reason
        call={(reason) => request('POST', '/api/v1/failures:acknowledge', { body: { all: true, until, reason: reason || undefined } })} />
    )}>
      <Paper withBorder className={classes.inbox} onPointerEnter={(event) => event.pointerType === 'mouse' && setHeld(true)} onPointerLeave={() => setHeld(false)}>
        {waiting > 0 && <Button className={classes.newer} size="compact-sm" radius="xl" leftSection={<IconArrowUp size={14} />} onClick={adopt}>{t('app.newer', { n: waiting })}</Button>}
        {rows.length === 0 && <Group gap={8} p="sm"><IconCircleCheck size={18} className={classes.fine} aria-hidden /><Text size="sm" c="dimmed">{t('home.noFailures')}</Text></Group>}
        {rows.map((each) => <FailureRow key={idOf(each)} failure={each} onSeen={() => setHeld(false)} />)}
        {failures.total > failures.items.length && <Text size="xs" c="dimmed" p="sm">{t('home.moreFailures', { n: failures.total - failures.items.length })}</Text>}
      </Paper>
    </Section>
  )
}

interface FailureProps {
  failure: Failure
  onSeen: () => void
}

function FailureRow({ failure, onSeen }: FailureProps) {
  const t = useT()
  const { target, count, lastRunId, error } = failure
  return (
    <article className={classes.failure}>
      <div className={classes.what}>
        <StateBadge status={failure.status} compact />
        <TargetLink target={target} />
        {count > 1 && <Count failure={failure} />}
        <Text span size="xs" c="dimmed" className={classes.ago}><Instant at={failure.lastAt} /></Text>
      </div>
      <TextLink to="/runs/$runId" params={{ runId: lastRunId }} className={classes.error} c="dimmed" title={error ?? undefined}>{error ?? t('home.openLast')}</TextLink>
      <Group gap={6} className={classes.actions}><FailureActions failure={failure} onSeen={onSeen} /></Group>
    </article>
  )
}

/** Which runs they were, as the filter of the list of runs. Those of a plan are shown with it. */
const filterOf = ({ target, madeSince }: Failure) => ({
  status: target.kind === 'job' ? [...FAILED_STATES] : ['FAILED' as const],
  ...(target.kind === 'job' ? { jobId: target.id } : { workflowId: target.id }),
  from: madeSince,
})

function Count({ failure }: { failure: Failure }) {
  const t = useT()
  const text = failure.countIsExact ? t('home.times', { n: failure.count }) : t('home.timesOrMore', { n: failure.count })
  if (failure.target.kind === 'plan') return <Badge size="sm" variant="default" tt="none">{text}</Badge>
  return <TextLink to="/runs" search={filterOf(failure)} underline="never" className={classes.count}>{text}</TextLink>
}

function FailureActions({ failure, onSeen }: FailureProps) {
  const t = useT()
  const { target, count, lastAt, lastRunId } = failure
  const named = { name: target.name, n: count }
  const why = (reason: string) => reason || undefined
  const say = (message: string) => notifications.show({ message })
  return (
    <>
      {target.kind !== 'plan' && (
        <Action label={t('home.again')} icon={IconRefresh} touches={STARTED} done={({ runId }) => say(t('home.begun', { name: target.name, id: runId }))}
          call={() => request('POST', '/api/v1/runs/{runId}:retry', { path: { runId: lastRunId } })} />
      )}
      {target.kind !== 'plan' && count > 1 && (
        <Action label={t('home.againAll')} touches={STARTED} confirm={t('home.againAllAsk', named)} reason
          call={(reason) => request('POST', '/api/v1/activity:retry', { body: { filter: filterOf(failure), reason: why(reason) } })}
          done={({ done }) => say(t('home.begunMany', { n: done }))} />
      )}
      {target.kind === 'plan' && (
        <Action label={t('home.againAll')} icon={IconRefresh} touches={['plan', ...STARTED]} confirm={t('home.againAllAsk', named)} reason
          call={(reason) => request('POST', '/api/v1/plans/{planId}:retry-failed', { path: { planId: target.id }, body: { reason: why(reason) } })} />
      )}
      <Action label={t('home.acknowledge')} icon={IconCheck} touches={SEEN} confirm={t('home.acknowledgeAsk', named)} reason done={onSeen}
        call={(reason) => request('POST', '/api/v1/failures:acknowledge', { body: { target: { kind: target.kind, id: target.id }, until: lastAt, reason: why(reason) } })} />
    </>
  )
}
