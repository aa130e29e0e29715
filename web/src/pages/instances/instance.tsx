/** One instance, beside the list: what it is, and what it runs now. */
import { Code, Drawer, Group, Text } from '@mantine/core'
import { type Schemas, request } from '@/api/client'
import { useAnswer } from '@/api/queries'
import { useT } from '@/i18n'
import { Fact, Facts } from '@/parts/facts'
import { RowLink } from '@/parts/link'
import { ErrorBox, Loading, Section } from '@/parts/page'
import { StateBadge } from '@/states'
import { Instant } from '@/time'
import { Places } from './places'
import classes from './places.module.css'

type Instance = Schemas['InstanceDetail']

export function InstanceDrawer({ instanceId, onClose }: { instanceId?: string; onClose: () => void }) {
  const t = useT()
  const { data, error, refetch } = useAnswer('instances', instanceId === undefined ? null : request('GET', '/api/v1/instances/{instance_id}', { path: { instance_id: instanceId } }))
  const found = data?.instanceId === instanceId ? data : undefined
  return (
    <Drawer opened={instanceId !== undefined} onClose={onClose} position="right" size="md" title={found?.name ?? t('instances.one')} closeButtonProps={{ 'aria-label': t('app.close') }}>
      {found ? <Details instance={found} /> : error ? <ErrorBox error={error} retry={() => void refetch()} /> : <Loading />}
    </Drawer>
  )
}

function Details({ instance }: { instance: Instance }) {
  const t = useT()
  return (
    <>
      <Facts>
        <Fact name={t('app.status')}><Group gap={8}><StateBadge status={instance.status} />{instance.leads && <Text span size="sm">{t('instances.leader')}</Text>}</Group></Fact>
        <Fact name={t('instances.roles')}>{instance.roles.join(', ')}</Fact>
        <Fact name={t('instances.queues')}>{instance.queues.join(', ') || '–'}</Fact>
        <Fact name={t('instances.places')}><Places running={instance.running} places={instance.places} /></Fact>
        <Fact name={t('instances.heartbeat')}><Instant at={instance.heartbeatAt} exact /></Fact>
        {instance.status === 'ALIVE' && <Fact name={t('instances.expires')}><Instant at={instance.expiresAt} /></Fact>}
        <Fact name={t('instances.started')}><Instant at={instance.startedAt} exact /></Fact>
        <Fact name={t('instances.address')}>{instance.address || '–'}</Fact>
        <Fact name={t('instances.version')}>{instance.version}</Fact>
        <Fact name={t('instances.id')}><Code>{instance.instanceId}</Code></Fact>
      </Facts>
      <Section title={t('instances.work')}>
        {instance.work.length === 0 && <Text size="sm" c="dimmed">{t('instances.noWork')}</Text>}
        {instance.work.map((work) => <Work key={work.execution} work={work} />)}
        {instance.running > instance.work.length && <Text size="xs" c="dimmed" mt="xs">{t('instances.moreWork', { n: instance.running - instance.work.length })}</Text>}
      </Section>
    </>
  )
}

function Work({ work: { execution, run, target } }: { work: Instance['work'][number] }) {
  return (
    <div className={classes.work}>
      {run === null ? <span>{execution}</span> : <RowLink to="/runs/$runId" params={{ runId: run }}>{target?.name ?? run}</RowLink>}
      <Text span size="xs" c="dimmed" ff="monospace">{run ?? execution}</Text>
    </div>
  )
}
