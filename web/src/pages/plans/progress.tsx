/** How many tenants are where: as a bar, and in words that lead to those tenants. */
import { UnstyledButton } from '@mantine/core'
import type { Schemas } from '@/api/client'
import { useT } from '@/i18n'
import { colourOf, lookOf } from '@/states'
import classes from './progress.module.css'

export type Counts = Schemas['TaskCounts']
type Where = keyof Counts

/** In the order of the bar, each with the state whose look it has. */
const PLACES: readonly (readonly [Where, string])[] = [
  ['completed', 'COMPLETED'], ['failed', 'FAILED'], ['running', 'RUNNING'], ['paused', 'PAUSED'], ['cancelled', 'CANCELLED'], ['waiting', 'CREATED'],
]
const TEXTS = {
  completed: 'plans.done', failed: 'plans.failed', running: 'plans.running', paused: 'plans.paused', cancelled: 'plans.cancelled', waiting: 'plans.waiting',
} as const

export const totalOf = (counts: Counts) => PLACES.reduce((sum, [where]) => sum + counts[where], 0)

export function ProgressBar({ counts, thick = false }: { counts: Counts; thick?: boolean }) {
  const t = useT()
  const { completed: done, ...rest } = counts
  return (
    <div className={classes.bar} data-thick={thick || undefined} role="img" aria-label={t('plans.progressOf', { done, ...rest, total: totalOf(counts) })}>
      {PLACES.filter(([where]) => where !== 'waiting' && counts[where] > 0).map(([where, status]) => (
        <span key={where} style={{ flex: `${counts[where]} 0 0`, background: colourOf(status) }} />
      ))}
      {counts.waiting > 0 && <span style={{ flex: `${counts.waiting} 0 0` }} />}
    </div>
  )
}

/** The bar with `3 / 10` beside it, for rows. */
export function ProgressCell({ counts }: { counts: Counts }) {
  return (
    <div className={classes.with}>
      <ProgressBar counts={counts} />
      <span className="figures">{counts.completed} / {totalOf(counts)}</span>
    </div>
  )
}

interface LegendProps {
  counts: Counts
  /** The state that is filtered by. */
  chosen?: string
  onChoose: (status: string | undefined) => void
}

/** What the bar says, in words; each filters the tenants by it. */
export function ProgressLegend({ counts, chosen, onChoose }: LegendProps) {
  const t = useT()
  return (
    <div className={classes.legend} role="group" aria-label={t('plans.progress')}>
      {PLACES.filter(([where, status]) => counts[where] > 0 || status === chosen).map(([where, status]) => {
        const Shown = lookOf(status).icon
        return (
          <UnstyledButton key={where} className={classes.count} data-on={status === chosen || undefined} aria-pressed={status === chosen}
            onClick={() => onChoose(status === chosen ? undefined : status)}>
            <Shown size={15} stroke={2.2} color={colourOf(status)} aria-hidden />{t(TEXTS[where])} <b>{counts[where]}</b>
          </UnstyledButton>
        )
      })}
    </div>
  )
}
