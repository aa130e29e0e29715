/** What a run is of, why it is there, and when it was what. */
import { Group, Text } from '@mantine/core'
import { IconSitemap } from '@tabler/icons-react'
import type { ReactNode } from 'react'
import { useT } from '@/i18n'
import { useReasons } from '@/pages/schedules/reasons'
import { ErrorText } from '@/parts/error-text'
import { TextLink } from '@/parts/link'
import { hasEnded } from '@/states'
import { Duration, Instant, duration } from '@/time'
import { triggerText } from '@/triggers'
import type { RunDetail } from './run'
import classes from './run.module.css'
import { lateness } from './words'

export function RunFacts({ run }: { run: RunDetail }) {
  const t = useT()
  const reasonText = useReasons()
  const late = lateness(run)
  return (
    <>
      <dl className={classes.facts}>
        {!(run.parent && run.target.deleted) && <Fact name={t('runs.jobOrWorkflow')}><TargetLink run={run} /></Fact>}
        <Fact name={t('runs.trigger')}>{triggerText(t, run.trigger)}</Fact>
        {run.tenantId && <Fact name={t('runs.tenant')}><TextLink to="/runs" search={{ tenantId: run.tenantId }}>{run.tenantId}</TextLink></Fact>}
        {run.plannedFor && <Fact name={t('runs.planned')}><Instant at={run.plannedFor} exact />{late !== null && <Text span inherit className={classes.late}>{t('runs.late', { by: duration(late) })}</Text>}</Fact>}
        <Fact name={t('runs.started')}><Instant at={run.startedAt} exact /></Fact>
        {run.kind === 'workflow' && run.reason && run.startedAt === null && !hasEnded(run.status) && <Fact name={t('runs.waitsToBegin')}>{reasonText(run.reason)}</Fact>}
        {run.endedAt && <Fact name={t('runs.ended')}><Instant at={run.endedAt} exact /></Fact>}
        <Fact name={t('runs.duration')}><Duration millis={run.durationMillis} since={hasEnded(run.status) ? null : run.startedAt} /></Fact>
        {run.attempt !== null && run.attempt > 1 && <Fact name={t('runs.attempts')}>{run.attempt}</Fact>}
        {run.owner && <Fact name={t('runs.instance')}><TextLink to="/instances" className={classes.id} title={run.owner}>{run.owner}</TextLink></Fact>}
        {run.traceId && <Fact name={t('runs.trace')}><span className={classes.id} title={run.traceId}>{run.traceId}</span></Fact>}
      </dl>
      {run.parent && (
        <Group gap={6} mt="xs" c="dimmed">
          <IconSitemap size={15} aria-hidden />
          <Text size="sm">{t('runs.worksFor')} <TextLink to="/runs/$runId" params={{ runId: run.parent.runId }} search={{ node: run.parent.nodeId }}>{run.parent.runId} / {run.parent.nodeId}</TextLink></Text>
        </Group>
      )}
      {run.errorText && <ErrorText text={run.errorText} />}
      {run.reason && hasEnded(run.status) && <Text size="sm" c="dimmed" mt="xs">{t('runs.reason')}: {reasonText(run.reason)}</Text>}
    </>
  )
}

function TargetLink({ run: { target, planId } }: { run: RunDetail }) {
  const t = useT()
  if (target.deleted) return <>{target.name} <Text span inherit c="dimmed">({t('runs.deleted')})</Text></>
  if (planId !== null) return <TextLink to="/plans/$planId" params={{ planId }}>{target.name}</TextLink>
  if (target.kind === 'workflow') return <TextLink to="/workflows/$workflowId" params={{ workflowId: target.id }}>{target.name}</TextLink>
  return <TextLink to="/jobs/$jobId" params={{ jobId: target.id }}>{target.name}</TextLink>
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return <div><dt>{name}</dt><dd>{children}</dd></div>
}
