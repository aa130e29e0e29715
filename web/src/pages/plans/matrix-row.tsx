/** A tenant's row in the matrix: who it is, how it stands, and a mark for each stage. */
import { Checkbox } from '@mantine/core'
import { type CSSProperties, type ReactNode, memo } from 'react'
import { useT } from '@/i18n'
import { RowLink } from '@/parts/link'
import { follow } from '@/parts/table'
import { StateBadge, colourOf, lookOf, useStateText } from '@/states'
import classes from './matrix.module.css'
import { type Task, cellOf } from './tasks'

interface RowProps {
  task: Task | undefined
  index: number
  top: number
  height: number
  template: string
  compact: boolean
  cursor: boolean
  /** It is the one that is looked at. */
  looked: boolean
  chosen: boolean
  onChoose: (tenantId: string) => void
}

export const MatrixRow = memo(function MatrixRow({ task, index, top, height, template, compact, cursor, looked, chosen, onChoose }: RowProps) {
  const place: CSSProperties = { transform: `translateY(${top}px)`, height, gridTemplateColumns: compact ? undefined : template }
  const shared = { role: 'row', 'aria-rowindex': index + 2, 'aria-current': looked || undefined, 'data-cursor': cursor || undefined, 'data-chosen': looked || undefined, style: place }
  if (task === undefined) return <div {...shared} className={classes.row}><div role="cell" className={classes.name}><div className={classes.ghost} /></div></div>
  const box = <Box task={task} chosen={chosen} onChoose={onChoose} />
  if (compact) return <div {...shared} className={`${classes.row} ${classes.compact}`} onClick={follow}><Compact task={task} box={box} /></div>
  return (
    <div {...shared} className={classes.row} onClick={follow}>
      <div role="rowheader" className={classes.name}>{box}<Name task={task} /></div>
      <div role="cell" className={classes.state}><State task={task} /></div>
      {task.stageNames.map((name, stage) => <Cell key={name} name={name} status={cellOf(task, stage)} error={task.error} />)}
    </div>
  )
})

function Box({ task, chosen, onChoose }: { task: Task; chosen: boolean; onChoose: (tenantId: string) => void }) {
  const t = useT()
  return <Checkbox size="xs" checked={chosen} onChange={() => onChoose(task.tenantId)} aria-label={t('app.selectRow', { name: task.tenantId })} />
}

const Name = ({ task }: { task: Task }) => (
  <RowLink from="/plans/$planId" to="." search={(before) => ({ ...before, tenant: task.tenantId })} replace resetScroll={false} title={task.tenantId}>{task.tenantId}</RowLink>
)

function State({ task }: { task: Task }) {
  const t = useT()
  return task.pauseRequested ? <span title={t('plans.pausing')}><StateBadge status={task.status} /> <StateBadge status="PAUSED" compact /></span> : <StateBadge status={task.status} />
}

function Cell({ name, status, error }: { name: string; status: string; error: string | null }) {
  const text = useStateText()(status)
  const Shown = lookOf(status).icon
  const why = status === 'FAILED' && error ? `: ${error}` : ''
  return (
    <div role="cell" className={classes.cell} title={`${name} · ${text}${why}`}>
      <span className={classes.mark} data-faint={status === 'PENDING' || undefined} style={{ '--tone': colourOf(status) } as CSSProperties}>
        <Shown size={15} stroke={2.2} aria-hidden /><span className="visually-hidden">{text}</span>
      </span>
    </div>
  )
}

function Compact({ task, box }: { task: Task; box: ReactNode }) {
  const t = useT()
  return (
    <>
      <div role="cell">{box}</div>
      <div role="rowheader" style={{ minWidth: 0, display: 'flex' }}><Name task={task} /></div>
      <div role="cell"><State task={task} /></div>
      <div role="cell" className={classes.strip}>
        {task.stageNames.map((name, stage) => {
          const status = cellOf(task, stage)
          return <i key={name} data-faint={status === 'PENDING' || undefined} style={{ '--tone': colourOf(status) } as CSSProperties} />
        })}
        <span className={classes.at}>{task.currentStage ?? t('plans.stageOf', { done: task.completedStages, total: task.totalStages })}</span>
      </div>
    </>
  )
}
