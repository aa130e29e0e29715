/** One job: how it goes, what it is, and who changed it. */
import { Alert, Code, CopyButton, Group, Tabs, Text, UnstyledButton } from '@mantine/core'
import { IconCheck, IconCopy, IconHistory, IconRocket, IconSettings, IconTimeline } from '@tabler/icons-react'
import { getRouteApi } from '@tanstack/react-router'
import { useEffect } from 'react'
import { request } from '@/api/client'
import { useAnswer } from '@/api/queries'
import type { JobFound, Run } from '@/api/shapes'
import { useT } from '@/i18n'
import { TextLink } from '@/parts/link'
import { ErrorBox, Loading, PageTitle } from '@/parts/page'
import { StateBadge } from '@/states'
import { Instant } from '@/time'
import { JobActions, RunNow } from './actions'
import { ConfigView } from './config'
import { History } from './history'
import classes from './job.module.css'
import { Overview } from './overview'

const route = getRouteApi('/jobs/$jobId')

export function JobPage() {
  const { jobId } = route.useParams()
  const navigate = route.useNavigate()
  const { data: job, error, refetch } = useAnswer('job', request('GET', '/api/v1/jobs/{jobId}', { path: { jobId }, query: { include: 'runs' } }))
  const key = job?.jobId
  useEffect(() => {
    // Events know it by its key; a task's number leads here, too.
    if (key !== undefined && /^\d+$/.test(jobId)) void navigate({ params: { jobId: key }, search: true, replace: true })
  }, [key, jobId, navigate])
  if (error) return <><PageTitle title={jobId} /><ErrorBox error={error} retry={() => void refetch()} /></>
  if (job === undefined) return <><PageTitle title={jobId} /><Loading /></>
  return (
    <>
      <PageTitle title={job.name} before={<StateBadge status={stateOf(job)} />}><JobActions job={job} /></PageTitle>
      <Facts job={job} />
      <Made job={job} />
      <Parts job={job} />
    </>
  )
}

const stateOf = (job: JobFound) => (!job.enabled ? 'DISABLED' : job.paused ? 'PAUSED' : 'ENABLED')

function Facts({ job }: { job: JobFound }) {
  const t = useT()
  return (
    <div className={classes.facts}>
      {job.description && <Text size="sm" mb={4}>{job.description}</Text>}
      <Group gap="4px 16px" c="dimmed" fz="xs">
        <span>{t('jobs.type')} <Code>{job.type}</Code></span>
        <Origin job={job} />
        <Id value={job.jobId} />
        <span>{t('jobs.version', { version: String(job.version ?? 1) })} · <Instant at={job.updatedAt} /> <ChangedBy jobId={job.jobId} /></span>
      </Group>
    </div>
  )
}

/** Through which API it was made, where that is not the one that the console uses, too. */
function Origin({ job: { contract, taskId } }: { job: JobFound }) {
  const t = useT()
  if (contract === 'cronjob') return <span>{t('jobs.madeAsTask', { id: String(taskId) })}</span>
  return contract === 'ksana' ? <span>{t('jobs.madeAsKsana')}</span> : null
}

function Id({ value }: { value: string }) {
  const t = useT()
  return (
    <CopyButton value={value}>
      {({ copied, copy }) => (
        <UnstyledButton onClick={copy} fz="xs" c="dimmed" aria-label={`${t('jobs.id')} ${value}: ${copied ? t('app.copied') : t('app.copy')}`} className={classes.id}>
          {t('jobs.id')} <Code>{value}</Code> {copied ? <IconCheck size={13} /> : <IconCopy size={13} />}
        </UnstyledButton>
      )}
    </CopyButton>
  )
}

/** Who made the last change; nothing where the trail of that was removed, or is not for everybody. */
function ChangedBy({ jobId }: { jobId: string }) {
  const t = useT()
  const { data } = useAnswer('job', request('GET', '/api/v1/audit', { query: { subject: `job/${jobId}`, size: 1 } }))
  const who = data?.items[0]?.actor
  return who ? <>{t('jobs.by', { who })}</> : null
}

/** After it was made: what comes next, and that it ran once it has. It keeps its height, so that nothing below moves. */
function Made({ job }: { job: JobFound }) {
  const t = useT()
  const { made } = route.useSearch()
  const navigate = route.useNavigate()
  if (!made) return null
  return (
    <Alert mb="md" icon={<IconRocket />} title={job.lastRun ? t('jobs.madeRanTitle') : t('jobs.madeTitle')} withCloseButton closeButtonLabel={t('app.close')}
      onClose={() => void navigate({ search: (before) => ({ ...before, made: undefined }), replace: true })}>
      <Group gap="md" mih={30}>{job.lastRun ? <Ran run={job.lastRun} /> : <NotRun job={job} />}</Group>
    </Alert>
  )
}

function NotRun({ job }: { job: JobFound }) {
  const t = useT()
  return (
    <>
      <Text size="sm">{job.nextRunAt ? <>{t('jobs.madeNext')} <Instant at={job.nextRunAt} /></> : t('jobs.madeNoSchedule')}</Text>
      <RunNow job={job} label={t('jobs.tryIt')} />
    </>
  )
}

function Ran({ run }: { run: Run }) {
  const t = useT()
  return (
    <>
      <StateBadge status={run.status} />
      <Text size="sm"><Instant at={run.startedAt ?? run.createdAt} /></Text>
      <TextLink to="/runs/$runId" params={{ runId: run.id }} size="sm">{t('jobs.madeSeeRun')}</TextLink>
    </>
  )
}

function Parts({ job }: { job: JobFound }) {
  const t = useT()
  const { tab = 'overview' } = route.useSearch()
  const navigate = route.useNavigate()
  const choose = (next: string | null) => void navigate({ search: (before) => ({ ...before, tab: next === 'config' || next === 'history' ? next : undefined }) })
  return (
    <Tabs value={tab} onChange={choose} keepMounted={false}>
      <Tabs.List mb="md">
        <Tabs.Tab value="overview" leftSection={<IconTimeline size={15} />}>{t('jobs.overview')}</Tabs.Tab>
        <Tabs.Tab value="config" leftSection={<IconSettings size={15} />}>{t('jobs.config')}</Tabs.Tab>
        <Tabs.Tab value="history" leftSection={<IconHistory size={15} />}>{t('jobs.history')}</Tabs.Tab>
      </Tabs.List>
      <Tabs.Panel value="overview"><Overview job={job} /></Tabs.Panel>
      <Tabs.Panel value="config"><ConfigView job={job} /></Tabs.Panel>
      <Tabs.Panel value="history"><History job={job} /></Tabs.Panel>
    </Tabs>
  )
}
