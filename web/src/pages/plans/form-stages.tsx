/** The stages of a new plan: what is done for each tenant, in order. */
import { ActionIcon, Button, Group, NumberInput, Select, Stack, TextInput, Textarea } from '@mantine/core'
import { IconArrowDown, IconArrowUp, IconPlus, IconTrash } from '@tabler/icons-react'
import { type Key, useT } from '@/i18n'
import { JsonInput } from '@/parts/json-input'
import { MAIN, METHODS, STAGE_TYPES, type StageDraft, type StageType, newStage } from './draft'
import classes from './form.module.css'
import type { Wrong } from './wrong'

interface StagesProps {
  stages: readonly StageDraft[]
  onChange: (stages: readonly StageDraft[]) => void
  wrong: Wrong
}

export function StagesField({ stages, onChange, wrong }: StagesProps) {
  const t = useT()
  const change = (index: number, patch: Partial<StageDraft>) => onChange(stages.map((each, place) => (place === index ? { ...each, ...patch } : each)))
  const swap = (index: number, by: number) => onChange(stages.map((each, place) => (place === index ? stages[index + by]! : place === index + by ? stages[index]! : each)))
  return (
    <Stack gap="xs">
      {stages.map((stage, index) => (
        <StageCard key={stage.key} stage={stage} index={index} wrong={wrong} onChange={(patch) => change(index, patch)}>
          <ActionIcon variant="subtle" color="gray" size="sm" disabled={index === 0} aria-label={t('plans.moveUp', { n: index + 1 })} onClick={() => swap(index, -1)}><IconArrowUp size={15} /></ActionIcon>
          <ActionIcon variant="subtle" color="gray" size="sm" disabled={index === stages.length - 1} aria-label={t('plans.moveDown', { n: index + 1 })} onClick={() => swap(index, 1)}><IconArrowDown size={15} /></ActionIcon>
          <ActionIcon variant="subtle" color="gray" size="sm" disabled={stages.length === 1} aria-label={t('plans.removeStage', { n: index + 1 })} onClick={() => onChange(stages.filter((each) => each !== stage))}><IconTrash size={15} /></ActionIcon>
        </StageCard>
      ))}
      <Group><Button size="xs" variant="default" leftSection={<IconPlus size={15} />} onClick={() => onChange([...stages, newStage()])}>{t('plans.addStage')}</Button></Group>
    </Stack>
  )
}

const MAIN_TEXTS: Readonly<Record<StageType, Key>> = { shell: 'plans.stageCommand', http: 'plans.stageUrl', python: 'plans.stageFunction', job: 'plans.stageJob' }
const TYPE_TEXTS: Readonly<Record<StageType, Key>> = { shell: 'plans.typeShell', http: 'plans.typeHttp', python: 'plans.typePython', job: 'plans.typeJob' }
const EXAMPLES: Readonly<Record<StageType, string>> = { shell: 'echo migrating', http: 'https://example.com/{{ params.tenantId }}/migrate', python: 'migrate', job: 'job-7' }

function StageCard({ stage, index, wrong, onChange, children }: { stage: StageDraft; index: number; wrong: Wrong; onChange: (patch: Partial<StageDraft>) => void; children: React.ReactNode }) {
  const t = useT()
  const at = `stages[${index}]`
  const main = stage.type === 'job' ? `${at}.jobId` : `${at}.config.${MAIN[stage.type]}`
  const shown = [`${at}.name`, `${at}.timeout`, `${at}.retry.maxAttempts`, main]
  const rest = wrong.below(at, shown)
  const typed = { value: stage.main, error: wrong.at(main), label: t(MAIN_TEXTS[stage.type]), placeholder: EXAMPLES[stage.type], className: classes.code, required: true }
  return (
    <div className={classes.card} role="group" aria-label={t('plans.stageN', { n: index + 1 })} data-wrong={rest !== undefined || shown.some((field) => wrong.at(field)) || undefined}>
      <div className={classes.cardHead}><b>{t('plans.stageN', { n: index + 1 })}</b><Group gap={2}>{children}</Group></div>
      <Stack gap="xs">
        <div className={classes.pair}>
          <TextInput label={t('app.name')} required value={stage.name} error={wrong.at(`${at}.name`)} onChange={(event) => onChange({ name: event.currentTarget.value })} />
          <Select label={t('app.type')} allowDeselect={false} value={stage.type} data={STAGE_TYPES.map((value) => ({ value, label: t(TYPE_TEXTS[value]) }))} onChange={(next) => onChange({ type: (next ?? 'shell') as StageType })} />
        </div>
        {stage.type === 'shell' ? <Textarea {...typed} description={t('plans.stageCommandHint')} autosize minRows={1} maxRows={8} onChange={(event) => onChange({ main: event.currentTarget.value })} /> : (
          <div className={classes.pair}>
            {stage.type === 'http' && <Select label={t('plans.stageMethod')} allowDeselect={false} value={stage.method} data={[...METHODS]} onChange={(next) => onChange({ method: next ?? 'POST' })} />}
            <TextInput {...typed} onChange={(event) => onChange({ main: event.currentTarget.value })} />
          </div>
        )}
        <JsonInput label={stage.type === 'job' ? t('plans.stageParams') : t('plans.stageMore')} minRows={1} placeholder={'{"env": {"TENANT": "{{ params.tenantId }}"}}'} value={stage.more} onChange={(more) => onChange({ more })} />
        <div className={classes.pair}>
          <TextInput label={t('plans.stageTimeout')} placeholder="30s" value={stage.timeout} error={wrong.at(`${at}.timeout`)} onChange={(event) => onChange({ timeout: event.currentTarget.value })} />
          <NumberInput label={t('plans.stageAttempts')} placeholder="1" min={1} value={stage.attempts} error={wrong.at(`${at}.retry.maxAttempts`)} onChange={(attempts) => onChange({ attempts })} />
        </div>
      </Stack>
      {rest && <div className={classes.wrong} role="alert">{rest}</div>}
    </div>
  )
}
