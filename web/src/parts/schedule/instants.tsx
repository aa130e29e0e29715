/** The next instants of a schedule, saved or not, in its own zone; and what it does when the clocks of that zone change. */
import { Box, Group, Loader, Stack, Text } from '@mantine/core'
import { IconClockUp, IconClockDown } from '@tabler/icons-react'
import { type Schemas, request } from '@/api/client'
import { useAnswer } from '@/api/queries'
import { type Key, language, useT } from '@/i18n'
import { absolute, dayOf, relative, useTicking, useZone, weekdayOf } from '@/time'
import { useRolling } from './preview'
import classes from './schedule.module.css'

type Answer = Schemas['InstantsShown']
type Planned = Answer['instants'][number]
type Change = NonNullable<Answer['clockChange']>

/** The next ten of a saved schedule, asked for anew when the first has passed. */
export function NextInstants({ scheduleId }: { scheduleId: string }) {
  const answer = useAnswer('schedules', request('GET', '/api/v1/schedules/{id}/next', { path: { id: scheduleId }, query: { count: 10 } }))
  useRolling(answer)
  return answer.data === undefined ? <Loader size="xs" type="dots" /> : <Instants answer={answer.data} />
}

export function Instants({ answer: { instants, clockChange, timezone } }: { answer: Answer }) {
  const t = useT()
  const shown = clockChange && clockChange.instants.length > 0 ? clockChange : null
  return (
    <Stack gap="md">
      {instants.length === 0 ? <Text size="sm" c="dimmed">{t('schedules.noInstants')}</Text> : (
        <ol className={classes.instants} aria-label={t('schedules.nextInstants')}>{instants.map((each) => <InstantRow key={each.planned} planned={each} zone={timezone} />)}</ol>
      )}
      {shown && <ClockChange change={shown} zone={timezone} />}
    </Stack>
  )
}

/** Always by the schedule's clock, which is what it was written for; who hovers reads it by theirs. */
function InstantRow({ planned: { planned, firesAt }, zone }: { planned: Planned; zone: string }) {
  const t = useT()
  const lang = language.use()
  const chosen = useZone(zone)
  const ago = useTicking((now) => relative(Date.parse(planned), now, lang))
  const late = firesAt !== null && firesAt !== planned ? t('schedules.withJitter', { at: absolute(firesAt, zone) }) : undefined
  return (
    <li>
      <Text span inherit c="dimmed">{weekdayOf(dayOf(planned, zone), lang)}</Text>
      <time dateTime={planned} title={[absolute(planned, chosen), late].filter(Boolean).join(' · ')}>{absolute(planned, zone)}</time>
      <Text span inherit c="dimmed">{ago}</Text>
    </li>
  )
}

const EFFECTS: Readonly<Record<Change['effect'], Key>> = {
  NONE: 'schedules.effectNone', ONCE_AFTER: 'schedules.effectOnceAfter', ONCE_FIRST: 'schedules.effectOnceFirst', LEFT_OUT: 'schedules.effectLeftOut', TWICE: 'schedules.effectTwice',
}

function ClockChange({ change, zone }: { change: Change; zone: string }) {
  const t = useT()
  const forward = change.after.slice(0, 19) > change.before.slice(0, 19)
  const Shown = forward ? IconClockUp : IconClockDown
  const first = change.instants.findIndex(({ planned }) => planned >= change.at)
  const split = first < 0 ? change.instants.length : first
  const rows = (part: readonly Planned[]) => part.map((each) => <InstantRow key={each.planned} planned={each} zone={zone} />)
  const clock = (text: string) => text.slice(11, 16)
  return (
    <Box component="section" aria-label={t('schedules.clockChange')}>
      <Text size="sm" fw={600} mb={2}>{t('schedules.clockChange')}</Text>
      <Text size="sm" mb={6}>{t(EFFECTS[change.effect])}</Text>
      <ol className={classes.instants}>
        {rows(change.instants.slice(0, split))}
        <li className={classes.change}>
          <Group gap={6} wrap="nowrap">
            <Shown size={15} aria-hidden />
            <span>{t(forward ? 'schedules.clockForward' : 'schedules.clockBack', { day: change.before.slice(0, 10), before: clock(change.before), after: clock(change.after) })}</span>
          </Group>
        </li>
        {rows(change.instants.slice(split))}
      </ol>
    </Box>
  )
}
