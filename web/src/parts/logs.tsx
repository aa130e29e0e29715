/** What a run, or a node of one, has written: opened at its end, read backwards as far as somebody looks, followed while it grows. */
import { ActionIcon, Button, Group, Switch, Tooltip } from '@mantine/core'
import { IconArrowDown, IconDownload, IconNotes } from '@tabler/icons-react'
import { useVirtualizer } from '@tanstack/react-virtual'
import { useEffect, useLayoutEffect, useRef, useState, useSyncExternalStore } from 'react'
import { request } from '@/api/client'
import { useT } from '@/i18n'
import { stored } from '@/stored'
import { useZone } from '@/time'
import { FindInLog, useFind } from './log-find'
import { LogRow } from './log-row'
import { type AskLog, LogSource, type LogState } from './log-source'
import classes from './logs.module.css'
import { EmptyState, ErrorBox, Loading } from './page'

export interface LogViewProps {
  runId: string
  /** Of a workflow's run. */
  nodeId?: string
  /** Of a node that has items. */
  itemIndex?: number
  /** It may still grow. */
  live: boolean
}

const LINE = 18
const LOOK = 1_000
/** The last words may come so much later than the end is known. */
const LAST_WORDS = 1_500
/** Earlier lines are read when so few are left above. */
const AHEAD = 200
const wrapping = stored('log-wrap', ['on', 'off'] as const, () => 'off')

export function LogView(props: LogViewProps) {
  const node = props.nodeId && (props.itemIndex === undefined ? props.nodeId : `${props.nodeId}[${props.itemIndex}]`)
  return <Log key={`${props.runId} ${node ?? ''}`} runId={props.runId} node={node} live={props.live} />
}

function callOf(runId: string, node: string | undefined): AskLog {
  return (query) => {
    const asked = { ...query, format: 'json' as const }
    if (node === undefined) return request('GET', '/api/v1/runs/{run_id}/logs', { path: { run_id: Number(runId) }, query: asked })
    return request('GET', '/api/v1/runs/{runId}/nodes/{nodeId}/logs', { path: { runId, nodeId: node }, query: asked })
  }
}

function Log({ runId, node, live }: { runId: string; node?: string; live: boolean }) {
  const t = useT()
  const [ask] = useState(() => callOf(runId, node))
  const [source] = useState(() => new LogSource(ask))
  const log = useSyncExternalStore(source.subscribe, source.now)
  useFollowing(source, live)
  const file = ask({ limit: 1 }).path
  if (!log.ready) return log.error ? <ErrorBox error={log.error} retry={() => source.start()} /> : <Loading />
  if (log.lines.length === 0) return <EmptyState icon={IconNotes} title={t('runs.logEmpty')} hint={live ? t('runs.logEmptyLive') : t('runs.logEmptyHint')} />
  return <Lines source={source} log={log} live={live} file={file} name={`${[runId, node].filter(Boolean).join('-')}.log`} />
}

/** While it is shown and seen, what was written since is asked for; once it has ended, a last time. */
function useFollowing(source: LogSource, live: boolean): void {
  const was = useRef(false)
  useEffect(() => {
    source.start()
    return () => source.stop()
  }, [source])
  useEffect(() => {
    const look = () => void (document.hidden || source.later())
    if (!live && !was.current) return
    was.current = true
    const timer = live ? window.setInterval(look, LOOK) : window.setTimeout(look, LAST_WORDS)
    return () => window.clearInterval(timer)
  }, [source, live])
}

interface LinesProps {
  source: LogSource
  log: LogState
  live: boolean
  /** Where all of it can be had as a file, and how that is to be called. */
  file: string
  name: string
}

function Lines({ source, log, live, file, name }: LinesProps) {
  const t = useT()
  const zone = useZone()
  const wrap = wrapping.use() === 'on'
  const scroller = useRef<HTMLDivElement>(null)
  const { lines, first, before } = log
  // eslint-disable-next-line react-hooks/incompatible-library -- nothing is compiled here
  const virtual = useVirtualizer({
    count: lines.length, getScrollElement: () => scroller.current, estimateSize: () => LINE, overscan: 20, getItemKey: (index) => first + index,
  })
  const { atEnd, toEnd, leave, scrolled } = useStaying(scroller, log, virtual.getTotalSize())
  const find = useFind(source, log, (index) => {
    leave()
    virtual.scrollToIndex(index, { align: 'center' })
  })
  const items = virtual.getVirtualItems()
  const top = items[0]?.index ?? lines.length
  useEffect(() => {
    if (top < AHEAD && before !== null && !log.reading && !log.error) void source.earlier()
  }, [top, before, log.reading, log.error, source])
  return (
    <div className={classes.frame}>
      <Group className={classes.bar} gap="xs">
        <FindInLog find={find} />
        <Switch size="xs" label={t('runs.logWrap')} checked={wrap} onChange={(event) => { wrapping.set(event.currentTarget.checked ? 'on' : 'off'); virtual.measure() }} />
        <Tooltip label={t('runs.logDownload')}>
          <ActionIcon component="a" href={file} download={name} variant="subtle" color="gray" aria-label={t('runs.logDownload')}><IconDownload size={16} /></ActionIcon>
        </Tooltip>
        {live && <span className={classes.following} role="status">{atEnd ? t('runs.logFollowing') : t('runs.logHeld')}</span>}
      </Group>
      {log.error && <ErrorBox error={log.error} retry={() => void (before === null ? source.later() : source.earlier())} />}
      <div ref={scroller} className={classes.scroller} data-wrap={wrap || undefined} role="log" aria-live="off" aria-label={t('runs.logs')} tabIndex={0} onScroll={scrolled}>
        <div className={classes.all} style={{ height: virtual.getTotalSize() }}>
          {items.map((item) => (
            <LogRow key={item.key} index={item.index} measured={wrap ? virtual.measureElement : undefined} line={lines[item.index]!} zone={zone}
              begins={lines[item.index - 1]?.epoch !== lines[item.index]!.epoch && (item.index > 0 || before === null)}
              start={item.start} wanted={find.wanted} current={find.current === first + item.index} />
          ))}
        </div>
      </div>
      {!atEnd && <Button className={classes.end} size="compact-sm" radius="xl" leftSection={<IconArrowDown size={14} />} onClick={toEnd}>{t('runs.logEnd')}</Button>}
    </div>
  )
}

/** Stays at the end while it grows, if that is where one is; else with the lines that one looks at, whatever comes before them. */
function useStaying(scroller: React.RefObject<HTMLDivElement | null>, log: LogState, height: number) {
  const [atEnd, setAtEnd] = useState(true)
  const known = useRef(log.first)
  useLayoutEffect(() => {
    if (known.current !== log.first) scroller.current?.scrollBy({ top: (known.current - log.first) * LINE, behavior: 'instant' })
    known.current = log.first
  }, [scroller, log.first])
  useLayoutEffect(() => {
    if (atEnd) scroller.current?.scrollTo({ top: scroller.current.scrollHeight, behavior: 'instant' })
  }, [scroller, atEnd, height, log.lines])
  const scrolled = () => {
    const { scrollHeight, scrollTop, clientHeight } = scroller.current!
    setAtEnd(scrollHeight - scrollTop - clientHeight < 2 * LINE)
  }
  return { atEnd, scrolled, toEnd: () => setAtEnd(true), leave: () => setAtEnd(false) }
}
