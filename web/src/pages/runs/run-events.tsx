/** What happened to a run, and to the nodes of one, in order. */
import { Code, Text } from '@mantine/core'
import { useMemo } from 'react'
import { type Schemas, request } from '@/api/client'
import { useRows } from '@/api/queries'
import { useT } from '@/i18n'
import { EmptyState } from '@/parts/page'
import { type Column, Table } from '@/parts/table'
import { Instant } from '@/time'

type Page = Schemas['ksana__api__contracts__console__event_models__EventsShown']
type KsanaEvent = Page['items'][number]
const SIZE = 200

export function RunEvents({ runId }: { runId: string }) {
  const t = useT()
  const rows = useRows<KsanaEvent, Page>('run', request('GET', '/api/v1/events', { query: { run: runId, limit: SIZE } }), following)
  const columns = useMemo((): readonly Column<KsanaEvent>[] => [
    { key: 'at', header: t('runs.at'), width: 'minmax(150px, 210px)', render: (event) => <Instant at={event.at} exact /> },
    { key: 'type', header: t('runs.event'), width: 'minmax(120px, 220px)', render: (event) => <Code>{event.type}</Code> },
    { key: 'data', header: t('runs.details'), width: 'minmax(0, 1fr)', wide: true, render: (event) => <Told data={event.data} /> },
  ], [t])
  return <Table label={t('runs.events')} rows={rows} idOf={(event) => String(event.id)} columns={columns} empty={<EmptyState title={t('runs.noEvents')} hint={t('runs.noEventsHint')} />} />
}

/** A page that is not full is the last. */
const following = (last: Page) => (last.items.length < SIZE ? undefined : { after: last.next })

function Told({ data }: { data: Record<string, unknown> }) {
  const text = Object.entries(data).map(([name, value]) => `${name}: ${typeof value === 'object' ? JSON.stringify(value) : String(value)}`).join('  ')
  return <Text span inherit c="dimmed" size="xs" ff="monospace" title={text}>{text}</Text>
}
