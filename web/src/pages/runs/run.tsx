/** One run of a job or a workflow: how it stands and why, all that is known of it, and what can be done about it. */
import { Tabs } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import { type ReactNode, Suspense, lazy } from 'react'
import { type Schemas, request } from '@/api/client'
import { useAnswer } from '@/api/queries'
import { type Key, useT } from '@/i18n'
import { Attempts } from '@/parts/attempts'
import { LogView } from '@/parts/logs'
import { ErrorBox, Loading, PageTitle } from '@/parts/page'
import { StateBadge, hasEnded, lookOf, useStateText } from '@/states'
import { RunActions } from './run-actions'
import { RunData } from './run-data'
import { RunEvents } from './run-events'
import { RunFacts } from './run-facts'
import { Timeline } from './timeline'
import { Waiting } from './waiting'
import { SIGNS } from './words'

export type RunDetail = Schemas['RunDetail']

const route = getRouteApi('/runs/$runId')
const WorkflowRunView = lazy(async () => ({ default: (await import('@/pages/workflows/run-view')).WorkflowRunView }))

export function RunPage() {
  const t = useT()
  const { runId } = route.useParams()
  const { data, error, isPlaceholderData, refetch } = useAnswer('run', request('GET', '/api/v1/activity/{runId}', { path: { runId } }))
  if (data === undefined || isPlaceholderData) {
    return <><PageTitle title={t('runs.one', { id: runId })} />{error ? <ErrorBox error={error} retry={() => void refetch()} /> : <Loading />}</>
  }
  return <RunFrame key={runId} run={data} />
}

function RunFrame({ run }: { run: RunDetail }) {
  const t = useT()
  const stateText = useStateText()
  // A node may do something that is no job of its own.
  const name = `${run.kind === 'job' && run.parent ? run.parent.nodeId : run.target.name} · ${t('runs.one', { id: run.id })}`
  return (
    <>
      <PageTitle title={name} windowTitle={`${SIGNS[lookOf(run.status).tone]} ${stateText(run.status)} · ${name}`} before={<StateBadge status={run.status} />}>
        <RunActions run={run} />
      </PageTitle>
      <RunFacts run={run} />
      <Waiting run={run} />
      <RunTabs run={run} />
    </>
  )
}

interface Part {
  name: string
  text: Key
  show: () => ReactNode
}

function partsOf(run: RunDetail): readonly Part[] {
  const data: Part = { name: 'data', text: run.kind === 'job' ? 'runs.data' : 'runs.input', show: () => <RunData run={run} /> }
  const events: Part = { name: 'events', text: 'runs.events', show: () => <RunEvents runId={run.id} /> }
  if (run.kind === 'workflow') {
    return [{ name: 'nodes', text: 'runs.nodes', show: () => <Suspense fallback={<Loading />}><WorkflowRunView runId={run.id} /></Suspense> }, data, events]
  }
  return [
    { name: 'timeline', text: 'runs.timeline', show: () => <Timeline run={run} /> },
    { name: 'attempts', text: 'runs.attempts', show: () => <Attempts attempts={run.attempts} underWay={underWay(run)} /> },
    { name: 'logs', text: 'runs.logs', show: () => <LogView runId={run.id} live={!hasEnded(run.status)} /> },
    data,
    events,
  ]
}

/** The attempt that goes on: when a later one than the first began is not told before its end. */
const underWay = (run: RunDetail) =>
  run.status === 'RUNNING' ? { attempt: run.attempt ?? 1, epoch: run.epoch, owner: run.owner, startedAt: run.attempts.length === 0 ? run.startedAt : null } : null

function RunTabs({ run }: { run: RunDetail }) {
  const t = useT()
  const parts = partsOf(run)
  const { tab } = route.useSearch()
  const navigate = route.useNavigate()
  const chosen = parts.find(({ name }) => name === tab) ?? parts[0]!
  const choose = (name: string | null) => void navigate({ search: (before) => ({ ...before, tab: name === parts[0]!.name ? undefined : (name ?? undefined) }), resetScroll: false })
  return (
    <Tabs value={chosen.name} onChange={choose} keepMounted={false} mt="md">
      <Tabs.List mb="md">
        {parts.map(({ name, text }) => <Tabs.Tab key={name} value={name}>{t(text)}{name === 'attempts' && run.attempts.length > 1 ? ` ${run.attempts.length}` : ''}</Tabs.Tab>)}
      </Tabs.List>
      <Tabs.Panel value={chosen.name}>{chosen.show()}</Tabs.Panel>
    </Tabs>
  )
}
