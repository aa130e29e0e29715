/** What is wrong with a form: found here before it is sent, or said by Ksana after. By the names of the API's fields. */
import { type Refusal, withoutName } from '@/api/client'
import { millisOf } from '@/durations'
import type { Translate } from '@/i18n'
import { parsedJson } from '@/parts/json-input'
import { isSendable } from './body'
import { type JobDraft, hasFields } from './draft'

export type Problems = Readonly<Record<string, string>>
/** What is wrong with a field, or with a part of it. */
export type ProblemOf = (field: string) => string | undefined

export const problemIn = (problems: Problems): ProblemOf => (field) => {
  const name = Object.keys(problems).find((each) => each === field || each.startsWith(`${field}.`))
  if (name === undefined) return undefined
  return name === field ? problems[name] : `${name.slice(field.length + 1)}: ${problems[name]}`
}

/** What cannot be sent at all. */
export function problemsOf(draft: JobDraft, t: Translate): Problems {
  const found: Record<string, string> = {}
  const need = (field: string, text: string) => {
    if (text.trim() === '') found[field] = t('jobs.needed')
  }
  const length = (field: string, text: string) => {
    if (text.trim() !== '' && millisOf(text) === undefined) found[field] = t('app.noLength')
  }
  length('timeout', draft.timeout)
  if (draft.type === 'http') length('configJson.connect_timeout', draft.connectTimeout)
  if (draft.type === 'http' && draft.isAsync) length('configJson.callback_timeout', draft.callbackTimeout)
  need('name', draft.name)
  need('type', draft.type)
  if (draft.type === 'http') need('configJson.url', draft.url)
  if (draft.type === 'http' && !isSendable(draft.body)) found['configJson.body'] = t('app.noJson')
  if (draft.type === 'shell') need('configJson.cmd', draft.cmd)
  if (draft.type === 'python') need('configJson.function', draft.function)
  if (draft.type === 'python' && !isObject(draft.params)) found['configJson.params'] = t('jobs.mustBeObject')
  if (!hasFields(draft.type) && !isObject(draft.config)) found.configJson = t('jobs.mustBeObject')
  return found
}

/** A JSON object, or nothing. */
export function isObject(text: string): boolean {
  const read = parsedJson(text)
  return read.ok && (read.value === undefined || (typeof read.value === 'object' && read.value !== null && !Array.isArray(read.value)))
}

/** A refusal by the fields that it names: one, or all that were wrong at once. */
export function refused(refusal: Refusal): Problems {
  const told = Array.isArray(refusal.details.errors) ? (refusal.details.errors as { field: string; message: string }[]) : []
  const all = told.length > 0 ? told : refusal.field ? [{ field: refusal.field, message: refusal.message }] : []
  return Object.fromEntries(all.map(({ field, message }) => [field, withoutName(field, message)]))
}

const OF_ANY = ['name', 'description', 'type', 'timeout', 'retry.maxAttempts', 'retry.backoffMillis', 'retry.backoffMultiplier', 'concurrencyPolicy', 'maxConcurrency', 'recovery', 'workerQueue', 'labels']
const OF_TYPE: Readonly<Record<string, readonly string[]>> = {
  http: ['configJson.method', 'configJson.url', 'configJson.headers', 'configJson.body', 'configJson.mode', 'configJson.callback_timeout', 'configJson.connect_timeout'],
  shell: ['configJson.cmd', 'configJson.env', 'configJson.cwd'],
  python: ['configJson.function', 'configJson.params'],
}

/** Whether each of them is shown at a field of the form. */
export function areAtFields(problems: Problems, type: string): boolean {
  const fields = [...OF_ANY, ...(OF_TYPE[type] ?? ['configJson'])]
  const names = Object.keys(problems)
  return names.length > 0 && names.every((name) => fields.some((field) => name === field || name.startsWith(`${field}.`)))
}
