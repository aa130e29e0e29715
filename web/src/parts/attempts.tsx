/** The attempts of a run or a node: who made each, when, what it sent and got. */
import { Accordion, Code, Group, SimpleGrid, Stack, Text } from '@mantine/core'
import { IconRepeat } from '@tabler/icons-react'
import { useState } from 'react'
import type { Schemas } from '@/api/client'
import { type Key, useT } from '@/i18n'
import { StateBadge } from '@/states'
import { Duration, Instant } from '@/time'
import classes from './attempts.module.css'
import { ErrorText } from './error-text'
import { MessageView } from './message'
import { EmptyState } from './page'

export type Attempt = Schemas['NodeAttempt']
/** The one that goes on, of which only this is known before its end. */
export interface UnderWay {
  attempt: number
  epoch: number | null
  owner: string | null
  startedAt: string | null
}

/** Why an attempt does not count. */
const PASSED: Readonly<Record<string, Key>> = { LOST: 'runs.attemptLost', HANDED_BACK: 'runs.attemptHandedBack' }

export function Attempts({ attempts, underWay }: { attempts: readonly Attempt[]; underWay?: UnderWay | null }) {
  const t = useT()
  const last = attempts.at(-1)
  const [opened, setOpened] = useState<string[] | null>(null)
  if (attempts.length === 0 && !underWay) return <EmptyState icon={IconRepeat} title={t('runs.noAttempts')} hint={t('runs.noAttemptsHint')} />
  return (
    <Accordion multiple variant="separated" chevronPosition="left" value={opened ?? (last ? [String(last.epoch)] : [])} onChange={setOpened} classNames={{ item: classes.item, control: classes.control, label: classes.label }}>
      {attempts.map((attempt) => (
        <Accordion.Item key={attempt.epoch} value={String(attempt.epoch)}>
          <Accordion.Control><Head attempt={attempt} /></Accordion.Control>
          <Accordion.Panel><Exchange attempt={attempt} /></Accordion.Panel>
        </Accordion.Item>
      ))}
      {underWay && <Going {...underWay} />}
    </Accordion>
  )
}

function Head({ attempt }: { attempt: Attempt }) {
  const t = useT()
  return (
    <Group gap="sm" wrap="wrap">
      <Text fw={600} size="sm" className={classes.number}>{t('runs.attempt', { n: attempt.attempt })}</Text>
      <StateBadge status={attempt.status} />
      {attempt.responseCode !== null && <Code>{attempt.responseCode}</Code>}
      <Text size="sm"><Duration millis={Date.parse(attempt.endedAt) - Date.parse(attempt.startedAt)} /></Text>
      <Text size="sm" c="dimmed"><Instant at={attempt.startedAt} exact /></Text>
      <By owner={attempt.owner} epoch={attempt.epoch} />
    </Group>
  )
}

function By({ owner, epoch }: { owner: string | null; epoch: number | null }) {
  const t = useT()
  return (
    <Text size="xs" c="dimmed" className={classes.by}>
      {owner && <>{t('runs.onInstance')} <span className={classes.mono}>{owner}</span> · </>}{epoch !== null && t('runs.epoch', { n: epoch })}
    </Text>
  )
}

function Going({ attempt, epoch, owner, startedAt }: UnderWay) {
  const t = useT()
  return (
    <div className={classes.going}>
      <Text fw={600} size="sm" className={classes.number}>{t('runs.attempt', { n: attempt })}</Text>
      <StateBadge status="RUNNING" />
      <Text size="sm"><Duration since={startedAt} /></Text>
      <By owner={owner} epoch={epoch} />
    </div>
  )
}

function Exchange({ attempt }: { attempt: Attempt }) {
  const t = useT()
  const { method, url, headers, notes, ...rest } = attempt.request
  const passed = PASSED[attempt.status]
  return (
    <Stack gap="sm">
      {passed && <Text size="sm" c="dimmed">{t(passed)}</Text>}
      {attempt.error && <ErrorText text={attempt.error} />}
      <SimpleGrid type="container" cols={{ base: 1, '640px': 2 }} spacing="md">
        <MessageView title={t('runs.request')} line={lineOf(method, url)} headers={headers} more={rest} body={attempt.requestBody} />
        <MessageView title={t('runs.response')} line={attempt.responseCode === null ? null : String(attempt.responseCode)} headers={attempt.responseHeaders} more={notes} body={attempt.responseBody} />
      </SimpleGrid>
    </Stack>
  )
}

const lineOf = (method: unknown, url: unknown): string | null => (typeof url === 'string' ? [method, url].filter(Boolean).join(' ') : null)
