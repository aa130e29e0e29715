/** Why a run of a job is not working now, and when that will change. That of a workflow says so among its facts: its graph stays where it is. */
import { Alert, Group, Progress, Text } from '@mantine/core'
import { IconHourglass, IconPhoneIncoming, IconRefresh, type Icon } from '@tabler/icons-react'
import { request } from '@/api/client'
import { useAnswer } from '@/api/queries'
import { type Key, useT } from '@/i18n'
import { TextLink } from '@/parts/link'
import { hasEnded, lookOf } from '@/states'
import { Instant, duration, useTicking } from '@/time'
import type { RunDetail } from './run'
import classes from './run.module.css'

const ICONS: Readonly<Record<string, Icon>> = { CALLBACK_PENDING: IconPhoneIncoming, RETRYING: IconRefresh }
const TITLES: Readonly<Record<string, Key>> = {
  QUEUED: 'runs.waitsQueued', NOT_DUE: 'runs.waitsNotDue', NO_WORKER: 'runs.waitsNoWorker', NO_CAPACITY: 'runs.waitsNoCapacity', RETRY_WAITING: 'runs.waitsRetry',
  WAITING_FOR_CALLBACK: 'runs.waitsCallback', WAITING_FOR_NODES: 'runs.waitsNodes', DELEGATED: 'runs.waitsDelegated',
}

export function Waiting({ run }: { run: RunDetail }) {
  if (hasEnded(run.status) || run.status === 'RUNNING' || run.status === 'STOPPING') return null
  return run.kind === 'job' ? <JobWaiting run={run} /> : null
}

function JobWaiting({ run }: { run: RunDetail }) {
  const t = useT()
  const { data } = useAnswer('run', request('GET', '/api/v1/runs/{run_id}/explain', { path: { run_id: Number(run.id) } }))
  if (!data || !(data.code in TITLES)) return null
  const busy = data.code === 'QUEUED' && run.target.kind === 'job' && !run.target.deleted
  return (
    <WaitingBox status={run.status} title={t(TITLES[data.code]!)}>
      <Text size="sm">{data.message}</Text>
      {data.until && <Countdown from={run.deadlineAt === null ? null : (run.attempts.at(-1)?.endedAt ?? null)} until={data.until} />}
      {busy && <Text size="sm"><TextLink to="/runs" search={{ jobId: run.target.id, status: ['RUNNING', 'CALLBACK_PENDING', 'RETRYING'] }}>{t('runs.whatRuns')}</TextLink></Text>}
    </WaitingBox>
  )
}

function WaitingBox({ status, title, children }: { status: string; title: string; children: React.ReactNode }) {
  const Shown = ICONS[status] ?? IconHourglass
  return <Alert className={classes.waiting} data-tone={lookOf(status).tone} variant="default" icon={<Shown />} title={title} mt="md">{children}</Alert>
}

/** How long it is until then; where it is known since when, how much of that has passed. */
function Countdown({ from, until }: { from: string | null; until: string }) {
  const t = useT()
  const end = Date.parse(until)
  const left = useTicking((now) => Math.max(0, Math.ceil((end - now) / 1000)))
  const whole = from === null ? null : end - Date.parse(from)
  return (
    <>
      <Group gap={6} mt={4}>
        <Text size="sm" fw={600} className="figures" role="timer">{left > 0 ? t('runs.left', { time: duration(left * 1000) }) : t('runs.dueNow')}</Text>
        <Text size="sm" c="dimmed">(<Instant at={until} exact />)</Text>
      </Group>
      {whole !== null && whole > 0 && <Progress size="xs" mt={6} maw={420} value={100 - Math.min(100, (100_000 * left) / whole)} aria-label={t('runs.passed')} />}
    </>
  )
}
