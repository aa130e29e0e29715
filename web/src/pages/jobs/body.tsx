/** The body of a call: a JSON document, or any text. */
import { Group, Input, SegmentedControl, Textarea } from '@mantine/core'
import type { ReactNode } from 'react'
import { useT } from '@/i18n'
import { JsonInput, MONOSPACE, parsedJson } from '@/parts/json-input'

export interface Body {
  kind: 'json' | 'text'
  text: string
}

export function bodyFrom(value: unknown): Body {
  if (value === undefined || value === null) return { kind: 'json', text: '' }
  return typeof value === 'string' ? { kind: 'text', text: value } : { kind: 'json', text: JSON.stringify(value, null, 2) }
}

/** What is sent; nothing if it is blank. Throws if it is not the JSON that it should be. */
export function readBody({ kind, text }: Body): unknown {
  if (text.trim() === '') return undefined
  return kind === 'text' ? text : (JSON.parse(text) as unknown)
}

export const isSendable = ({ kind, text }: Body): boolean => kind === 'text' || parsedJson(text).ok

interface BodyInputProps {
  label: string
  description?: ReactNode
  value: Body
  onChange: (value: Body) => void
  error?: string
}

export function BodyInput({ label, description, value, onChange, error }: BodyInputProps) {
  const t = useT()
  const change = (text: string) => onChange({ ...value, text })
  return (
    <Input.Wrapper>
      <Group justify="space-between" mb={4}>
        <Input.Label component="div">{label}</Input.Label>
        <SegmentedControl size="xs" aria-label={t('jobs.bodyKind')} value={value.kind} onChange={(kind) => onChange({ ...value, kind: kind as Body['kind'] })}
          data={[{ value: 'json', label: t('jobs.json') }, { value: 'text', label: t('jobs.text') }]} />
      </Group>
      {value.kind === 'json'
        ? <JsonInput aria-label={label} value={value.text} onChange={change} error={error} placeholder={'{"run": "{{ run_id }}"}'} />
        : <Textarea aria-label={label} value={value.text} onChange={(event) => change(event.currentTarget.value)} error={error} autosize minRows={3} maxRows={16} styles={MONOSPACE} spellCheck={false} />}
      {description && <Input.Description mt={4}>{description}</Input.Description>}
    </Input.Wrapper>
  )
}
