/** When a job runs: none, one or several schedules. */
import { Button, Group, Paper, Stack, Text } from '@mantine/core'
import { randomId } from '@mantine/hooks'
import { IconPlus, IconTrash } from '@tabler/icons-react'
import type { Refusal } from '@/api/client'
import { useT } from '@/i18n'
import { Section } from '@/parts/page'
import { type ScheduleDraft, emptyDraft } from '@/parts/schedule/draft'
import { ScheduleEditor } from '@/parts/schedule/editor'
import type { ScheduleItem } from './saving'

interface FormSchedulesProps {
  items: readonly ScheduleItem[]
  onChange: (items: readonly ScheduleItem[]) => void
  /** The one that was refused, and why. */
  refused?: { key: string; refusal: Refusal }
}

export function FormSchedules({ items, onChange, refused }: FormSchedulesProps) {
  const t = useT()
  const change = (key: string, draft: ScheduleDraft) => onChange(items.map((item) => (item.key === key ? { ...item, draft } : item)))
  const add = () => onChange([...items, { key: randomId(), draft: emptyDraft(), saved: null }])
  return (
    <div id="schedules">
      <Section title={t('jobs.whenItRuns')} actions={<Button size="compact-xs" variant="default" leftSection={<IconPlus size={13} />} onClick={add}>{t('jobs.addSchedule')}</Button>}>
        <Stack gap="sm">
          {items.length === 0 && <Paper withBorder p="md"><Text size="sm" c="dimmed">{t('jobs.noSchedule')}. {t('jobs.noScheduleHint')}</Text></Paper>}
          {items.map((item, index) => (
            <Paper withBorder p="md" key={item.key} component="section" aria-label={t('jobs.scheduleNumber', { n: index + 1 })}>
              <ScheduleEditor value={item.draft} onChange={(draft) => change(item.key, draft)} saved={item.saved} error={refused?.key === item.key ? refused.refusal : null} />
              <Group justify="flex-end" mt="xs">
                <Button size="compact-xs" variant="subtle" color="gray" leftSection={<IconTrash size={13} />} onClick={() => onChange(items.filter((each) => each !== item))}>{t('jobs.removeSchedule')}</Button>
              </Group>
            </Paper>
          ))}
        </Stack>
      </Section>
    </div>
  )
}
