/** A log as far as it was read: from its end backwards, and onwards while it grows. */
import { type Call, Refusal, type Schemas, send } from '@/api/client'
import { type Line, joined, linesOfParts } from './log-lines'

type Answer = Schemas['LogShown']
export type AskLog = (query: { before?: string; after?: string; limit: number }) => Call<Answer>

export interface LogState {
  readonly lines: readonly Line[]
  /** The number of the first line; it falls as earlier ones are read, so that each line keeps its own. */
  readonly first: number
  /** Where what precedes ends; null: nothing does. */
  readonly before: string | null
  readonly error: Refusal | null
  /** Its end was read. */
  readonly ready: boolean
  /** Earlier lines are on their way. */
  readonly reading: boolean
}

const LIMIT = 1_000
const EMPTY: LogState = { lines: [], first: 0, before: null, error: null, ready: false, reading: false }

export class LogSource {
  state = EMPTY
  private after: string | undefined
  private asking = new AbortController()
  private listeners = new Set<() => void>()
  private under: Promise<void> | undefined

  constructor(private readonly ask: AskLog) {}

  subscribe = (listener: () => void) => {
    this.listeners.add(listener)
    return () => void this.listeners.delete(listener)
  }
  now = () => this.state

  /** Reads its end. */
  start(): void {
    this.asking = new AbortController()
    if (!this.state.ready) void this.tried(() => this.readEnd())
  }

  /** Whatever was asked for is left. */
  stop(): void {
    this.asking.abort()
    this.under = undefined
    this.put({ reading: false })
  }

  /** Reads what precedes, if anything does. */
  earlier(): Promise<void> {
    if (this.state.before === null) return Promise.resolve()
    this.put({ reading: true })
    return this.once(() => this.readEarlier(this.state.before!)).finally(() => this.put({ reading: false }))
  }

  /** Reads what was written since. */
  later(): Promise<void> {
    return this.state.ready ? this.once(() => this.readLater()) : Promise.resolve()
  }

  private async readEnd(): Promise<void> {
    const { items, cursor, before } = await send(this.ask({ before: 'end', limit: LIMIT }), this.asking.signal)
    this.after = cursor ?? undefined
    this.put({ lines: linesOfParts(items), before: before ?? null, ready: true, error: null })
  }

  private async readEarlier(cursor: string): Promise<void> {
    const { items, before } = await send(this.ask({ before: cursor, limit: LIMIT }), this.asking.signal)
    const lines = joined(linesOfParts(items), this.state.lines)
    this.put({ lines, first: this.state.first - (lines.length - this.state.lines.length), before: before ?? null, error: null })
  }

  private async readLater(): Promise<void> {
    const { items, cursor } = await send(this.ask({ after: this.after, limit: LIMIT }), this.asking.signal)
    this.after = cursor ?? this.after
    if (items.length > 0 || this.state.error) this.put({ lines: joined(this.state.lines, linesOfParts(items)), error: null })
  }

  /** One after the other: what is joined must be whole. */
  private once(read: () => Promise<void>): Promise<void> {
    const next = (this.under ?? Promise.resolve()).then(() => this.tried(read))
    this.under = next
    return next
  }

  private async tried(read: () => Promise<void>): Promise<void> {
    const { signal } = this.asking
    try {
      if (!signal.aborted) await read()
    } catch (error) {
      if (signal.aborted) return
      this.put({ error: error instanceof Refusal ? error : new Refusal(0, 'LOG', String(error)) })
    }
  }

  private put(change: Partial<LogState>): void {
    this.state = { ...this.state, ...change }
    this.listeners.forEach((listener) => listener())
  }
}
