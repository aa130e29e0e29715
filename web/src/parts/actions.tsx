/** A button that changes something: asks first where that is wise, and can be copied as curl or as a command. */
import { ActionIcon, Button, Group, Menu, Modal, Stack, Text, TextInput } from '@mantine/core'
import { useClipboard, useDisclosure } from '@mantine/hooks'
import { notifications } from '@mantine/notifications'
import { IconChevronDown, IconCopy, IconDots, IconTerminal2, type Icon } from '@tabler/icons-react'
import { type FormEvent, type ReactNode, useState } from 'react'
import { type Call, type Refusal, asCli, asCurl } from '@/api/client'
import { type Topic, useSend } from '@/api/queries'
import { useT } from '@/i18n'
import { ErrorBox } from './page'

interface ActionProps<T> {
  label: string
  icon?: Icon
  /** What it sends; given the reason where one was asked for. */
  call: (reason: string) => Call<T>
  /** What is fetched anew at once. */
  touches: readonly Topic[]
  /** The question to ask first; without it, the button acts at once. */
  confirm?: string
  /** Asks for a reason, too. */
  reason?: boolean
  danger?: boolean
  primary?: boolean
  disabled?: boolean
  /** Further fields of the dialog, which may show why it was refused; `call` knows what is in them. */
  children?: ReactNode | ((error: Refusal | null) => ReactNode)
  /** False while what is in them cannot be sent. */
  ready?: boolean
  done?: (answer: T) => void
}

/** Menu entries that copy a call. */
export function CopyCall({ call }: { call: Call }) {
  const t = useT()
  const { copy } = useClipboard()
  const take = (text: string) => {
    copy(text)
    notifications.show({ message: t('app.copied') })
  }
  const command = asCli(call)
  return (
    <>
      <Menu.Item leftSection={<IconCopy size={14} />} onClick={() => take(asCurl(call))}>{t('app.copyCurl')}</Menu.Item>
      {command && <Menu.Item leftSection={<IconTerminal2 size={14} />} onClick={() => take(command)}>{t('app.copyCli')}</Menu.Item>}
    </>
  )
}

interface CallMenuProps {
  /** The button that it stands beside. */
  label: string
  /** None while there is nothing to send: its place is kept. */
  calls: readonly Call[]
  variant?: 'default' | 'filled'
  color?: string
}

/** The arrow beside a button: what that sends, to be copied. */
export function CallMenu({ label, calls, variant = 'default', color }: CallMenuProps) {
  const t = useT()
  return (
    <Menu position="bottom-end" withinPortal>
      <Menu.Target>
        <ActionIcon variant={variant} color={color} size={30} disabled={calls.length === 0} aria-label={t('app.more', { name: label })}><IconChevronDown size={14} /></ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>{calls.map((call, index) => <LabelledCall key={`${index} ${call.method} ${call.path}`} call={call} label={calls.length > 1 ? `${call.method} ${call.path}` : undefined} />)}</Menu.Dropdown>
    </Menu>
  )
}

function LabelledCall({ call, label }: { call: Call; label?: string }) {
  return <>{label && <Menu.Label>{label}</Menu.Label>}<CopyCall call={call} /></>
}

export interface RowAction {
  label: string
  icon: Icon
  call: Call
  touches: readonly Topic[]
  /** What to say when it is done. */
  done?: string
}

/** The dots at the end of a row: what can be done with it at once, each of which can be copied as a call. */
export function RowMenu({ name, actions }: { name: string; actions: readonly RowAction[] }) {
  const t = useT()
  return (
    <span onClick={(event) => event.stopPropagation()}>
      <Menu position="bottom-end" withinPortal>
        <Menu.Target>
          <ActionIcon variant="subtle" color="gray" size={28} aria-label={t('app.more', { name })}><IconDots size={16} /></ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          {actions.map((action) => <RowItem key={action.label} action={action} />)}
          <Menu.Divider />
          {actions.map((action) => <LabelledCall key={action.label} call={action.call} label={action.label} />)}
        </Menu.Dropdown>
      </Menu>
    </span>
  )
}

function RowItem({ action: { label, icon: Shown, call, touches, done } }: { action: RowAction }) {
  const change = useSend(touches)
  const act = () => told(change, call, () => done && notifications.show({ message: done }), complain)
  return <Menu.Item leftSection={<Shown size={14} />} onClick={act}>{label}</Menu.Item>
}

/** Sends it, and tells what came of it also when the button is gone by then: what it changed may leave nothing for it to do. */
function told<T>(change: ReturnType<typeof useSend<T>>, call: Call<T>, done: (answer: T) => unknown, refused: (error: Refusal) => unknown): void {
  void change.mutateAsync(call).then(done, refused)
}

const complain = (error: Refusal) => notifications.show({ color: 'red', title: error.code, message: error.message })

export function Action<T>(props: ActionProps<T>) {
  const { label, icon: Shown, call, confirm, danger, primary, disabled, ready = true } = props
  const t = useT()
  const [opened, { open, close }] = useDisclosure(false)
  const [reason, setReason] = useState('')
  const change = useSend<T>(props.touches)
  const finish = (answer: T) => {
    close()
    setReason('')
    props.done?.(answer)
  }
  const act = () => told(change, call(reason), finish, (error) => confirm || complain(error))
  const submit = (event: FormEvent) => {
    event.preventDefault()
    // Nor is it for a form that the button may stand in.
    event.stopPropagation()
    if (ready && !change.isPending) act()
  }
  const look = { size: 'xs', variant: primary ? 'filled' : 'default', color: danger && primary ? 'red' : undefined } as const
  return (
    <>
      <Button.Group>
        <Button {...look} leftSection={Shown && <Shown size={15} />} disabled={disabled} loading={change.isPending && !opened} onClick={confirm ? open : act}>
          {label}
        </Button>
        <CallMenu label={label} calls={[call(reason)]} variant={look.variant} color={look.color} />
      </Button.Group>
      <Modal opened={opened} onClose={close} title={confirm} closeButtonProps={{ 'aria-label': t('app.close') }}>
        <form onSubmit={submit} noValidate>
          <Stack>
            {typeof props.children === 'function' ? props.children(change.error) : props.children}
            {props.reason && <TextInput label={t('app.reason')} description={t('app.reasonHint')} value={reason} onChange={(event) => setReason(event.currentTarget.value)} data-autofocus />}
            {change.error && <ErrorBox error={change.error} />}
            <Group justify="flex-end" gap="xs">
              <Button variant="default" onClick={close}>{t('app.cancel')}</Button>
              <Button type="submit" color={danger ? 'red' : undefined} loading={change.isPending} disabled={!ready} data-autofocus={props.reason ? undefined : true}>{label}</Button>
            </Group>
            <Text size="xs" c="dimmed" ff="monospace" style={{ overflowWrap: 'anywhere' }}>{asCurl(call(reason))}</Text>
          </Stack>
        </form>
      </Modal>
    </>
  )
}
