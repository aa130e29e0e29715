/** Orders to many tenants: one call for each, and a list of those that were refused. */
import { ActionIcon, Button, Code, Group, Menu, Modal, Progress, Stack, Text, TextInput } from '@mantine/core'
import { useClipboard, useDisclosure } from '@mantine/hooks'
import { notifications } from '@mantine/notifications'
import { useQueryClient } from '@tanstack/react-query'
import { IconChevronDown, IconCopy, IconPlayerPause, IconPlayerPlay, IconRefresh, IconTerminal2, type Icon } from '@tabler/icons-react'
import { useState } from 'react'
import { type Call, Refusal, asCli, asCurl, request, send } from '@/api/client'
import { type Key, useT } from '@/i18n'
import { FromCheckpoint } from './plan-actions'
import classes from './plan.module.css'

type Order = 'pause' | 'resume' | 'retry'
const ORDERS: readonly (readonly [Order, Icon, Key])[] = [
  ['pause', IconPlayerPause, 'plans.pauseMany'], ['resume', IconPlayerPlay, 'plans.resumeMany'], ['retry', IconRefresh, 'plans.retryMany'],
]
/** So many calls are under way at a time. */
const AT_ONCE = 4

export function BulkActions({ planId, tenants, done }: { planId: string; tenants: readonly string[]; done: () => void }) {
  const t = useT()
  if (tenants.length === 0) return null
  return (
    <Group gap="xs" mb="sm">
      <Text size="sm" c="dimmed">{t('app.selected', { n: tenants.length })}</Text>
      {ORDERS.map(([order, icon, ask]) => <BulkAction key={order} order={order} icon={icon} ask={ask} planId={planId} tenants={tenants} done={done} />)}
      <Button size="xs" variant="subtle" color="gray" onClick={done}>{t('plans.clearSelection')}</Button>
    </Group>
  )
}

interface BulkProps {
  order: Order
  icon: Icon
  ask: Key
  planId: string
  tenants: readonly string[]
  done: () => void
}

function BulkAction({ order, icon: Shown, ask, planId, tenants, done }: BulkProps) {
  const t = useT()
  const [opened, { open, close }] = useDisclosure(false)
  const [reason, setReason] = useState('')
  const [fromCheckpoint, setFromCheckpoint] = useState(true)
  const { sent, refused, busy, sendAll, reset } = useMany()
  const calls = tenants.map((tenantId) => orderTo(planId, tenantId, order, { reason: reason || undefined, ...(order === 'retry' && { fromCheckpoint }) }))
  const act = async () => {
    if ((await sendAll(tenants, calls)) > 0) return
    notifications.show({ message: t('plans.orderDone', { done: tenants.length, n: tenants.length }) })
    leave(true)
  }
  const leave = (all: boolean) => {
    close()
    reset()
    setReason('')
    if (all) done()
  }
  const over = sent > 0 && !busy
  return (
    <>
      <Button.Group>
        <Button size="xs" variant="default" leftSection={<Shown size={15} />} onClick={open}>{t(`plans.${order}`)}</Button>
        <CopyAll label={t(`plans.${order}`)} calls={calls} />
      </Button.Group>
      <Modal opened={opened} onClose={() => leave(over)} title={t(ask, { n: tenants.length })} closeButtonProps={{ 'aria-label': t('app.close') }} closeOnClickOutside={!busy} closeOnEscape={!busy}>
        <Stack>
          {!over && <TextInput label={t('app.reason')} description={t('app.reasonHint')} value={reason} onChange={(event) => setReason(event.currentTarget.value)} data-autofocus />}
          {!over && order === 'retry' && <FromCheckpoint value={fromCheckpoint} onChange={setFromCheckpoint} />}
          {busy && <Progress value={(sent * 100) / tenants.length} aria-label={t('plans.orderDone', { done: sent, n: tenants.length })} />}
          {over ? <Outcome refused={refused} of={tenants.length} /> : <Text size="xs" c="dimmed">{t('plans.oneCallEach')}</Text>}
          <Group justify="flex-end" gap="xs">
            {over ? <Button onClick={() => leave(true)}>{t('app.close')}</Button> : (
              <><Button variant="default" onClick={() => leave(false)} disabled={busy}>{t('app.cancel')}</Button><Button loading={busy} onClick={() => void act()}>{t(`plans.${order}`)}</Button></>
            )}
          </Group>
        </Stack>
      </Modal>
    </>
  )
}

function orderTo(planId: string, tenantId: string, order: Order, body: { reason?: string; fromCheckpoint?: boolean }): Call {
  const which = { path: { tenantId }, query: { planId }, body }
  if (order === 'retry') return request('POST', '/api/v1/tenants/{tenantId}/task:retry', which)
  return request('POST', `/api/v1/tenants/{tenantId}/task:${order}`, which)
}

interface Refused {
  tenant: string
  error: Refusal
}

/** Sends them all, a few at a time; a refusal holds up no other. */
function useMany() {
  const client = useQueryClient()
  const [sent, setSent] = useState(0)
  const [refused, setRefused] = useState<readonly Refused[]>([])
  const [busy, setBusy] = useState(false)
  const sendAll = async (tenants: readonly string[], calls: readonly Call[]): Promise<number> => {
    setBusy(true)
    const told: Refused[] = []
    const left = calls.map((call, index) => ({ call, tenant: tenants[index]! }))
    const worker = async () => {
      for (let next = left.shift(); next !== undefined; next = left.shift()) {
        const { call, tenant } = next
        await send(call).catch((error: unknown) => told.push({ tenant, error: asRefusal(error) }))
        setSent((before) => before + 1)
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, worker))
    await client.invalidateQueries({ queryKey: ['plan'] })
    setRefused(told)
    setBusy(false)
    return told.length
  }
  const reset = () => {
    setSent(0)
    setRefused([])
  }
  return { sent, refused, busy, sendAll, reset }
}

const asRefusal = (error: unknown) => (error instanceof Refusal ? error : new Refusal(0, 'UNREACHABLE', String(error)))

function Outcome({ refused, of }: { refused: readonly Refused[]; of: number }) {
  const t = useT()
  return (
    <Stack gap="xs" role="status">
      <Text size="sm" fw={500}>{t('plans.orderDone', { done: of - refused.length, n: of })}</Text>
      {refused.length > 0 && <Text size="sm">{t('plans.refusedSome', { n: refused.length })}</Text>}
      <ul className={classes.refused} tabIndex={0}>
        {refused.map(({ tenant, error }) => <li key={tenant}><b>{tenant}</b> <Code>{error.code}</Code><br />{error.message}</li>)}
      </ul>
    </Stack>
  )
}

function CopyAll({ label, calls }: { label: string; calls: readonly Call[] }) {
  const t = useT()
  const { copy } = useClipboard()
  const take = (lines: readonly (string | undefined)[]) => {
    copy(lines.join('\n'))
    notifications.show({ message: t('app.copied') })
  }
  return (
    <Menu position="bottom-end" withinPortal>
      <Menu.Target><ActionIcon variant="default" size={30} aria-label={t('app.more', { name: label })}><IconChevronDown size={14} /></ActionIcon></Menu.Target>
      <Menu.Dropdown>
        <Menu.Item leftSection={<IconCopy size={14} />} onClick={() => take(calls.map(asCurl))}>{t('plans.copyAllCurl')}</Menu.Item>
        <Menu.Item leftSection={<IconTerminal2 size={14} />} onClick={() => take(calls.map(asCli))}>{t('plans.copyAllCli')}</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  )
}
