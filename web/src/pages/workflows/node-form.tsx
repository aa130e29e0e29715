/** One node of a workflow as a form: what it runs, after what, and by which rules. */
import { Button, Collapse, MultiSelect, NumberInput, Select, SimpleGrid, Stack, TextInput } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { IconChevronDown, IconChevronRight } from '@tabler/icons-react'
import { useT } from '@/i18n'
import { MONOSPACE } from '@/parts/json-input'
import { type Json, type NodeDef, RULES, TYPES, kindOf, set, without } from './definition'
import { JsonField } from './json-field'
import { NodeConfig } from './node-config'

export interface NodeFormProps {
  node: NodeDef
  /** The ids of the others. */
  others: readonly string[]
  onChange: (node: NodeDef) => void
  /** What is wrong with a field of it: `cfg.url`. */
  problem: (field: string) => string | undefined
}

const MORE = ['retry', 'timeout', 'when', 'forEach', 'triggerRule', 'recovery']

export function NodeForm(props: NodeFormProps) {
  const { node, others, onChange, problem } = props
  const t = useT()
  const kind = kindOf(node)
  const put = (name: string, value: unknown) => onChange(set(node, name, value))
  const choose = (next: string | null) => next !== null && next !== kind && onChange(asKind(node, next))
  return (
    <Stack gap="sm">
      <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
        <TextInput label={t('workflows.nodeId')} value={node.id} onChange={(event) => onChange({ ...node, id: event.currentTarget.value })} error={problem('id')} required />
        <Select label={t('workflows.does')} allowDeselect={false} value={kind} onChange={choose} error={problem('type')}
          data={[...new Set<string>([...TYPES, kind])].filter(Boolean).map((value) => ({ value, label: kindText(t, value) }))} />
      </SimpleGrid>
      <NodeConfig {...props} />
      <MultiSelect label={t('workflows.dependsOn')} placeholder={node.dependsOn?.length ? undefined : t('workflows.dependsOnNothing')} searchable hidePickedOptions clearable limit={100}
        data={[...new Set([...others.filter((id) => id !== node.id), ...(node.dependsOn ?? [])])].filter(Boolean)} value={node.dependsOn ?? []} onChange={(next) => put('dependsOn', next)} error={problem('dependsOn')} />
      <More {...props} put={put} />
    </Stack>
  )
}

const kindText = (t: ReturnType<typeof useT>, kind: string) => (kind === 'job' ? t('workflows.aJob') : kind === 'workflow' ? t('workflows.aWorkflow') : kind === 'wait' ? t('workflows.aWait') : kind)

/** The same node for another kind of work: what it was given for the old one says nothing to the new. */
function asKind(node: NodeDef, kind: string): NodeDef {
  const rest: Json = without(node, 'id', 'type', 'cfg', 'jobId', 'params')
  return kind === 'job' ? { id: node.id, jobId: '', ...rest } : { id: node.id, type: kind, cfg: {}, ...rest }
}

function More({ node, problem, put }: NodeFormProps & { put: (name: string, value: unknown) => void }) {
  const t = useT()
  const given = MORE.some((name) => node[name] !== undefined) || MORE.some((name) => problem(name) !== undefined)
  const [opened, { toggle }] = useDisclosure(given)
  const Mark = opened ? IconChevronDown : IconChevronRight
  const retry = (node.retry ?? {}) as Json
  const putRetry = (name: string, value: string | number) => {
    const next = set(retry, name, value)
    put('retry', Object.keys(next).length > 0 ? next : undefined)
  }
  return (
    <div>
      <Button variant="subtle" color="gray" size="compact-sm" onClick={toggle} leftSection={<Mark size={14} />} aria-expanded={opened}>{t('workflows.more')}</Button>
      <Collapse expanded={opened}>
        <SimpleGrid cols={{ base: 1, xs: 3 }} spacing="sm" mt="xs">
          <NumberInput label={t('workflows.maxAttempts')} placeholder="1" min={1} allowDecimal={false} value={(retry.maxAttempts as number | undefined) ?? ''} onChange={(value) => putRetry('maxAttempts', value)} error={problem('retry.maxAttempts') ?? problem('retry')} />
          <NumberInput label={t('workflows.backoff')} placeholder="0" min={0} allowDecimal={false} value={(retry.backoffMillis as number | undefined) ?? ''} onChange={(value) => putRetry('backoffMillis', value)} error={problem('retry.backoffMillis')} />
          <NumberInput label={t('workflows.multiplier')} placeholder="1" min={1} value={(retry.backoffMultiplier as number | undefined) ?? ''} onChange={(value) => putRetry('backoffMultiplier', value)} error={problem('retry.backoffMultiplier')} />
          <TextInput label={t('workflows.timeout')} placeholder="30s" value={String(node.timeout ?? '')} onChange={(event) => put('timeout', event.currentTarget.value)} error={problem('timeout')} />
          <Select label={t('workflows.rule')} placeholder="all_success" clearable data={[...RULES]} value={(node.triggerRule as string | undefined) ?? null} onChange={(value) => put('triggerRule', value)} error={problem('triggerRule')} />
          <Select label={t('workflows.recovery')} placeholder="retry" clearable data={['retry', 'fail']} value={(node.recovery as string | undefined) ?? null} onChange={(value) => put('recovery', value)} error={problem('recovery')} />
        </SimpleGrid>
        <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm" mt="sm">
          <TextInput label={t('workflows.when')} description={t('workflows.whenHint')} styles={MONOSPACE} placeholder="nodes.extract.artifact.count > 0" value={String(node.when ?? '')} onChange={(event) => put('when', event.currentTarget.value)} error={problem('when')} />
          <JsonField label={t('workflows.forEach')} description={t('workflows.forEachHint')} placeholder="nodes.extract.artifact.parts" orText value={node.forEach} onChange={(value) => put('forEach', value)} error={problem('forEach') ?? problem('forEach.items')} />
        </SimpleGrid>
      </Collapse>
    </div>
  )
}
