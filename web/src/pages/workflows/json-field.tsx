/** A value as JSON: told when it can be read, and kept as it was typed until then. */
import { Textarea } from '@mantine/core'
import { useState } from 'react'
import { JsonInput, MONOSPACE, parsedJson } from '@/parts/json-input'

interface Props {
  label: string
  description?: string
  placeholder?: string
  error?: string
  value: unknown
  onChange: (value: unknown) => void
  /** A text that is no JSON is taken as it is: an expression, or the body of a call. */
  orText?: boolean
}

const shown = (value: unknown, orText: boolean) => (value === undefined ? '' : orText && typeof value === 'string' ? value : JSON.stringify(value, null, 2))

export function JsonField({ value, onChange, orText = false, error, ...rest }: Props) {
  const [typed, setTyped] = useState({ text: shown(value, orText), of: value })
  if (typed.of !== value && JSON.stringify(typed.of) !== JSON.stringify(value)) setTyped({ text: shown(value, orText), of: value })
  const change = (text: string) => {
    const read = parsedJson(text)
    const next = read.ok ? read.value : orText ? text : undefined
    if (!read.ok && !orText) return setTyped({ text, of: value })
    setTyped({ text, of: next })
    onChange(next)
  }
  if (!orText) return <JsonInput {...rest} minRows={1} value={typed.text} onChange={change} error={error} />
  return <Textarea {...rest} autosize minRows={1} maxRows={12} styles={MONOSPACE} spellCheck={false} value={typed.text} onChange={(event) => change(event.currentTarget.value)} error={error} />
}
