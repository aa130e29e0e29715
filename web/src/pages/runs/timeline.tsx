/** What became of a job's run, in order: planned, made, claimed, each attempt, its callback, its end. */
import { type Translate, useT } from '@/i18n'
import { StateBadge, colourOf, hasEnded } from '@/states'
import { Duration, absolute, useTicking, useZone } from '@/time'
import type { RunDetail } from './run'
import classes from './run.module.css'

interface Step {
  text: string
  /** The state that it shows, if it is one. */
  status?: string
  from: string
  /** Null: it goes on. None: it took no time. */
  until?: string | null
  /** Nobody worked on it. */
  wait?: boolean
}

export function Timeline({ run }: { run: RunDetail }) {
  const t = useT()
  const steps = stepsOf(t, run)
  const ended = hasEnded(run.status)
  const now = useTicking((current) => (ended ? 0 : current))
  const times = steps.flatMap(({ from, until }) => [Date.parse(from), until ? Date.parse(until) : until === null ? now : Date.parse(from)])
  const [first, last] = [Math.min(...times), Math.max(...times)]
  return (
    <ol className={classes.steps} aria-label={t('runs.timeline')}>
      {steps.map((step) => <StepRow key={`${step.text} ${step.from}`} step={step} first={first} last={Math.max(last, first + 1)} now={now} />)}
    </ol>
  )
}

function StepRow({ step, first, last, now }: { step: Step; first: number; last: number; now: number }) {
  const zone = useZone()
  const from = Date.parse(step.from)
  const until = step.until === undefined ? from : step.until === null ? now : Date.parse(step.until)
  const share = (millis: number) => `${(100 * Math.max(0, millis)) / (last - first)}%`
  return (
    <li className={classes.step}>
      <span className={classes.what} data-wait={step.wait || undefined}>{step.text}{step.status && <StateBadge status={step.status} />}</span>
      <time className={classes.at} dateTime={step.from} title={absolute(step.from, zone, { millis: true })}>{absolute(step.from, zone, { millis: true }).split(' ')[1]}</time>
      <span className={classes.lane} aria-hidden>
        <span className={classes.bar} data-wait={step.wait || undefined} style={{ insetInlineStart: `min(${share(from - first)}, calc(100% - 3px))`, width: share(until - from), background: colourOf(step.status ?? 'PENDING') }} />
      </span>
      <span className={classes.took}>{step.until === undefined ? '' : <Duration millis={step.until === null ? null : until - from} since={step.from} />}</span>
    </li>
  )
}

function stepsOf(t: Translate, run: RunDetail): Step[] {
  return [...beginning(t, run), ...tries(t, run), ...callback(t, run), ...end(t, run)]
}

/** Until a worker took it. */
function beginning(t: Translate, run: RunDetail): Step[] {
  const steps: Step[] = []
  if (run.plannedFor && run.plannedFor !== run.createdAt) steps.push({ text: t('runs.stepPlanned'), from: run.plannedFor })
  steps.push({ text: t('runs.stepMade'), from: run.createdAt })
  const taken = run.attempts[0]?.startedAt ?? run.startedAt ?? run.endedAt
  steps.push({ text: t('runs.stepWaited'), from: run.createdAt, until: taken, wait: true })
  return steps
}

/** Each attempt that has ended, what was waited for between them, and the one that goes on. */
function tries(t: Translate, run: RunDetail): Step[] {
  const steps = run.attempts.flatMap((attempt, index): Step[] => {
    const before = run.attempts[index - 1]
    const gap: Step[] = before ? [{ text: t('runs.stepRetry'), from: before.endedAt, until: attempt.startedAt, wait: true }] : []
    return [...gap, { text: t('runs.attempt', { n: attempt.attempt }), status: attempt.status, from: attempt.startedAt, until: attempt.endedAt }]
  })
  const last = run.attempts.at(-1)
  if (run.status === 'RUNNING' && run.startedAt) steps.push({ text: t('runs.attempt', { n: run.attempt ?? 1 }), status: 'RUNNING', from: last?.endedAt ?? run.startedAt, until: null })
  if (run.status === 'RETRYING' && last) steps.push({ text: t('runs.stepRetry'), from: last.endedAt, until: null, wait: true })
  return steps
}

function callback(t: Translate, run: RunDetail): Step[] {
  const last = run.attempts.at(-1)
  if (last?.status !== 'AWAITING_CALLBACK') return []
  const came = run.callbacks.find(({ status }) => status === 'RECEIVED')
  return [{ text: t('runs.stepCallback'), status: run.status === 'CALLBACK_PENDING' ? 'CALLBACK_PENDING' : undefined, from: last.endedAt, until: came?.receivedAt ?? run.endedAt, wait: true }]
}

const end = (t: Translate, run: RunDetail): Step[] => (run.endedAt && hasEnded(run.status) ? [{ text: t('runs.stepEnd'), status: run.status, from: run.endedAt }] : [])
