/** Rows that keep their places while somebody is about to click one of them. */
import { useState } from 'react'

export interface Steady<R> {
  rows: readonly R[]
  /** How many new ones wait. */
  waiting: number
  /** Shows them. */
  adopt: () => void
}

/**
 * While `held`, rows stay where they were, with their newest content; those that are new and would come before others wait, and
 * those that are gone stay. What is added at the end (the next page) is shown at once.
 */
export function settle<R>(before: readonly R[], now: readonly R[], idOf: (row: R) => string): { rows: R[]; waiting: number } {
  const newest = new Map(now.map((row) => [idOf(row), row]))
  const known = new Set(before.map(idOf))
  const lastKnown = now.findLastIndex((row) => known.has(idOf(row)))
  const kept = before.map((row) => newest.get(idOf(row)) ?? row)
  const waiting = now.slice(0, lastKnown + 1).filter((row) => !known.has(idOf(row))).length
  // Nothing is as before: this is another list.
  return lastKnown < 0 ? { rows: [...now], waiting: 0 } : { rows: [...kept, ...now.slice(lastKnown + 1)], waiting }
}

export function useSteady<R>(now: readonly R[], idOf: (row: R) => string, held: boolean): Steady<R> {
  const [state, setState] = useState({ source: now, held, rows: now, waiting: 0 })
  let current = state
  if (state.source !== now || state.held !== held) {
    current = { source: now, held, ...(held ? settle(state.rows, now, idOf) : { rows: now, waiting: 0 }) }
    setState(current)
  }
  return { rows: current.rows, waiting: current.waiting, adopt: () => setState({ source: now, held, rows: now, waiting: 0 }) }
}
