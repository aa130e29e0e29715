/** The last runs side by side: how long each took, and how it ended. Arrow keys go from one to the next. */
import { Text, Tooltip } from '@mantine/core'
import { useMediaQuery } from '@mantine/hooks'
import { Link } from '@tanstack/react-router'
import { type KeyboardEvent, useMemo, useState } from 'react'
import type { Run } from '@/api/shapes'
import { useT } from '@/i18n'
import { Section } from '@/parts/page'
import { useSteady } from '@/parts/steady'
import { colourOf, lookOf, useStateText } from '@/states'
import { absolute, duration, useZone } from '@/time'
import classes from './strip.module.css'

const MOST = 50
/** So many fit with their icons on a narrow screen. */
const FEWER = 25
const NARROW = '(max-width: 48em)'

/** `runs`: newest first. */
export function RunStrip({ runs }: { runs: readonly Run[] }) {
  const t = useT()
  const [held, setHeld] = useState(false)
  const [chosen, setChosen] = useState<string>()
  const most = useMediaQuery(NARROW, window.matchMedia(NARROW).matches) ? FEWER : MOST
  const latest = useMemo(() => runs.slice(0, most), [runs, most])
  const steady = useSteady(latest, (run) => run.id, held)
  const shown = steady.rows.slice(0, most).reverse()
  const title = shown.length === 0 ? t('jobs.stripNone') : t('jobs.strip', { n: shown.length })
  const longest = Math.max(1, ...shown.map((run) => run.durationMillis ?? 0))
  const reachable = shown.some((run) => run.id === chosen) ? chosen : shown.at(-1)?.id
  return (
    <Section title={title}>
      <div className={classes.strip} role="list" aria-label={title} onKeyDown={alongBars} onPointerEnter={() => setHeld(true)} onPointerLeave={() => setHeld(false)}>
        {shown.map((run) => (
          <div role="listitem" key={run.id} className={classes.place}>
            <Bar run={run} share={Math.sqrt((run.durationMillis ?? longest / 4) / longest)} reachable={run.id === reachable} onFocus={() => setChosen(run.id)} />
          </div>
        ))}
      </div>
      <Text size="xs" c="dimmed" mt={4}>{shown.length === 0 ? t('jobs.noRunsHint') : t('jobs.stripHint', { longest: duration(longest) })}</Text>
    </Section>
  )
}

function Bar({ run, share, reachable, onFocus }: { run: Run; share: number; reachable: boolean; onFocus: () => void }) {
  const zone = useZone()
  const state = useStateText()(run.status)
  const { icon: Icon } = lookOf(run.status)
  const took = run.durationMillis == null ? '' : `, ${duration(run.durationMillis)}`
  const label = `${state}${took}, ${absolute(run.startedAt ?? run.createdAt, zone)}`
  return (
    <Tooltip label={run.error ? `${label}: ${run.error}` : label} multiline maw={420}>
      <Link to="/runs/$runId" params={{ runId: run.id }} className={classes.bar} aria-label={label} tabIndex={reachable ? 0 : -1} onFocus={onFocus} style={{ color: colourOf(run.status) }}>
        <span className={classes.height} style={{ height: `calc((100% - var(--mark)) * ${(0.08 + 0.92 * share).toFixed(3)})` }} />
        <Icon size={13} stroke={2.2} aria-hidden />
      </Link>
    </Tooltip>
  )
}

const STEPS: Readonly<Record<string, (at: number, count: number) => number>> = {
  ArrowLeft: (at) => at - 1,
  ArrowRight: (at) => at + 1,
  Home: () => 0,
  End: (_, count) => count - 1,
}

function alongBars(event: KeyboardEvent<HTMLElement>): void {
  const bars = [...event.currentTarget.querySelectorAll('a')]
  const next = bars[STEPS[event.key]?.(bars.indexOf(document.activeElement as HTMLAnchorElement), bars.length) ?? -1]
  if (next === undefined) return
  event.preventDefault()
  next.focus()
}
