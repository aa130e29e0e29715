/** The nodes of a run as a list, by state if somebody wants only some. */
import { Text } from '@mantine/core'
import { useMemo } from 'react'
import { wholeList } from '@/api/queries'
import { useT } from '@/i18n'
import { RowLink } from '@/parts/link'
import { EmptyState } from '@/parts/page'
import { type Column, Table } from '@/parts/table'
import { StateBadge, hasEnded } from '@/states'
import { Duration, Instant } from '@/time'
import { FanOut } from './graph-node'
import { type RunNode, doing } from './run-model'

export function NodeList({ runId, nodes, label, refresh }: { runId: string; nodes: readonly RunNode[]; label: string; refresh: () => unknown }) {
  const t = useT()
  const columns = useMemo<readonly Column<RunNode>[]>(
    () => [
      { key: 'status', header: t('app.status'), width: 'minmax(104px, 130px)', render: (node) => <StateBadge status={node.status} /> },
      { key: 'node', header: t('workflows.node'), width: 'minmax(90px, 2fr)', render: (node) => <RowLink to="/runs/$runId" params={{ runId }} search={(before) => ({ ...before, node: node.id })} replace resetScroll={false}>{node.id}</RowLink> },
      { key: 'does', header: t('workflows.does'), width: 'minmax(80px, 1fr)', wide: true, render: (node) => <>{doing(node.job)} {node.counts && <FanOut counts={node.counts} />}</> },
      { key: 'attempt', header: t('workflows.attempt'), width: '70px', wide: true, align: 'end', render: (node) => (node.attempt > 0 ? node.attempt : '–') },
      { key: 'started', header: t('workflows.started'), width: '100px', wide: true, render: (node) => <Instant at={node.startedAt} /> },
      { key: 'duration', header: t('workflows.duration'), width: '90px', align: 'end', render: (node) => <NodeDuration node={node} /> },
      { key: 'why', header: t('workflows.why'), width: 'minmax(0, 2fr)', wide: true, render: (node) => <Text span inherit c="dimmed" title={node.error ?? undefined}>{node.error ?? reasonText(t, node.reason)}</Text> },
    ],
    [t, runId],
  )
  const rows = wholeList({ error: null, isPending: false, refetch: refresh }, nodes)
  return <Table label={label} rows={rows} idOf={(node) => node.id} columns={columns} empty={<EmptyState title={t('app.nothing')} />} />
}

export function NodeDuration({ node }: { node: { status: string; startedAt: string | null; endedAt: string | null } }) {
  if (node.startedAt === null) return <Duration />
  return <Duration millis={node.endedAt === null ? null : Date.parse(node.endedAt) - Date.parse(node.startedAt)} since={hasEnded(node.status) ? null : node.startedAt} />
}

const REASONS = {
  upstream_failed: 'workflows.upstreamFailed', upstream_skipped: 'workflows.upstreamSkipped', not_all_failed: 'workflows.notAllFailed', none_failed: 'workflows.noneFailed',
  condition_false: 'workflows.conditionFalse', skipped_by_hand: 'workflows.skippedByHand', completed_by_hand: 'workflows.completedByHand',
} as const

/** Why a node was skipped, stopped or ended by hand, in words where we have some. */
export function reasonText(t: ReturnType<typeof useT>, reason: string | null): string | null {
  if (reason === null) return null
  return reason in REASONS ? t(REASONS[reason as keyof typeof REASONS]) : reason
}
