/** Asks before what was typed is lost. */
import { Button, Group, Modal, Text } from '@mantine/core'
import { useBlocker } from '@tanstack/react-router'
import type { RefObject } from 'react'
import { useT } from '@/i18n'

/** `left` is set by who leaves with everything saved. */
export function Leaving({ changed, left }: { changed: boolean; left: RefObject<boolean> }) {
  const t = useT()
  const asked = useBlocker({ shouldBlockFn: () => changed && !left.current, enableBeforeUnload: () => changed && !left.current, withResolver: true })
  return (
    <Modal opened={asked.status === 'blocked'} onClose={() => asked.reset?.()} title={t('jobs.leaveTitle')} closeButtonProps={{ 'aria-label': t('app.close') }}>
      <Text size="sm">{t('jobs.leaveTold')}</Text>
      <Group justify="flex-end" gap="xs" mt="md">
        <Button variant="default" size="xs" onClick={() => asked.proceed?.()}>{t('jobs.leave')}</Button>
        <Button size="xs" onClick={() => asked.reset?.()} data-autofocus>{t('jobs.stay')}</Button>
      </Group>
    </Modal>
  )
}
