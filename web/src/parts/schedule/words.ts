/** When a schedule fires, in the reader's language. */
import { useCallback } from 'react'
import type { Schedule } from '@/api/shapes'
import { type Language, language, localeOf, useT } from '@/i18n'
import { absolute } from '@/time'

type Told = Pick<Schedule, 'cronInWords' | 'every' | 'runAt' | 'timezone'>

const UNITS = { d: 'day', h: 'hour', m: 'minute', s: 'second', ms: 'millisecond' } as const

/** `1h30m` as `1 hour 30 minutes`. Chinese has one word for a unit, long only in speech. */
const inWords = (interval: string, lang: Language): string =>
  [...interval.matchAll(/(\d+(?:\.\d+)?)(ms|[dhms])/g)]
    .map(([, amount, unit]) => new Intl.NumberFormat(localeOf(lang), { style: 'unit', unit: UNITS[unit as keyof typeof UNITS], unitDisplay: lang === 'zh' ? 'short' : 'long' }).format(Number(amount)))
    .join(' ')

/** `At 02:30, Monday through Friday`, `Every 5 minutes`, `Once, 2026-11-16 19:28:13 CET`. */
export function useScheduleWords(): (schedule: Told) => string {
  const t = useT()
  const lang = language.use()
  return useCallback(
    ({ cronInWords, every, runAt, timezone }) => {
      if (cronInWords) return cronInWords[lang]
      if (every) return t('schedules.every', { every: inWords(every, lang) || every })
      return runAt ? t('schedules.once', { at: absolute(runAt, timezone) }) : ''
    },
    [t, lang],
  )
}
