/** A choice of this browser's user, kept in localStorage and shared by all who use it. */
import { useSyncExternalStore } from 'react'

export interface Stored<T extends string> {
  get: () => T
  set: (value: T) => void
  use: () => T
}

export function stored<T extends string>(name: string, allowed: readonly T[], initial: () => T): Stored<T> {
  const key = `ksana.${name}`
  const listeners = new Set<() => void>()
  let value = read()

  function read(): T {
    try {
      const kept = window.localStorage.getItem(key) as T | null
      return kept !== null && allowed.includes(kept) ? kept : initial()
    } catch {
      return initial() // storage may be forbidden: the choice then lasts as long as the page
    }
  }

  const set = (next: T) => {
    value = next
    try {
      window.localStorage.setItem(key, next)
    } catch {
      // as above
    }
    listeners.forEach((listener) => listener())
  }
  const subscribe = (listener: () => void) => {
    listeners.add(listener)
    return () => void listeners.delete(listener)
  }
  return { get: () => value, set, use: () => useSyncExternalStore(subscribe, () => value) }
}
