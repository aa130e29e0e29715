/**
 * Words in the user's language: `const t = useT(); t('runs.title')`.
 * `{name}` is replaced; `{n} run | {n} runs` chooses by `n`, in the order of the language's plural forms.
 */
import { useCallback } from 'react'
import { stored } from '@/stored'
import { en } from './en'
import type { Catalogue } from './types'

export const LANGUAGES = ['en', 'zh'] as const
export type Language = (typeof LANGUAGES)[number]
type Sections = typeof en
export type Key = { [S in keyof Sections & string]: `${S}.${keyof Sections[S] & string}` }[keyof Sections & string]
export type Values = Readonly<Record<string, string | number>>
export type Translate = (key: Key, values?: Values) => string

export const language = stored<Language>('language', LANGUAGES, () =>
  window.navigator.languages.map((each) => each.slice(0, 2)).find((each): each is Language => LANGUAGES.includes(each as Language)) ?? 'en',
)
const catalogues: Partial<Record<Language, Catalogue>> & { en: Catalogue } = { en }

/** Fetches the language's words, then changes to it. */
export async function speak(next: Language): Promise<void> {
  if (next === 'zh') catalogues.zh ??= (await import('./zh')).zh
  document.documentElement.lang = next === 'zh' ? 'zh-CN' : 'en'
  language.set(next)
}

export const localeOf = (lang: Language) => (lang === 'zh' ? 'zh-CN' : 'en-GB')

export function translate(lang: Language, key: Key, values: Values = {}): string {
  const [section, name] = key.split('.') as [keyof Catalogue, string]
  const words = (catalogues[lang] ?? en)[section] as Readonly<Record<string, string>>
  return fill(chosen(words[name] ?? key, lang, values.n), lang, values)
}

function chosen(text: string, lang: Language, n: string | number | undefined): string {
  const forms = text.split(' | ')
  if (forms.length === 1 || typeof n !== 'number') return forms.at(-1)!
  return new Intl.PluralRules(localeOf(lang)).select(n) === 'one' ? forms[0]! : forms.at(-1)!
}

const fill = (text: string, lang: Language, values: Values) =>
  text.replace(/\{(\w+)\}/g, (whole, name: string) => {
    const value = values[name]
    return typeof value === 'number' ? new Intl.NumberFormat(localeOf(lang)).format(value) : (value ?? whole)
  })

export function useT(): Translate {
  const lang = language.use()
  return useCallback((key, values) => translate(lang, key, values), [lang])
}
