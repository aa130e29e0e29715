/** One entry of the audit, beside the list: all that was kept of it. */
import { Code, Drawer, Group } from '@mantine/core'
import { request } from '@/api/client'
import { useAnswer } from '@/api/queries'
import type { AuditEntry } from '@/api/shapes'
import { useT } from '@/i18n'
import { Fact, Facts } from '@/parts/facts'
import { JsonView } from '@/parts/json'
import { TextLink } from '@/parts/link'
import { EmptyState, ErrorBox, Loading, Section } from '@/parts/page'
import { Instant } from '@/time'
import { actionText } from './actions'
import { Subject } from './subject'

/** A page of one that ends before the next is the one: so it is found by its id, however old it is. */
const only = (id: number) => request('GET', '/api/v1/audit', { query: { cursor: String(id + 1), size: 1 } })

export function EntryDrawer({ id, onClose }: { id?: number; onClose: () => void }) {
  const t = useT()
  const { data, error, isPlaceholderData, refetch } = useAnswer('audit', id === undefined ? null : only(id))
  const found = data?.items.find((each) => each.id === id)
  return (
    <Drawer opened={id !== undefined} onClose={onClose} position="right" size="lg" title={found ? actionText(t, found.action) : t('audit.entry')} closeButtonProps={{ 'aria-label': t('app.close') }}>
      {found ? <Details entry={found} /> : error ? <ErrorBox error={error} retry={() => void refetch()} /> : data === undefined || isPlaceholderData ? <Loading /> : <EmptyState title={t('audit.gone')} />}
    </Drawer>
  )
}

function Details({ entry }: { entry: AuditEntry }) {
  const t = useT()
  return (
    <>
      <Facts>
        <Fact name={t('audit.when')}><Instant at={entry.at} exact /></Fact>
        <Fact name={t('audit.actor')}><TextLink to="/audit" search={{ actor: entry.actor }} title={t('audit.allBy')}>{entry.actor}</TextLink></Fact>
        <Fact name={t('audit.address')}>{entry.address || '–'}</Fact>
        <Fact name={t('audit.action')}><Code>{entry.action}</Code></Fact>
        <Fact name={t('audit.subject')}>
          <Group gap={8}><Subject entry={entry} /><TextLink to="/audit" search={{ subject: entry.subject }} c="dimmed" size="xs" title={t('audit.allOf')}>{entry.subject}</TextLink></Group>
        </Fact>
        <Fact name={t('audit.reason')}>{entry.reason ?? '–'}</Fact>
        <Fact name={t('audit.request')}><Code>{entry.requestId || '–'}</Code></Fact>
      </Facts>
      {Object.keys(entry.data).length > 0 && <Section title={t('audit.data')}><JsonView label={t('audit.data')} value={readable(entry.data)} /></Section>}
    </>
  )
}

/** Documents that are kept as texts, as documents. */
const readable = (data: AuditEntry['data']) => Object.fromEntries(Object.entries(data).map(([name, value]) => [name, typeof value === 'string' && value.startsWith('{') ? parsed(value) : value]))

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text // it only looked like one
  }
}
