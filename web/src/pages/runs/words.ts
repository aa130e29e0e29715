/** What is said of runs in more than one place. */
import type { Tone } from '@/states'

/** What stands for a state in the title of a window, where there are no colours. */
export const SIGNS: Readonly<Record<Tone, string>> = { good: '✓', bad: '✗', warn: '↻', busy: '▶', wait: '…', off: '–' }

/** Later than this is told: a worker's round takes a moment. */
export const LATE_MILLIS = 1_000

/** How much later than planned a scheduled run began; null where that says nothing. */
export function lateness(run: { trigger: string; plannedFor: string | null; startedAt: string | null }): number | null {
  if (run.trigger !== 'schedule' || run.plannedFor === null || run.startedAt === null) return null
  const late = Date.parse(run.startedAt) - Date.parse(run.plannedFor)
  return late >= LATE_MILLIS ? late : null
}
