/** A schedule while somebody writes it: texts, as the inputs have them. Instants are what a clock of its zone shows. */
import type { Refusal, Schemas } from '@/api/client'
import type { Schedule } from '@/api/shapes'
import { parsedJson } from '@/parts/json-input'
import { instantAt, localZone, wallClock } from '@/time'

export type ScheduleBody = Omit<Schemas['ksana__api__contracts__schedules_models__ScheduleBody'], 'jobId' | 'workflowId' | 'paused'>
export type ScheduleChange = Schemas['ksana__api__contracts__schedules_models__ScheduleChange']
export type ScheduleKind = Schedule['kind']

export interface ScheduleDraft {
  kind: ScheduleKind
  cron: string
  every: string
  runAt: string
  timezone: string
  startAt: string
  endAt: string
  jitter: string
  misfirePolicy: Schedule['misfirePolicy']
  catchupLimit: string
  misfireGrace: string
  /** JSON. */
  input: string
}

/** What is sent for each kind; the others stay in the draft, for who changes the kind back. */
const OF_KIND = { cron: 'cron', every: 'every', once: 'runAt' } as const
const USUAL = { jitter: '0s', misfirePolicy: 'FIRE_NOW', catchupLimit: '5', misfireGrace: '1m' } as const

export const emptyDraft = (timezone = localZone): ScheduleDraft => ({
  kind: 'cron', cron: '', every: '', runAt: '', timezone, startAt: '', endAt: '', jitter: '', misfirePolicy: USUAL.misfirePolicy, catchupLimit: '', misfireGrace: '', input: '',
})

/** Whether a refusal is shown at a field of the editor, or at one of the form's own. */
export const isAtField = ({ field }: Refusal, others: readonly string[] = []): boolean => field !== undefined && (field in emptyDraft('UTC') || others.includes(field))

export function draftOf(schedule: Schedule): ScheduleDraft {
  const wall = (at: string | null) => (at === null ? '' : wallClock(at, schedule.timezone))
  const unusual = (value: string, usual: string) => (value === usual ? '' : value)
  return {
    kind: schedule.kind, cron: schedule.cron ?? '', every: schedule.every ?? '', runAt: wall(schedule.runAt), timezone: schedule.timezone,
    startAt: wall(schedule.startAt), endAt: wall(schedule.endAt), jitter: unusual(schedule.jitter, USUAL.jitter), misfirePolicy: schedule.misfirePolicy,
    catchupLimit: unusual(String(schedule.catchupLimit), USUAL.catchupLimit), misfireGrace: unusual(schedule.misfireGrace, USUAL.misfireGrace),
    input: Object.keys(schedule.input).length > 0 ? JSON.stringify(schedule.input, null, 2) : '',
  }
}

/** Whether it says when: before, there is nothing to ask about it. */
export const isWhole = (draft: ScheduleDraft): boolean => draft[OF_KIND[draft.kind]].trim() !== '' && parsedJson(draft.input).ok

/** What the API takes, without whose schedule it is. */
export function bodyOf(draft: ScheduleDraft): ScheduleBody {
  const text = (value: string) => value.trim() || undefined
  const instant = (wall: string) => (wall === '' ? undefined : instantIn(wall, draft.timezone))
  const only = (kind: ScheduleKind, value: string | undefined) => (draft.kind === kind ? value : undefined)
  const input = parsedJson(draft.input)
  return {
    kind: draft.kind,
    cron: only('cron', text(draft.cron)),
    every: only('every', text(draft.every)),
    runAt: only('once', instant(draft.runAt)),
    timezone: text(draft.timezone),
    startAt: instant(draft.startAt),
    endAt: instant(draft.endAt),
    jitter: text(draft.jitter),
    misfirePolicy: draft.misfirePolicy === USUAL.misfirePolicy ? undefined : draft.misfirePolicy,
    catchupLimit: draft.catchupLimit === '' ? undefined : Number(draft.catchupLimit),
    misfireGrace: text(draft.misfireGrace),
    input: input.ok ? (input.value as ScheduleBody['input']) : undefined,
  }
}

/** Of a zone that the browser does not know, the server says so. */
function instantIn(wall: string, zone: string): string {
  try {
    return instantAt(wall, zone)
  } catch (error) {
    if (error instanceof RangeError) return `${wall}Z`
    throw error
  }
}

/** Only what differs from the schedule; null where something is taken away. */
export function changeOf(schedule: Schedule, draft: ScheduleDraft): ScheduleChange {
  const before = bodyOf(draftOf(schedule)) as Record<string, unknown>
  const after = bodyOf(draft) as Record<string, unknown>
  const taken = (name: string) => (name === 'input' ? {} : null)
  const differing = Object.keys(after).filter((name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]))
  // Of another kind, what only the old one had is dropped by itself.
  const sent = differing.filter((name) => after[name] !== undefined || !Object.values<string>(OF_KIND).includes(name))
  return { ...Object.fromEntries(sent.map((name) => [name, after[name] ?? taken(name)])), version: schedule.version }
}
