/** What a node needs to do its work, by its kind. */
import { Group, Select, SimpleGrid, TextInput, Textarea } from '@mantine/core'
import type { ReactNode } from 'react'
import { METHODS } from '@/pages/jobs/types'
import { useT } from '@/i18n'
import { MONOSPACE } from '@/parts/json-input'
import { type Json, kindOf, set } from './definition'
import { JsonField } from './json-field'
import type { NodeFormProps } from './node-form'
import { PickJob, PickWorkflow } from './pick'

interface FieldsProps {
  cfg: Json
  put: (name: string, value: unknown) => void
  problem: (field: string) => string | undefined
}

export function NodeConfig({ node, onChange, problem }: NodeFormProps) {
  const t = useT()
  const kind = kindOf(node)
  if (kind === 'job') {
    return (
      <>
        <PickJob label={t('workflows.aJob')} placeholder={t('workflows.typeName')} value={String(node.jobId ?? '')} onChange={(jobId) => onChange({ ...node, jobId })} error={problem('jobId')} />
        <JsonField label={t('workflows.jobParams')} description={t('workflows.jobParamsHint')} value={node.params} onChange={(value) => onChange(set(node, 'params', value))} error={problem('params')} />
      </>
    )
  }
  const cfg = (node.cfg ?? {}) as Json
  const Fields = FIELDS[kind]
  if (Fields === undefined) return <JsonField label={t('workflows.config')} value={node.cfg} onChange={(value) => onChange(set(node, 'cfg', value))} error={problem('cfg')} />
  return <Fields cfg={cfg} put={(name, value) => onChange({ ...node, cfg: set(cfg, name, value) })} problem={(field) => problem(`cfg.${field}`) ?? (field === FIRST[kind] ? problem('cfg') : undefined)} />
}

/** Where a problem of the whole config is shown. */
const FIRST: Readonly<Record<string, string>> = { shell: 'cmd', http: 'url', python: 'function', wait: 'for', workflow: 'workflowId' }

function Shell({ cfg, put, problem }: FieldsProps) {
  const t = useT()
  return (
    <>
      <Textarea label={t('workflows.command')} autosize minRows={2} maxRows={12} styles={MONOSPACE} spellCheck={false} placeholder="echo hello" value={Array.isArray(cfg.cmd) ? JSON.stringify(cfg.cmd) : String(cfg.cmd ?? '')} onChange={(event) => put('cmd', event.currentTarget.value)} error={problem('cmd')} required />
      <JsonField label={t('workflows.environment')} description={t('workflows.environmentHint')} placeholder={'{"ROWS": "{{ nodes.extract.artifact.count }}"}'} value={cfg.env} onChange={(value) => put('env', value)} error={problem('env')} />
    </>
  )
}

function Http({ cfg, put, problem }: FieldsProps) {
  const t = useT()
  return (
    <>
      <Group gap="sm" align="flex-start" wrap="nowrap">
        <Select label={t('workflows.method')} w={110} allowDeselect={false} data={[...METHODS]} value={String(cfg.method ?? 'GET')} onChange={(value) => put('method', value)} error={problem('method')} />
        <TextInput label="URL" flex={1} styles={MONOSPACE} placeholder="https://example.com/path" value={String(cfg.url ?? '')} onChange={(event) => put('url', event.currentTarget.value)} error={problem('url')} required />
      </Group>
      <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
        <JsonField label={t('workflows.headers')} placeholder={'{"Accept": "application/json"}'} value={cfg.headers} onChange={(value) => put('headers', value)} error={problem('headers')} />
        <JsonField label={t('workflows.body')} orText placeholder={'{"day": "{{ params.day }}"}'} value={cfg.body} onChange={(value) => put('body', value)} error={problem('body')} />
      </SimpleGrid>
    </>
  )
}

function Python({ cfg, put, problem }: FieldsProps) {
  const t = useT()
  return (
    <>
      <TextInput label={t('workflows.function')} styles={MONOSPACE} placeholder="package.module:function" value={String(cfg.function ?? '')} onChange={(event) => put('function', event.currentTarget.value)} error={problem('function')} required />
      <JsonField label={t('workflows.params')} value={cfg.params} onChange={(value) => put('params', value)} error={problem('params')} />
    </>
  )
}

function Wait({ cfg, put, problem }: FieldsProps) {
  const t = useT()
  const text = (name: string, label: string, placeholder: string) => (
    <TextInput label={label} placeholder={placeholder} value={String(cfg[name] ?? '')} onChange={(event) => put(name, event.currentTarget.value)} error={problem(name)} />
  )
  return (
    <SimpleGrid cols={{ base: 1, xs: 3 }} spacing="sm">
      {text('for', t('workflows.waitFor'), '10m')}
      {text('until', t('workflows.waitUntil'), '2026-01-31T12:00:00Z')}
      {text('timeout', t('workflows.waitTimeout'), '2d')}
    </SimpleGrid>
  )
}

function Inner({ cfg, put, problem }: FieldsProps) {
  const t = useT()
  return (
    <>
      <PickWorkflow label={t('workflows.aWorkflow')} placeholder={t('workflows.typeName')} value={String(cfg.workflowId ?? '')} onChange={(id) => put('workflowId', id)} error={problem('workflowId')} />
      <JsonField label={t('workflows.params')} value={cfg.params} onChange={(value) => put('params', value)} error={problem('params')} />
    </>
  )
}

const FIELDS: Readonly<Record<string, (props: FieldsProps) => ReactNode>> = { shell: Shell, http: Http, python: Python, wait: Wait, workflow: Inner }
