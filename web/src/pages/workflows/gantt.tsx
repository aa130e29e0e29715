/** When each node of a run ran, on one axis of time. Rows are buttons; only those in view are drawn. */
import { Box } from '@mantine/core'
import { useVirtualizer } from '@tanstack/react-virtual'
import { useEffect, useMemo, useRef } from 'react'
import { useT } from '@/i18n'
import { StateBadge, colourOf, hasEnded, useStateText } from '@/states'
import { absolute, duration, useTicking, useZone } from '@/time'
import button from '@/parts/row-button.module.css'
import classes from './gantt.module.css'
import type { RunNode } from './run-model'

const ROW = 30

interface GanttProps {
  nodes: readonly RunNode[]
  selected?: string
  onSelect: (id: string) => void
  label: string
}

export function Gantt({ nodes, selected, onSelect, label }: GanttProps) {
  const box = useRef<HTMLDivElement>(null)
  // eslint-disable-next-line react-hooks/incompatible-library -- nothing that it returns is handed on
  const virtual = useVirtualizer({ count: nodes.length, getScrollElement: () => box.current, estimateSize: () => ROW, overscan: 15 })
  const span = useSpan(nodes)
  const index = nodes.findIndex(({ id }) => id === selected)
  useEffect(() => {
    if (index >= 0) virtual.scrollToIndex(index, { align: 'auto' })
  }, [index, virtual])
  return (
    <Box ref={box} className={classes.frame} role="group" aria-label={label} tabIndex={0}>
      <Axis span={span} />
      <div className={classes.rows} style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map((item) => {
          const node = nodes[item.index]!
          return <Row key={node.id} node={node} span={span} chosen={node.id === selected} top={item.start} onSelect={onSelect} />
        })}
      </div>
    </Box>
  )
}

interface Span {
  from: number
  until: number
}

/** From the first start to the last end; of a run that goes on, to now. */
function useSpan(nodes: readonly RunNode[]): Span {
  const known = useMemo(() => {
    const starts = nodes.flatMap(({ startedAt }) => (startedAt ? [Date.parse(startedAt)] : []))
    const ends = nodes.flatMap(({ endedAt }) => (endedAt ? [Date.parse(endedAt)] : []))
    return { from: starts.reduce((a, b) => Math.min(a, b), Infinity), until: ends.reduce((a, b) => Math.max(a, b), -Infinity), open: nodes.some(goesOn) }
  }, [nodes])
  const now = useTicking((current) => (known.open ? Math.ceil(current / 1000) * 1000 : 0))
  const from = Number.isFinite(known.from) ? known.from : now
  return { from, until: Math.max(from + 1, known.open ? now : known.until) }
}

const goesOn = ({ startedAt, status }: RunNode) => startedAt !== null && !hasEnded(status)

function Axis({ span }: { span: Span }) {
  const zone = useZone()
  const length = span.until - span.from
  return (
    <div className={classes.axis}>
      <span className={classes.zero} title={absolute(span.from, zone, { millis: true })}>{absolute(span.from, zone)}</span>
      <span className={classes.ticks} aria-hidden>
        {[0.25, 0.5, 0.75, 1].map((part) => <span key={part} style={{ insetInlineEnd: `${(1 - part) * 100}%` }}>+{duration(length * part)}</span>)}
      </span>
    </div>
  )
}

function Row({ node, span, chosen, top, onSelect }: { node: RunNode; span: Span; chosen: boolean; top: number; onSelect: (id: string) => void }) {
  const t = useT()
  const stateText = useStateText()
  const start = node.startedAt === null ? null : Date.parse(node.startedAt)
  const end = node.endedAt === null ? span.until : Date.parse(node.endedAt)
  const took = start === null ? '' : duration(Math.max(0, end - start))
  const length = span.until - span.from
  const left = start === null ? 0 : Math.min(100, ((start - span.from) / length) * 100)
  const width = start === null ? 0 : ((end - start) / length) * 100
  const name = [node.id, stateText(node.status), took, node.attempt > 1 && t('workflows.attempts', { n: node.attempt })].filter(Boolean).join(', ')
  return (
    <button type="button" className={`${button.row} ${classes.row}`} aria-pressed={chosen} title={name} style={{ transform: `translateY(${top}px)` }} onClick={() => onSelect(node.id)}>
      <span className={classes.name}><StateBadge status={node.status} compact /><span className={classes.text}>{node.id}</span></span>
      <span className={classes.lane}>
        {start !== null && <span className={classes.bar} data-open={goesOn(node) || undefined} style={{ insetInlineStart: `${left}%`, width: `${Math.max(0, Math.min(width, 100 - left))}%`, background: colourOf(node.status) }} />}
        {start !== null && <span className={classes.took} style={left + width > 70 ? { insetInlineEnd: `calc(${100 - left}% + 6px)` } : { insetInlineStart: `calc(${left + width}% + 6px)` }}>{took}</span>}
      </span>
    </button>
  )
}
