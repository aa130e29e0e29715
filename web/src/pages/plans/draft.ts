/** A plan as it is written in the form, and the body that it makes. */
import type { Schemas } from '@/api/client'
import { parsedJson } from '@/parts/json-input'

export type PlanBody = Schemas['PlanBody']
type StageBody = Schemas['StageBody']
type WaveBody = Schemas['WaveBody']
export const STAGE_TYPES = ['shell', 'http', 'python', 'job'] as const
export type StageType = (typeof STAGE_TYPES)[number]
export const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const

export interface StageDraft {
  key: number
  name: string
  type: StageType
  method: string
  /** The command, the address, the function or the job: what its type wants first. */
  main: string
  /** The rest of its config, as JSON. */
  more: string
  timeout: string
  attempts: number | string
}

export interface WaveDraft {
  key: number
  by: 'size' | 'percent'
  amount: number | string
  /** At most so many percent may have failed; empty: no gate. */
  gate: number | string
  pauseAfter: boolean
}

export interface PlanDraft {
  name: string
  planId: string
  description: string
  stages: readonly StageDraft[]
  tenants: string
  params: string
  maxConcurrency: number | string
  failureBudget: string
  onBusy: 'REJECT' | 'WAIT'
  waves: readonly WaveDraft[]
  autoStart: boolean
}

let keys = 0
export const newStage = (): StageDraft => ({ key: ++keys, name: '', type: 'shell', method: 'POST', main: '', more: '', timeout: '', attempts: '' })
export const newWave = (): WaveDraft => ({ key: ++keys, by: 'size', amount: 1, gate: 0, pauseAfter: false })
export const newPlan = (): PlanDraft => ({
  name: '', planId: '', description: '', stages: [newStage()], tenants: '', params: '', maxConcurrency: 1, failureBudget: '', onBusy: 'REJECT', waves: [], autoStart: true,
})

/** What its type's first field is called in the config. */
export const MAIN: Readonly<Record<Exclude<StageType, 'job'>, string>> = { shell: 'cmd', http: 'url', python: 'function' }

export const tenantsOf = (text: string): string[] => text.split(/[\s,;]+/).filter((each) => each !== '')

/** What was typed, as a number if it is one: whether it is right says Ksana. */
const numberOr = (value: number | string): number | undefined => (value === '' ? undefined : Number(value))
const objectOf = (text: string): Record<string, unknown> | undefined => {
  const read = parsedJson(text)
  return read.ok ? (read.value as Record<string, unknown> | undefined) : undefined
}
const budgetOf = (text: string): number | string | undefined => (text.trim() === '' ? undefined : /^\d+$/.test(text.trim()) ? Number(text) : text.trim())

/** Without what was left out. */
export function bodyOf(draft: PlanDraft): PlanBody {
  return given({
    planId: draft.planId.trim() || undefined,
    name: draft.name,
    description: draft.description.trim() || undefined,
    stages: draft.stages.map(stageOf),
    tenants: tenantsOf(draft.tenants),
    params: objectOf(draft.params),
    maxConcurrency: numberOr(draft.maxConcurrency),
    failureBudget: budgetOf(draft.failureBudget),
    waves: draft.waves.length > 0 ? draft.waves.map(waveOf) : undefined,
    onBusy: draft.onBusy === 'WAIT' ? 'WAIT' : undefined,
    autoStart: draft.autoStart,
  }) as PlanBody
}

const given = <T extends object>(values: T): T => Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as T

function stageOf(stage: StageDraft): StageBody {
  const attempts = numberOr(stage.attempts)
  const rules = given({ timeout: stage.timeout.trim() || undefined, retry: attempts === undefined ? undefined : { maxAttempts: attempts } })
  if (stage.type === 'job') return given({ name: stage.name.trim(), jobId: stage.main.trim(), params: objectOf(stage.more), ...rules }) as StageBody
  const config = { ...(stage.type === 'http' && { method: stage.method }), [MAIN[stage.type]]: stage.main, ...objectOf(stage.more) }
  return { name: stage.name.trim(), type: stage.type, config, ...rules } as StageBody
}

function waveOf(wave: WaveDraft): WaveBody {
  const gate = numberOr(wave.gate)
  return given({ [wave.by]: numberOr(wave.amount), gate: gate === undefined ? undefined : { maxFailedPercent: gate }, pauseAfter: wave.pauseAfter || undefined }) as WaveBody
}

/** Whether all that is JSON can be read. */
export const isReadable = (draft: PlanDraft) => [draft.params, ...draft.stages.map(({ more }) => more)].every((text) => parsedJson(text).ok)
