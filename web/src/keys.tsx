/**
 * Keys that work everywhere. A page's list takes j, k, Enter and x by `useListKeys` (Table does it by itself);
 * an input with `data-filter` is where `/` leads.
 */
import { Group, Kbd, Modal, Stack, Text } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { Fragment, useEffect, useRef } from 'react'
import { type Key, useT } from './i18n'

type Handlers = Readonly<Record<string, (event: KeyboardEvent) => void>>

const TYPING = 'input, textarea, select, [contenteditable="true"], [role="dialog"] *'

/** While it is shown, each key (`j`, `?`, `Enter`) does its thing, unless somebody types or a dialog is open. */
export function useKeys(handlers: Handlers): void {
  const latest = useRef(handlers)
  useEffect(() => {
    latest.current = handlers
  })
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return
      if ((event.target as Element | null)?.closest?.(TYPING)) return
      latest.current[event.key]?.(event)
    }
    window.addEventListener('keydown', pressed)
    return () => window.removeEventListener('keydown', pressed)
  }, [])
}

/** ⌘K where it is ⌘, else Ctrl-K: from everywhere, also out of an input. */
export function usePaletteKey(open: () => void): void {
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== 'k' || !(event.metaKey || event.ctrlKey) || event.altKey || event.shiftKey) return
      event.preventDefault()
      open()
    }
    window.addEventListener('keydown', pressed)
    return () => window.removeEventListener('keydown', pressed)
  }, [open])
}

export const isApple = /Mac|iP(hone|ad)/.test(window.navigator.platform)

function focusFilter(event: KeyboardEvent): void {
  const filter = document.querySelector<HTMLInputElement>('[data-filter]')
  if (filter === null) return
  event.preventDefault()
  filter.focus()
  filter.select()
}

const HELP: readonly [string[], Key][] = [
  [[isApple ? '⌘' : 'Ctrl', 'K'], 'app.keyPalette'],
  [['/'], 'app.keyFilter'],
  [['j'], 'app.keyDown'],
  [['k'], 'app.keyUp'],
  [['Enter'], 'app.keyOpen'],
  [['x'], 'app.keySelect'],
  [['?'], 'app.keyHelp'],
]

/** `?` and `/`, once for the whole application. */
export function GlobalKeys() {
  const t = useT()
  const [opened, { open, close }] = useDisclosure(false)
  useKeys({ '?': open, '/': focusFilter })
  return (
    <Modal opened={opened} onClose={close} title={t('app.keys')} closeButtonProps={{ 'aria-label': t('app.close') }}>
      <Stack gap="xs">
        {HELP.map(([keys, text]) => (
          <Group key={text} justify="space-between">
            <Text size="sm">{t(text)}</Text>
            <Group gap={4}>
              {keys.map((each) => (
                <Fragment key={each}><Kbd>{each}</Kbd></Fragment>
              ))}
            </Group>
          </Group>
        ))}
      </Stack>
    </Modal>
  )
}
