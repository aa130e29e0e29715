/** How a job goes: its figures, its latest runs as bars and as a list, its calendar, its schedules. */
import { Text } from '@mantine/core'
import { request } from '@/api/client'
import { useAnswer } from '@/api/queries'
import type { JobFound, Run } from '@/api/shapes'
import { useT } from '@/i18n'
import { ErrorBox, Loading, Section, Tile } from '@/parts/page'
import { TextLink } from '@/parts/link'
import { StateBadge, colourOf } from '@/states'
import { Instant, duration } from '@/time'
import { CalendarView } from './calendar'
import { figuresOf } from './figures'
import classes from './job.module.css'
import { LatestRuns } from './latest'
import { SchedulesOf } from './schedules'
import { RunStrip } from './strip'
import { Trend } from './trend'

/** How many of the latest runs the figures are of. */
const LOOKED_AT = 100

export function Overview({ job }: { job: JobFound }) {
  const t = useT()
  const { data, error, refetch } = useAnswer('activity', request('GET', '/api/v1/activity', { query: { jobId: job.jobId, kind: 'job', size: LOOKED_AT } }))
  if (data === undefined) return error ? <ErrorBox error={error} retry={() => void refetch()} /> : <Loading />
  const runs = data.items
  return (
    <>
      <Figures job={job} runs={runs} />
      <RunStrip runs={runs} />
      <div className={classes.pair}>
        <Section title={t('jobs.calendar')}><CalendarView job={job} /></Section>
        <Section title={t('jobs.trend')}><Trend runs={runs} /></Section>
      </div>
      <SchedulesOf job={job} />
      <LatestRuns job={job} />
    </>
  )
}

function Figures({ job, runs }: { job: JobFound; runs: readonly Run[] }) {
  const t = useT()
  const { ended, succeeded, median, p95 } = figuresOf(runs)
  const { lastRun } = job
  return (
    <div className={classes.tiles}>
      <Tile label={t('jobs.lastRun')} tone={lastRun ? colourOf(lastRun.status) : undefined}
        value={lastRun ? <TextLink to="/runs/$runId" params={{ runId: lastRun.id }} underline="never"><StateBadge status={lastRun.status} /></TextLink> : <Nothing text={t('jobs.neverRan')} />}
        hint={lastRun ? <><Instant at={lastRun.startedAt ?? lastRun.createdAt} />{lastRun.error && <> · {lastRun.error}</>}</> : t('jobs.neverRanHint')} />
      <Tile label={t('jobs.nextRun')} value={job.nextRunAt && job.enabled ? <Instant at={job.nextRunAt} /> : <Nothing text="–" />} hint={nextHint(t, job)} />
      <Tile label={t('jobs.succeeded')} value={ended === 0 ? <Nothing text="–" /> : `${Math.floor((100 * succeeded) / ended)} %`} hint={ended === 0 ? t('jobs.noneEnded') : t('jobs.ofRuns', { n: ended, m: succeeded })} />
      <Tile label={t('jobs.medianP95')} value={median === undefined || p95 === undefined ? <Nothing text="–" /> : <>{duration(median)} <Text span c="dimmed" fz="sm" style={{ whiteSpace: 'nowrap' }}>/ {duration(p95)}</Text></>} hint={ended === 0 ? t('jobs.noneEnded') : t('jobs.ofLatest', { n: ended })} />
    </div>
  )
}

const Nothing = ({ text }: { text: string }) => <Text span inherit c="dimmed">{text}</Text>

function nextHint(t: ReturnType<typeof useT>, job: JobFound): string {
  if (!job.enabled) return t('jobs.nextDisabled')
  if (job.paused) return t('jobs.nextPaused')
  return job.schedules ? t('jobs.byItsSchedules', { n: job.schedules }) : t('jobs.nextNone')
}
