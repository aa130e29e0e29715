/** Orders to many runs at once: those that were chosen, or all that the filter finds. What they would do is counted first. */
import { Button, Group, List, Modal, Stack, Text } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { IconBan, IconRefresh } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { type Refusal, type Schemas, request, send } from '@/api/client'
import { useT } from '@/i18n'
import { Action } from '@/parts/actions'
import { TextLink } from '@/parts/link'
import { ErrorBox, Loading } from '@/parts/page'
import { RUN_STATES, hasEnded } from '@/states'
import classes from './list.module.css'
import type { RunsSearch } from './search'

type Which = Pick<Schemas['ManyBody'], 'ids' | 'filter' | 'cursor'>
type Ordered = Schemas['ManyOrdered']
type Wish = 'retry' | 'cancel'
const ICONS = { retry: IconRefresh, cancel: IconBan }
/** How many refusals are written out. */
const TOLD = 100

interface BulkProps {
  ids: string[]
  filter: Omit<RunsSearch, 'last' | 'sort'>
  /** What was chosen is dealt with. */
  done: () => void
}

export function BulkActions({ ids, filter, done }: BulkProps) {
  const t = useT()
  const [told, setTold] = useState<Ordered | null>(null)
  const finish = (ordered: Ordered) => {
    done()
    if (ordered.refused.length > 0) setTold(ordered)
    else notifications.show({ message: t('runs.manyDone', { n: ordered.done }) })
  }
  const which: Which = ids.length > 0 ? { ids } : { filter: filter as Which['filter'] }
  return (
    <>
      {ids.length > 0 && <Group gap={4}><Text size="sm" c="dimmed">{t('app.selected', { n: ids.length })}</Text><Button size="compact-xs" variant="subtle" color="gray" onClick={done}>{t('app.clear')}</Button></Group>}
      {wishesFor(ids, filter).map((wish) => <ManyAction key={`${wish} ${JSON.stringify(which)}`} wish={wish} which={which} finish={finish} />)}
      <Modal opened={told !== null} onClose={() => setTold(null)} title={t('runs.manyDone', { n: told?.done ?? 0 })} closeButtonProps={{ 'aria-label': t('app.close') }}>
        {told && <Refused of={told.refused} />}
      </Modal>
    </>
  )
}

/** By a filter, only what the states that it names allow; and none where it says nothing. */
function wishesFor(ids: string[], filter: BulkProps['filter']): Wish[] {
  if (ids.length > 0) return ['retry', 'cancel']
  if (Object.values(filter).every((value) => value === undefined)) return []
  const states: readonly string[] = filter.status ?? RUN_STATES
  return [...(states.some(hasEnded) ? (['retry'] as const) : []), ...(states.some((each) => !hasEnded(each)) ? (['cancel'] as const) : [])]
}

/** Of more than are taken at once, the next order goes on after the last of this one. */
function ManyAction({ wish, which: first, finish }: { wish: Wish; which: Which; finish: (ordered: Ordered) => void }) {
  const t = useT()
  const [possible, setPossible] = useState(0)
  const [cursor, setCursor] = useState<string | undefined>()
  const which = { ...first, cursor }
  const all = which.ids === undefined
  const name = wish === 'retry' ? (all ? t('runs.retryAll') : t('runs.retry')) : all ? t('runs.cancelAll') : t('runs.cancel')
  const label = cursor === undefined ? name : t('runs.goOn', { name })
  const ordered = (answer: Ordered) => {
    setCursor(answer.next ?? undefined)
    finish(answer)
  }
  const call = (reason: string, dryRun = false) => request('POST', `/api/v1/activity:${wish}`, { body: { ...which, reason: reason || undefined, dryRun } })
  return (
    <Action label={label} icon={ICONS[wish]} call={(reason) => call(reason)} touches={['activity', 'overview', 'failures']} confirm={label} reason danger={wish === 'cancel'} ready={possible > 0 || cursor !== undefined} done={ordered}>
      <DryRun wish={wish} which={which} count={setPossible} />
    </Action>
  )
}

/** What the order would do, asked for when the dialog opens. */
function DryRun({ wish, which, count }: { wish: Wish; which: Which; count: (possible: number) => void }) {
  const t = useT()
  const { data, error } = useQuery<Ordered, Refusal>({
    queryKey: ['dry run', wish, which],
    queryFn: async ({ signal }) => {
      const ordered = await send(request('POST', `/api/v1/activity:${wish}`, { body: { ...which, dryRun: true } }), signal)
      count(ordered.possible)
      return ordered
    },
    gcTime: 0,
    staleTime: Infinity,
  })
  if (error) return <ErrorBox error={error} />
  if (!data) return <Loading />
  return (
    <Stack gap="xs">
      <Text size="sm" role="status">{wish === 'retry' ? t('runs.wouldRetry', { n: data.possible }) : t('runs.wouldCancel', { n: data.possible })}</Text>
      {data.limited && <Text size="sm" c="dimmed">{t('runs.limited', { n: data.matched })}</Text>}
      {data.refused.length > 0 && <Refused of={data.refused} />}
    </Stack>
  )
}

function Refused({ of }: { of: Ordered['refused'] }) {
  const t = useT()
  return (
    <Stack gap={4}>
      <Text size="sm">{t('runs.refused', { n: of.length })}</Text>
      <List className={classes.refused} tabIndex={0}>
        {of.slice(0, TOLD).map(({ id, message }) => <List.Item key={id}><TextLink to="/runs/$runId" params={{ runId: id }}>{id}</TextLink>: {message}</List.Item>)}
        {of.length > TOLD && <List.Item>…</List.Item>}
      </List>
    </Stack>
  )
}
