/**
 * One event stream per tab. What an event is about refreshes the topics that show it, each at most once a second.
 * A hidden tab listens to nothing, and goes on where it was when it is looked at again.
 */
import type { InfiniteData, Query } from '@tanstack/react-query'
import { useSyncExternalStore } from 'react'
import { TOPICS, type Topic, queryClient } from './queries'

const RUNS: readonly Topic[] = ['activity', 'run', 'overview']
/** By what an event's type begins with. */
const TOUCHED: Readonly<Record<string, readonly Topic[]>> = {
  job: ['jobs', 'job', 'schedules', 'forecast', 'search'],
  workflow: ['workflows', 'workflow', 'schedules', 'forecast', 'search'],
  schedule: ['schedules', 'jobs', 'job', 'workflow', 'forecast', 'overview'],
  occurrence: ['occurrences', 'schedules', 'job', 'calendar'],
  run: [...RUNS, 'workflow'],
  node: ['run', 'workflow', 'overview'],
  execution: [...RUNS, 'jobs', 'job', 'calendar', 'occurrences', 'plan'],
  callback: ['run'],
  plan: ['plans', 'plan', 'search'],
  task: ['plan', 'plans'],
  instance: ['instances', 'overview'],
  failures: ['failures', 'overview'],
}
const ENDED = new Set(['run.ended', 'execution.ended'])
const EVERY = 1000
/** What costs more to ask, or changes little. */
const SELDOM: Partial<Record<Topic, number>> = { calendar: 10_000 }
const paceOf = (touch: Touch) => SELDOM[touch.split(' ')[0] as Topic] ?? EVERY
/** Without a stream, everything is asked for again so often; */
const POLL = 15_000
/** with one, only what moves without an event: that a run begins is none, nor that time goes by. */
const LOOK = 5_000
const MOVING: readonly Topic[] = ['activity', 'run', 'overview', 'forecast', 'instances', 'audit', 'workflow', 'plan']
const RECONNECT = { first: 2_000, last: 60_000 }
/** Of longer lists, all pages would be fetched anew: the reader is told instead, and asks when it suits. */
const REFETCHED_PAGES = 3

export type Live = 'live' | 'polling' | 'lost' | 'paused'
interface KsanaEvent {
  type: string
  /** The id of the run that it happened to, or to a node of which. */
  run: string | null
  target: { kind: 'job' | 'workflow' | 'plan'; id: string } | null
}
/** A topic, or that part of it which is about one thing: `run 42`. */
export type Touch = Topic | `${Topic} ${string}`

/** What an event changes. Of topics that are about one thing each, only that which it happened to, if it says so. */
export function touchedBy(event: KsanaEvent): readonly Touch[] {
  const topics = TOUCHED[event.type.split('.')[0] ?? ''] ?? TOPICS
  const { kind, id } = event.target ?? {}
  const ids: Partial<Record<Topic, string>> = { run: event.run ?? undefined, ...(kind && { [kind]: id }), ...(kind === 'job' && { calendar: id }) }
  const touched = topics.map((topic): Touch => (ids[topic] === undefined ? topic : `${topic} ${ids[topic]}`))
  return ENDED.has(event.type) ? [...touched, 'failures'] : touched
}

/** Whether a query is about what was touched: its key begins with the topic, and the thing's id is in its path or its query. */
const aboutThis = (touch: Touch) => {
  const [topic, id] = touch.split(/ (.*)/s)
  return ({ queryKey: [own, , path, query] }: Query): boolean => own === topic && (id === undefined || names(id, String(path), query))
}

const names = (id: string, path: string, query: unknown) =>
  path.split(/[/:]/).includes(encodeURIComponent(id)) || (typeof query === 'object' && query !== null && Object.values(query).includes(id))

const short = (query: Query): boolean => {
  const pages = (query.state.data as InfiniteData<unknown> | undefined)?.pages
  return !Array.isArray(pages) || pages.length <= REFETCHED_PAGES
}

/** Fetches a topic's answers anew where they are shown; others are fetched when they are shown again. */
class Refresher {
  private last = new Map<Touch, number>()
  private planned = new Set<Touch>()

  touch(touched: Iterable<Touch>): void {
    for (const each of touched) {
      if (this.planned.has(each)) continue
      this.planned.add(each)
      window.setTimeout(() => this.refresh(each), Math.max(0, (this.last.get(each) ?? 0) + paceOf(each) - Date.now()))
    }
  }

  private refresh(touch: Touch): void {
    this.planned.delete(touch)
    this.forget()
    this.last.set(touch, Date.now())
    const about = aboutThis(touch)
    void queryClient.invalidateQueries({ predicate: about, refetchType: 'none' })
    void queryClient.refetchQueries({ type: 'active', predicate: (query) => about(query) && short(query) }, { cancelRefetch: false })
  }

  private forget(): void {
    for (const [touch, at] of this.last) if (at + paceOf(touch) < Date.now()) this.last.delete(touch)
  }
}

class Stream {
  private refresher = new Refresher()
  private source: EventSource | undefined
  private after: string | undefined
  private timer: number | undefined
  private wait = RECONNECT.first
  private listeners = new Set<() => void>()
  live: Live = 'paused'

  start(): void {
    document.addEventListener('visibilitychange', () => (document.hidden ? this.pause() : this.open()))
    window.setInterval(() => (this.live === 'polling' || this.live === 'lost') && this.refresher.touch(TOPICS), POLL)
    window.setInterval(() => this.live === 'live' && this.refresher.touch(MOVING), LOOK)
    if (!document.hidden) this.open()
  }

  subscribe = (listener: () => void) => {
    this.listeners.add(listener)
    return () => void this.listeners.delete(listener)
  }

  private open(): void {
    this.close()
    const source = new EventSource(`/api/v1/events${this.after === undefined ? '' : `?after=${this.after}`}`)
    this.source = source
    source.addEventListener('open', () => this.opened())
    source.addEventListener('changes', (message) => this.changed(message as MessageEvent<string>))
    source.addEventListener('error', () => this.lost(source))
  }

  private opened(): void {
    // What happened before the stream began, nobody will tell.
    if (this.after === undefined || this.live !== 'paused') this.refresher.touch(TOPICS)
    this.wait = RECONNECT.first
    this.tell('live')
  }

  private changed(message: MessageEvent<string>): void {
    this.after = message.lastEventId || this.after
    const batch = JSON.parse(message.data) as { events: KsanaEvent[]; more: boolean }
    this.refresher.touch(batch.more ? TOPICS : new Set(batch.events.flatMap(touchedBy)))
  }

  /** The browser connects anew by itself, but not after an answer that is no stream. */
  private lost(source: EventSource): void {
    const answered = source.readyState === EventSource.CLOSED
    this.tell(answered ? 'polling' : 'lost')
    if (!answered) return
    this.timer = window.setTimeout(() => this.open(), this.wait)
    this.wait = Math.min(this.wait * 2, RECONNECT.last)
  }

  private pause(): void {
    this.close()
    this.tell('paused')
  }

  private close(): void {
    window.clearTimeout(this.timer)
    this.source?.close()
    this.source = undefined
  }

  private tell(live: Live): void {
    this.live = live
    this.listeners.forEach((listener) => listener())
  }
}

const stream = new Stream()
export const startEvents = () => stream.start()
/** Whether changes are shown as they happen. */
export const useLive = () => useSyncExternalStore(stream.subscribe, () => stream.live)
