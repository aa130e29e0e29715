/** How much is planned in each of the next 24 hours; a chosen hour tells what. */
import { ActionIcon, Group, Paper, Text, Tooltip } from '@mantine/core'
import { IconX } from '@tabler/icons-react'
import { type Schemas, request } from '@/api/client'
import { useAnswer } from '@/api/queries'
import { useT } from '@/i18n'
import { TargetLink } from '@/parts/link'
import { ErrorBox, Loading } from '@/parts/page'
import { absolute, axisTime, useTicking, useZone } from '@/time'
import classes from './forecast.module.css'

const HOUR = 3_600_000
const HOURS = 24
const LABELLED = 3
const SHOWN = 30

type Planned = Schemas['PlannedHour']

interface ForecastProps {
  /** The one that is chosen. */
  hour: string | undefined
  choose: (hour: string | undefined) => void
}

const spanOf = (from: number, hours: number) => ({ from: new Date(from).toISOString(), until: new Date(from + hours * HOUR).toISOString() })

export function Forecast({ hour, choose }: ForecastProps) {
  const t = useT()
  const zone = useZone()
  const first = useTicking((now) => Math.floor(now / HOUR) * HOUR)
  const { data, error } = useAnswer('forecast', request('GET', '/api/v1/forecast', { query: { by: 'hour', ...spanOf(first, HOURS) } }))
  const planned = new Map((data?.hours ?? []).map((each) => [Date.parse(each.at), each]))
  const hours = Array.from({ length: HOURS }, (_, index) => first + index * HOUR)
  // A link may be older than the day that is shown.
  const chosen = hour === undefined ? undefined : hours.find((at) => at === Date.parse(hour))
  const total = [...planned.values()].reduce((sum, { count }) => sum + count, 0)
  const largest = Math.max(1, ...[...planned.values()].map(({ count }) => count))
  return (
    <Paper withBorder p="sm" mb="md" component="section" aria-label={t('schedules.forecast')}>
      <Group justify="space-between" mb="xs" gap="xs">
        <Text fw={600} size="sm">{t('schedules.forecast')}</Text>
        <Text size="xs" c="dimmed">{t(data?.limited ? 'schedules.plannedOrMore' : 'schedules.planned', { n: total, at: axisTime(first + HOURS * HOUR, zone, 'minutes') })}</Text>
      </Group>
      {error && <ErrorBox error={error} />}
      <div className={classes.bars}>
        {hours.map((at, index) => <Bar key={at} at={at} planned={planned.get(at)} share={(planned.get(at)?.count ?? 0) / largest} labelled={index % LABELLED === 0} chosen={chosen === at} choose={choose} />)}
      </div>
      {chosen !== undefined && <HourDetail at={chosen} close={() => choose(undefined)} />}
    </Paper>
  )
}

interface BarProps {
  at: number
  planned: Planned | undefined
  share: number
  labelled: boolean
  chosen: boolean
  choose: (hour: string | undefined) => void
}

function Bar({ at, planned, share, labelled, chosen, choose }: BarProps) {
  const t = useT()
  const zone = useZone()
  const count = planned?.count ?? 0
  const told = t('schedules.plannedIn', { n: count, at: absolute(at, zone).slice(0, 16) })
  const largest = planned?.targets.map(({ target, count: each }) => <div key={`${target.kind} ${target.id}`}>{target.name} · {each}</div>)
  return (
    <Tooltip label={<>{told}{largest}</>}>
      <button type="button" className={classes.hour} aria-label={told} aria-pressed={chosen} onClick={() => choose(chosen ? undefined : new Date(at).toISOString())}>
        <span className={classes.track}><span className={classes.bar} data-empty={count === 0 || undefined} style={{ height: `${Math.max(share * 100, count > 0 ? 6 : 0)}%` }} /></span>
        <span className={classes.label}>{labelled ? absolute(at, zone).slice(11, 16) : ''}</span>
      </button>
    </Tooltip>
  )
}

function HourDetail({ at, close }: { at: number; close: () => void }) {
  const t = useT()
  const zone = useZone()
  const { data, error } = useAnswer('forecast', request('GET', '/api/v1/forecast', { query: { by: 'target', size: SHOWN, ...spanOf(at, 1) } }))
  const items = data?.items ?? []
  const more = (data?.total ?? 0) - items.length
  return (
    <section className={classes.detail} aria-label={t('schedules.hour', { at: absolute(at, zone) })}>
      <Group justify="space-between" wrap="nowrap" mb={4}>
        <Text size="sm" fw={600} className="figures">{absolute(at, zone)}</Text>
        <ActionIcon variant="subtle" color="gray" size="sm" onClick={close} aria-label={t('app.close')}><IconX size={14} /></ActionIcon>
      </Group>
      {error ? <ErrorBox error={error} /> : data === undefined ? <Loading /> : items.length === 0 ? <Text size="sm" c="dimmed">{t('schedules.nothingPlanned')}</Text> : (
        <ul className={classes.targets}>
          {items.map(({ target, count, instants }) => (
            <li key={`${target.kind} ${target.id}`}>
              <span className={classes.name}><TargetLink target={target} /></span>
              <span className="figures">{t('schedules.times', { n: count })}</span>
              <Text span inherit c="dimmed" className={classes.instants}>{instants.map((each) => absolute(each, zone).slice(11, 19)).join('  ')}{count > instants.length && ' …'}</Text>
            </li>
          ))}
          {more > 0 && <li><Text span inherit c="dimmed">{t('schedules.andMore', { n: more })}</Text></li>}
        </ul>
      )}
    </section>
  )
}
