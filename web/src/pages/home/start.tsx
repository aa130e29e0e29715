/** In place of empty lists: what to do first. */
import { Button, Code, CopyButton, Group, Paper, SimpleGrid, Stack, Text, Title } from '@mantine/core'
import { IconCheck, IconCopy, IconListDetails, IconSitemap, IconTerminal2, type Icon } from '@tabler/icons-react'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { asCurl, request } from '@/api/client'
import { useT } from '@/i18n'
import classes from './home.module.css'

/** Something that works on every machine: Ksana calls itself. */
const example = () =>
  asCurl(request('POST', '/api/v1/tasks', { body: { name: 'ping', cron_expr: '*/10 * * * * *', target_url: `${window.location.origin}/health` } }))

export function Start() {
  const t = useT()
  return (
    <Stack gap="lg" className={classes.start}>
      <div>
        <Title order={2} fz={18}>{t('home.welcome')}</Title>
        <Text c="dimmed" mt={4}>{t('home.welcomeHint')}</Text>
      </div>
      <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="md">
        <Way icon={IconListDetails} title={t('home.firstJob')} text={t('home.firstJobHint')}>
          <Button component={Link} to="/jobs/new">{t('app.newJob')}</Button>
        </Way>
        <Way icon={IconSitemap} title={t('home.firstWorkflow')} text={t('home.firstWorkflowHint')}>
          <Button component={Link} to="/workflows/new" variant="default">{t('app.newWorkflow')}</Button>
        </Way>
      </SimpleGrid>
      <Way icon={IconTerminal2} title={t('home.byShell')} text={t('home.byShellHint')}>
        <Code block className={classes.command}>{example()}</Code>
        <CopyButton value={example()}>
          {({ copied, copy }) => (
            <Button variant="default" size="xs" leftSection={copied ? <IconCheck size={14} /> : <IconCopy size={14} />} onClick={copy}>{copied ? t('app.copied') : t('app.copy')}</Button>
          )}
        </CopyButton>
      </Way>
    </Stack>
  )
}

function Way({ icon: Shown, title, text, children }: { icon: Icon; title: string; text: string; children: ReactNode }) {
  return (
    <Paper withBorder p="lg">
      <Stack gap="sm" align="flex-start" h="100%">
        <Group gap={10}><Shown size={20} stroke={1.6} className={classes.ink} aria-hidden /><Title order={3} fz={15}>{title}</Title></Group>
        <Text size="sm" c="dimmed" flex={1}>{text}</Text>
        {children}
      </Stack>
    </Paper>
  )
}
