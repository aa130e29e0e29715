/**
 * Stages × tenants. Only the rows in view are drawn and asked for; the first column stays in sight, and on a narrow screen a tenant
 * is two lines. A click, or Enter on the row that j and k lead to, looks at its tenant.
 */
import { Text } from '@mantine/core'
import { useMediaQuery } from '@mantine/hooks'
import { useVirtualizer } from '@tanstack/react-virtual'
import { type ReactNode, useCallback, useEffect, useRef, useState } from 'react'
import type { Plan } from '@/api/shapes'
import { useT } from '@/i18n'
import { useKeys } from '@/keys'
import { EmptyState, ErrorBox, Loading } from '@/parts/page'
import { AllBox, toggled } from '@/parts/table'
import { MatrixRow } from './matrix-row'
import classes from './matrix.module.css'
import { PAGE, type TaskFilter, type TaskWindow, taskAt, useTasks } from './tasks'

interface MatrixProps {
  plan: Plan
  filter: TaskFilter
  /** The tenant that is looked at. */
  looked?: string
  chosen: ReadonlySet<string>
  onChosen: (chosen: ReadonlySet<string>) => void
  /** What stands below it, beside the number of rows. */
  children?: ReactNode
}

const WIDE = 34
const COMPACT = 58
const NAME = 170
const STATE = 160
const STAGE = 76
const templateOf = (stages: number) => `minmax(${NAME}px, 1.4fr) ${STATE}px repeat(${stages}, minmax(${STAGE}px, 1fr))`

export function Matrix({ plan, filter, looked, chosen, onChosen, children }: MatrixProps) {
  const t = useT()
  const compact = useMediaQuery('(max-width: 48em)', window.matchMedia('(max-width: 48em)').matches)
  const [held, setHeld] = useState(false)
  const [range, setRange] = useState<readonly [number, number]>([0, 0])
  const { window: found, loading, old, error, refetch } = useTasks(plan.planId, filter, range, held && filter.status !== undefined)
  const frame = useRef<HTMLDivElement>(null)
  const height = compact ? COMPACT : WIDE
  // eslint-disable-next-line react-hooks/incompatible-library -- nothing is compiled here
  const virtual = useVirtualizer({
    count: found.total, estimateSize: () => height, overscan: 10, getScrollElement: () => frame.current,
    onChange: ({ range: seen }) => seen && setRange((before) => (sameWhole(before, seen) ? before : [seen.startIndex, seen.endIndex])),
  })
  const [cursor, setCursor] = useMatrixKeys(found, frame, (index) => virtual.scrollToIndex(index, { align: 'auto' }), (tenant) => onChosen(toggled(chosen, tenant)))
  const latest = useRef({ chosen, onChosen })
  useEffect(() => {
    latest.current = { chosen, onChosen }
  })
  const choose = useCallback((tenant: string) => latest.current.onChosen(toggled(latest.current.chosen, tenant)), [])
  const { keyword, status, wave } = filter
  useEffect(() => frame.current?.scrollTo({ top: 0 }), [keyword, status, wave])
  const template = templateOf(plan.stages.length)

  if (error && found.total === 0) return <ErrorBox error={error} retry={() => void refetch()} />
  if (loading) return <Loading />
  if (found.total === 0) return <EmptyState title={t('plans.noTenant')} hint={t('plans.noTenantHint')} />
  return (
    <>
      <div className={classes.frame} ref={frame} data-old={old || undefined} onPointerEnter={(event) => event.pointerType === 'mouse' && setHeld(true)} onPointerLeave={() => setHeld(false)}>
        <div role="table" aria-label={t('plans.matrix')} aria-rowcount={found.total + 1} style={{ minWidth: compact ? undefined : NAME + STATE + STAGE * plan.stages.length }}>
          <Head stages={plan.stages} template={template} compact={compact}><AllBox ids={[...found.pages.values()].flat().map(({ tenantId }) => tenantId)} selection={{ chosen, change: onChosen }} /></Head>
          <div role="rowgroup" className={classes.body} style={{ height: virtual.getTotalSize() }} onPointerDown={() => setCursor(-1)}>
            {virtual.getVirtualItems().map(({ index, start }) => {
              const task = taskAt(found, index)
              return <MatrixRow key={task?.taskId ?? index} task={task} index={index} top={start} height={height} template={template} compact={compact} cursor={index === cursor}
                looked={task !== undefined && task.tenantId === looked} chosen={task !== undefined && chosen.has(task.tenantId)} onChoose={choose} />
            })}
          </div>
        </div>
      </div>
      <div className={classes.foot}><Text size="xs" c="dimmed">{t('plans.matrixNote', { n: found.total })}</Text>{children}</div>
    </>
  )
}

/** Whether the same pages are in view. */
const sameWhole = ([first, last]: readonly [number, number], seen: { startIndex: number; endIndex: number }) =>
  Math.floor(first / PAGE) === Math.floor(seen.startIndex / PAGE) && Math.floor(last / PAGE) === Math.floor(seen.endIndex / PAGE)

function useMatrixKeys(found: TaskWindow, frame: React.RefObject<HTMLDivElement | null>, show: (index: number) => void, toggle: (tenant: string) => void) {
  const [cursor, setCursor] = useState(-1)
  const move = (by: number) => {
    const next = Math.min(found.total - 1, Math.max(0, cursor + by))
    setCursor(next)
    show(next)
  }
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    x: () => {
      const task = taskAt(found, cursor)
      if (task) toggle(task.tenantId)
    },
    Enter: (event) => {
      if ((event.target as Element).closest('a, button')) return
      frame.current?.querySelector<HTMLAnchorElement>('[data-cursor] a')?.click()
    },
  })
  return [cursor, setCursor] as const
}

function Head({ stages, template, compact, children }: { stages: readonly string[]; template: string; compact: boolean; children: ReactNode }) {
  const t = useT()
  if (compact) return <div role="rowgroup" className={classes.head}><div role="row"><div role="columnheader" className={`${classes.name} ${classes.compactHead}`}>{children}{t('plans.tenant')}</div></div></div>
  return (
    <div role="rowgroup" className={classes.head}>
      <div role="row" className={classes.row} style={{ gridTemplateColumns: template }}>
        <div role="columnheader" className={classes.name}>{children}{t('plans.tenant')}</div>
        <div role="columnheader" className={classes.state}>{t('app.status')}</div>
        {stages.map((name) => <div role="columnheader" key={name} className={classes.stageName} title={name}><span>{name}</span></div>)}
      </div>
    </div>
  )
}
