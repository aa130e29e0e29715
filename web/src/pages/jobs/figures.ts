/** What the latest runs of a job come to. */
import type { Run } from '@/api/shapes'
import { hasEnded, lookOf } from '@/states'

export interface Figures {
  ended: number
  succeeded: number
  median: number | undefined
  p95: number | undefined
}

/** The value below which that share of them lies; they are in order. */
export const quantile = (sorted: readonly number[], share: number): number | undefined => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]

const inOrder = (values: readonly number[]) => [...values].sort((a, b) => a - b)

export function figuresOf(runs: readonly Run[]): Figures {
  const ended = runs.filter((run) => hasEnded(run.status) && lookOf(run.status).tone !== 'off')
  const took = inOrder(ended.flatMap((run) => (run.durationMillis == null ? [] : [run.durationMillis])))
  return { ended: ended.length, succeeded: ended.filter((run) => lookOf(run.status).tone === 'good').length, median: quantile(took, 0.5), p95: quantile(took, 0.95) }
}

export interface TrendPoint {
  /** When the run started, in milliseconds. */
  at: number
  millis: number
  median: number
  p95: number
}

/** Each run that took some time, oldest first, with the median and the 95th percentile of the `window` up to it. */
export function trendOf(runs: readonly Run[], window = 20): TrendPoint[] {
  const timed = runs.flatMap((run) => (run.startedAt && run.durationMillis != null ? [{ at: Date.parse(run.startedAt), millis: run.durationMillis }] : []))
  timed.sort((a, b) => a.at - b.at)
  return timed.map(({ at, millis }, index) => {
    const recent = inOrder(timed.slice(Math.max(0, index + 1 - window), index + 1).map((each) => each.millis))
    return { at, millis, median: quantile(recent, 0.5)!, p95: quantile(recent, 0.95)! }
  })
}
