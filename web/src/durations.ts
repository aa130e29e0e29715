/** Durations as people write them and read them. What is understood here is what Ksana understands (`domain/durations.py`). */
import { type Language, localeOf } from './i18n'

const MILLIS: Readonly<Record<string, number>> = { us: 0.001, µs: 0.001, μs: 0.001, ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const SECONDS = /^\d{1,18}(?:\.\d{1,9})?$/
const PARTS = /^(?:\d{1,18}(?:\.\d{1,9})?(?:us|µs|μs|ms|[smhd]))+$/
const PART = /(\d+(?:\.\d+)?)(us|µs|μs|ms|[smhd])/g
const ISO = /^P(?=[\dT])(?:(\d{1,9})W)?(?:(\d{1,9})D)?(?:T(?=\d)(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9}(?:\.\d{1,9})?)S)?)?$/

/** Whether a text is a number alone, which means seconds. */
export const isBare = (text: string): boolean => SECONDS.test(text.trim())

/** How long `1h30m`, `90` (seconds) or `PT90S` is, in milliseconds; undefined if it is no duration. */
export function millisOf(text: string): number | undefined {
  const written = text.trim()
  if (isBare(written)) return Number(written) * 1000
  if (PARTS.test(written)) return [...written.matchAll(PART)].reduce((sum, [, amount, unit]) => sum + Number(amount) * MILLIS[unit!]!, 0)
  const iso = ISO.exec(written)
  if (iso === null) return undefined
  const [weeks, days, hours, minutes, seconds] = iso.slice(1).map((part: string | undefined) => Number(part ?? 0)) as [number, number, number, number, number]
  return (weeks * 7 + days) * MILLIS.d! + hours * MILLIS.h! + minutes * MILLIS.m! + seconds * MILLIS.s!
}

const UNITS = [['day', MILLIS.d!], ['hour', MILLIS.h!], ['minute', MILLIS.m!], ['second', MILLIS.s!]] as const

/** `1 hour 30 minutes`. Chinese has one word for a unit, long only in speech. */
export function inWords(millis: number, lang: Language): string {
  const word = (amount: number, unit: string) => new Intl.NumberFormat(localeOf(lang), { style: 'unit', unit, unitDisplay: lang === 'zh' ? 'short' : 'long' }).format(amount)
  if (millis < 1000) return millis === 0 ? word(0, 'second') : word(millis, 'millisecond')
  let rest = millis
  const words = UNITS.flatMap(([unit, size]) => {
    const amount = unit === 'second' ? rest / size : Math.floor(rest / size)
    rest -= amount * size
    return amount === 0 ? [] : [word(amount, unit)]
  })
  return words.join(' ')
}
