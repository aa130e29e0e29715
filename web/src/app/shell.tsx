/** What is around every page: the navigation, the search, and the switches for zone, language and theme. */
import { AppShell, Burger, Group, NavLink, ScrollArea, Stack, Text, UnstyledButton, Kbd, Button } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { Notifications } from '@mantine/notifications'
import { spotlight } from '@mantine/spotlight'
import { IconSearch, IconStack2 } from '@tabler/icons-react'
import { Link, Outlet, useRouterState } from '@tanstack/react-router'
import { useT } from '@/i18n'
import { GlobalKeys, isApple, usePaletteKey } from '@/keys'
import { EmptyState, PageTitle } from '@/parts/page'
import { Palette } from './palette'
import { PLACES } from './places'
import { LanguageSwitch, LiveMark, ThemeSwitch, ZoneSwitch } from './switches'
import classes from './shell.module.css'

export function Shell() {
  const t = useT()
  const [opened, { toggle, close }] = useDisclosure(false)
  usePaletteKey(spotlight.open)
  return (
    <AppShell header={{ height: 52 }} navbar={{ width: 208, breakpoint: 'sm', collapsed: { mobile: !opened } }} padding={{ base: 'sm', sm: 'lg' }}>
      <a href="#content" className={classes.skip}>{t('app.skip')}</a>
      <AppShell.Header className={classes.header}>
        <Group gap="xs" wrap="nowrap">
          <Burger opened={opened} onClick={toggle} hiddenFrom="sm" size="sm" aria-label={t('app.navigation')} />
          <Link to="/" className={classes.name}><Mark />Ksana</Link>
        </Group>
        <SearchButton />
        <Group gap={4} wrap="nowrap">
          <LiveMark />
          <ZoneSwitch />
          <LanguageSwitch />
          <ThemeSwitch />
        </Group>
      </AppShell.Header>
      <AppShell.Navbar className={classes.navbar} aria-label={t('app.navigation')}>
        <ScrollArea p={8}><Places onFollowed={close} /></ScrollArea>
      </AppShell.Navbar>
      <AppShell.Main id="content" tabIndex={-1} className={classes.main}>
        <Outlet />
      </AppShell.Main>
      <GlobalKeys />
      {/* within the router, for those that have a link */}
      <Notifications position="bottom-right" />
      <Palette />
    </AppShell>
  )
}

function Places({ onFollowed }: { onFollowed: () => void }) {
  const t = useT()
  const path = useRouterState({ select: (state) => state.location.pathname })
  const active = (to: string) => (to === '/' ? path === '/' : path === to || path.startsWith(`${to}/`))
  return (
    <Stack gap={2}>
      {PLACES.map(({ to, text, icon: Shown }) => (
        <NavLink key={to} component={Link} to={to} label={t(text)} leftSection={<Shown size={17} stroke={1.7} />} active={active(to)}
          aria-current={active(to) ? 'page' : undefined} onClick={onFollowed} className={classes.place} />
      ))}
    </Stack>
  )
}

function SearchButton() {
  const t = useT()
  return (
    <UnstyledButton className={classes.search} onClick={spotlight.open}>
      <IconSearch size={15} />
      <Text size="sm" span className={classes.searchText}>{t('app.searchHint')}</Text>
      <Kbd size="xs" visibleFrom="sm" aria-hidden>{isApple ? '⌘K' : 'Ctrl K'}</Kbd>
    </UnstyledButton>
  )
}

const Mark = () => <img src="/ui/favicon.svg" width={24} height={24} alt="" />

export function NotFound() {
  const t = useT()
  return (
    <>
      <PageTitle title={t('app.notFound')} />
      <EmptyState title={t('app.notFound')} icon={IconStack2}>
        <Button component={Link} to="/" variant="default" size="xs">{t('app.home')}</Button>
      </EmptyState>
    </>
  )
}
