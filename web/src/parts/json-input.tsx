/** A field for JSON: what is typed is checked as it is typed, and kept as text until it is sent. */
import { Textarea, type TextareaProps } from '@mantine/core'
import { useT } from '@/i18n'

/** For fields with something that is read letter by letter. */
export const MONOSPACE = { input: { fontFamily: 'var(--mantine-font-family-monospace)', fontSize: 12.5 } } as const

/** What a text says in JSON; nothing if it is empty. */
export function parsedJson(text: string): { ok: true; value: unknown } | { ok: false; problem: string } {
  if (text.trim() === '') return { ok: true, value: undefined }
  try {
    return { ok: true, value: JSON.parse(text) as unknown }
  } catch (error) {
    return { ok: false, problem: error instanceof Error ? error.message : String(error) }
  }
}

export function JsonInput({ value, onChange, error, ...rest }: Omit<TextareaProps, 'value' | 'onChange'> & { value: string; onChange: (text: string) => void }) {
  const t = useT()
  const read = parsedJson(value)
  return (
    <Textarea autosize minRows={3} maxRows={16} {...rest} value={value} onChange={(event) => onChange(event.currentTarget.value)} spellCheck={false}
      styles={MONOSPACE} error={error ?? (read.ok ? undefined : `${t('app.noJson')} ${read.problem}`)} />
  )
}
