/** The columns of the list of runs. */
import { Text } from '@mantine/core'
import { IconListDetails, IconRocket, IconSitemap } from '@tabler/icons-react'
import { useMemo } from 'react'
import type { Run } from '@/api/shapes'
import { useT } from '@/i18n'
import { RowLink, TextLink } from '@/parts/link'
import type { Column } from '@/parts/table'
import { StateBadge, hasEnded } from '@/states'
import { Duration, Instant, duration } from '@/time'
import { triggerText } from '@/triggers'
import classes from './list.module.css'
import type { RunsSearch } from './search'
import { lateness } from './words'

type Sort = RunsSearch['sort']
const NEXT = { newest: 'longest', longest: 'shortest', shortest: undefined } as const
const ORDERS = { newest: 'none', longest: 'descending', shortest: 'ascending' } as const
const ICONS = { job: IconListDetails, workflow: IconSitemap, plan: IconRocket }

/** A click on the duration's header: the longest first, the shortest, and by age again. */
export function useColumns(sort: Sort, change: (patch: { sort: Sort }) => void): readonly Column<Run>[] {
  const t = useT()
  return useMemo(
    () => [
      { key: 'status', header: t('app.status'), width: 'clamp(104px, 14vw, 160px)', render: (run) => <StateBadge status={run.status} /> },
      { key: 'target', header: t('runs.jobOrWorkflow'), width: 'minmax(90px, 2fr)', render: (run) => <RunName run={run} /> },
      { key: 'id', header: t('runs.run'), width: 'minmax(70px, 0.8fr)', wide: true, render: (run) => <Text span inherit ff="monospace" size="xs">{run.id}</Text> },
      { key: 'trigger', header: t('runs.trigger'), width: '90px', wide: true, render: (run) => triggerText(t, run.trigger) },
      { key: 'started', header: t('runs.started'), width: 'clamp(84px, 13vw, 150px)', render: (run) => <Started run={run} /> },
      {
        key: 'duration', header: t('runs.duration'), width: '110px', wide: true, align: 'end', sort: { order: ORDERS[sort ?? 'newest'], toggle: () => change({ sort: NEXT[sort ?? 'newest'] }) },
        render: (run) => <Duration millis={run.durationMillis} since={hasEnded(run.status) ? null : run.startedAt} />,
      },
      { key: 'error', header: t('runs.error'), width: 'minmax(0, 2fr)', wide: true, render: (run) => <Text span inherit c="dimmed" title={run.error ?? run.reason ?? undefined}>{run.error ?? run.reason}</Text> },
    ],
    [t, sort, change],
  )
}

function RunName({ run }: { run: Run }) {
  const Kind = ICONS[run.target.kind]
  return (
    <>
      <Kind size={15} stroke={1.7} className={classes.kind} aria-hidden />
      <RowLink to="/runs/$runId" params={{ runId: run.id }}>{run.target.name}</RowLink>
      {run.tenantId && <TextLink to="/runs" search={{ tenantId: run.tenantId }} size="xs" ml={8}>{run.tenantId}</TextLink>}
    </>
  )
}

function Started({ run }: { run: Run }) {
  const t = useT()
  const late = lateness(run)
  return (
    <>
      <Instant at={run.startedAt ?? run.createdAt} />
      {late !== null && <span className={classes.late} title={t('runs.late', { by: duration(late) })}>+{duration(late)}</span>}
    </>
  )
}
