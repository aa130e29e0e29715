/** What holds for a workflow as a whole. */
import { Button, Checkbox, Collapse, NumberInput, Select, SimpleGrid, TextInput } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { IconChevronDown, IconChevronRight } from '@tabler/icons-react'
import { useT } from '@/i18n'
import { type Dag, type Problem, set } from './definition'
import { JsonField } from './json-field'

const OWN = ['failFast', 'timeout', 'maxActiveRuns', 'overlap', 'paramsSchema']

export function Options({ dag, onChange, problem }: { dag: Dag; onChange: (dag: Dag) => void; problem: Problem | undefined }) {
  const t = useT()
  const [opened, { toggle }] = useDisclosure(OWN.some((name) => dag[name] !== undefined))
  const put = (name: string, value: unknown) => onChange(set(dag, name, value))
  const wrong = (name: string) => (problem?.field === name || problem?.field.startsWith(`${name}.`) ? problem.message : undefined)
  const shown = opened || OWN.some((name) => wrong(name) !== undefined)
  const Mark = shown ? IconChevronDown : IconChevronRight
  return (
    <div>
      <Button variant="subtle" color="gray" size="compact-sm" onClick={toggle} leftSection={<Mark size={14} />} aria-expanded={shown}>{t('workflows.options')}</Button>
      <Collapse expanded={shown}>
        <SimpleGrid cols={{ base: 1, xs: 3 }} spacing="sm" mt="xs">
          <TextInput label={t('workflows.runTimeout')} placeholder="1h" value={String(dag.timeout ?? '')} onChange={(event) => put('timeout', event.currentTarget.value)} error={wrong('timeout')} />
          <NumberInput label={t('workflows.maxActiveRuns')} min={1} allowDecimal={false} value={(dag.maxActiveRuns as number | undefined) ?? ''} onChange={(value) => put('maxActiveRuns', value)} error={wrong('maxActiveRuns')} />
          <Select label={t('workflows.overlap')} placeholder="QUEUE" clearable data={['QUEUE', 'SKIP', 'REPLACE', 'PARALLEL']} value={(dag.overlap as string | undefined) ?? null} onChange={(value) => put('overlap', value)} error={wrong('overlap')} />
        </SimpleGrid>
        <Checkbox mt="sm" label={t('workflows.failFast')} description={t('workflows.failFastHint')} checked={dag.failFast === true} onChange={(event) => put('failFast', event.currentTarget.checked || undefined)} />
        <div style={{ marginTop: 12 }}>
          <JsonField label={t('workflows.paramsSchema')} description={t('workflows.paramsSchemaHint')} placeholder={'{"type": "object", "required": ["day"], "properties": {"day": {"type": "string"}}}'} value={dag.paramsSchema} onChange={(value) => put('paramsSchema', value)} error={wrong('paramsSchema')} />
        </div>
      </Collapse>
    </div>
  )
}
