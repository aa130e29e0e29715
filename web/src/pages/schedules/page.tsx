/** All schedules, below what they will do in the next day. */
import { Button, Group, Text } from '@mantine/core'
import { IconCalendarPlus, IconListDetails, IconPlayerPause, IconPlayerPlay, IconSitemap } from '@tabler/icons-react'
import { Link, getRouteApi } from '@tanstack/react-router'
import { useMemo } from 'react'
import { request } from '@/api/client'
import { useRows } from '@/api/queries'
import type { ScheduleRow } from '@/api/shapes'
import { useT } from '@/i18n'
import { RowMenu } from '@/parts/actions'
import { type Field, FilterBar } from '@/parts/filters'
import { RowLink } from '@/parts/link'
import { EmptyState, PageTitle } from '@/parts/page'
import { useScheduleWords } from '@/parts/schedule/words'
import { type Column, Table } from '@/parts/table'
import { StateBadge, useStateText } from '@/states'
import { Instant } from '@/time'
import { LedgerCheck } from './check'
import { Forecast } from './forecast'
import type { SchedulesSearch } from './search'
import { TOUCHES } from '@/parts/schedule/touches'

const route = getRouteApi('/schedules')

export function SchedulesPage() {
  const t = useT()
  const search = route.useSearch()
  const navigate = route.useNavigate()
  const { hour, ...filters } = search
  // Those of one job or workflow are few, and cannot be narrowed further.
  const of = filters.jobId || filters.workflowId ? { jobId: filters.jobId, workflowId: filters.jobId ? undefined : filters.workflowId } : filters
  const rows = useRows<ScheduleRow>('schedules', request('GET', '/api/v1/schedules', { query: { ...of, include: 'last', pageSize: 100 } }))
  const change = (patch: Partial<SchedulesSearch>) => void navigate({ search: (before) => ({ ...before, ...patch }), replace: true })
  return (
    <>
      <PageTitle title={t('schedules.title')}>
        <LedgerCheck />
        <Button component={Link} to="/schedules/new" size="xs" leftSection={<IconCalendarPlus size={15} />}>{t('schedules.create')}</Button>
      </PageTitle>
      <Forecast hour={hour} choose={(next) => change({ hour: next })} />
      <FilterBar fields={useFields(of)} search={search} onChange={change} />
      <Table label={t('schedules.title')} rows={rows} idOf={(each) => each.id} columns={useColumns()} empty={<Empty filtered={Object.values(filters).some(Boolean)} />} />
    </>
  )
}

function Empty({ filtered }: { filtered: boolean }) {
  const t = useT()
  if (filtered) return <EmptyState title={t('schedules.noneMatch')} />
  return (
    <EmptyState title={t('schedules.empty')} hint={t('schedules.emptyHint')}>
      <Button component={Link} to="/schedules/new" size="xs" mt="xs" leftSection={<IconCalendarPlus size={15} />}>{t('schedules.create')}</Button>
    </EmptyState>
  )
}

const STATES = ['ACTIVE', 'PAUSED', 'PARKED', 'FINISHED'] as const

function useFields({ jobId, workflowId }: SchedulesSearch): readonly Field<keyof SchedulesSearch>[] {
  const t = useT()
  const stateText = useStateText()
  if (jobId) return [{ kind: 'text', name: 'jobId', label: t('schedules.job'), width: 260 }]
  if (workflowId) return [{ kind: 'text', name: 'workflowId', label: t('schedules.workflow'), width: 260 }]
  return [
    { kind: 'text', name: 'keyword', label: t('schedules.targetName') },
    { kind: 'one', name: 'status', label: t('app.status'), width: 130, choices: STATES.map((value) => ({ value, label: stateText(value) })) },
    { kind: 'one', name: 'kind', label: t('schedules.kind'), width: 180, choices: [{ value: 'cron', label: t('schedules.kindCron') }, { value: 'every', label: t('schedules.kindEvery') }, { value: 'once', label: t('schedules.kindOnce') }] },
  ]
}

function useColumns(): readonly Column<ScheduleRow>[] {
  const t = useT()
  const words = useScheduleWords()
  return useMemo(
    () => [
      { key: 'target', header: t('schedules.targetName'), width: 'minmax(110px, 1.6fr)', render: (each) => <Target schedule={each} /> },
      { key: 'when', header: t('schedules.when'), width: 'minmax(90px, 2fr)', render: (each) => <span title={[words(each), each.cron].filter(Boolean).join(' · ')}>{words(each)}</span> },
      { key: 'zone', header: t('schedules.zone'), width: 'minmax(90px, 150px)', wide: true, render: (each) => <Text span inherit c="dimmed">{each.timezone}</Text> },
      { key: 'status', header: t('app.status'), width: '110px', wide: true, render: (each) => <span title={each.error ?? undefined}><StateBadge status={each.status} /></span> },
      { key: 'last', header: t('schedules.last'), width: '140px', wide: true, render: (each) => <Last schedule={each} /> },
      { key: 'next', header: t('schedules.next'), width: 'minmax(76px, 110px)', render: (each) => <Instant at={each.nextFireAt} zone={each.timezone} /> },
      { key: 'menu', header: '', width: '36px', wide: true, align: 'end', render: (each) => <Menu schedule={each} /> },
    ],
    [t, words],
  )
}

const nameOf = (schedule: ScheduleRow) => schedule.jobName ?? schedule.workflowName ?? schedule.id

function Target({ schedule }: { schedule: ScheduleRow }) {
  const t = useT()
  const Shown = schedule.workflowId ? IconSitemap : IconListDetails
  return (
    <Group gap={8} wrap="nowrap">
      <Shown size={15} stroke={1.6} color="var(--mantine-color-dimmed)" aria-label={t(schedule.workflowId ? 'schedules.workflow' : 'schedules.job')} style={{ flexShrink: 0 }} />
      <RowLink to="/schedules/$scheduleId" params={{ scheduleId: schedule.id }} truncate>{nameOf(schedule)}</RowLink>
    </Group>
  )
}

function Last({ schedule: { last, timezone } }: { schedule: ScheduleRow }) {
  if (!last) return <Instant at={null} />
  return <Group gap={6} wrap="nowrap"><StateBadge status={last.outcome} compact /><Instant at={last.lastPlannedFor ?? last.plannedFor} zone={timezone} /></Group>
}

function Menu({ schedule }: { schedule: ScheduleRow }) {
  const t = useT()
  const path = { id: schedule.id }
  if (schedule.status === 'FINISHED') return null
  const action = schedule.status === 'ACTIVE'
    ? { label: t('schedules.pause'), icon: IconPlayerPause, call: request('POST', '/api/v1/schedules/{id}/pause', { path }), touches: TOUCHES }
    : { label: t('schedules.resume'), icon: IconPlayerPlay, call: request('POST', '/api/v1/schedules/{id}/resume', { path }), touches: TOUCHES }
  return <RowMenu name={nameOf(schedule)} actions={[action]} />
}
