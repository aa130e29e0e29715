/** A new plan: what is done, for whom, how many at a time and who goes first. Beside it, the same as what is sent. */
import { Button, Group, NumberInput, Select, Stack, Switch, Text, TextInput, Textarea } from '@mantine/core'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { request } from '@/api/client'
import { useSend } from '@/api/queries'
import type { Plan } from '@/api/shapes'
import { useT } from '@/i18n'
import { CallMenu } from '@/parts/actions'
import { JsonView } from '@/parts/json'
import { JsonInput } from '@/parts/json-input'
import { ErrorBox, PageTitle, Section } from '@/parts/page'
import { type PlanDraft, bodyOf, isReadable, newPlan, tenantsOf } from './draft'
import { StagesField } from './form-stages'
import { WavesField } from './form-waves'
import classes from './form.module.css'
import { type Wrong, wrongWith } from './wrong'

interface PartProps {
  draft: PlanDraft
  set: (patch: Partial<PlanDraft>) => void
  wrong: Wrong
}

export function NewPlanPage() {
  const t = useT()
  const navigate = useNavigate()
  const [draft, setDraft] = useState(newPlan)
  const create = useSend<Plan>(['plans', 'search'])
  const part: PartProps = { draft, set: (patch) => setDraft((before) => ({ ...before, ...patch })), wrong: wrongWith(create.error) }
  const call = request('POST', '/api/v1/plans', { body: bodyOf(draft) })
  const submit = () => create.mutate(call, { onSuccess: ({ planId }) => void navigate({ to: '/plans/$planId', params: { planId } }) })
  return (
    <>
      <PageTitle title={t('plans.new')} />
      <form className={classes.form} noValidate onSubmit={(event) => { event.preventDefault(); submit() }}>
        <div>
          <Basics {...part} />
          <Section title={t('plans.stages')}><StagesField stages={draft.stages} onChange={(stages) => part.set({ stages })} wrong={part.wrong} /></Section>
          <Section title={t('plans.tenants')}><TenantsField {...part} /></Section>
          <Section title={t('plans.pace')}><Pace {...part} /></Section>
          <Section title={t('plans.waves')}><WavesField waves={draft.waves} onChange={(waves) => part.set({ waves })} wrong={part.wrong} /></Section>
          <Stack gap="sm" mt="lg">
            <Switch label={t('plans.autoStart')} description={t('plans.autoStartHint')} checked={draft.autoStart} onChange={(event) => part.set({ autoStart: event.currentTarget.checked })} />
            {create.error && <ErrorBox error={create.error} />}
            <Group gap={0}>
              <Button.Group>
                <Button type="submit" size="xs" loading={create.isPending} disabled={!isReadable(draft)}>{t('plans.create')}</Button>
                <CallMenu label={t('plans.create')} calls={[call]} variant="filled" />
              </Button.Group>
            </Group>
          </Stack>
        </div>
        <div className={classes.preview}>
          <Section title={t('plans.asJson')} actions={<CallMenu label={t('plans.asJson')} calls={[call]} />}><JsonView label={t('plans.asJson')} value={call.body} /></Section>
        </div>
      </form>
    </>
  )
}

function Basics({ draft, set, wrong }: PartProps) {
  const t = useT()
  return (
    <Stack gap="xs">
      <div className={classes.pair}>
        <TextInput label={t('app.name')} required value={draft.name} error={wrong.at('name')} onChange={(event) => set({ name: event.currentTarget.value })} data-autofocus />
        <TextInput label={t('plans.ownId')} placeholder={t('plans.ownIdHint')} value={draft.planId} error={wrong.at('planId')} onChange={(event) => set({ planId: event.currentTarget.value })} />
      </div>
      <TextInput label={t('app.description')} value={draft.description} error={wrong.at('description')} onChange={(event) => set({ description: event.currentTarget.value })} />
    </Stack>
  )
}

function TenantsField({ draft, set, wrong }: PartProps) {
  const t = useT()
  return (
    <Stack gap="xs">
      <Textarea label={t('plans.tenantIds')} description={t('plans.tenantIdsHint')} required autosize minRows={4} maxRows={14} className={classes.code} value={draft.tenants} error={wrong.below('tenants', [])}
        onChange={(event) => set({ tenants: event.currentTarget.value })} />
      <Text size="xs" c="dimmed" role="status">{t('plans.tenantCount', { n: tenantsOf(draft.tenants).length })}</Text>
      <JsonInput label={t('plans.paramsForAll')} description={t('plans.paramsForAllHint')} minRows={1} placeholder={'{"version": 12}'} value={draft.params} error={wrong.below('params', [])} onChange={(params) => set({ params })} />
    </Stack>
  )
}

function Pace({ draft, set, wrong }: PartProps) {
  const t = useT()
  return (
    <div className={classes.pair}>
      <NumberInput label={t('plans.maxConcurrency')} description={t('plans.maxConcurrencyHint')} min={1} value={draft.maxConcurrency} error={wrong.at('maxConcurrency')} onChange={(maxConcurrency) => set({ maxConcurrency })} />
      <TextInput label={t('plans.budget')} description={t('plans.budgetHint')} placeholder="5%" value={draft.failureBudget} error={wrong.at('failureBudget')} onChange={(event) => set({ failureBudget: event.currentTarget.value })} />
      <Select label={t('plans.onBusy')} description={t('plans.onBusyHint')} allowDeselect={false} value={draft.onBusy} error={wrong.at('onBusy')}
        data={[{ value: 'REJECT', label: t('plans.onBusyREJECT') }, { value: 'WAIT', label: t('plans.onBusyWAIT') }]} onChange={(next) => set({ onBusy: next === 'WAIT' ? 'WAIT' : 'REJECT' })} />
    </div>
  )
}
