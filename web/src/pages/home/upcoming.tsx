/** What the next hour brings, by what runs. */
import { Text, Tooltip } from '@mantine/core'
import { IconCalendarOff } from '@tabler/icons-react'
import { type Schemas, request } from '@/api/client'
import { useAnswer } from '@/api/queries'
import { language, useT } from '@/i18n'
import { TargetLink, TextLink } from '@/parts/link'
import { absolute, relative, useTicking, useZone } from '@/time'
import { Answered, Nothing } from './nothing'
import { Panel } from './panel'
import classes from './home.module.css'

type Planned = Schemas['PlannedShown']
const SHOWN = 20

export function UpcomingPanel() {
  const t = useT()
  const answer = useAnswer('forecast', request('GET', '/api/v1/forecast', { query: { by: 'target', size: SHOWN } }))
  const rows = answer.data?.items ?? []
  return (
    <Panel steady title={t('home.upcoming')} actions={<TextLink to="/schedules" size="xs">{t('home.allOf', { n: answer.data?.total ?? 0 })}</TextLink>}>
      <Answered answer={answer}>
        {rows.length === 0 && <Nothing icon={IconCalendarOff} text={t('home.nothingPlanned')}><TextLink to="/schedules" size="sm">{t('home.toSchedules')}</TextLink></Nothing>}
        {rows.map((planned) => <PlannedRow key={`${planned.target.kind} ${planned.target.id}`} planned={planned} />)}
      </Answered>
    </Panel>
  )
}

function PlannedRow({ planned }: { planned: Planned }) {
  const t = useT()
  const { target, count, countIsExact, instants } = planned
  return (
    <div className={classes.row}>
      <span className={classes.grow}><TargetLink target={target} /></span>
      <Text span size="xs" c="dimmed" className="figures">{countIsExact ? t('home.runsPlanned', { n: count }) : t('home.runsPlannedOrMore', { n: count })}</Text>
      <Next instants={instants} />
    </div>
  )
}

/** The first instant that is still to come, with those after it for who hovers. */
function Next({ instants }: { instants: readonly string[] }) {
  const lang = language.use()
  const zone = useZone()
  const t = useT()
  const text = useTicking((now) => {
    const next = instants.find((at) => Date.parse(at) > now)
    return next === undefined ? t('app.now') : relative(Date.parse(next), now, lang)
  })
  const listed = instants.map((at) => <div key={at} className="figures">{absolute(at, zone)}</div>)
  return (
    <Tooltip label={listed}>
      <time dateTime={instants[0]} className={classes.next}>{text}</time>
    </Tooltip>
  )
}
