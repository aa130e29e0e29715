/** One node of a graph, as a button: what it is called, what it does, how it stands. */
import { IconAlertTriangle, IconStack2 } from '@tabler/icons-react'
import type { CSSProperties } from 'react'
import { useT } from '@/i18n'
import { StateBadge, colourOf, useStateText } from '@/states'
import { type Counts, type Drawn, countOf } from './graph-model'
import { useChoice } from './graph-choice'
import classes from './graph.module.css'

export function NodeFace({ drawn }: { drawn: Drawn }) {
  const { selected, choose } = useChoice()
  const t = useT()
  return (
    <button type="button" className={classes.node} data-node={drawn.id} data-wrong={drawn.wrong || undefined} aria-pressed={selected === drawn.id} title={drawn.id}
      style={drawn.status === undefined ? undefined : ({ '--tone': colourOf(drawn.status) } as CSSProperties)} onClick={() => choose(drawn.id)}>
      <span className={classes.line}>
        {drawn.status !== undefined && <StateBadge status={drawn.status} compact />}
        {drawn.wrong && <IconAlertTriangle size={15} color="var(--state-bad)" role="img" aria-label={t('workflows.wrong')} />}
        <span className={classes.name}>{drawn.id}</span>
      </span>
      <span className={classes.line}>
        <span className={classes.does}>{drawn.does}</span>
        {drawn.counts && <FanOut counts={drawn.counts} />}
      </span>
    </button>
  )
}

/** How its items stand, in one bar. */
export function FanOut({ counts }: { counts: Counts }) {
  const t = useT()
  const stateText = useStateText()
  const all = countOf(counts)
  const done = counts['SUCCESS'] ?? 0
  return (
    <span className={classes.fanOut}>
      <IconStack2 size={13} role="img" aria-label={t('workflows.fanOut')} />
      {all > 0 && (
        <>
          <span className={classes.figures}>{done}/{all}</span>
          <span className={classes.bar} title={Object.entries(counts).map(([status, n]) => `${stateText(status)} ${n}`).join(', ')} aria-hidden>
            {Object.entries(counts).map(([status, n]) => <span key={status} style={{ flexGrow: n, background: colourOf(status) }} />)}
          </span>
        </>
      )}
    </span>
  )
}
