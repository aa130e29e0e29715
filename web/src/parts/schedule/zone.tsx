/** A time zone, found by typing a part of its name. */
import { Select } from '@mantine/core'
import { useT } from '@/i18n'
import { localZone } from '@/time'

const KNOWN = [...new Set(['UTC', localZone, ...Intl.supportedValuesOf('timeZone')])]
const SHOWN = 40

export function ZoneInput({ value, onChange, error }: { value: string; onChange: (zone: string) => void; error?: string }) {
  const t = useT()
  // One that the browser does not know may be known to the server.
  const data = KNOWN.includes(value) || value === '' ? KNOWN : [value, ...KNOWN]
  return (
    <Select label={t('schedules.zone')} description={t('schedules.zoneHint')} searchable allowDeselect={false} limit={SHOWN} data={data} value={value} onChange={(next) => onChange(next ?? 'UTC')} error={error}
      nothingFoundMessage={t('schedules.noZone')} />
  )
}
