/** How full the queues are (what runs of the places there are, and what waits for one), and who serves them. */
import { Text } from '@mantine/core'
import { IconServerOff } from '@tabler/icons-react'
import { type Schemas, request } from '@/api/client'
import { useAnswer } from '@/api/queries'
import { useT } from '@/i18n'
import { RowLink, TextLink } from '@/parts/link'
import { StateBadge } from '@/states'
import { Nothing } from './nothing'
import { Panel } from './panel'
import classes from './home.module.css'

export function QueuesPanel({ overview }: { overview: Schemas['OverviewShown'] }) {
  const t = useT()
  const instances = useAnswer('instances', request('GET', '/api/v1/instances', { query: { status: 'ALIVE' } })).data?.items ?? []
  return (
    <Panel steady title={t('home.queues')} actions={<TextLink to="/instances" size="xs">{t('home.alive', { n: overview.instances.alive })}</TextLink>}>
      {overview.queues.length === 0 && <Nothing icon={IconServerOff} text={t('home.nobodyServes')} />}
      {overview.queues.map((queue) => <QueueRow key={queue.queue} queue={queue} />)}
      {instances.map((instance) => <InstanceRow key={instance.instanceId} instance={instance} />)}
    </Panel>
  )
}

function QueueRow({ queue: { queue, ready, running, places } }: { queue: Schemas['QueueShown'] }) {
  const t = useT()
  const told = places > 0 ? t('home.placesUsed', { used: running, places }) : t('home.nobodyServes')
  const share = (count: number) => `${places > 0 ? Math.min(100, (100 * count) / places) : count > 0 ? 100 : 0}%`
  return (
    <div className={classes.queue}>
      <div className={classes.queueName}>
        <Text span size="sm" fw={500} className={classes.grow}>{queue}</Text>
        <Text span size="xs" c="dimmed" className="figures">{told}</Text>
      </div>
      <div className={classes.bar} aria-hidden>
        <span style={{ width: share(running), background: 'var(--state-busy)' }} />
        <span style={{ width: share(ready), background: 'var(--state-warn)' }} />
      </div>
      <Text size="xs" c={ready > 0 ? undefined : 'dimmed'} className="figures">{ready > 0 ? t('home.readyInQueue', { n: ready }) : t('home.queueEmpty')}</Text>
    </div>
  )
}

function InstanceRow({ instance: { instanceId, name, status, leads, running, places } }: { instance: Schemas['InstanceBody'] }) {
  const t = useT()
  return (
    <div className={classes.row}>
      <StateBadge status={status} compact />
      <span className={classes.grow}><RowLink to="/instances" search={{ instance: instanceId }}>{name}</RowLink></span>
      {leads && <Text span size="xs" c="dimmed">{t('home.leads')}</Text>}
      <Text span size="xs" c="dimmed" className="figures">{running}/{places}</Text>
    </div>
  )
}
