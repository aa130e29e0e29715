/** From where a tenant's task would go on: which stages are not done again, and what they saved. */
import { Group, Stack, Text } from '@mantine/core'
import { IconBookmarkOff, IconTrash } from '@tabler/icons-react'
import { type Schemas, request } from '@/api/client'
import { useT } from '@/i18n'
import { Action, CallMenu } from '@/parts/actions'
import { Fact, Facts } from '@/parts/facts'
import { JsonView } from '@/parts/json'
import { EmptyState } from '@/parts/page'
import { Instant } from '@/time'

export function Checkpoint({ task: { tenantId, planId, status, checkpoint } }: { task: Schemas['TaskShown'] }) {
  const t = useT()
  if (checkpoint === null) return <EmptyState title={t('plans.noCheckpoint')} hint={t('plans.noCheckpointHint')} icon={IconBookmarkOff} />
  const { version, completedStages, savedAt, expiresAt, contextData } = checkpoint
  const which = { path: { tenantId }, query: { planId } }
  return (
    <Stack gap="sm">
      <Facts>
        <Fact name={t('plans.version')}><span className="figures">{version}</span></Fact>
        <Fact name={t('plans.completedStages')}>{completedStages.join(', ') || t('plans.none')}</Fact>
        <Fact name={t('plans.savedAt')}><Instant at={savedAt} exact /></Fact>
        {expiresAt && <Fact name={t('plans.expiresAt')}><Instant at={expiresAt} exact /></Fact>}
      </Facts>
      {Object.keys(contextData).length > 0 ? <JsonView label={t('plans.context')} value={contextData} /> : <Text size="sm" c="dimmed">{t('plans.noContext')}</Text>}
      <Group gap="xs" justify="space-between">
        {status === 'FAILED' ? (
          <Action label={t('plans.removeCheckpoint')} icon={IconTrash} touches={['plan']} confirm={t('plans.removeCheckpointAsk', { tenant: tenantId })} danger
            call={() => request('DELETE', '/api/v1/tenants/{tenantId}/checkpoint', { ...which, query: { planId, version } })}>
            <Text size="sm">{t('plans.removeCheckpointHint')}</Text>
          </Action>
        ) : <span />}
        <CallMenu label={t('plans.checkpoint')} calls={[request('GET', '/api/v1/tenants/{tenantId}/checkpoint', which)]} />
      </Group>
    </Stack>
  )
}
