/** What a schedule would do: of a draft, asked when typing pauses; asked again when the first instant has passed, so that all are to come. */
import { useDebouncedValue } from '@mantine/hooks'
import { useEffect } from 'react'
import { type Schemas, request } from '@/api/client'
import { useAnswer } from '@/api/queries'
import type { Schedule } from '@/api/shapes'
import { millisOf } from '@/durations'
import { type ScheduleDraft, bodyOf, isWhole } from './draft'

const SHOWN = 10
const LEAST_WAIT = 1_000
/** Longer timers end at once. */
const MOST_WAIT = 2 ** 31 - 1

/** How long an answer is good whose first instant is this; of a schedule that is behind, a while nevertheless. */
const waitUntil = (instant: number) => Math.min(MOST_WAIT, Math.max(LEAST_WAIT, instant - Date.now()))

interface Asked {
  data: Schemas['InstantsShown'] | undefined
  dataUpdatedAt: number
  refetch: () => unknown
}

/** Asks anew when the first instant of an answer has passed. */
export function useRolling({ data, dataUpdatedAt, refetch }: Asked, rolls = true): void {
  const first = rolls ? data?.instants[0]?.planned : undefined
  useEffect(() => {
    if (first === undefined) return
    const timer = window.setTimeout(() => void refetch(), waitUntil(Date.parse(first)))
    return () => window.clearTimeout(timer)
  }, [first, dataUpdatedAt, refetch])
}

/** Where the instants of a saved interval go on: it keeps counting from where it began while nobody changes how long it is. */
function goesOn(draft: ScheduleDraft, saved: Schedule | null): string | null {
  if (draft.kind !== 'every' || draft.startAt !== '' || saved?.every == null) return null
  return millisOf(saved.every) === millisOf(draft.every) ? saved.nextPlannedFor : null
}

/** An interval without a start counts from when it is saved: when that will be, nobody knows yet. */
export const countsFromSaving = (draft: ScheduleDraft, saved: Schedule | null): boolean =>
  draft.kind === 'every' && draft.startAt === '' && goesOn(draft, saved) === null

function bodyFor(draft: ScheduleDraft, saved: Schedule | null): Schemas['PreviewBody'] {
  const parts = { ...bodyOf(draft), input: undefined }
  return { ...parts, startAt: goesOn(draft, saved) ?? parts.startAt, count: SHOWN }
}

/** Who shows its instants lets them roll on. */
export function usePreview(draft: ScheduleDraft, saved: Schedule | null) {
  const written = isWhole(draft) ? JSON.stringify(bodyFor(draft, saved)) : ''
  const [asked] = useDebouncedValue(written, 300)
  const call = asked === '' ? null : request('POST', '/api/v1/schedules:preview', { body: JSON.parse(asked) as Schemas['PreviewBody'] })
  const answer = useAnswer('schedules', call)
  // What was wrong with something that is no longer written is nobody's problem.
  const error = call === null || asked !== written ? null : answer.error
  return { ...answer, data: call === null || answer.error ? undefined : answer.data, error }
}
