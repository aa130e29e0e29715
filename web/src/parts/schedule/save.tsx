/** The end of a schedule's form: away from it, or send it. */
import { Button, Group } from '@mantine/core'
import type { ReactNode } from 'react'
import type { Call } from '@/api/client'
import type { Schedule } from '@/api/shapes'
import { useT } from '@/i18n'
import { CallMenu } from '@/parts/actions'

interface SaveProps {
  call: Call<Schedule>
  ready: boolean
  saving: boolean
  save: (call: Call<Schedule>) => void
  /** What leads back. */
  back: ReactNode
}

export function SaveSchedule({ call, ready, saving, save, back }: SaveProps) {
  const t = useT()
  const label = t('schedules.save')
  return (
    <Group justify="flex-end" gap="xs">
      {back}
      <Button.Group>
        <Button size="xs" disabled={!ready} loading={saving} onClick={() => save(call)}>{label}</Button>
        <CallMenu label={label} calls={[call]} variant="filled" />
      </Button.Group>
    </Group>
  )
}
