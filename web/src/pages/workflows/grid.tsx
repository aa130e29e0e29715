/** Runs by nodes: one glance tells which node fails how often. A cell leads to the run, with that node chosen. */
import { Box, Text } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { useVirtualizer } from '@tanstack/react-virtual'
import { type KeyboardEvent, memo, useLayoutEffect, useMemo, useRef, useState } from 'react'
import { type Schemas, request } from '@/api/client'
import { useAnswer } from '@/api/queries'
import { useT } from '@/i18n'
import { EmptyState, ErrorBox, Loading } from '@/parts/page'
import { StateBadge, colourOf, useStateText } from '@/states'
import { absolute, duration, useZone } from '@/time'
import classes from './grid.module.css'

type GridRun = Schemas['GridRun']
const ROW = 28
const SIZE = 40

export function RunGrid({ workflowId, label }: { workflowId: string; label: string }) {
  const t = useT()
  const { data, error, refetch } = useAnswer('workflow', request('GET', '/api/v1/workflows/{workflowId}/grid', { path: { workflowId }, query: { size: SIZE } }))
  const runs = useMemo(() => data?.runs.toReversed() ?? [], [data])
  if (data === undefined) return error ? <ErrorBox error={error} retry={() => void refetch()} /> : <Loading />
  if (runs.length === 0) return <EmptyState title={t('workflows.neverStarted')} hint={t('workflows.neverStartedHint')} />
  return (
    <>
      <Cells nodes={data.nodes} runs={runs} label={label} />
      {data.limited && <Text size="xs" c="dimmed" mt={4}>{t('workflows.gridLimited', { n: runs.length })}</Text>}
    </>
  )
}

/** A grid for the keyboard, too: Tab enters it, arrows go from cell to cell. Row 0 has the runs themselves. */
function Cells({ nodes, runs, label }: { nodes: readonly string[]; runs: readonly GridRun[]; label: string }) {
  const box = useRef<HTMLDivElement>(null)
  // eslint-disable-next-line react-hooks/incompatible-library -- nothing that it returns is handed on
  const virtual = useVirtualizer({ count: nodes.length, getScrollElement: () => box.current, estimateSize: () => ROW, overscan: 10 })
  const [at, setAt] = useState({ row: 0, column: runs.length - 1 })
  const longest = useMemo(() => Math.max(1, ...runs.map(millisOf)), [runs])
  const newest = runs.at(-1)?.runId
  useLayoutEffect(() => void (box.current && (box.current.scrollLeft = box.current.scrollWidth)), [newest])

  const move = (event: KeyboardEvent) => {
    const step = STEPS[event.key]
    if (step === undefined) return
    event.preventDefault()
    const row = Math.min(nodes.length, Math.max(0, at.row + step[0]))
    const column = Math.min(runs.length - 1, Math.max(0, at.column + step[1]))
    setAt({ row, column })
    if (row > 0) virtual.scrollToIndex(row - 1)
    requestAnimationFrame(() => box.current?.querySelector<HTMLElement>(`[data-at="${row}/${column}"]`)?.focus())
  }
  const entry = (row: number, column: number) => (at.row === row && Math.min(at.column, runs.length - 1) === column ? 0 : -1)
  return (
    <Box ref={box} className={classes.frame} role="grid" aria-label={label} aria-rowcount={nodes.length + 1} aria-colcount={runs.length + 1} onKeyDown={move}>
      <div role="row" aria-rowindex={1} className={classes.head}>
        <Corner />
        {runs.map((run, column) => <RunHead key={run.runId} run={run} share={millisOf(run) / longest} tabIndex={entry(0, column)} at={`0/${column}`} />)}
      </div>
      <div className={classes.body} style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map((item) => {
          const node = nodes[item.index]!
          return (
            <div role="row" key={node} aria-rowindex={item.index + 2} className={classes.row} style={{ transform: `translateY(${item.start}px)` }}>
              <div role="rowheader" className={classes.name} title={node}>{node}</div>
              {runs.map((run, column) => <Cell key={run.runId} run={run} node={node} tabIndex={entry(item.index + 1, column)} at={`${item.index + 1}/${column}`} />)}
            </div>
          )
        })}
      </div>
    </Box>
  )
}

const STEPS: Readonly<Record<string, readonly [number, number]>> = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }
const millisOf = ({ startedAt, endedAt }: GridRun) => (startedAt && endedAt ? Date.parse(endedAt) - Date.parse(startedAt) : 0)

function Corner() {
  const t = useT()
  return <div role="columnheader" className={classes.corner}>{t('workflows.node')}</div>
}

interface Place {
  tabIndex: number
  at: string
}

/** The run: how long it took, and how it ended. */
function RunHead({ run, share, tabIndex, at }: { run: GridRun; share: number } & Place) {
  const zone = useZone()
  const stateText = useStateText()
  const said = [run.runId, stateText(run.status), absolute(run.startedAt ?? run.createdAt, zone), run.endedAt && duration(millisOf(run))].filter(Boolean).join(' · ')
  return (
    <div role="columnheader" className={classes.run}>
      <Link to="/runs/$runId" params={{ runId: run.runId }} preload={false} tabIndex={tabIndex} data-at={at} title={said} aria-label={said} className={classes.link}>
        <span className={classes.took} style={{ height: Math.max(3, Math.round(share * 44)), background: colourOf(run.status) }} />
        <StateBadge status={run.status} compact />
      </Link>
    </div>
  )
}

const Cell = memo(function Cell({ run, node, tabIndex, at }: { run: GridRun; node: string } & Place) {
  const t = useT()
  const stateText = useStateText()
  const cell = run.nodes[node]
  if (cell === undefined) return <div role="gridcell" className={classes.cell} />
  const said = [node, run.runId, stateText(cell.status), cell.durationMillis !== null && duration(cell.durationMillis), cell.attempt > 1 && t('workflows.attempts', { n: cell.attempt })].filter(Boolean).join(' · ')
  return (
    <div role="gridcell" className={classes.cell}>
      <Link to="/runs/$runId" params={{ runId: run.runId }} search={{ node }} preload={false} tabIndex={tabIndex} data-at={at} title={said} aria-label={said} className={classes.link} style={{ background: `color-mix(in srgb, ${colourOf(cell.status)} 16%, transparent)` }}>
        <StateBadge status={cell.status} compact />
      </Link>
    </div>
  )
})
