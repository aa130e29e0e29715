/** What this browser remembers of its user. */
import { Paper, SegmentedControl, Text } from '@mantine/core'
import { type Choices, useLanguageChoices, useThemeChoices, useZoneChoices } from '@/app/choices'
import { useT } from '@/i18n'
import { Section } from '@/parts/page'
import { absolute, useTicking, useZone } from '@/time'
import classes from './settings.module.css'

export function Preferences() {
  const t = useT()
  const zone = useZone()
  const now = useTicking((current) => absolute(current, zone))
  return (
    <Section title={t('settings.preferences')}>
      <Paper withBorder className={classes.preferences}>
        <Preference {...useLanguageChoices()} />
        <Preference {...useThemeChoices()} />
        <Preference {...useZoneChoices()} hint={t('settings.now', { now })} />
      </Paper>
      <Text size="xs" c="dimmed" mt={6}>{t('settings.preferencesHint')}</Text>
    </Section>
  )
}

function Preference<T extends string>({ label, chosen, choices, onChoose, hint }: Choices<T> & { hint?: string }) {
  return (
    <div className={classes.preference}>
      <Text size="sm" fw={500}>{label}</Text>
      <SegmentedControl size="xs" className={classes.choice} value={chosen} onChange={(next) => onChoose(next as T)} aria-label={label} data={choices.map(({ value, text }) => ({ value, label: text }))} />
      {hint && <Text size="xs" c="dimmed" className="figures">{hint}</Text>}
    </div>
  )
}
