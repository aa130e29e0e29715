/** The items of a fan-out, a page at a time, those of one state if somebody wants only them. */
import { Group, Pagination, Select, Stack, Text } from '@mantine/core'
import { useState } from 'react'
import { type Schemas, request } from '@/api/client'
import { useAnswer } from '@/api/queries'
import { useT } from '@/i18n'
import { ErrorBox, Loading } from '@/parts/page'
import button from '@/parts/row-button.module.css'
import { StateBadge, useStateText } from '@/states'
import type { Counts } from './graph-model'
import { NodeDuration } from './node-list'
import classes from './node-panel.module.css'

const PAGE = 25
type Item = Schemas['ItemShown']
type Status = Schemas['NodeRow']['status']

export function NodeItems({ runId, nodeId, counts, onSelect }: { runId: string; nodeId: string; counts: Counts; onSelect: (id: string) => void }) {
  const t = useT()
  const stateText = useStateText()
  const [status, setStatus] = useState<Status | null>(null)
  const [page, setPage] = useState(1)
  const query = { status: status ?? undefined, page, size: PAGE }
  const { data, error, refetch } = useAnswer('run', request('GET', '/api/v1/runs/{runId}/nodes/{nodeId}/items', { path: { runId, nodeId }, query }))
  if (data === undefined) return error ? <ErrorBox error={error} retry={() => void refetch()} /> : <Loading />
  const pages = Math.max(1, Math.ceil(data.total / PAGE))
  const choose = (next: string | null) => {
    setStatus(next as Status | null)
    setPage(1)
  }
  return (
    <Stack gap="xs">
      <Select size="xs" clearable aria-label={t('app.status')} placeholder={t('workflows.anyState')} value={status} onChange={choose}
        data={Object.entries(counts).map(([value, n]) => ({ value, label: `${stateText(value)} (${n})` }))} />
      {error && <ErrorBox error={error} retry={() => void refetch()} />}
      {data.items.length === 0 ? <Text size="sm" c="dimmed">{t('app.nothing')}</Text> : <Items items={data.items} onSelect={onSelect} />}
      {(pages > 1 || page > pages) && <Group justify="center"><Pagination size="xs" total={pages} value={Math.min(page, pages)} onChange={setPage} getControlProps={(control) => ({ 'aria-label': t(control === 'previous' ? 'workflows.previous' : 'workflows.next') })} /></Group>}
    </Stack>
  )
}

function Items({ items, onSelect }: { items: readonly Item[]; onSelect: (id: string) => void }) {
  return (
    <div className={classes.items}>
      {items.map((item) => (
        <button type="button" key={item.nodeId} className={`${button.row} ${classes.item}`} onClick={() => onSelect(item.nodeId)}>
          <StateBadge status={item.status} compact />
          <span className={classes.cut} title={item.lastError ?? undefined}>{item.nodeId}{item.lastError ? ` · ${item.lastError}` : ''}</span>
          <NodeDuration node={item} />
        </button>
      ))}
    </div>
  )
}
