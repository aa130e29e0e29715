/** ⌘K: search by the server, the way to every page, and what can be done from everywhere. */
import { Spotlight, type SpotlightActionData } from '@mantine/spotlight'
import { useDebouncedValue } from '@mantine/hooks'
import { IconListDetails, IconPlus, IconRocket, IconSearch, IconSitemap, type Icon } from '@tabler/icons-react'
import { useNavigate } from '@tanstack/react-router'
import { type KeyboardEvent, useState } from 'react'
import { request } from '@/api/client'
import { useAnswer } from '@/api/queries'
import { useT } from '@/i18n'
import { lookOf, useStateText } from '@/states'
import { type Choices, useLanguageChoices, useThemeChoices, useZoneChoices } from './choices'
import { PLACES } from './places'

interface Group {
  group: string
  actions: SpotlightActionData[]
}

export function Palette() {
  const t = useT()
  const [typed, setTyped] = useState('')
  const [asked] = useDebouncedValue(typed.trim(), 200)
  const { found, old } = useFound(asked)
  // Until the answer to what is typed now comes, of the one before only that which fits: Enter must not open something else.
  const fitting = old || asked !== typed.trim() ? found.map((group) => ({ ...group, actions: matching(group.actions, typed) })) : found
  const own = [
    { group: t('app.goTo'), actions: usePlaces() },
    { group: t('app.actions'), actions: [...useNewThings(), ...offered(useThemeChoices()), ...offered(useLanguageChoices()), ...offered(useZoneChoices())] },
  ]
  const groups = [...fitting, ...own.map((group) => ({ ...group, actions: matching(group.actions, typed) }))].filter(({ actions }) => actions.length > 0)
  return (
    <Spotlight
      actions={groups}
      query={typed}
      onQueryChange={setTyped}
      filter={(_, actions) => actions}
      nothingFound={asked ? t('app.nothingFound', { q: asked }) : t('app.typeToSearch')}
      shortcut={null}
      limit={40}
      scrollable
      maxHeight={440}
      searchProps={{ leftSection: <IconSearch size={18} />, placeholder: t('app.searchHint'), 'aria-label': t('app.search'), onKeyDown: chooseFirst }}
    />
  )
}

/** What the server found after the typing is not selected by itself: Enter then opens the first. */
function chooseFirst(event: KeyboardEvent<HTMLInputElement>): void {
  if (event.key !== 'Enter' || event.nativeEvent.isComposing || event.currentTarget.value.trim() === '') return
  const shown = event.currentTarget.closest('[role="dialog"]')
  if (shown?.querySelector('[data-action][data-selected]') === null) shown.querySelector<HTMLElement>('[data-action]')?.click()
}

const matching = (actions: readonly SpotlightActionData[], typed: string) => {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean)
  return actions.filter(({ label, description }) => words.every((word) => `${label} ${description ?? ''}`.toLowerCase().includes(word)))
}

const marked = (Shown: Icon) => <Shown size={18} stroke={1.6} />

function usePlaces(): SpotlightActionData[] {
  const t = useT()
  const navigate = useNavigate()
  return PLACES.map(({ to, text, icon }) => ({ id: `to ${to}`, label: t(text), leftSection: marked(icon), onClick: () => void navigate({ to }) }))
}

function useNewThings(): SpotlightActionData[] {
  const t = useT()
  const navigate = useNavigate()
  return [
    { id: 'new job', label: t('app.newJob'), leftSection: marked(IconPlus), onClick: () => void navigate({ to: '/jobs/new' }) },
    { id: 'new schedule', label: t('app.newSchedule'), leftSection: marked(IconPlus), onClick: () => void navigate({ to: '/schedules/new' }) },
    { id: 'new workflow', label: t('app.newWorkflow'), leftSection: marked(IconPlus), onClick: () => void navigate({ to: '/workflows/new' }) },
    { id: 'new plan', label: t('app.newPlan'), leftSection: marked(IconPlus), onClick: () => void navigate({ to: '/plans/new' }) },
  ]
}

/** What was not chosen. */
const offered = <T extends string>({ label, chosen, choices, onChoose }: Choices<T>): SpotlightActionData[] =>
  choices.filter(({ value }) => value !== chosen).map(({ value, text, icon }) => ({ id: `${label} ${value}`, label: `${label}: ${text}`, leftSection: marked(icon), onClick: () => onChoose(value) }))

/** What the server finds; nothing where it cannot search yet. */
function useFound(asked: string): { found: Group[]; old: boolean } {
  const t = useT()
  const stateText = useStateText()
  const navigate = useNavigate()
  const { data, isPlaceholderData: old } = useAnswer('search', asked === '' ? null : request('GET', '/api/v1/search', { query: { q: asked, size: 6 } }))
  if (asked === '' || data === undefined) return { found: [], old: false }
  const jobs = data.jobs.map(({ id, name }) => ({
    id: `job ${id}`, label: name, description: id === name ? undefined : id, leftSection: marked(IconListDetails),
    onClick: () => void navigate({ to: '/jobs/$jobId', params: { jobId: id } }),
  }))
  const workflows = data.workflows.map(({ id, name }) => ({
    id: `workflow ${id}`, label: name, description: id === name ? undefined : id, leftSection: marked(IconSitemap),
    onClick: () => void navigate({ to: '/workflows/$workflowId', params: { workflowId: id } }),
  }))
  const plans = data.plans.map(({ planId, name }) => ({
    id: `plan ${planId}`, label: name, description: planId === name ? undefined : planId, leftSection: marked(IconRocket),
    onClick: () => void navigate({ to: '/plans/$planId', params: { planId } }),
  }))
  const runs = data.runs.map(({ id, target, status }) => ({
    id: `run ${id}`, label: `${target.name} · ${id}`, description: stateText(status), leftSection: marked(lookOf(status).icon),
    onClick: () => void navigate({ to: '/runs/$runId', params: { runId: id } }),
  }))
  const definitions = [
    { group: t('app.jobs'), actions: jobs },
    { group: t('app.workflows'), actions: workflows },
    { group: t('app.plans'), actions: plans },
  ]
  const ofRuns = { group: t('app.runs'), actions: runs }
  // Who types the id of a run means it; many ids of jobs have its digits in them, too.
  return { found: data.runs.some(({ id }) => id === asked) ? [ofRuns, ...definitions] : [...definitions, ofRuns], old }
}
