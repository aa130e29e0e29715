/** What a run was given and what came out of it, and the callbacks that told so. */
import { Group, SimpleGrid, Stack, Text } from '@mantine/core'
import { useT } from '@/i18n'
import { JsonView } from '@/parts/json'
import { BodyView, Headers } from '@/parts/message'
import { Section } from '@/parts/page'
import { StateBadge } from '@/states'
import { Instant } from '@/time'
import type { RunDetail } from './run'

export function RunData({ run }: { run: RunDetail }) {
  const t = useT()
  return (
    <>
      <SimpleGrid cols={{ base: 1, md: run.kind === 'job' ? 2 : 1 }} spacing="lg">
        <Part title={t('runs.input')} value={run.input} nothing={t('runs.noInput')} />
        {run.kind === 'job' && <Part title={t('runs.output')} value={run.output} nothing={t('runs.noOutput')} />}
      </SimpleGrid>
      {run.callbacks.length > 0 && <Section title={t('runs.callbacks')}><Callbacks of={run.callbacks} /></Section>}
    </>
  )
}

function Part({ title, value, nothing }: { title: string; value: unknown; nothing: string }) {
  const empty = value === null || (typeof value === 'object' && Object.keys(value!).length === 0)
  return (
    <Stack component="section" gap="xs" aria-label={title} miw={0}>
      <Text fw={600} size="sm">{title}</Text>
      {empty ? <Text size="sm" c="dimmed">{nothing}</Text> : typeof value === 'string' ? <BodyView label={title} text={value} /> : <JsonView label={title} value={value} />}
    </Stack>
  )
}

function Callbacks({ of }: { of: RunDetail['callbacks'] }) {
  const t = useT()
  return (
    <Stack gap="md">
      {of.map((callback) => (
        <Stack key={callback.id} gap={6}>
          <Group gap="sm"><StateBadge status={callback.status} /><Text size="sm" c="dimmed"><Instant at={callback.receivedAt} exact /></Text></Group>
          {callback.body && <BodyView label={t('runs.body')} text={callback.body} />}
          <Headers of={callback.headers} />
        </Stack>
      ))}
    </Stack>
  )
}
