/** One schedule: what it says, what it will do, what became of each instant. */
import { Alert, Button, Group, Paper, SimpleGrid, Text } from '@mantine/core'
import { IconAlertTriangle, IconEdit, IconTrash } from '@tabler/icons-react'
import { Link, getRouteApi, useNavigate } from '@tanstack/react-router'
import { request } from '@/api/client'
import { useAnswer } from '@/api/queries'
import type { Schedule } from '@/api/shapes'
import { useT } from '@/i18n'
import { Action } from '@/parts/actions'
import { Fact, Facts } from '@/parts/facts'
import { JsonView } from '@/parts/json'
import { TextLink } from '@/parts/link'
import { ErrorBox, Loading, PageTitle, Section } from '@/parts/page'
import { HoldSchedule } from '@/parts/schedule/cards'
import { NextInstants } from '@/parts/schedule/instants'
import { useScheduleWords } from '@/parts/schedule/words'
import { StateBadge } from '@/states'
import { Instant } from '@/time'
import { Ledger } from './ledger'
import { TOUCHES } from '@/parts/schedule/touches'

const route = getRouteApi('/schedules/$scheduleId')

export function SchedulePage() {
  const t = useT()
  const { scheduleId } = route.useParams()
  const { data, error, refetch } = useAnswer('schedules', request('GET', '/api/v1/schedules/{id}', { path: { id: scheduleId } }))
  if (data === undefined) return <><PageTitle title={t('schedules.one')} />{error ? <ErrorBox error={error} retry={() => void refetch()} /> : <Loading />}</>
  return (
    <>
      <PageTitle title={data.jobName ?? data.workflowName ?? t('schedules.one')} before={<StateBadge status={data.status} />}><Actions schedule={data} /></PageTitle>
      {data.error && <Alert mb="md" variant="light" color="red" icon={<IconAlertTriangle />} title={t('schedules.parked')}>{data.error}</Alert>}
      <SimpleGrid cols={{ base: 1, md: 2 }} spacing="md">
        <Paper withBorder p="md"><Definition schedule={data} /></Paper>
        <Paper withBorder p="md" component="section" aria-label={t('schedules.nextInstants')}>
          <Text fw={600} size="sm" mb="xs">{t('schedules.nextInstants')}</Text>
          <NextInstants scheduleId={data.id} />
        </Paper>
      </SimpleGrid>
      <Section title={t('schedules.ledger')}><Ledger scheduleId={data.id} zone={data.timezone} /></Section>
    </>
  )
}

function Actions({ schedule, schedule: { id } }: { schedule: Schedule }) {
  const t = useT()
  const navigate = useNavigate()
  const path = { id }
  return (
    <>
      <HoldSchedule schedule={schedule} primary />
      <Button renderRoot={(props) => <Link {...props} to="/schedules/$scheduleId/edit" params={{ scheduleId: id }} />} size="xs" variant="default" leftSection={<IconEdit size={15} />}>{t('app.edit')}</Button>
      <Action label={t('schedules.delete')} icon={IconTrash} danger confirm={t('schedules.deleteAsk')} call={() => request('DELETE', '/api/v1/schedules/{id}', { path })} touches={TOUCHES} done={() => void navigate({ to: '/schedules' })} />
    </>
  )
}

function Definition({ schedule }: { schedule: Schedule }) {
  const t = useT()
  const words = useScheduleWords()
  const policies = { FIRE_NOW: t('schedules.fireNow'), SKIP: t('schedules.skip'), CATCH_UP_LIMITED: `${t('schedules.catchUp')} (${schedule.catchupLimit})` }
  return (
    <>
      <Text fw={600} size="lg" mb="sm">{words(schedule)}</Text>
      <Facts>
        <Fact name={t(schedule.workflowId ? 'schedules.workflow' : 'schedules.job')}><Owner schedule={schedule} /></Fact>
        {schedule.cron && <Fact name={t('schedules.cron')}><Text span inherit ff="monospace">{schedule.cron}</Text></Fact>}
        <Fact name={t('schedules.zone')}>{schedule.timezone}</Fact>
        <Fact name={t('schedules.next')}><Instant at={schedule.nextFireAt} zone={schedule.timezone} exact /></Fact>
        {schedule.startAt && <Fact name={t('schedules.startAt')}><Instant at={schedule.startAt} zone={schedule.timezone} exact /></Fact>}
        {schedule.endAt && <Fact name={t('schedules.endAt')}><Instant at={schedule.endAt} zone={schedule.timezone} exact /></Fact>}
        {schedule.jitter !== '0s' && <Fact name={t('schedules.jitter')}>{schedule.jitter}</Fact>}
        <Fact name={t('schedules.misfire')}>{policies[schedule.misfirePolicy]} · {t('schedules.lateAfter', { grace: schedule.misfireGrace })}</Fact>
        <Fact name={t('app.updated')}><Instant at={schedule.updatedAt} /></Fact>
      </Facts>
      {Object.keys(schedule.input).length > 0 && <><Text size="xs" c="dimmed" mt="sm" mb={4}>{t('schedules.input')}</Text><JsonView label={t('schedules.input')} value={schedule.input} /></>}
    </>
  )
}

function Owner({ schedule: { jobId, jobName, workflowId, workflowName } }: { schedule: Schedule }) {
  const t = useT()
  return (
    <Group gap="xs" component="span">
      {jobId && <><TextLink to="/jobs/$jobId" params={{ jobId }}>{jobName}</TextLink><TextLink to="/runs" search={{ jobId, trigger: 'schedule' }} size="xs">{t('schedules.itsRuns')}</TextLink></>}
      {workflowId && <><TextLink to="/workflows/$workflowId" params={{ workflowId }}>{workflowName}</TextLink><TextLink to="/runs" search={{ workflowId, trigger: 'schedule' }} size="xs">{t('schedules.itsRuns')}</TextLink></>}
    </Group>
  )
}
