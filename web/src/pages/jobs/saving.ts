/**
 * What a form sends, in order: each schedule is tried first, so that a job is not made with one that cannot be; then the job, then its
 * schedules. What is saved stays saved: after a refusal, saving again goes on from there.
 */
import { type Call, Refusal, request, send } from '@/api/client'
import type { Schedule } from '@/api/shapes'
import { type ScheduleDraft, bodyOf, changeOf as scheduleChange } from '@/parts/schedule/draft'
import { type JobDraft, changeOf, newJobBody } from './draft'

export interface ScheduleItem {
  key: string
  draft: ScheduleDraft
  /** As Ksana has it; null: not yet. */
  saved: Schedule | null
}

/** A job as far as it is saved. */
export interface Saved {
  jobId: string
  draft: JobDraft
  schedules: readonly Schedule[]
}

export class ScheduleRefused extends Error {
  constructor(
    readonly key: string,
    readonly refusal: Refusal,
  ) {
    super(refusal.message)
  }
}

const isSame = (item: ScheduleItem) => item.saved !== null && Object.keys(scheduleChange(item.saved, item.draft)).every((name) => name === 'version')

/** The calls that saving takes. Of a new job, `JOB_ID` is what the first will answer, and its command makes the schedules, too. */
export function callsOf(saved: Saved | null, draft: JobDraft, items: readonly ScheduleItem[]): Call[] {
  const job = jobCall(saved, draft)
  const calls = scheduleCalls(saved, saved?.jobId ?? 'JOB_ID', items).map(({ call }) => call)
  if (saved !== null || calls.length === 0) return [...(job ? [job] : []), ...calls]
  const document = { ...newJobBody(draft), schedules: items.map((item) => bodyOf(item.draft)) }
  return [{ ...job!, document }, ...calls.map((call) => ({ ...call, document: null }))]
}

function jobCall(saved: Saved | null, draft: JobDraft) {
  if (saved === null) return request('POST', '/api/v1/jobs', { body: newJobBody(draft) })
  const body = changeOf(saved.draft, draft)
  return Object.keys(body).length === 0 ? undefined : request('PUT', '/api/v1/jobs/{jobId}', { path: { jobId: saved.jobId }, body })
}

interface ScheduleCall {
  /** Of the item that it is about; null: one that was taken out of the form. */
  item: ScheduleItem | null
  /** What it is about, as it was saved. */
  id: string | null
  call: Call<Schedule | undefined>
}

function scheduleCalls(saved: Saved | null, jobId: string, items: readonly ScheduleItem[]): ScheduleCall[] {
  const kept = new Set(items.map((item) => item.saved?.id))
  const gone = (saved?.schedules ?? []).filter(({ id }) => !kept.has(id))
  return [
    ...gone.map(({ id }): ScheduleCall => ({ item: null, id, call: request('DELETE', '/api/v1/schedules/{id}', { path: { id } }) })),
    ...items.filter((item) => !isSame(item)).map((item): ScheduleCall => ({ item, id: item.saved?.id ?? null, call: saveCall(item, jobId) })),
  ]
}

const saveCall = ({ saved, draft }: ScheduleItem, jobId: string): Call<Schedule> =>
  saved === null
    ? request('POST', '/api/v1/schedules', { body: { jobId, paused: false, ...bodyOf(draft) } })
    : request('PATCH', '/api/v1/schedules/{id}', { path: { id: saved.id }, body: scheduleChange(saved, draft) })

/** What has become of the form so far; told after each step. */
type Progress = (saved: Saved, items: readonly ScheduleItem[]) => void

/** Saves all of it. Rejects with a Refusal of the job, or a ScheduleRefused. */
export async function save(saved: Saved | null, draft: JobDraft, items: readonly ScheduleItem[], progress: Progress): Promise<Saved> {
  for (const item of items) if (!isSame(item)) await tried(item)
  const job = jobCall(saved, draft)
  const answer = job && (await send(job))
  let now: Saved = { jobId: answer?.jobId ?? saved!.jobId, draft, schedules: saved?.schedules ?? [] }
  let rows = items
  progress(now, rows)
  for (const { item, id, call } of scheduleCalls(saved, now.jobId, items)) {
    const made = await sent(item, call)
    const others = now.schedules.filter((each) => each.id !== id)
    now = { ...now, schedules: made ? [...others, made] : others }
    rows = rows.map((row) => (row === item && made ? { ...row, saved: made } : row))
    progress(now, rows)
  }
  return now
}

async function tried(item: ScheduleItem): Promise<void> {
  const parts = { ...bodyOf(item.draft), input: undefined }
  await sent(item, request('POST', '/api/v1/schedules:preview', { body: { ...parts, count: 1 } }))
}

async function sent<T>(item: ScheduleItem | null, call: Call<T>): Promise<T> {
  try {
    return await send(call)
  } catch (error) {
    throw item !== null && error instanceof Refusal ? new ScheduleRefused(item.key, error) : error
  }
}
