/** Who changed a job, when, and which parts of it. */
import { Code, Group, Text } from '@mantine/core'
import { useMemo } from 'react'
import { request } from '@/api/client'
import { useRows } from '@/api/queries'
import type { AuditEntry, JobFound } from '@/api/shapes'
import { type Translate, useT } from '@/i18n'
import { EmptyState } from '@/parts/page'
import { type Column, Table } from '@/parts/table'
import { Instant } from '@/time'

export function History({ job }: { job: JobFound }) {
  const t = useT()
  const rows = useRows<AuditEntry>('audit', request('GET', '/api/v1/audit', { query: { subject: `job/${job.jobId}`, size: 100 } }))
  const columns = useMemo<readonly Column<AuditEntry>[]>(
    () => [
      { key: 'at', header: t('jobs.when'), width: 'minmax(110px, 190px)', render: (entry) => <Instant at={entry.at} /> },
      { key: 'actor', header: t('jobs.who'), width: 'minmax(80px, 1fr)', render: (entry) => <span title={entry.address}>{entry.actor}</span> },
      { key: 'action', header: t('jobs.what'), width: 'minmax(70px, 110px)', render: (entry) => actionText(t, entry.action) },
      { key: 'changed', header: t('jobs.parts'), width: 'minmax(0, 2.5fr)', wide: true, render: (entry) => <Changed entry={entry} /> },
      { key: 'reason', header: t('app.reason'), width: 'minmax(0, 1fr)', wide: true, render: (entry) => <Text span inherit c="dimmed">{entry.reason}</Text> },
    ],
    [t],
  )
  return <Table label={t('jobs.history')} rows={rows} idOf={(entry) => String(entry.id)} columns={columns} empty={<EmptyState title={t('jobs.noHistory')} hint={t('jobs.noHistoryHint')} />} />
}

function Changed({ entry: { data } }: { entry: AuditEntry }) {
  const t = useT()
  const parts = Array.isArray(data.changed) ? data.changed.map(String) : []
  return (
    <Group gap={4} wrap="nowrap" title={parts.join(', ')}>
      {typeof data.version === 'number' && <Text span inherit c="dimmed">{t('jobs.version', { version: String(data.version) })}</Text>}
      {parts.map((part) => <Code key={part}>{part}</Code>)}
    </Group>
  )
}

function actionText(t: Translate, action: string): string {
  switch (action) {
    case 'job.created': return t('jobs.wasCreated')
    case 'job.changed': return t('jobs.wasChanged')
    case 'job.deleted': return t('jobs.wasDeleted')
    default: return action
  }
}
