/**
 * A list of any length: only the rows in view are drawn, the next page is fetched before its end is seen, and while the
 * pointer or the keyboard is on it no row changes its place: newer ones wait until they are asked for.
 */
import { Button, Checkbox, Group, Loader, Text, UnstyledButton, VisuallyHidden } from '@mantine/core'
import { useMediaQuery } from '@mantine/hooks'
import { IconArrowUp, IconArrowsSort, IconSortAscending, IconSortDescending } from '@tabler/icons-react'
import { useWindowVirtualizer } from '@tanstack/react-virtual'
import { type MouseEvent, type ReactNode, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react'
import type { Rows } from '@/api/queries'
import { useT } from '@/i18n'
import { useKeys } from '@/keys'
import { useSteady } from './steady'
import { ErrorBox, Loading } from './page'
import classes from './table.module.css'

export interface Column<R> {
  key: string
  header: string
  /** A track of a CSS grid: `120px`, `minmax(0, 2fr)`. */
  width: string
  render: (row: R) => ReactNode
  /** Not shown on narrow screens. */
  wide?: boolean
  align?: 'end'
  /** Its header is a button that changes the order. */
  sort?: { order: 'ascending' | 'descending' | 'none'; toggle: () => void }
}

export interface Selection {
  chosen: ReadonlySet<string>
  change: (chosen: ReadonlySet<string>) => void
}

interface TableProps<R> {
  /** What it lists, for who cannot see it. */
  label: string
  rows: Rows<R>
  idOf: (row: R) => string
  /** One column links to the row's page with class `primary` (see `RowLink`); a click on the row follows that link. */
  columns: readonly Column<R>[]
  empty: ReactNode
  selection?: Selection
}

const HEIGHT = 40
const AHEAD = 20

export function Table<R>({ label, rows, idOf, columns, empty, selection }: TableProps<R>) {
  const t = useT()
  const narrow = useMediaQuery('(max-width: 48em)', window.matchMedia('(max-width: 48em)').matches)
  const [held, setHeld] = useState(false)
  const [cursor, setCursor] = useState(-1)
  const steady = useSteady(rows.rows, idOf, held)
  const list = steady.rows
  const body = useRef<HTMLDivElement>(null)
  const [margin, setMargin] = useState(0)
  useLayoutEffect(() => setMargin(body.current?.offsetTop ?? 0), [list.length])
  const virtual = useWindowVirtualizer({ count: list.length, estimateSize: () => HEIGHT, overscan: 12, scrollMargin: margin })
  const items = virtual.getVirtualItems()
  const last = items.at(-1)?.index ?? 0
  const { more, sparse, fetchMore, error } = rows
  useEffect(() => {
    if (more && !sparse && error === null && last >= list.length - AHEAD) fetchMore()
  }, [more, sparse, error, last, list.length, fetchMore])

  const shown = useMemo(() => columns.filter((column) => !(narrow && column.wide)), [columns, narrow])
  const template = [...(selection ? ['32px'] : []), ...shown.map(({ width }) => width)].join(' ')
  const move = (by: number) => {
    const next = Math.min(list.length - 1, Math.max(0, cursor + by))
    setCursor(next)
    virtual.scrollToIndex(next, { align: 'auto' })
  }
  const toggle = (id: string) => selection?.change(toggled(selection.chosen, id))
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    x: () => list[cursor] !== undefined && toggle(idOf(list[cursor])),
    Enter: (event) => {
      if ((event.target as Element).closest('a, button')) return
      body.current?.querySelector<HTMLAnchorElement>('[data-cursor] a.primary')?.click()
    },
    Escape: () => setCursor(-1),
  })

  if (rows.error && list.length === 0) return <ErrorBox error={rows.error} retry={rows.refresh} />
  if (rows.loading || (list.length === 0 && more && !sparse)) return <Loading />
  if (list.length === 0) return <>{empty}{more && <Further onClick={fetchMore} />}</>
  return (
    <div className={classes.frame} data-old={rows.old || undefined}>
      {rows.error && <ErrorBox error={rows.error} retry={rows.refresh} />}
      {(steady.waiting > 0 || rows.outdated) && (
        <Button className={classes.newer} size="compact-sm" radius="xl" leftSection={<IconArrowUp size={14} />} onClick={() => { steady.adopt(); if (rows.outdated) rows.refresh(); window.scrollTo({ top: 0 }) }}>
          {steady.waiting > 0 ? t('app.newer', { n: steady.waiting }) : t('app.outdated')}
        </Button>
      )}
      <div role="table" aria-label={label} aria-rowcount={rows.more ? -1 : list.length + 1}
        onPointerEnter={(event) => event.pointerType === 'mouse' && setHeld(true)} onPointerLeave={() => setHeld(false)}>
        <div role="rowgroup" className={classes.head}>
          <div role="row" className={classes.row} style={{ gridTemplateColumns: template }}>
            {selection && <div role="columnheader"><AllBox ids={list.map(idOf)} selection={selection} /></div>}
            {shown.map((column) => <div role="columnheader" key={column.key} data-align={column.align} aria-sort={column.sort?.order}>{column.sort ? <SortButton header={column.header} {...column.sort} /> : column.header}</div>)}
          </div>
        </div>
        <div role="rowgroup" ref={body} className={classes.body} style={{ height: virtual.getTotalSize() }}>
          {items.map((item) => {
            const row = list[item.index]!
            const id = idOf(row)
            return (
              <div role="row" key={id} aria-rowindex={item.index + 2} className={classes.row} data-cursor={item.index === cursor || undefined} onClick={follow}
                style={{ gridTemplateColumns: template, transform: `translateY(${item.start - margin}px)`, height: HEIGHT }}>
                {selection && <div role="cell" className={classes.check}><Checkbox size="xs" checked={selection.chosen.has(id)} onChange={() => toggle(id)} aria-label={t('app.selectRow', { name: id })} /></div>}
                {shown.map((column) => <div role="cell" key={column.key} data-align={column.align}>{column.render(row)}</div>)}
              </div>
            )
          })}
        </div>
      </div>
      <Group justify="center" py="xs" mih={40}>
        {!more ? <Count rows={rows} shown={list.length} /> : sparse ? <Further onClick={fetchMore} /> : <Loader size="xs" type="dots" />}
        <VisuallyHidden role="status">{more && !sparse ? t('app.loading') : ''}</VisuallyHidden>
      </Group>
    </div>
  )
}

const ARROWS = { ascending: IconSortAscending, descending: IconSortDescending, none: IconArrowsSort }

function SortButton({ header, order, toggle }: { header: string; order: 'ascending' | 'descending' | 'none'; toggle: () => void }) {
  const Arrow = ARROWS[order]
  return <UnstyledButton className={classes.sort} data-on={order === 'none' ? undefined : true} onClick={toggle}>{header}<Arrow size={13} aria-hidden /></UnstyledButton>
}

/** What lies above the row's link leads there, too, unless it does something itself. */
export function follow({ target, currentTarget }: MouseEvent<HTMLElement>): void {
  if (target instanceof Element && !target.closest('a, button, input, label')) currentTarget.querySelector<HTMLElement>('a.primary')?.click()
}

function Further({ onClick }: { onClick: () => void }) {
  const t = useT()
  return <Group justify="center"><Button size="xs" variant="default" onClick={onClick}>{t('app.further')}</Button></Group>
}

function Count<R>({ rows, shown }: { rows: Rows<R>; shown: number }) {
  const t = useT()
  const text = rows.totalIsExact ? t('app.rows', { n: rows.total ?? shown }) : t('app.rowsOrMore', { n: rows.total ?? shown })
  return <Text size="xs" c="dimmed">{text}</Text>
}

/** With it, or without it if it was in it. */
export function toggled(chosen: ReadonlySet<string>, id: string): ReadonlySet<string> {
  const next = new Set(chosen)
  if (!next.delete(id)) next.add(id)
  return next
}

export function AllBox({ ids, selection }: { ids: readonly string[]; selection: Selection }) {
  const t = useT()
  const all = ids.length > 0 && ids.every((id) => selection.chosen.has(id))
  return <Checkbox size="xs" checked={all} indeterminate={!all && selection.chosen.size > 0} onChange={() => selection.change(new Set(all ? [] : ids))} aria-label={t('app.selectAll')} />
}
