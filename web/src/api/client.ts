/**
 * Everything that is asked of Ksana goes through a `Call`: it can be sent, and shown as curl or as a command.
 * Paths, parameters and bodies are checked against the API's description (`schema.d.ts`, made by `make web`).
 */
import { commandOf, quoted } from './commands'
import type { components, paths } from './schema'

export type Schemas = components['schemas']
export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

type Operation<P extends keyof paths, M extends Method> = paths[P][Lowercase<M> & keyof paths[P]]
/** The paths that answer this method. */
export type PathOf<M extends Method> = {
  [P in keyof paths]: Operation<P, M> extends { responses: unknown } ? P : never
}[keyof paths]

type Parameters<O, Where extends string> = O extends { parameters: { [K in Where]?: infer V } } ? NonNullable<V> : never
type BodyOf<O> = O extends { requestBody?: { content: { 'application/json': infer B } } } ? B : never
type Content<R> = R extends { content: { 'application/json': infer T } } ? T : never
/** What a successful answer holds. */
export type AnswerOf<P extends keyof paths, M extends Method> =
  Operation<P, M> extends { responses: infer R } ? Content<R[keyof R & (200 | 201 | 202)]> : never

type Given<K extends string, V> = [V] extends [never] ? { [Key in K]?: undefined } : Record<never, never> extends V ? { [Key in K]?: V } : { [Key in K]: V }
export type Options<P extends keyof paths, M extends Method> =
  Given<'path', Parameters<Operation<P, M>, 'path'>> &
  Given<'query', Parameters<Operation<P, M>, 'query'>> &
  Given<'body', BodyOf<Operation<P, M>>> & Pick<Call, 'document'>

/** One request, and what it answers (`T`). */
export interface Call<T = unknown> {
  readonly method: Method
  /** With its parameters filled in, and without the query. */
  readonly path: string
  readonly query: Readonly<Record<string, unknown>>
  readonly body?: unknown
  /** What a file for its command says, where that is not the body alone; null where another call's says it. */
  readonly document?: object | null
  /** Only for the type. */
  readonly answer?: T
}

/** A call of the API as it describes itself: `request('GET', '/api/v1/jobs/{jobId}', { path: { jobId } })`. */
export function request<M extends Method, P extends PathOf<M>>(
  method: M,
  path: P,
  ...[options]: Record<never, never> extends Options<P, M> ? [options?: Options<P, M>] : [options: Options<P, M>]
): Call<AnswerOf<P, M>> {
  const given = (options ?? {}) as { path?: Record<string, unknown>; query?: Record<string, unknown>; body?: unknown; document?: object | null }
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(given.path?.[name])))
  return { method, path: filled, query: given.query ?? {}, body: given.body, document: given.document }
}

/** A message about a field, without the name that the API has for it. */
export const withoutName = (field: string, message: string): string => (message.startsWith(`${field}: `) ? message.slice(field.length + 2) : message)

/** An answer that says no, as Ksana says it; `status` 0 where there was none. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly details: Readonly<Record<string, unknown>> = {},
    readonly requestId = '',
  ) {
    super(message)
  }

  /** The field that was wrong, if one was. */
  get field(): string | undefined {
    return typeof this.details.field === 'string' ? this.details.field : undefined
  }

  /** What to say at that field, which need not be named there. */
  get atField(): string {
    return withoutName(this.field ?? '', this.message)
  }
}

export const search = (query: Readonly<Record<string, unknown>>): string => {
  const pairs = Object.entries(query).flatMap(([name, value]) => {
    if (value == null || value === '') return []
    const text = Array.isArray(value) ? value.join(',') : String(value)
    return text === '' ? [] : [[name, text]]
  })
  return pairs.length > 0 ? `?${new URLSearchParams(pairs)}` : ''
}

/** Sends it. Rejects with a Refusal, whatever went wrong. */
export async function send<T>(call: Call<T>, signal?: AbortSignal): Promise<T> {
  let response: Response
  try {
    response = await fetch(call.path + search(call.query), {
      method: call.method,
      signal,
      headers: { Accept: 'application/json', ...(call.body === undefined ? {} : { 'Content-Type': 'application/json' }) },
      body: call.body === undefined ? undefined : JSON.stringify(call.body),
    })
  } catch (error) {
    if (signal?.aborted) throw error
    throw new Refusal(0, 'UNREACHABLE', 'Ksana does not answer')
  }
  const content: unknown = await response.json().catch(() => undefined)
  if (!response.ok) throw refusal(response.status, content)
  return content as T
}

function refusal(status: number, content: unknown): Refusal {
  const told = (typeof content === 'object' && content !== null ? content : {}) as Record<string, unknown>
  const text = (value: unknown, otherwise: string) => (typeof value === 'string' ? value : otherwise)
  const details = typeof told.details === 'object' && told.details !== null ? (told.details as Record<string, unknown>) : {}
  return new Refusal(status, text(told.code, `HTTP_${status}`), text(told.message, `HTTP ${status}`), details, text(told.request_id, ''))
}

/** The call for a shell. */
export function asCurl(call: Call): string {
  const parts = ['curl']
  if (call.method !== 'GET') parts.push('-X', call.method)
  parts.push(quoted(window.location.origin + call.path + search(call.query)))
  if (call.body !== undefined) parts.push('-H', quoted('Content-Type: application/json'), '-d', quoted(JSON.stringify(call.body)))
  return parts.join(' ')
}

/** Where the command line looks for Ksana if nothing else is said. */
const USUAL = 'http://127.0.0.1:7100'

/** The call as a command of Ksana's own: all that change something have one. */
export function asCli(call: Call): string | undefined {
  const { origin } = window.location
  return commandOf(call, origin === USUAL ? undefined : origin)
}
