/** Who did what to a plan or to a tenant's task: what happened, and who had asked for it, newest first. */
import { Group, Text, Timeline } from '@mantine/core'
import { type AnswerOf, request } from '@/api/client'
import { useAnswer } from '@/api/queries'
import type { AuditEntry } from '@/api/shapes'
import { type Key, type Translate, useT } from '@/i18n'
import { en } from '@/i18n/en'
import { TextLink } from '@/parts/link'
import { EmptyState, ErrorBox, Loading } from '@/parts/page'
import { colourOf } from '@/states'
import { Instant } from '@/time'
import classes from './plan.module.css'

type Event = AnswerOf<'/api/v1/plans/{planId}/events', 'GET'>['items'][number]

interface Entry {
  key: string
  at: string
  type: string
  data: Readonly<Record<string, unknown>>
  /** Who asked for it, where somebody did. */
  audit?: AuditEntry
}

export function PlanHistory({ planId }: { planId: string }) {
  const events = useAnswer('plan', request('GET', '/api/v1/plans/{planId}/events', { path: { planId }, query: { limit: MOST } }))
  return <History events={events} subject={`plan/${planId}`} />
}

export function TaskHistory({ planId, tenantId, taskId }: { planId: string; tenantId: string; taskId: string }) {
  const events = useAnswer('plan', request('GET', '/api/v1/tenants/{tenantId}/task/events', { path: { tenantId }, query: { planId, limit: MOST } }))
  return <History events={events} subject={`task/${taskId}`} />
}

const MOST = 1000
/** What was asked for since then is asked for again with the plan's own events. */
export const auditOf = (subject: string) => request('GET', '/api/v1/audit', { query: { subject, size: 200 } })

interface Answer {
  data?: { items: Event[] }
  error: Error | null
  refetch: () => unknown
}

function History({ events, subject }: { events: Answer; subject: string }) {
  const t = useT()
  const audit = useAnswer('plan', auditOf(subject))
  const error = events.error ?? audit.error
  if (events.data === undefined || audit.data === undefined) {
    return error ? <ErrorBox error={error} retry={() => { void events.refetch(); void audit.refetch() }} /> : <Loading />
  }
  const entries = merged(events.data.items, audit.data.items)
  if (entries.length === 0) return <EmptyState title={t('plans.noHistory')} />
  return (
    <>
      <Timeline bulletSize={11} lineWidth={1} active={entries.length} classNames={{ itemBody: classes.entry }}>
        {entries.map((entry) => <Timeline.Item key={entry.key} color={toneOf(entry.type)} title={<Title entry={entry} />}><Details entry={entry} /></Timeline.Item>)}
      </Timeline>
      <Text size="xs" mt="sm"><TextLink to="/audit">{t('plans.wholeAudit')}</TextLink></Text>
    </>
  )
}

/** An order and what came of it at once were written in one transaction, at the same instant: they are one entry. */
export function merged(events: readonly Event[], audit: readonly AuditEntry[]): Entry[] {
  const orders = new Map(audit.map((entry) => [entry.at, entry]))
  const shown: Entry[] = events.map((event) => {
    const order = orders.get(event.at)
    if (order) orders.delete(event.at)
    return { key: `event ${event.id}`, at: event.at, type: event.type, data: event.data, audit: order }
  })
  const alone = [...orders.values()].map((entry) => ({ key: `audit ${entry.id}`, at: entry.at, type: entry.action, data: entry.data, audit: entry }))
  return [...shown.reverse(), ...alone].sort((one, other) => other.at.localeCompare(one.at))
}

function textOf(t: Translate, type: string): string {
  const name = `ev_${type.replace('.', '_')}`
  return name in en.plans ? t(`plans.${name}` as Key) : type
}

function toneOf(type: string): string {
  if (/failed$/.test(type)) return colourOf('FAILED')
  if (/completed$/.test(type)) return colourOf('COMPLETED')
  if (/paused?|requested/.test(type)) return colourOf('PAUSED')
  if (/cancel/.test(type)) return colourOf('CANCELLED')
  return colourOf(/started|resumed|retried|reopened|progressed/.test(type) ? 'RUNNING' : 'CREATED')
}

function Title({ entry }: { entry: Entry }) {
  const t = useT()
  return (
    <Group gap={8} wrap="wrap">
      <Text span size="sm" fw={500}>{textOf(t, entry.type)}</Text>
      {entry.audit && <Text span size="xs">{t('plans.by', { actor: entry.audit.actor })}{entry.audit.address && ` (${entry.audit.address})`}</Text>}
      <Text span size="xs" c="dimmed"><Instant at={entry.at} /></Text>
    </Group>
  )
}

const QUIET = new Set(['tenant', 'key', 'fence', 'reason', 'message', 'from'])

/** The reason, and what else is known of it. */
function Details({ entry: { data, audit } }: { entry: Entry }) {
  const said = [...new Set([audit?.reason, data.message ?? data.reason])].filter((each): each is string => typeof each === 'string')
  const rest = Object.entries(data).filter(([name, value]) => !QUIET.has(name) && value !== null && value !== false)
  return (
    <>
      {said.length > 0 && <Text size="xs" style={{ overflowWrap: 'anywhere' }}>{said.join(' · ')}</Text>}
      {rest.length > 0 && <Text size="xs" c="dimmed" style={{ overflowWrap: 'anywhere' }}>{rest.map(([name, value]) => `${name}: ${typeof value === 'object' ? JSON.stringify(value) : String(value)}`).join(' · ')}</Text>}
    </>
  )
}
