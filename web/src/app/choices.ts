/** The choices of whoever looks, kept in this browser: zone, language, theme. Switches, settings and the palette offer the same. */
import { useMantineColorScheme } from '@mantine/core'
import { IconClock, IconDeviceDesktop, IconLanguage, IconMoon, IconSun, type Icon } from '@tabler/icons-react'
import { LANGUAGES, type Language, language, speak, useT } from '@/i18n'
import { ZONES, type ZoneChoice, localZone, zoneChoice } from '@/time'

export interface Choices<T extends string> {
  label: string
  chosen: T
  choices: readonly { value: T; text: string; icon: Icon }[]
  onChoose: (value: T) => void
}

export function useZoneChoices(): Choices<ZoneChoice> {
  const t = useT()
  const names: Record<ZoneChoice, string> = { utc: t('app.utc'), local: `${t('app.local')} (${localZone})`, schedule: t('app.scheduleZone') }
  return { label: t('app.zone'), chosen: zoneChoice.use(), choices: ZONES.map((value) => ({ value, text: names[value], icon: IconClock })), onChoose: zoneChoice.set }
}

const LANGUAGE_NAMES: Record<Language, string> = { en: 'English', zh: '中文' }

export function useLanguageChoices(): Choices<Language> {
  const t = useT()
  return { label: t('app.language'), chosen: language.use(), choices: LANGUAGES.map((value) => ({ value, text: LANGUAGE_NAMES[value], icon: IconLanguage })), onChoose: (next) => void speak(next) }
}

export function useThemeChoices(): Choices<'light' | 'dark' | 'auto'> {
  const t = useT()
  const { colorScheme, setColorScheme } = useMantineColorScheme()
  return {
    label: t('app.theme'),
    chosen: colorScheme,
    choices: [{ value: 'light', text: t('app.light'), icon: IconSun }, { value: 'dark', text: t('app.dark'), icon: IconMoon }, { value: 'auto', text: t('app.system'), icon: IconDeviceDesktop }],
    onChoose: setColorScheme,
  }
}
