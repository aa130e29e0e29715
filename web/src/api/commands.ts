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
type Ids = ReadonlyMap<string, string>

/** What requests call the values that commands call so. */
const MEANS: Readonly<Record<string, string>> = {
  job: 'jobId', workflow: 'workflowId', schedule: 'id', tenant: 'tenantId', plan: 'planId', output: 'artifact', limit: 'size',
}
const SAFE = /^[\w@%+=:,./-]+$/

export const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`
const word = (text: string): string => (SAFE.test(text) ? text : quoted(text))
const camel = (flag: string) => flag.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase())

/** `server`: where Ksana is, if commands do not look there by themselves. */
export function commandOf(call: Call, server?: string): string | undefined {
  for (const { form, method, path } of table as readonly Command[]) {
    const ids = method === call.method && idsOf(path, call.path)
    if (!ids) continue
    const where = server === undefined ? [] : ['--server', word(server)]
    return form.endsWith(' FILE') ? reading(form, ids, call, where) : typed(form, ids, said(call), where)
  }
  return undefined
}

function idsOf(pattern: string, path: string): Ids | false {
  const names = [...pattern.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!)
  const found = new RegExp(`^${pattern.replace(/\{\w+\}/g, '([^/:]+)')}$`).exec(path)
  return found !== null && new Map(names.map((name, index) => [name, decodeURIComponent(found[index + 1]!)]))
}

/** A command that is given a document: on standard input, where nothing in it means anything to the shell. It says which thing it is about. */
function reading(form: string, ids: Ids, call: Call, where: readonly string[]): string | undefined {
  if (call.document === null) return undefined
  const about = Object.fromEntries([...ids].map(([name, id]) => [MEANS[name] ?? name, id]))
  const document = JSON.stringify({ ...about, ...((call.document ?? call.body) as object | undefined) }, null, 2)
  return `${['ksana', form.replace(/ FILE$/, ' -'), ...where].join(' ')} <<'JSON'\n${document}\nJSON`
}

/** What the request says beyond its path. */
function said(call: Call): Map<string, unknown> {
  const { filter, target, fromCheckpoint, ...body } = (call.body ?? {}) as Record<string, unknown>
  const of = target as { kind: string; id: string } | undefined
  const all: Record<string, unknown> = { ...call.query, ...body, fromStart: fromCheckpoint === false, ...(filter as object | undefined), ...(of && { [`${of.kind}Id`]: of.id }) }
  return new Map(Object.entries(all).filter(([, value]) => value !== undefined))
}

const saysNothing = (value: unknown) => value === null || value === '' || value === false

function typed(form: string, ids: Ids, left: Map<string, unknown>, where: readonly string[]): string | undefined {
  const words = ['ksana']
  const things: string[] = []
  const flags: string[] = []
  for (const part of form.match(/\[[^\]]*\]|--\S+ [A-Z]+|\S+/g) ?? []) {
    const optional = /^\[(.*)\]$/.exec(part)?.[1]
    const [first = '', name = ''] = part.split(' ')
    if (optional?.startsWith('--')) flags.push(...given(optional, left))
    else if (optional !== undefined) things.push(...taken('ids', left))
    else if (first.startsWith('--')) flags.push(flagged(first, ids.get(name.toLowerCase()) ?? ''))
    else if (/^[A-Z]+$/.test(part)) things.push(ids.get(part.toLowerCase()) ?? '')
    else words.push(part)
  }
  if ([...left.values()].some((value) => !saysNothing(value))) return undefined
  const ahead = [...flags, ...where]
  // After `--` nothing is a flag, whatever it begins with.
  const rest = things.some((thing) => thing.startsWith('-')) ? [...ahead, '--', ...things.map(word)] : [...things.map(word), ...ahead]
  return [...words, ...rest].join(' ')
}

function taken(name: string, left: Map<string, unknown>): string[] {
  const found = (left.get(name) ?? []) as string[]
  left.delete(name)
  return found
}

const flagged = (flag: string, value: string) => (value.startsWith('-') ? `${flag}=${word(value)}` : `${flag} ${word(value)}`)

/** A flag with what the request says of it, which is then told. */
function given(optional: string, left: Map<string, unknown>): string[] {
  const [flag = '', value] = optional.split(' ')
  const short = flag.slice(2)
  const name = MEANS[short] ?? camel(short)
  const found = left.get(name)
  if (found === undefined || (value === undefined ? found !== true : value !== 'JSON' && saysNothing(found))) return []
  left.delete(name)
  if (value === undefined) return [flag]
  return [flagged(flag, value === 'JSON' ? JSON.stringify(found) : Array.isArray(found) ? found.join(',') : String(found))]
}
