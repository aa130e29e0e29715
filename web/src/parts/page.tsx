/** What every page begins with, and what it shows when there is nothing, or something went wrong. */
import { Alert, Box, Button, Code, Group, Loader, Paper, Stack, Text, Title } from '@mantine/core'
import { useDocumentTitle } from '@mantine/hooks'
import { IconAlertCircle, IconInbox, type Icon } from '@tabler/icons-react'
import type { ReactNode } from 'react'
import { Refusal } from '@/api/client'
import { useT } from '@/i18n'
import classes from './page.module.css'

/** The page's one heading; it is the window's title, too, unless that is to say more. `children` are its buttons. */
export function PageTitle({ title, windowTitle, before, children }: { title: string; windowTitle?: string; before?: ReactNode; children?: ReactNode }) {
  useDocumentTitle(`${windowTitle ?? title} · Ksana`)
  return (
    <Group justify="space-between" mb="md" mih={36} gap="sm">
      <Group gap="sm" miw={0} className={classes.title}>
        <Title order={1}>{title}</Title>
        {before}
      </Group>
      {children && <Group gap="xs">{children}</Group>}
    </Group>
  )
}

/** A refusal as Ksana said it: its code, the field, the request. */
export function ErrorBox({ error, retry }: { error: Error; retry?: () => void }) {
  const t = useT()
  const told = error instanceof Refusal ? error : undefined
  return (
    <Alert className={classes.error} variant="default" icon={<IconAlertCircle />} title={told?.code ?? t('app.crashed')} role="alert" data-told tabIndex={-1}>
      <Stack gap={6} align="flex-start">
        <Text size="sm">{told?.status === 0 ? t('app.unreachable') : error.message}</Text>
        {told?.field && <Text size="sm">{t('app.field')}: <Code>{told.field}</Code></Text>}
        {told?.requestId && <Text size="xs" c="dimmed">{t('app.requestId')} {told.requestId}</Text>}
        {retry && <Button size="xs" variant="default" onClick={retry}>{t('app.retry')}</Button>}
      </Stack>
    </Alert>
  )
}

export function EmptyState({ title, hint, icon: Shown = IconInbox, children }: { title: string; hint?: string; icon?: Icon; children?: ReactNode }) {
  return (
    <Stack align="center" gap={6} py={56} px="md">
      <Shown size={36} stroke={1.2} className={classes.faint} aria-hidden />
      <Text fw={600}>{title}</Text>
      {hint && <Text size="sm" c="dimmed" ta="center" maw={440}>{hint}</Text>}
      {children}
    </Stack>
  )
}

export function Loading() {
  const t = useT()
  return (
    <Box py={56} ta="center" data-loading role="status" aria-label={t('app.loading')}>
      <Loader size="sm" type="dots" />
    </Box>
  )
}

/** A figure with its name. With `link`, a whole tile leads somewhere: give it a TanStack Link as child. */
export function Tile({ label, value, hint, tone }: { label: string; value: ReactNode; hint?: ReactNode; tone?: string }) {
  return (
    <Paper withBorder className={classes.tile} style={tone ? { borderInlineStartColor: tone, borderInlineStartWidth: 3 } : undefined}>
      <Text size="xs" c="dimmed">{label}</Text>
      <Text className={classes.figure}>{value}</Text>
      {hint && <Text size="xs" c="dimmed">{hint}</Text>}
    </Paper>
  )
}

/** A titled part of a page. */
export function Section({ title, actions, children }: { title: string; actions?: ReactNode; children: ReactNode }) {
  return (
    <Box component="section" mt="lg">
      <Group justify="space-between" mb="xs">
        <Title order={2}>{title}</Title>
        {actions}
      </Group>
      {children}
    </Box>
  )
}
