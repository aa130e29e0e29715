/** What a job runs that is no call: a command, a function, or what a plug-in does. */
import { TextInput, Textarea } from '@mantine/core'
import { useT } from '@/i18n'
import { JsonInput, MONOSPACE } from '@/parts/json-input'
import type { FieldsProps } from './job-form'
import { PairsInput } from './pairs'

export function WorkFields(props: FieldsProps) {
  if (props.draft.type === 'shell') return <CommandFields {...props} />
  return props.draft.type === 'python' ? <FunctionFields {...props} /> : <ConfigField {...props} />
}

function CommandFields({ draft, set, problem }: FieldsProps) {
  const t = useT()
  return (
    <>
      <Textarea label={t('jobs.cmd')} required description={t('jobs.cmdHint')} placeholder="date -u" autosize minRows={2} maxRows={12} value={draft.cmd} onChange={(event) => set({ cmd: event.currentTarget.value })} error={problem('configJson.cmd')} styles={MONOSPACE} spellCheck={false} />
      <PairsInput label={t('jobs.env')} add={t('jobs.addVariable')} description={t('jobs.envHint')} value={draft.env} onChange={(env) => set({ env })} error={problem('configJson.env')} />
      <TextInput label={t('jobs.cwd')} placeholder="/srv/data" value={draft.cwd} onChange={(event) => set({ cwd: event.currentTarget.value })} error={problem('configJson.cwd')} styles={MONOSPACE} spellCheck={false} />
    </>
  )
}

function FunctionFields({ draft, set, problem }: FieldsProps) {
  const t = useT()
  return (
    <>
      <TextInput label={t('jobs.function')} required description={t('jobs.functionHint')} placeholder="reports.daily" value={draft.function} onChange={(event) => set({ function: event.currentTarget.value })} error={problem('configJson.function')} styles={MONOSPACE} spellCheck={false} />
      <JsonInput label={t('jobs.params')} description={t('jobs.paramsHint')} placeholder={'{"day": "{{ scheduled_at }}"}'} value={draft.params} onChange={(params) => set({ params })} error={problem('configJson.params')} />
    </>
  )
}

function ConfigField({ draft, set, problem }: FieldsProps) {
  const t = useT()
  return <JsonInput label={t('jobs.config')} description={t('jobs.configHint')} placeholder="{}" value={draft.config} onChange={(config) => set({ config })} error={problem('configJson')} />
}
