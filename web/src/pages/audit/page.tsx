/** Who did what, when, and why. */
import { Text } from '@mantine/core'
import { IconFileDescription } from '@tabler/icons-react'
import { getRouteApi } from '@tanstack/react-router'
import { useMemo } from 'react'
import { request } from '@/api/client'
import { useRows } from '@/api/queries'
import type { AuditEntry } from '@/api/shapes'
import { useT } from '@/i18n'
import { type Field, FilterBar } from '@/parts/filters'
import { RowLink } from '@/parts/link'
import { EmptyState, PageTitle } from '@/parts/page'
import { type Column, Table } from '@/parts/table'
import { Instant } from '@/time'
import { actionText } from './actions'
import { EntryDrawer } from './entry'
import { Subject } from './subject'

const route = getRouteApi('/audit')

export function AuditPage() {
  const t = useT()
  const { entry, ...filter } = route.useSearch()
  const navigate = route.useNavigate()
  const rows = useRows<AuditEntry>('audit', request('GET', '/api/v1/audit', { query: { ...filter, size: 100 } }))
  const columns = useColumns()
  const fields: readonly Field<keyof typeof filter>[] = [
    { kind: 'text', name: 'subject', label: t('audit.subjectFilter'), width: 220 },
    { kind: 'text', name: 'actor', label: t('audit.actor') },
  ]
  const filtered = filter.subject !== undefined || filter.actor !== undefined
  return (
    <>
      <PageTitle title={t('audit.title')} />
      <FilterBar fields={fields} search={filter} onChange={(patch) => void navigate({ search: (before) => ({ ...before, ...patch }), replace: true })} />
      <Table label={t('audit.title')} rows={rows} idOf={(each) => String(each.id)} columns={columns}
        empty={<EmptyState icon={IconFileDescription} title={filtered ? t('audit.noMatch') : t('audit.empty')} hint={filtered ? t('audit.noMatchHint') : t('audit.emptyHint')} />} />
      <EntryDrawer id={entry} onClose={() => void navigate({ search: (before) => ({ ...before, entry: undefined }), resetScroll: false })} />
    </>
  )
}

function useColumns(): readonly Column<AuditEntry>[] {
  const t = useT()
  return useMemo(
    () => [
      { key: 'at', header: t('audit.when'), width: 'minmax(76px, 116px)', render: (each) => <Instant at={each.at} /> },
      { key: 'actor', header: t('audit.actor'), width: 'minmax(80px, 0.8fr)', wide: true, render: (each) => <span title={each.address}>{each.actor}</span> },
      {
        key: 'action', header: t('audit.action'), width: 'minmax(110px, 1.1fr)',
        render: (each) => <RowLink from="/audit" to="/audit" search={(before) => ({ ...before, entry: each.id })} resetScroll={false}>{actionText(t, each.action)}</RowLink>,
      },
      { key: 'subject', header: t('audit.subject'), width: 'minmax(0, 1.6fr)', render: (each) => <Subject entry={each} /> },
      { key: 'reason', header: t('audit.reason'), width: 'minmax(0, 1.6fr)', wide: true, render: (each) => <Text span inherit c="dimmed" title={each.reason ?? undefined}>{each.reason}</Text> },
    ],
    [t],
  )
}
