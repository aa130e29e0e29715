/**
 * A call as a command (`ksana …`), by the command line's own table of both (`commands.json`, made by `make web`).
 * A call that says more than its command can has none.
 */
import table from './commands.json'
import type { Call } from './client'

interface Command {
  readonly form: string
  readonly method: string
  readonly path: string
}

/** What requests call the values that commands call so. */
const MEANS: Readonly<Record<string, string>> = {
  job: 'jobId', workflow: 'workflowId', tenant: 'tenantId', plan: 'planId', output: 'artifact', limit: 'size',
}
const SAFE = /^[\w@%+=:,./-]+$/

export const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`
const word = (value: unknown): string => {
  const text = Array.isArray(value) ? value.join(',') : typeof value === 'object' ? JSON.stringify(value) : String(value)
  return SAFE.test(text) ? text : quoted(text)
}
const camel = (flag: string) => flag.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase())

export function commandOf(call: Call): string | undefined {
  for (const command of table as readonly Command[]) {
    const ids = command.method === call.method && idsOf(command.path, call.path)
    if (ids) return typed(command.form, ids, said(call))
  }
  return undefined
}

function idsOf(pattern: string, path: string): string[] | false {
  const found = new RegExp(`^${pattern.replace(/\{\w+\}/g, '([^/:]+)')}$`).exec(path)
  return found ? found.slice(1).map(decodeURIComponent) : false
}

/** What the request says beyond its path, without what says nothing. */
function said(call: Call): Map<string, unknown> {
  const { filter, target, fromCheckpoint, ...body } = (call.body ?? {}) as Record<string, unknown>
  const of = target as { kind: string; id: string } | undefined
  const all: Record<string, unknown> = { ...call.query, ...body, fromStart: fromCheckpoint === false, ...(filter as object | undefined), ...(of && { [`${of.kind}Id`]: of.id }) }
  return new Map(Object.entries(all).filter(([, value]) => value != null && value !== '' && value !== false))
}

function typed(form: string, ids: string[], left: Map<string, unknown>): string | undefined {
  const words = ['ksana']
  for (const part of form.match(/\[[^\]]*\]|\S+/g) ?? []) {
    const optional = /^\[(.*)\]$/.exec(part)?.[1]
    if (optional === undefined) words.push(/^[A-Z]+$/.test(part) ? word(ids.shift() ?? left.get('id')) : part)
    else words.push(...given(optional, left))
  }
  return left.size > 0 || words.includes('undefined') ? undefined : words.join(' ')
}

/** An optional part with what the request says of it, which is then told. */
function given(optional: string, left: Map<string, unknown>): string[] {
  const [flag = '', value] = optional.split(' ')
  const isFlag = flag.startsWith('--')
  const short = flag.slice(2)
  const name = isFlag ? (MEANS[short] ?? camel(short)) : 'ids'
  const found = left.get(name)
  if (found === undefined || (isFlag && value === undefined && found !== true)) return []
  left.delete(name)
  if (!isFlag) return (found as string[]).map(word)
  return value === undefined ? [flag] : [flag, word(found)]
}
