/** Every process of Ksana that works on this store: who lives, who leads, and how much each has to do. */
import { Badge, Text } from '@mantine/core'
import { IconServer } from '@tabler/icons-react'
import { getRouteApi } from '@tanstack/react-router'
import { useMemo } from 'react'
import { type Schemas, request } from '@/api/client'
import { useAnswer, wholeList } from '@/api/queries'
import { useT } from '@/i18n'
import { FilterBar } from '@/parts/filters'
import { RowLink } from '@/parts/link'
import { EmptyState, PageTitle } from '@/parts/page'
import { type Column, Table } from '@/parts/table'
import { StateBadge, useStateText } from '@/states'
import { Instant } from '@/time'
import { InstanceDrawer } from './instance'
import { Places } from './places'
import { INSTANCE_STATES } from './search'

type Instance = Schemas['InstanceBody']

const route = getRouteApi('/instances')
const NONE: readonly Instance[] = []

export function InstancesPage() {
  const t = useT()
  const stateText = useStateText()
  const search = route.useSearch()
  const navigate = route.useNavigate()
  const answer = useAnswer('instances', request('GET', '/api/v1/instances', { query: { status: search.status } }))
  const rows = wholeList(answer, answer.data?.items ?? NONE)
  const columns = useColumns()
  const change = (patch: Partial<typeof search>, replace: boolean) => void navigate({ search: (before) => ({ ...before, ...patch }), replace, resetScroll: false })
  return (
    <>
      <PageTitle title={t('instances.title')} />
      <FilterBar search={search} onChange={(patch) => change(patch, true)}
        fields={[{ kind: 'one', name: 'status', label: t('app.status'), width: 150, choices: INSTANCE_STATES.map((value) => ({ value, label: stateText(value) })) }]} />
      <Table label={t('instances.title')} rows={rows} idOf={(each) => each.instanceId} columns={columns} empty={<EmptyState icon={IconServer} title={t('instances.empty')} hint={t('instances.emptyHint')} />} />
      <InstanceDrawer instanceId={search.instance} onClose={() => change({ instance: undefined }, false)} />
    </>
  )
}

function useColumns(): readonly Column<Instance>[] {
  const t = useT()
  return useMemo(
    () => [
      { key: 'status', header: t('app.status'), width: '112px', render: (each) => <StateBadge status={each.status} /> },
      { key: 'name', header: t('app.name'), width: 'minmax(100px, 1.4fr)', render: (each) => <InstanceName instance={each} /> },
      { key: 'places', header: t('instances.places'), width: 'minmax(88px, 120px)', render: (each) => <Places running={each.running} places={each.places} /> },
      { key: 'queues', header: t('instances.queues'), width: 'minmax(0, 0.8fr)', wide: true, render: (each) => <Text span inherit title={each.queues.join(', ')}>{each.queues.join(', ') || '–'}</Text> },
      { key: 'roles', header: t('instances.roles'), width: 'minmax(0, 1.3fr)', wide: true, render: (each) => <Text span inherit title={each.roles.join(', ')}>{each.roles.join(', ')}</Text> },
      { key: 'heartbeat', header: t('instances.heartbeat'), width: '108px', wide: true, render: (each) => <Instant at={each.heartbeatAt} /> },
      { key: 'started', header: t('instances.started'), width: '108px', wide: true, render: (each) => <Instant at={each.startedAt} /> },
      { key: 'version', header: t('instances.version'), width: '76px', wide: true, render: (each) => each.version },
    ],
    [t],
  )
}

function InstanceName({ instance: { instanceId, name, leads } }: { instance: Instance }) {
  const t = useT()
  return (
    <>
      <RowLink from="/instances" to="/instances" search={(before) => ({ ...before, instance: instanceId })} resetScroll={false}>{name}</RowLink>
      {leads && <Badge size="sm" variant="default" ml={8} title={t('instances.leaderHint')} tt="none">{t('instances.leader')}</Badge>}
    </>
  )
}
