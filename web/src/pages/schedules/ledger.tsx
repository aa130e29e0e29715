/** Each planned instant of a schedule and what became of it, newest first. */
import { Group, Text } from '@mantine/core'
import { useMemo } from 'react'
import { request } from '@/api/client'
import { useRows } from '@/api/queries'
import type { Occurrence } from '@/api/shapes'
import { useT } from '@/i18n'
import { RowLink } from '@/parts/link'
import { EmptyState } from '@/parts/page'
import { type Column, Table } from '@/parts/table'
import { StateBadge } from '@/states'
import { Duration, Instant } from '@/time'
import { useReasons } from './reasons'

/** The rest ends where this page does. */
const older = ({ next }: { next?: string | number | null }) => (next ? { to: next } : undefined)

export function Ledger({ scheduleId, zone }: { scheduleId: string; zone: string }) {
  const t = useT()
  const rows = useRows<Occurrence>('occurrences', request('GET', '/api/v1/schedules/{id}/occurrences', { path: { id: scheduleId }, query: { order: 'newest', limit: 100 } }), older)
  return <Table label={t('schedules.ledger')} rows={rows} idOf={(row) => row.plannedFor} columns={useColumns(zone)} empty={<EmptyState title={t('schedules.ledgerEmpty')} hint={t('schedules.ledgerHint')} />} />
}

function useColumns(zone: string): readonly Column<Occurrence>[] {
  const t = useT()
  const reasons = useReasons()
  return useMemo(
    () => [
      { key: 'planned', header: t('schedules.plannedFor'), width: 'minmax(170px, 1.6fr)', render: (row) => <Planned row={row} zone={zone} /> },
      { key: 'outcome', header: t('schedules.outcome'), width: '110px', render: (row) => <StateBadge status={row.outcome} /> },
      { key: 'reason', header: t('schedules.reason'), width: 'minmax(0, 2fr)', wide: true, render: (row) => row.reason && <Text span inherit title={row.reason}>{reasons(row.reason)}</Text> },
      { key: 'run', header: t('schedules.run'), width: 'minmax(50px, 1fr)', render: (row) => row.runId && <RowLink to="/runs/$runId" params={{ runId: row.runId }}>{row.runId}</RowLink> },
      { key: 'late', header: t('schedules.decidedAfter'), width: '110px', wide: true, align: 'end', render: (row) => <Duration millis={Math.max(0, Date.parse(row.recordedAt) - Date.parse(row.lastPlannedFor ?? row.plannedFor))} /> },
    ],
    [t, reasons, zone],
  )
}

function Planned({ row, zone }: { row: Occurrence; zone: string }) {
  const t = useT()
  return (
    <Group gap={8} wrap="nowrap">
      <Instant at={row.plannedFor} zone={zone} exact />
      {row.count > 1 && <Text span inherit c="dimmed" title={row.lastPlannedFor ?? undefined}>{t('schedules.andFollowing', { n: row.count - 1 })}</Text>}
    </Group>
  )
}
