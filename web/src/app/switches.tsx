/** The choices of whoever looks, in the header; and whether what is shown is live. */
import { ActionIcon, Button, Menu, Tooltip } from '@mantine/core'
import { IconCheck, IconClock, IconLanguage, IconSun } from '@tabler/icons-react'
import type { ReactNode } from 'react'
import { type Live, useLive } from '@/api/events'
import { type Key, useT } from '@/i18n'
import { type ZoneChoice, localZone } from '@/time'
import { type Choices, useLanguageChoices, useThemeChoices, useZoneChoices } from './choices'
import classes from './shell.module.css'

function Switch<T extends string>({ label, chosen, choices, onChoose, icons, children }: Choices<T> & { icons?: boolean; children: ReactNode }) {
  return (
    <Menu position="bottom-end">
      <Menu.Target>{children}</Menu.Target>
      <Menu.Dropdown aria-label={label}>
        <Menu.Label>{label}</Menu.Label>
        {choices.map(({ value, text, icon: Shown }) => (
          <Menu.Item key={value} onClick={() => onChoose(value)} aria-current={value === chosen || undefined}
            leftSection={icons && <Shown size={15} />} rightSection={value === chosen ? <IconCheck size={14} /> : <span style={{ width: 14 }} />}>
            {text}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  )
}

export function ZoneSwitch() {
  const t = useT()
  const zones = useZoneChoices()
  const printed: Record<ZoneChoice, string> = { utc: t('app.utc'), local: localZone, schedule: t('app.scheduleZone') }
  return (
    <Switch {...zones}>
      <Button variant="subtle" color="gray" size="compact-sm" leftSection={<IconClock size={15} />} aria-label={`${zones.label}: ${printed[zones.chosen]}`} fw={500}>
        <span className={classes.liveText}>{printed[zones.chosen]}</span>
      </Button>
    </Switch>
  )
}

export function LanguageSwitch() {
  const languages = useLanguageChoices()
  return (
    <Switch {...languages}>
      <ActionIcon variant="subtle" color="gray" size={32} aria-label={languages.label}><IconLanguage size={18} /></ActionIcon>
    </Switch>
  )
}

export function ThemeSwitch() {
  const themes = useThemeChoices()
  const Shown = themes.choices.find(({ value }) => value === themes.chosen)?.icon ?? IconSun
  return (
    <Switch {...themes} icons>
      <ActionIcon variant="subtle" color="gray" size={32} aria-label={themes.label}><Shown size={18} /></ActionIcon>
    </Switch>
  )
}

const LIVE: Record<Live, { text: Key; hint: Key }> = {
  live: { text: 'app.live', hint: 'app.liveHint' },
  polling: { text: 'app.polling', hint: 'app.pollingHint' },
  lost: { text: 'app.lost', hint: 'app.lostHint' },
  paused: { text: 'app.paused', hint: 'app.pausedHint' },
}

export function LiveMark() {
  const t = useT()
  const live = useLive()
  return (
    <Tooltip label={t(LIVE[live].hint)}>
      <span className={classes.live} role="status"><span className={classes.dot} data-live={live} /><span className={classes.liveText}>{t(LIVE[live].text)}</span></span>
    </Tooltip>
  )
}
