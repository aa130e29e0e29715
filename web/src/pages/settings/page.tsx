/** Choices of who looks, and the settings of the instance that answers with where each came from. */
import { Checkbox, Group } from '@mantine/core'
import { IconAdjustments } from '@tabler/icons-react'
import { getRouteApi } from '@tanstack/react-router'
import { request } from '@/api/client'
import { useAnswer } from '@/api/queries'
import { useT } from '@/i18n'
import { FilterBar } from '@/parts/filters'
import { EmptyState, ErrorBox, Loading, PageTitle, Section } from '@/parts/page'
import { Preferences } from './preferences'
import { SettingGroup, grouped, isSet } from './settings'
import classes from './settings.module.css'

const route = getRouteApi('/settings')

export function SettingsPage() {
  const t = useT()
  return (
    <>
      <PageTitle title={t('settings.title')} />
      <Preferences />
      <Section title={t('settings.server')}><ServerSettings /></Section>
    </>
  )
}

function ServerSettings() {
  const t = useT()
  const { q = '', changed } = route.useSearch()
  const navigate = route.useNavigate()
  const { data, error, refetch } = useAnswer('settings', request('GET', '/api/v1/settings'))
  if (data === undefined) return error ? <ErrorBox error={error} retry={() => void refetch()} /> : <Loading />
  const wanted = q.toLowerCase()
  const shown = data.items.filter((each) => (!changed || isSet(each)) && `${each.name} ${each.value} ${each.description}`.toLowerCase().includes(wanted))
  const change = (patch: { q?: string; changed?: boolean }) => void navigate({ search: (before) => ({ ...before, ...patch }), replace: true, resetScroll: false })
  return (
    <>
      <Group gap="md" align="flex-start">
        <FilterBar fields={[{ kind: 'text', name: 'q', label: t('settings.filter'), width: 260 }]} search={{ q: q || undefined }} onChange={change} />
        <Checkbox size="xs" className={classes.only} label={t('settings.onlySet')} checked={changed ?? false} onChange={(event) => change({ changed: event.currentTarget.checked || undefined })} />
      </Group>
      {shown.length === 0 && <EmptyState icon={IconAdjustments} title={t('settings.empty')} />}
      {grouped(shown).map(([prefix, settings]) => <SettingGroup key={prefix} prefix={prefix} settings={settings} />)}
    </>
  )
}
