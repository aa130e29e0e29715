/** The latest runs of a job, or those of the day that was chosen in its calendar. */
import { Button, Group, Text } from '@mantine/core'
import { IconX } from '@tabler/icons-react'
import { getRouteApi } from '@tanstack/react-router'
import { useMemo } from 'react'
import { request } from '@/api/client'
import { useAnswer, wholeList } from '@/api/queries'
import type { JobFound, Run } from '@/api/shapes'
import { useT } from '@/i18n'
import { RowLink, TextLink } from '@/parts/link'
import { EmptyState, Section } from '@/parts/page'
import { type Column, Table } from '@/parts/table'
import { StateBadge, hasEnded } from '@/states'
import { Duration, Instant, addDays, startOfDay, useZone } from '@/time'
import { triggerText } from '@/triggers'

const route = getRouteApi('/jobs/$jobId')
const SHOWN = 20
const NONE: readonly Run[] = []

export function LatestRuns({ job }: { job: JobFound }) {
  const t = useT()
  const zone = useZone()
  const { day } = route.useSearch()
  const between = day === undefined || Number.isNaN(Date.parse(day)) ? {} : { from: startOfDay(day, zone), to: startOfDay(addDays(day, 1), zone) }
  const query = { jobId: job.jobId, kind: 'job', ...between } as const
  const answer = useAnswer('activity', request('GET', '/api/v1/activity', { query: { ...query, size: SHOWN } }))
  const { data } = answer
  return (
    <Section title={day === undefined ? t('jobs.latest') : t('jobs.latestOf', { day })}
      actions={<Group gap="sm">{day !== undefined && <AllDays />}<TextLink to="/runs" search={query} size="sm">{t('jobs.allRuns')}</TextLink></Group>}>
      <Table label={t('jobs.latest')} rows={wholeList(answer, data?.items ?? NONE)} idOf={(run) => run.id} columns={useColumns()}
        empty={<EmptyState title={t('jobs.noRuns')} hint={day === undefined ? t('jobs.noRunsHint') : undefined} />} />
    </Section>
  )
}

function AllDays() {
  const t = useT()
  const navigate = route.useNavigate()
  return (
    <Button size="compact-xs" variant="default" leftSection={<IconX size={13} />} onClick={() => void navigate({ search: (before) => ({ ...before, day: undefined }), replace: true, resetScroll: false })}>
      {t('jobs.allDays')}
    </Button>
  )
}

function useColumns(): readonly Column<Run>[] {
  const t = useT()
  return useMemo(
    () => [
      { key: 'status', header: t('app.status'), width: 'minmax(112px, 150px)', render: (run) => <StateBadge status={run.status} /> },
      { key: 'run', header: t('runs.run'), width: 'minmax(60px, 0.6fr)', render: (run) => <RowLink to="/runs/$runId" params={{ runId: run.id }} ff="monospace">{run.id}</RowLink> },
      { key: 'trigger', header: t('runs.trigger'), width: '90px', wide: true, render: (run) => triggerText(t, run.trigger) },
      { key: 'started', header: t('runs.started'), width: 'minmax(76px, 120px)', render: (run) => <Instant at={run.startedAt ?? run.createdAt} /> },
      { key: 'duration', header: t('runs.duration'), width: '90px', align: 'end', render: (run) => <Duration millis={run.durationMillis} since={hasEnded(run.status) ? null : run.startedAt} /> },
      { key: 'error', header: t('runs.error'), width: 'minmax(0, 2fr)', wide: true, render: (run) => <Text span inherit c="dimmed" title={run.error ?? run.reason ?? undefined}>{run.error ?? run.reason}</Text> },
    ],
    [t],
  )
}
