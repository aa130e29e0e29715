/** When a schedule fires, in the reader's language. */
import { useCallback } from 'react'
import type { Schemas } from '@/api/client'
import type { Schedule } from '@/api/shapes'
import { inWords, millisOf } from '@/durations'
import { language, useT } from '@/i18n'
import { absolute } from '@/time'
import { type ScheduleDraft, bodyOf } from './draft'

type Told = Pick<Schedule, 'cronInWords' | 'every' | 'runAt' | 'timezone'>

/** `At 02:30, Monday through Friday`, `Every 5 minutes`, `Once, 2026-11-16 19:28:13 CET`. */
export function useScheduleWords(): (schedule: Told) => string {
  const t = useT()
  const lang = language.use()
  return useCallback(
    ({ cronInWords, every, runAt, timezone }) => {
      if (cronInWords) return cronInWords[lang]
      const millis = every ? millisOf(every) : undefined
      if (millis !== undefined) return t('schedules.every', { every: inWords(millis, lang) })
      return runAt ? t('schedules.once', { at: absolute(runAt, timezone) }) : ''
    },
    [t, lang],
  )
}

/** The same of a draft that Ksana has looked at; nothing while it cannot be. */
export function useDraftWords(draft: ScheduleDraft, data: Schemas['InstantsShown'] | undefined): string {
  const words = useScheduleWords()
  if (data === undefined) return ''
  const { every = null, runAt = null } = bodyOf(draft)
  return words({ cronInWords: draft.kind === 'cron' ? data.cronInWords : null, every, runAt, timezone: data.timezone })
}
