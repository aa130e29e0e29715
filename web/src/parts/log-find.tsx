/** Searching in a log: upwards from its end, reading what was not read yet until something is found. */
import { ActionIcon, CloseButton, Group, Loader, Text, TextInput, Tooltip } from '@mantine/core'
import { useDebouncedCallback } from '@mantine/hooks'
import { IconChevronDown, IconChevronUp, IconSearch } from '@tabler/icons-react'
import { useCallback, useEffect, useMemo, useRef, useState } from 'react'
import { useT } from '@/i18n'
import type { LogSource, LogState } from './log-source'

export interface Find {
  /** What is searched for, in lower case; empty: nothing. */
  wanted: string
  /** The number of the line that was found. */
  current: number | null
  /** The numbers of all lines that have it, of those that were read. */
  found: readonly number[]
  /** Earlier lines may have it, too. */
  more: boolean
  searching: boolean
  search: (text: string) => void
  up: () => void
  down: () => void
}

const numbersOf = ({ lines, first }: LogState, wanted: string): number[] =>
  wanted === '' ? [] : lines.flatMap((line, index) => (line.text.toLowerCase().includes(wanted) ? [first + index] : []))

/** `show` brings the line with this index into view. */
export function useFind(source: LogSource, log: LogState, show: (index: number) => void): Find {
  const [wanted, setWanted] = useState('')
  const [current, setCurrent] = useState<number | null>(null)
  const [searching, setSearching] = useState(false)
  const turn = useRef(0)
  const found = useMemo(() => numbersOf(log, wanted), [log, wanted])
  const latest = useRef(show)
  useEffect(() => {
    latest.current = show
  })
  useEffect(() => () => void (turn.current += 1), [])

  const go = useCallback((line: number) => {
    setCurrent(line)
    window.requestAnimationFrame(() => latest.current(line - source.state.first))
  }, [source])
  /** The last one above `below`, however far up it is. */
  const seek = useCallback(async (text: string, below: number) => {
    const mine = (turn.current += 1)
    setSearching(true)
    for (;;) {
      const line = numbersOf(source.state, text).findLast((each) => each < below)
      if (turn.current !== mine) return
      if (line !== undefined) go(line)
      if (line !== undefined || source.state.before === null || source.state.error) break
      await source.earlier()
    }
    setSearching(false)
  }, [source, go])

  const search = (text: string) => {
    const next = text.toLowerCase()
    turn.current += 1
    setWanted(next)
    setCurrent(null)
    setSearching(false)
    if (next !== '') void seek(next, Infinity)
  }
  const down = () => {
    const line = found.find((each) => current !== null && each > current)
    if (line !== undefined) go(line)
  }
  return { wanted, current, found, more: log.before !== null, searching, search, up: () => void (wanted && seek(wanted, current ?? Infinity)), down }
}

export function FindInLog({ find }: { find: Find }) {
  const t = useT()
  const [typed, setTyped] = useState('')
  const apply = useDebouncedCallback(find.search, 250)
  const type = (text: string) => {
    setTyped(text)
    apply(text)
  }
  return (
    <Group gap={4} role="search" aria-label={t('runs.logFind')}>
      <TextInput size="xs" w={230} data-filter aria-label={t('runs.logFind')} placeholder={t('runs.logFind')} value={typed} leftSection={<IconSearch size={14} />}
        rightSection={find.searching ? <Loader size={12} /> : typed ? <CloseButton size="xs" aria-label={t('app.clear')} onClick={() => type('')} /> : null}
        onChange={(event) => type(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === 'Enter') (event.shiftKey ? find.down : find.up)()
          if (event.key === 'Escape') event.currentTarget.blur()
        }} />
      <Tooltip label={t('runs.logUp')}><ActionIcon variant="subtle" color="gray" aria-label={t('runs.logUp')} disabled={!find.wanted} onClick={find.up}><IconChevronUp size={16} /></ActionIcon></Tooltip>
      <Tooltip label={t('runs.logDown')}><ActionIcon variant="subtle" color="gray" aria-label={t('runs.logDown')} disabled={!find.wanted} onClick={find.down}><IconChevronDown size={16} /></ActionIcon></Tooltip>
      {find.wanted && <Text size="xs" c="dimmed" className="figures" role="status">{told(t, find)}</Text>}
    </Group>
  )
}

function told(t: ReturnType<typeof useT>, { searching, found, current, more }: Find): string {
  if (found.length === 0) return searching ? t('runs.logSearching') : t('runs.logNothing')
  const values = { at: current === null ? 0 : found.indexOf(current) + 1, n: found.length }
  return more ? t('runs.logFoundSoFar', values) : t('runs.logFound', values)
}
