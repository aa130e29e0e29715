/** Schedules of one thing, each with its next instants and what can be done about it. */
import { Code, Group, Paper, Text } from '@mantine/core'
import { IconPlayerPause, IconPlayerPlay } from '@tabler/icons-react'
import type { ReactNode } from 'react'
import { request } from '@/api/client'
import type { Schedule } from '@/api/shapes'
import { useT } from '@/i18n'
import { Action } from '@/parts/actions'
import { StateBadge } from '@/states'
import { NextInstants } from './instants'
import classes from './schedule.module.css'
import { TOUCHES } from './touches'
import { useScheduleWords } from './words'

interface CardsProps {
  schedules: readonly Schedule[]
  /** More orders than to pause and to resume it. */
  orders?: (schedule: Schedule) => ReactNode
}

export function ScheduleCards({ schedules, orders }: CardsProps) {
  return <div className={classes.cards}>{schedules.map((schedule) => <Card key={schedule.id} schedule={schedule}>{orders?.(schedule)}</Card>)}</div>
}

function Card({ schedule, children }: { schedule: Schedule; children: ReactNode }) {
  const words = useScheduleWords()
  return (
    <Paper withBorder p="sm" className={classes.card}>
      <Group justify="space-between" gap="xs" wrap="nowrap" align="flex-start" mb="xs">
        <div>
          <Text fw={600}>{words(schedule)}</Text>
          <Text size="xs" c="dimmed"><Code>{schedule.cron ?? schedule.every ?? schedule.kind}</Code> {schedule.timezone}</Text>
        </div>
        <StateBadge status={schedule.status} />
      </Group>
      {schedule.error && <Text size="sm" c="var(--state-bad)" mb="xs">{schedule.error}</Text>}
      {schedule.status !== 'FINISHED' && <NextInstants scheduleId={schedule.id} />}
      <Group mt="auto" pt="sm" gap="xs"><HoldSchedule schedule={schedule} />{children}</Group>
    </Paper>
  )
}

const HELD = new Set(['PAUSED', 'PARKED'])

/** Pauses or resumes it; nothing for one that has ended. */
export function HoldSchedule({ schedule: { id, status }, primary }: { schedule: Schedule; primary?: boolean }) {
  const t = useT()
  const path = { id }
  if (HELD.has(status)) return <Action label={t('schedules.resume')} icon={IconPlayerPlay} primary={primary} call={() => request('POST', '/api/v1/schedules/{id}/resume', { path })} touches={TOUCHES} />
  if (status !== 'ACTIVE') return null
  return <Action label={t('schedules.pause')} icon={IconPlayerPause} call={() => request('POST', '/api/v1/schedules/{id}/pause', { path })} touches={TOUCHES} />
}
