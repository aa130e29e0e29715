/** What became of the planned instants, day by day. A day can be chosen, to see its runs. */
import { ActionIcon, Group, Text, Tooltip } from '@mantine/core'
import { IconAlertTriangle, IconChevronLeft, IconChevronRight, IconCircleCheck, IconCircleX, IconPlayerSkipForward, type Icon } from '@tabler/icons-react'
import { getRouteApi } from '@tanstack/react-router'
import type { CSSProperties } from 'react'
import { type Schemas, request } from '@/api/client'
import { useAnswer } from '@/api/queries'
import type { JobFound } from '@/api/shapes'
import { language, localeOf, useT } from '@/i18n'
import { ErrorBox, Loading } from '@/parts/page'
import { addDays, dayOf, useTicking, useZone, weekdayNumber, weekdayOf } from '@/time'
import classes from './calendar.module.css'

type Day = Schemas['DayShown']
const route = getRouteApi('/jobs/$jobId')
const WEEKS = 5

export function CalendarView({ job }: { job: JobFound }) {
  const t = useT()
  const zone = useZone()
  const today = useTicking((now) => dayOf(now, zone))
  const search = route.useSearch()
  const navigate = route.useNavigate()
  const last = isDay(search.until) && search.until < today ? search.until : today
  const monday = addDays(last, -weekdayNumber(last) - 7 * (WEEKS - 1))
  const end = addDays(monday, 7 * WEEKS)
  const { data, error, refetch } = useAnswer('calendar', request('GET', '/api/v1/jobs/{jobId}/calendar', { path: { jobId: job.jobId }, query: { from: monday, to: end, timezone: zone } }))
  if (data === undefined) return error ? <ErrorBox error={error} retry={() => void refetch()} /> : <Loading />
  const show = (until: string) => void navigate({ search: (before) => ({ ...before, until: until >= today ? undefined : until }), replace: true, resetScroll: false })
  const choose = (day: string) => void navigate({ search: (before) => ({ ...before, day: before.day === day ? undefined : day }), replace: true, resetScroll: false })
  return (
    <div className={classes.frame}>
      <Group justify="space-between" mb={6} wrap="nowrap">
        <Text size="xs" c="dimmed" className="figures">{monday} – {last} · {zone}</Text>
        <Group gap={2} wrap="nowrap">
          <ActionIcon variant="subtle" color="gray" size="sm" aria-label={t('jobs.earlier')} onClick={() => show(addDays(monday, -1))}><IconChevronLeft size={15} /></ActionIcon>
          <ActionIcon variant="subtle" color="gray" size="sm" aria-label={t('jobs.later')} disabled={last >= today} onClick={() => show(addDays(end, 7 * WEEKS - 1))}><IconChevronRight size={15} /></ActionIcon>
        </Group>
      </Group>
      <Days days={data.days} today={today} chosen={search.day} onChoose={choose} />
      <Legend />
      {data.since && <Text size="xs" c="dimmed" mt={4}>{t('jobs.wholeSince', { day: dayOf(data.since, zone) })}</Text>}
    </div>
  )
}

const isDay = (text: string | undefined): text is string => text !== undefined && /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text))

function Days({ days, today, chosen, onChoose }: { days: readonly Day[]; today: string; chosen: string | undefined; onChoose: (day: string) => void }) {
  const lang = language.use()
  const most = Math.max(1, ...days.map((day) => day.planned))
  return (
    <div className={classes.days}>
      {days.slice(0, 7).map((day) => <span key={day.date} className={classes.weekday} aria-hidden>{weekdayOf(day.date, lang)}</span>)}
      {days.map((day) => (day.date > today ? <span key={day.date} className={classes.coming} aria-hidden>{dayNumber(day.date)}</span> : <DayCell key={day.date} day={day} most={most} isToday={day.date === today} isChosen={day.date === chosen} onChoose={onChoose} />))}
    </div>
  )
}

const dayNumber = (date: string) => String(Number(date.slice(8)))

interface Fate {
  icon: Icon
  tone: string
}
/** The worst that happened decides what a day looks like. */
const FATES = {
  failed: { icon: IconCircleX, tone: 'var(--state-bad)' },
  missed: { icon: IconAlertTriangle, tone: 'var(--state-warn)' },
  skipped: { icon: IconPlayerSkipForward, tone: 'var(--state-wait)' },
  ran: { icon: IconCircleCheck, tone: 'var(--state-good)' },
} as const satisfies Record<string, Fate>
const worst = (day: Day): keyof typeof FATES | undefined => (['failed', 'missed', 'skipped', 'ran'] as const).find((each) => day[each] > 0)

function DayCell({ day, most, isToday, isChosen, onChoose }: { day: Day; most: number; isToday: boolean; isChosen: boolean; onChoose: (day: string) => void }) {
  const t = useT()
  const lang = language.use()
  const fate = worst(day)
  const text = `${day.date}: ${fate === undefined ? t('jobs.nothingPlanned') : t('jobs.dayTold', { planned: day.planned, ran: day.ran, failed: day.failed, skipped: day.skipped, missed: day.missed })}`
  const { icon: Icon, tone } = fate === undefined ? { icon: undefined, tone: 'transparent' } : FATES[fate]
  const count = fate === undefined ? '' : new Intl.NumberFormat(localeOf(lang), { notation: 'compact' }).format(day[fate])
  return (
    <Tooltip label={text}>
      <button type="button" className={classes.day} aria-pressed={isChosen} data-today={isToday || undefined} onClick={() => onChoose(day.date)}
        style={{ '--tone': tone, '--share': `${Math.round(12 + 30 * Math.sqrt(day.planned / most))}%` } as CSSProperties}>
        <span className="visually-hidden">{text}</span>
        <span className={classes.number} aria-hidden>{dayNumber(day.date)}</span>
        {Icon && <span className={classes.count} aria-hidden><Icon size={12} stroke={2.2} />{count}</span>}
      </button>
    </Tooltip>
  )
}

function Legend() {
  const t = useT()
  const names = { failed: t('jobs.failed'), missed: t('states.missed'), skipped: t('states.skipped'), ran: t('jobs.ran') }
  return (
    <Group gap="sm" mt={8} fz="xs" c="dimmed">
      {Object.entries(FATES).reverse().map(([name, { icon: Icon, tone }]) => (
        <Group key={name} gap={4} wrap="nowrap"><Icon size={13} stroke={2.2} color={tone} aria-hidden />{names[name as keyof typeof FATES]}</Group>
      ))}
    </Group>
  )
}
