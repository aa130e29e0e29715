/** Instants and durations, all after one clock and one choice of zone. */
import { Text, Tooltip } from '@mantine/core'
import { useSyncExternalStore } from 'react'
import { type Language, language, localeOf, useT } from './i18n'
import { stored } from './stored'

export const ZONES = ['utc', 'local', 'schedule'] as const
export type ZoneChoice = (typeof ZONES)[number]
/** One switch for every label: UTC, the browser's zone, or that of the schedule where there is one. */
export const zoneChoice = stored<ZoneChoice>('zone', ZONES, () => 'local')
export const localZone = Intl.DateTimeFormat().resolvedOptions().timeZone

const tickers = new Set<() => void>()
let timer: number | undefined
let now = Date.now()

function subscribe(listener: () => void): () => void {
  tickers.add(listener)
  now = Date.now()
  timer ??= window.setInterval(() => {
    if (document.hidden) return
    now = Date.now()
    tickers.forEach((tick) => tick())
  }, 1000)
  return () => {
    tickers.delete(listener)
    if (tickers.size > 0) return
    window.clearInterval(timer)
    timer = undefined
  }
}

/** `read(now)`, worked out each second; who uses it is drawn anew only when that changes. */
export function useTicking<T extends string | number>(read: (now: number) => T): T {
  return useSyncExternalStore(subscribe, () => read(now))
}

/** The zone that labels are in; `own` is that of the schedule they are about. */
export function useZone(own?: string | null): string {
  const choice = zoneChoice.use()
  if (choice === 'schedule' && own) return own
  return choice === 'utc' ? 'UTC' : localZone
}

const formats = new Map<string, Intl.DateTimeFormat>()
function formatOf(zone: string, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const key = `${zone} ${JSON.stringify(options)}`
  let found = formats.get(key)
  if (found === undefined) {
    found = new Intl.DateTimeFormat('en-GB', { timeZone: zone, hourCycle: 'h23', ...options })
    formats.set(key, found)
  }
  return found
}

const DATE = { year: 'numeric', month: '2-digit', day: '2-digit' } as const
const TIME = { hour: '2-digit', minute: '2-digit', second: '2-digit' } as const

/** `2026-11-16 19:28:13 CET`: the same in every language, and never without its zone. */
export function absolute(at: string | number, zone: string, { millis = false } = {}): string {
  const parts = formatOf(zone, { ...DATE, ...TIME, timeZoneName: 'short', ...(millis ? { fractionalSecondDigits: 3 as const } : {}) }).formatToParts(new Date(at))
  const part = (type: string) => parts.find((each) => each.type === type)?.value ?? ''
  const seconds = millis ? `${part('second')}.${part('fractionalSecond')}` : part('second')
  return `${part('year')}-${part('month')}-${part('day')} ${part('hour')}:${part('minute')}:${seconds} ${part('timeZoneName')}`
}

/** The day (`2026-11-16`) that an instant is on. */
export const dayOf = (at: string | number, zone: string): string => absolute(at, zone).slice(0, 10)
/** What a clock of the zone shows, as inputs write it: `2026-11-16T19:28:13`. */
export const wallClock = (at: string | number, zone: string): string => absolute(at, zone).slice(0, 19).replace(' ', 'T')
/** The instant at which a clock of the zone shows that. */
export function instantAt(wall: string, zone: string): string {
  const asUtc = Date.parse(`${wall}Z`)
  const ahead = (at: number) => Date.parse(`${wallClock(at, zone)}Z`) - at
  // On a day on which clocks change, the first guess may be on the other side of that.
  return new Date(asUtc - ahead(asUtc - ahead(asUtc))).toISOString()
}
/** The instant at which a day begins. */
export const startOfDay = (day: string, zone: string): string => instantAt(`${day}T00:00:00`, zone)
const DAY = 86_400_000
export const addDays = (day: string, days: number): string => new Date(Date.parse(`${day}T00:00:00Z`) + days * DAY).toISOString().slice(0, 10)
/** `Mon`, in the language's own way. */
export const weekdayOf = (day: string, lang: Language): string => new Intl.DateTimeFormat(localeOf(lang), { weekday: 'short', timeZone: 'UTC' }).format(Date.parse(day))
/** 0 is Monday. */
export const weekdayNumber = (day: string): number => (new Date(Date.parse(day)).getUTCDay() + 6) % 7
const AXIS = { days: [5, 10], minutes: [11, 16], seconds: [11, 19] } as const
/** `19:28`, `11-16` where days are what matters, `19:28:05` where seconds are: for the axis of a chart. */
export const axisTime = (at: number, zone: string, matters: keyof typeof AXIS): string => absolute(at, zone).slice(...AXIS[matters])

const STEPS: readonly [Intl.RelativeTimeFormatUnit, number][] = [['second', 60], ['minute', 60], ['hour', 24], ['day', 30], ['month', 12], ['year', Infinity]]

/** `3 minutes ago`, in as few words as the language allows. */
export function relative(at: number, from: number, lang: Language): string {
  let amount = (at - from) / 1000
  const format = new Intl.RelativeTimeFormat(localeOf(lang), { numeric: 'auto', style: 'short' })
  for (const [unit, size] of STEPS) {
    if (Math.abs(Math.round(amount)) < size) return format.format(Math.round(amount), unit)
    amount /= size
  }
  return ''
}

interface InstantProps {
  at: string | null | undefined
  /** Of the schedule that it is about. */
  zone?: string | null
  /** Written out, with the relative form in the tooltip instead. */
  exact?: boolean
}

/** An instant: relative, with the exact one (and its zone) for who hovers, or the other way round. */
export function Instant({ at, zone, exact = false }: InstantProps) {
  const lang = language.use()
  const shownZone = useZone(zone)
  const ago = useTicking((current) => (at ? relative(Date.parse(at), current, lang) : ''))
  const t = useT()
  if (!at) return <Text span inherit c="dimmed">–<span className="visually-hidden">{t('app.never')}</span></Text>
  const written = absolute(at, shownZone)
  return (
    <Tooltip label={exact ? ago : absolute(at, shownZone, { millis: true })}>
      <time dateTime={at} className="figures">{exact ? written : ago}</time>
    </Tooltip>
  )
}

/** `120 ms`, `1.2 s`, `3 min 04 s`, `2 h 05 min`, `3 d 4 h`. */
export function duration(millis: number): string {
  if (millis < 1000) return `${Math.round(millis)} ms`
  const seconds = millis / 1000
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`
  const minutes = Math.floor(seconds / 60)
  const two = (value: number) => String(Math.floor(value)).padStart(2, '0')
  if (minutes < 60) return `${minutes} min ${two(seconds % 60)} s`
  if (minutes < 60 * 24) return `${Math.floor(minutes / 60)} h ${two(minutes % 60)} min`
  return `${Math.floor(minutes / 1440)} d ${Math.floor((minutes % 1440) / 60)} h`
}

/** How long something took, or, of something that goes on (`since`), takes so far. */
export function Duration({ millis, since }: { millis?: number | null; since?: string | null }) {
  const text = useTicking((current) => {
    if (millis != null) return duration(millis)
    return since ? duration(Math.max(0, Math.floor((current - Date.parse(since)) / 1000) * 1000)) : '–'
  })
  return <span className="figures">{text}</span>
}
