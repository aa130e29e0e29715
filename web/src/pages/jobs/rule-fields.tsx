/** By which rules a job runs: folded, since what is usual suits most. */
import { Button, Collapse, NumberInput, Paper, Select, SimpleGrid, Switch, TextInput } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { IconChevronDown, IconChevronRight } from '@tabler/icons-react'
import { useT } from '@/i18n'
import type { JobDraft } from './draft'
import type { FieldsProps } from './job-form'
import { PairsInput } from './pairs'
import { POLICIES, RECOVERIES } from './types'

const FIELDS = ['timeout', 'retry', 'concurrencyPolicy', 'maxConcurrency', 'recovery', 'workerQueue', 'labels', 'enabled', 'configJson.connect_timeout', 'configJson.follow_redirects']

export function RuleFields(props: FieldsProps) {
  const t = useT()
  const [opened, { toggle }] = useDisclosure(false)
  const shown = opened || FIELDS.some((field) => props.problem(field) !== undefined)
  const Mark = shown ? IconChevronDown : IconChevronRight
  return (
    <section>
      <Button mt="lg" maw="100%" variant="subtle" color="gray" size="compact-md" px={4} leftSection={<Mark size={15} />} onClick={toggle} aria-expanded={shown}>{t('jobs.advanced')}</Button>
      {/* At once: a field that was refused is looked for as soon as it is marked. */}
      <Collapse expanded={shown} transitionDuration={0}>
        <Paper withBorder p="md" mt="xs">
          <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="md" verticalSpacing="sm">
            <Tries {...props} />
            <Together {...props} />
            {props.draft.type === 'http' && <Connection {...props} />}
            <PairsInput label={t('jobs.labels')} add={t('jobs.addLabel')} value={props.draft.labels} onChange={(labels) => props.set({ labels })} error={props.problem('labels')} />
            <Switch label={t('app.enabled')} description={t('jobs.enabledHint')} checked={props.draft.enabled} onChange={(event) => props.set({ enabled: event.currentTarget.checked })} />
          </SimpleGrid>
        </Paper>
      </Collapse>
    </section>
  )
}

function Tries({ draft, set, problem }: FieldsProps) {
  const t = useT()
  return (
    <>
      <TextInput label={t('jobs.timeout')} description={t('jobs.timeoutHint')} placeholder={draft.type === 'http' ? '15s' : '1h'} value={draft.timeout} onChange={(event) => set({ timeout: event.currentTarget.value })} error={problem('timeout')} />
      <NumberInput label={t('jobs.attempts')} description={t('jobs.attemptsHint')} min={1} allowDecimal={false} value={draft.attempts} onChange={(attempts) => set({ attempts })} error={problem('retry.maxAttempts')} />
      <NumberInput label={t('jobs.backoff')} description={t('jobs.backoffHint')} min={0} suffix=" s" disabled={Number(draft.attempts) <= 1} value={draft.backoffSeconds} onChange={(backoffSeconds) => set({ backoffSeconds })} error={problem('retry.backoffMillis')} />
      <NumberInput label={t('jobs.multiplier')} description={t('jobs.multiplierHint')} min={1} max={100} disabled={Number(draft.attempts) <= 1} value={draft.multiplier} onChange={(multiplier) => set({ multiplier })} error={problem('retry.backoffMultiplier')} />
    </>
  )
}

function Together({ draft, set, problem }: FieldsProps) {
  const t = useT()
  const policies: Record<JobDraft['policy'], string> = { PARALLEL: t('jobs.parallel'), QUEUE: t('jobs.queueUp'), SKIP: t('jobs.skip') }
  const recoveries: Record<JobDraft['recovery'], string> = { retry: t('jobs.recoveryRetry'), fail: t('jobs.recoveryFail') }
  return (
    <>
      <Select label={t('jobs.policy')} description={t('jobs.policyHint')} allowDeselect={false} data={POLICIES.map((value) => ({ value, label: policies[value] }))} value={draft.policy} onChange={(policy) => set({ policy: policy ?? 'PARALLEL' })} error={problem('concurrencyPolicy')} />
      <NumberInput label={t('jobs.maxConcurrency')} description={t('jobs.maxConcurrencyHint')} min={1} allowDecimal={false} disabled={draft.policy === 'PARALLEL'} value={draft.maxConcurrency} onChange={(maxConcurrency) => set({ maxConcurrency })} error={problem('maxConcurrency')} />
      <Select label={t('jobs.recovery')} description={t('jobs.recoveryHint')} allowDeselect={false} data={RECOVERIES.map((value) => ({ value, label: recoveries[value] }))} value={draft.recovery} onChange={(recovery) => set({ recovery: recovery ?? 'retry' })} error={problem('recovery')} />
      <TextInput label={t('jobs.queue')} description={t('jobs.workerQueueHint')} placeholder="default" value={draft.workerQueue} onChange={(event) => set({ workerQueue: event.currentTarget.value })} error={problem('workerQueue')} />
    </>
  )
}

function Connection({ draft, set, problem }: FieldsProps) {
  const t = useT()
  return (
    <>
      <TextInput label={t('jobs.connectTimeout')} description={t('jobs.durationHint')} value={draft.connectTimeout} onChange={(event) => set({ connectTimeout: event.currentTarget.value })} error={problem('configJson.connect_timeout')} />
      <Switch label={t('jobs.followRedirects')} description={t('jobs.followHint')} checked={draft.followRedirects} onChange={(event) => set({ followRedirects: event.currentTarget.checked })} />
    </>
  )
}
