/**
 * Readers of search parameters: a page's `search.ts` says what its URL may hold, and whatever else is in it is left out, so that
 * an old or a mistyped link still opens. Lists are written with commas.
 */
type Raw = Record<string, unknown>
type Reader<T> = (value: unknown) => T | undefined

const asText = (value: unknown) => (typeof value === 'string' ? value : typeof value === 'number' || typeof value === 'boolean' ? String(value) : undefined)

export const text: Reader<string> = (value) => asText(value)?.trim() || undefined
export const number: Reader<number> = (value) => (asText(value) !== undefined && Number.isFinite(Number(value)) ? Number(value) : undefined)
export const flag: Reader<boolean> = (value) => (asText(value) === 'true' ? true : asText(value) === 'false' ? false : undefined)
export const instant: Reader<string> = (value) => (typeof value === 'string' && !Number.isNaN(Date.parse(value)) ? value : undefined)
export const oneOf = <const T extends string>(...allowed: readonly T[]): Reader<T> => (value) => allowed.find((each) => each === value)
export const many: Reader<string[]> = (value) => {
  const parts = (Array.isArray(value) ? value.map(String) : (asText(value)?.split(',') ?? [])).map((each) => each.trim()).filter(Boolean)
  return parts.length > 0 ? parts : undefined
}

type Read<S> = { [K in keyof S]?: S[K] extends Reader<infer T> ? T : never }

/** `validateSearch` of a route. */
export const reads =
  <S extends Record<string, Reader<unknown>>>(readers: S) =>
  (raw: Raw): Read<S> => {
    const found = Object.entries(readers).map(([name, read]) => [name, read(raw[name])] as const)
    return Object.fromEntries(found.filter(([, value]) => value !== undefined)) as Read<S>
  }

/** The URL's query as people write it: lists with commas, no quotes around numbers. */
export const parseSearch = (query: string): Raw => Object.fromEntries(new URLSearchParams(query))
export const stringifySearch = (values: Raw): string => {
  const pairs = Object.entries(values).flatMap(([name, value]) => (value === undefined || value === null ? [] : [[name, Array.isArray(value) ? value.join(',') : String(value)]]))
  return pairs.length > 0 ? `?${new URLSearchParams(pairs).toString().replaceAll('%2C', ',').replaceAll('%3A', ':')}` : ''
}
