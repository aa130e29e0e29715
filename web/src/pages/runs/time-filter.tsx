/** When runs were made: within the last hours, or between two instants. */
import { Select } from '@mantine/core'
import { useT } from '@/i18n'
import { InstantInput } from '@/parts/filters'
import { type RunsSearch, SPANS, type Span } from './search'

const BETWEEN = 'between'

export function TimeFilter({ search, onChange }: { search: RunsSearch; onChange: (patch: Partial<RunsSearch>) => void }) {
  const t = useT()
  const between = search.last === undefined && (search.from !== undefined || search.to !== undefined)
  const choices = [
    { value: '1h', label: t('runs.lastHour') }, { value: '24h', label: t('runs.lastDay') }, { value: '7d', label: t('runs.lastWeek') }, { value: BETWEEN, label: t('runs.between') },
  ]
  const choose = (next: string | null) => {
    if (next !== BETWEEN) onChange({ last: (next as Span | null) ?? undefined, from: undefined, to: undefined })
    else onChange({ last: undefined, from: new Date(Date.now() - SPANS[search.last ?? '1h']).toISOString(), to: undefined })
  }
  return (
    <>
      <Select size="xs" w={140} aria-label={t('runs.time')} placeholder={t('runs.time')} clearable data={choices} value={between ? BETWEEN : (search.last ?? null)} onChange={choose} />
      {between && (
        <>
          <InstantInput label={t('app.from')} value={search.from} onChange={(from) => onChange({ from })} />
          <InstantInput label={t('app.to')} value={search.to} onChange={(to) => onChange({ to })} />
        </>
      )}
    </>
  )
}
