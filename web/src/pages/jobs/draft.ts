/** A job as the form has it: texts and choices, and how they become what is sent. */
import type { Schemas } from '@/api/client'
import type { Job } from '@/api/shapes'
import { type Body, bodyFrom, readBody } from './body'
import { TYPES } from './types'

export type JobBody = Schemas['ksana__api__contracts__jobchain__job_models__JobBody']

export interface Pair {
  name: string
  value: string
}

export interface JobDraft {
  name: string
  description: string
  type: string
  enabled: boolean
  // of a call
  method: string
  url: string
  headers: readonly Pair[]
  body: Body
  isAsync: boolean
  callbackTimeout: string
  followRedirects: boolean
  connectTimeout: string
  // of a command
  cmd: string
  env: readonly Pair[]
  cwd: string
  // of a function
  function: string
  params: string
  /** Of a type that has no fields here: all of its config, as JSON. */
  config: string
  timeout: string
  attempts: number | string
  backoffSeconds: number | string
  multiplier: number | string
  policy: NonNullable<JobBody['concurrencyPolicy']>
  maxConcurrency: number | string
  recovery: NonNullable<JobBody['recovery']>
  workerQueue: string
  labels: readonly Pair[]
  /** What no field shows, of a config of that type. */
  rest: { type: string; values: Record<string, unknown> }
}

export function emptyJob(): JobDraft {
  return {
    name: '', description: '', type: 'http', enabled: true, method: 'GET', url: '', headers: [], body: { kind: 'json', text: '' }, isAsync: false, callbackTimeout: '',
    followRedirects: false, connectTimeout: '', cmd: '', env: [], cwd: '', function: '', params: '', config: '', timeout: '', attempts: 1, backoffSeconds: 0, multiplier: 1,
    policy: 'PARALLEL', maxConcurrency: 1, recovery: 'retry', workerQueue: '', labels: [], rest: { type: 'http', values: {} },
  }
}

/** A job that there is, as its form begins. */
export function draftOf(job: Job): JobDraft {
  const { method, url, headers, body, mode, callback_timeout, follow_redirects, connect_timeout, cmd, env, cwd, function: name, params, ...others } = job.configJson
  return {
    ...emptyJob(),
    name: job.name, description: job.description, type: job.type, enabled: job.enabled,
    method: textOf(method) || 'GET', url: textOf(url), headers: pairsOf(headers), body: bodyFrom(body), isAsync: mode === 'async', callbackTimeout: textOf(callback_timeout),
    followRedirects: follow_redirects === true, connectTimeout: textOf(connect_timeout),
    cmd: textOf(cmd), env: pairsOf(env), cwd: textOf(cwd), function: textOf(name), params: params === undefined ? '' : pretty(params),
    config: hasFields(job.type) ? '' : pretty(job.configJson),
    timeout: job.timeout, attempts: job.retry.maxAttempts, backoffSeconds: job.retry.backoffMillis / 1000, multiplier: job.retry.backoffMultiplier,
    policy: job.concurrencyPolicy, maxConcurrency: job.maxConcurrency, recovery: job.recovery, workerQueue: job.workerQueue, labels: pairsOf(job.labels),
    rest: { type: job.type, values: others },
  }
}

/** What a new job is asked for with; what is blank is left to Ksana. Throws where `problemsOf` finds a text that is not JSON. */
export function jobBody(draft: JobDraft): JobBody {
  return {
    name: draft.name.trim(),
    type: draft.type,
    configJson: configOf(draft),
    enabled: draft.enabled,
    description: draft.description.trim() || null,
    timeout: draft.timeout.trim() || null,
    retry: { maxAttempts: Number(draft.attempts), backoffMillis: Math.round(Number(draft.backoffSeconds) * 1000), backoffMultiplier: Number(draft.multiplier) },
    concurrencyPolicy: draft.policy,
    maxConcurrency: Number(draft.maxConcurrency),
    recovery: draft.recovery,
    workerQueue: draft.workerQueue.trim() || null,
    labels: recordOf(draft.labels),
  }
}

/** Only what says something, for who is to read it. */
export function newJobBody(draft: JobDraft): JobBody {
  const usual = jobBody(emptyJob())
  return withoutSame(jobBody(draft), usual, ['name', 'type', 'configJson'])
}

/** Of a job that there is, what was changed: the rest is not sent, and so stays as it is, whoever changes it meanwhile. */
export const changeOf = (before: JobDraft, after: JobDraft): Partial<JobBody> =>
  withoutSame(jobBody(after), jobBody(before), after.type === before.type ? [] : ['type', 'configJson'])

function withoutSame<T extends object, K extends keyof T>(after: T, before: T, kept: readonly K[]): T {
  const changed = Object.entries(after).filter(([name, value]) => kept.includes(name as K) || JSON.stringify(value) !== JSON.stringify(before[name as K]))
  return Object.fromEntries(changed) as T
}

export const hasFields = (type: string): boolean => (TYPES as readonly string[]).includes(type)

function configOf(draft: JobDraft): Record<string, unknown> {
  const rest = draft.rest.type === draft.type ? draft.rest.values : {}
  if (draft.type === 'http') return { ...rest, ...callOf(draft) }
  if (draft.type === 'shell') return given({ ...rest, cmd: readCommand(draft.cmd), env: recordOf(draft.env), cwd: draft.cwd.trim() })
  if (draft.type === 'python') return given({ ...rest, function: draft.function.trim(), params: draft.params.trim() === '' ? undefined : (JSON.parse(draft.params) as unknown) })
  return draft.config.trim() === '' ? {} : (JSON.parse(draft.config) as Record<string, unknown>)
}

const callOf = (draft: JobDraft) =>
  given({
    method: draft.method, url: draft.url.trim(), headers: recordOf(draft.headers), body: readBody(draft.body), mode: draft.isAsync ? 'async' : undefined,
    callback_timeout: draft.callbackTimeout.trim(), follow_redirects: draft.followRedirects || undefined, connect_timeout: draft.connectTimeout.trim(),
  })

/** Without what is not given. */
const given = (values: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined && value !== '' && !isEmpty(value)))
const isEmpty = (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length === 0

/** A line for the shell, or a list of words in JSON. */
function readCommand(text: string): string | string[] {
  if (!text.trim().startsWith('[')) return text
  try {
    const read: unknown = JSON.parse(text)
    return Array.isArray(read) && read.every((word) => typeof word === 'string') ? read : text
  } catch {
    return text // `[ -f x ] && …` is a command like any other
  }
}

const pretty = (value: unknown) => JSON.stringify(value, null, 2)
const textOf = (value: unknown): string => (value === undefined || value === null ? '' : typeof value === 'object' ? JSON.stringify(value) : String(value as string | number))
const pairsOf = (value: unknown): Pair[] => Object.entries((value ?? {}) as Record<string, unknown>).map(([name, each]) => ({ name, value: textOf(each) }))
const recordOf = (pairs: readonly Pair[]): Record<string, string> => Object.fromEntries(pairs.filter(({ name }) => name.trim() !== '').map(({ name, value }) => [name.trim(), value]))
