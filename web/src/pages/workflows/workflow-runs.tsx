/** The runs of a workflow, newest first. */
import { Text } from '@mantine/core'
import { useMemo } from 'react'
import { request } from '@/api/client'
import { useRows } from '@/api/queries'
import type { Run } from '@/api/shapes'
import { useT } from '@/i18n'
import { RowLink } from '@/parts/link'
import { EmptyState } from '@/parts/page'
import { type Column, Table } from '@/parts/table'
import { StateBadge, hasEnded } from '@/states'
import { Duration, Instant } from '@/time'

export function WorkflowRuns({ workflowId }: { workflowId: string }) {
  const t = useT()
  const rows = useRows<Run>('activity', request('GET', '/api/v1/activity', { query: { workflowId, size: 50 } }))
  const columns = useMemo<readonly Column<Run>[]>(
    () => [
      { key: 'status', header: t('app.status'), width: 'minmax(104px, 140px)', render: (run) => <StateBadge status={run.status} /> },
      { key: 'run', header: t('workflows.run'), width: 'minmax(90px, 2fr)', render: (run) => <RowLink to="/runs/$runId" params={{ runId: run.id }}>{run.id}</RowLink> },
      { key: 'planned', header: t('workflows.plannedFor'), width: 'minmax(76px, 120px)', wide: true, render: (run) => <Instant at={run.plannedFor} /> },
      { key: 'started', header: t('workflows.started'), width: 'minmax(76px, 120px)', render: (run) => <Instant at={run.startedAt ?? run.createdAt} /> },
      { key: 'duration', header: t('workflows.duration'), width: '100px', wide: true, align: 'end', render: (run) => <Duration millis={run.durationMillis} since={hasEnded(run.status) ? null : run.startedAt} /> },
      { key: 'error', header: t('workflows.why'), width: 'minmax(0, 2fr)', wide: true, render: (run) => <Text span inherit c="dimmed" title={run.error ?? run.reason ?? undefined}>{run.error ?? run.reason}</Text> },
    ],
    [t],
  )
  return <Table label={t('workflows.runs')} rows={rows} idOf={(run) => run.id} columns={columns} empty={<EmptyState title={t('workflows.neverStarted')} hint={t('workflows.neverStartedHint')} />} />
}
