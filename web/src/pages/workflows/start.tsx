/** Starts a workflow, with what its runs are given: fields where its schema names them, JSON otherwise. */
import { Checkbox, NumberInput, Select, TextInput } from '@mantine/core'
import { IconPlayerPlay } from '@tabler/icons-react'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { type Refusal, request } from '@/api/client'
import type { Workflow } from '@/api/shapes'
import { useT } from '@/i18n'
import { Action } from '@/parts/actions'
import { JsonInput, parsedJson } from '@/parts/json-input'

interface ParamSchema {
  type?: string
  title?: string
  description?: string
  default?: unknown
  enum?: unknown[]
}
interface ParamsSchema {
  required?: string[]
  properties?: Record<string, ParamSchema>
}

const SIMPLE = ['string', 'integer', 'number', 'boolean']

export function StartAction({ workflow }: { workflow: Workflow }) {
  const t = useT()
  const navigate = useNavigate()
  const schema = (workflow.dag.paramsSchema ?? {}) as ParamsSchema
  const properties = Object.entries(schema.properties ?? {})
  const [typed, setTyped] = useState<Readonly<Record<string, unknown>>>({})
  const [runId, setRunId] = useState('')
  const read = paramsOf(properties, typed)
  const body = { runId: runId.trim() || undefined, params: Object.keys(read.params).length > 0 ? read.params : undefined }
  return (
    <Action label={t('workflows.start')} icon={IconPlayerPlay} primary disabled={!workflow.enabled} confirm={t('workflows.startAsk', { name: workflow.name })} ready={read.ok} touches={['workflow', 'workflows', 'activity', 'overview']}
      call={() => request('POST', '/api/v1/workflows/{workflowId}:start', { path: { workflowId: workflow.workflowId }, body })}
      done={(started) => void navigate({ to: '/runs/$runId', params: { runId: started.runId } })}>
      {(error) => (
        <>
          {properties.map(([name, param]) => (
            <ParamInput key={name} name={name} param={param} required={schema.required?.includes(name) ?? false} value={typed[name]} onChange={(value) => setTyped({ ...typed, [name]: value })} problem={problemOf(error, `params.${name}`)} />
          ))}
          {properties.length === 0 && <JsonInput label={t('workflows.params')} description={t('workflows.paramsHint')} value={String(typed[''] ?? '')} onChange={(value) => setTyped({ '': value })} error={problemOf(error, 'params')} placeholder={'{"day": "2026-01-31"}'} />}
          <TextInput label={t('workflows.runId')} description={t('workflows.runIdHint')} value={runId} onChange={(event) => setRunId(event.currentTarget.value)} error={problemOf(error, 'runId')} />
        </>
      )}
    </Action>
  )
}

const problemOf = (error: Refusal | null, field: string) => (error?.field === field ? error.message : undefined)

/** What was typed, as the API takes it; what was left alone is left out. */
function paramsOf(properties: readonly [string, ParamSchema][], typed: Readonly<Record<string, unknown>>): { ok: boolean; params: Record<string, unknown> } {
  if (properties.length === 0) {
    const read = parsedJson(String(typed[''] ?? ''))
    return { ok: read.ok, params: read.ok ? ((read.value ?? {}) as Record<string, unknown>) : {} }
  }
  const given = properties.flatMap(([name, param]) => {
    const value = typed[name]
    if (value === undefined || value === '') return []
    if (SIMPLE.includes(param.type ?? '') || param.enum) return [[name, value, true] as const]
    const read = parsedJson(String(value))
    return [[name, read.ok ? read.value : undefined, read.ok] as const]
  })
  return { ok: given.every(([, , ok]) => ok), params: Object.fromEntries(given.map(([name, value]) => [name, value])) }
}

interface ParamProps {
  name: string
  param: ParamSchema
  required: boolean
  value: unknown
  onChange: (value: unknown) => void
  problem?: string
}

function ParamInput({ name, param, required, value, onChange, problem }: ParamProps) {
  const usual = param.default === undefined ? undefined : typeof param.default === 'string' ? param.default : JSON.stringify(param.default)
  const common = { label: param.title ?? name, description: param.description, placeholder: usual, error: problem, required, withAsterisk: required }
  if (param.enum) return <Select {...common} clearable={!required} data={param.enum.map(String)} value={value === undefined ? null : String(value)} onChange={(next) => onChange(param.enum!.find((each) => String(each) === next))} />
  if (param.type === 'boolean') return <Checkbox label={common.label} description={common.description} error={problem} checked={Boolean(value ?? param.default)} onChange={(event) => onChange(event.currentTarget.checked)} />
  if (param.type === 'integer' || param.type === 'number') return <NumberInput {...common} allowDecimal={param.type === 'number'} value={(value as number | undefined) ?? ''} onChange={(next) => onChange(next === '' ? undefined : next)} />
  if (param.type === 'string') return <TextInput {...common} value={String(value ?? '')} onChange={(event) => onChange(event.currentTarget.value)} />
  return <JsonInput {...common} value={String(value ?? '')} onChange={onChange} />
}
