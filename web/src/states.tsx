/** The one place for states: what each name that the API shows looks like, and how it is called. */
import { Box } from '@mantine/core'
import {
  IconAlertTriangle, IconArrowBackUp, IconBan, IconCalendarEvent, IconCircleCheck, IconCircleDashed, IconCircleX, IconClockPause, IconClockX,
  IconCloudOff, IconDoorExit, IconHeartbeat, IconHourglass, IconLoader2, IconLock, IconPlayerPause, IconPlayerSkipForward, IconPlayerStop,
  IconPlaylist, IconPhoneIncoming, IconQuestionMark, IconRefresh, IconSquareX, IconUsersGroup, type Icon,
} from '@tabler/icons-react'
import { type Key, useT } from './i18n'
import classes from './states.module.css'

/** Colours that stay apart for the colour-blind, and never alone: each state has its own icon and its word. */
export type Tone = 'good' | 'bad' | 'warn' | 'busy' | 'wait' | 'off'
export interface Look {
  icon: Icon
  text: Key
  tone: Tone
  /** It goes on changing by itself. */
  moving?: boolean
}

const look = (icon: Icon, text: Key, tone: Tone, moving = false): Look => ({ icon, text, tone, moving })

export const LOOKS: Readonly<Record<string, Look>> = {
  // runs and nodes
  PENDING: look(IconCircleDashed, 'states.pending', 'wait'),
  SCHEDULED: look(IconCalendarEvent, 'states.scheduled', 'wait'),
  QUEUED: look(IconPlaylist, 'states.queued', 'wait'),
  RUNNING: look(IconLoader2, 'states.running', 'busy', true),
  RETRYING: look(IconRefresh, 'states.retrying', 'warn', true),
  CALLBACK_PENDING: look(IconPhoneIncoming, 'states.callbackPending', 'busy'),
  DELEGATED: look(IconUsersGroup, 'states.delegated', 'busy'),
  SUCCESS: look(IconCircleCheck, 'states.success', 'good'),
  CALLBACK_SUCCESS: look(IconCircleCheck, 'states.callbackSuccess', 'good'),
  FAILED: look(IconCircleX, 'states.failed', 'bad'),
  TIMEOUT: look(IconClockX, 'states.timeout', 'bad'),
  FAILED_TIMEOUT: look(IconClockX, 'states.failedTimeout', 'bad'),
  CANCELED: look(IconBan, 'states.canceled', 'off'),
  STOPPING: look(IconPlayerStop, 'states.stopping', 'warn', true),
  STOPPED: look(IconPlayerStop, 'states.stopped', 'off'),
  SKIPPED: look(IconPlayerSkipForward, 'states.skipped', 'off'),
  CLOSED: look(IconSquareX, 'states.closed', 'off'),
  // schedules and their instants
  ACTIVE: look(IconCalendarEvent, 'states.active', 'good'),
  PAUSED: look(IconPlayerPause, 'states.paused', 'warn'),
  PARKED: look(IconAlertTriangle, 'states.parked', 'bad'),
  FINISHED: look(IconCircleCheck, 'states.finished', 'off'),
  FIRED: look(IconCircleCheck, 'states.fired', 'good'),
  MISSED: look(IconClockX, 'states.missed', 'warn'),
  // plans and tenants' tasks
  READY: look(IconCircleDashed, 'states.ready', 'wait'),
  COMPLETED: look(IconCircleCheck, 'states.completed', 'good'),
  CANCELLED: look(IconBan, 'states.canceled', 'off'),
  CREATED: look(IconCircleDashed, 'states.created', 'wait'),
  WAITING_FOR_LOCK: look(IconLock, 'states.waitingForLock', 'wait'),
  // instances
  ALIVE: look(IconHeartbeat, 'states.alive', 'good'),
  LEFT: look(IconDoorExit, 'states.left', 'off'),
  DEAD: look(IconCloudOff, 'states.dead', 'bad'),
  // attempts
  SUCCEEDED: look(IconCircleCheck, 'states.succeeded', 'good'),
  TIMED_OUT: look(IconClockX, 'states.timedOut', 'bad'),
  AWAITING_CALLBACK: look(IconPhoneIncoming, 'states.awaitingCallback', 'busy'),
  LOST: look(IconCloudOff, 'states.lost', 'bad'),
  HANDED_BACK: look(IconArrowBackUp, 'states.handedBack', 'off'),
  // callbacks
  RECEIVED: look(IconPhoneIncoming, 'states.received', 'good'),
  IGNORED: look(IconBan, 'states.ignored', 'off'),
  // definitions
  ENABLED: look(IconCircleCheck, 'states.enabled', 'good'),
  DISABLED: look(IconClockPause, 'states.disabled', 'off'),
  WAITING: look(IconHourglass, 'states.pending', 'wait'),
}
const UNKNOWN = look(IconQuestionMark, 'states.unknown', 'off')

/** What runs of jobs and workflows can be, for filters. */
export const RUN_STATES = [
  'RUNNING', 'SCHEDULED', 'PENDING', 'RETRYING', 'CALLBACK_PENDING', 'STOPPING',
  'SUCCESS', 'CALLBACK_SUCCESS', 'FAILED', 'TIMEOUT', 'FAILED_TIMEOUT', 'CANCELED', 'STOPPED', 'SKIPPED', 'CLOSED',
] as const
/** Those that count as failures. */
export const FAILED_STATES = ['FAILED', 'TIMEOUT', 'FAILED_TIMEOUT'] as const
const ENDED = new Set(['SUCCESS', 'CALLBACK_SUCCESS', 'FAILED', 'TIMEOUT', 'FAILED_TIMEOUT', 'CANCELED', 'STOPPED', 'SKIPPED', 'CLOSED', 'COMPLETED', 'CANCELLED'])
export const hasEnded = (status: string) => ENDED.has(status)
export const lookOf = (status: string): Look => LOOKS[status.toUpperCase()] ?? UNKNOWN
/** The colour of a state, for bars and graphs. */
export const colourOf = (status: string) => `var(--state-${lookOf(status).tone})`

export function useStateText() {
  const t = useT()
  return (status: string) => (lookOf(status) === UNKNOWN ? status : t(lookOf(status).text))
}

/** Icon, word and colour of a state. `compact` shows the icon alone, with the word for who hovers or cannot see it. */
export function StateBadge({ status, compact = false }: { status: string; compact?: boolean }) {
  const text = useStateText()(status)
  const { icon: Icon, tone, moving } = lookOf(status)
  return (
    <Box component="span" className={classes.badge} data-tone={tone} data-compact={compact || undefined} title={compact ? text : undefined}>
      <Icon size={15} stroke={2.2} className={moving ? classes.moving : undefined} aria-hidden />
      {compact ? <span className="visually-hidden">{text}</span> : text}
    </Box>
  )
}
