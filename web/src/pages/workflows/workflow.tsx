/** One workflow: its graph and how its nodes did, its runs, when it runs, every definition that it had. */
import { Group, Stack, Tabs, Text } from '@mantine/core'
import { IconPencil, IconPlayerPause, IconPlayerPlay, IconTrash } from '@tabler/icons-react'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { type ReactNode, useMemo } from 'react'
import { request } from '@/api/client'
import { useAnswer } from '@/api/queries'
import type { Workflow } from '@/api/shapes'
import { type Key, useT } from '@/i18n'
import { Action } from '@/parts/actions'
import { Beside, PanelTitle } from '@/parts/beside'
import { JsonView } from '@/parts/json'
import { ButtonLink } from '@/parts/link'
import { ErrorBox, Loading, PageTitle, Section } from '@/parts/page'
import { StateBadge } from '@/states'
import { Instant } from '@/time'
import { Graph } from './graph'
import type { Picture } from './graph-model'
import { RunGrid } from './grid'
import { doing } from './run-model'
import { WORKFLOW_TABS } from './search'
import { StartAction } from './start'
import { Versions } from './versions'
import { WorkflowRuns } from './workflow-runs'
import { WorkflowSchedules } from './workflow-schedules'

const route = getRouteApi('/workflows/$workflowId')
const TITLES: Readonly<Record<(typeof WORKFLOW_TABS)[number], Key>> = {
  overview: 'workflows.overview', runs: 'workflows.runs', schedules: 'workflows.schedules', versions: 'workflows.versions',
}

export function WorkflowPage() {
  const t = useT()
  const { workflowId } = route.useParams()
  const { tab = 'overview' } = route.useSearch()
  const navigate = route.useNavigate()
  const { data, error, refetch } = useAnswer('workflow', request('GET', '/api/v1/workflows/{workflowId}', { path: { workflowId } }))
  if (data === undefined || data.workflowId !== workflowId) return <><PageTitle title={t('workflows.one', { name: workflowId })} />{error ? <ErrorBox error={error} retry={() => void refetch()} /> : <Loading />}</>
  const contents: Record<typeof tab, () => ReactNode> = {
    overview: () => <Overview workflow={data} />,
    runs: () => <WorkflowRuns workflowId={workflowId} />,
    schedules: () => <WorkflowSchedules workflowId={workflowId} />,
    versions: () => <Versions workflow={data} />,
  }
  return (
    <>
      <PageTitle title={data.name} before={<StateBadge status={data.enabled ? 'ENABLED' : 'DISABLED'} />}><Orders workflow={data} /></PageTitle>
      {data.description && <Text mb="xs" maw={860}>{data.description}</Text>}
      <Group gap="lg" mb="sm">
        <Text size="sm" c="dimmed">{t('workflows.versionNo', { n: data.version })}</Text>
        <Text size="sm" c="dimmed">{t('app.updated')} <Instant at={data.updatedAt} /></Text>
        {data.name !== data.workflowId && <Text size="sm" c="dimmed" ff="monospace">{data.workflowId}</Text>}
      </Group>
      <Tabs value={tab} onChange={(next) => void navigate({ search: () => ({ tab: next === 'overview' ? undefined : (next as typeof tab) }), resetScroll: false })} keepMounted={false}>
        <Tabs.List mb="md">{WORKFLOW_TABS.map((each) => <Tabs.Tab key={each} value={each}>{t(TITLES[each])}</Tabs.Tab>)}</Tabs.List>
        <Tabs.Panel value={tab}>{contents[tab]()}</Tabs.Panel>
      </Tabs>
    </>
  )
}

function Orders({ workflow: { workflowId, enabled, name }, workflow }: { workflow: Workflow }) {
  const t = useT()
  const navigate = useNavigate()
  const path = { workflowId }
  const touches = ['workflow', 'workflows'] as const
  return (
    <>
      <StartAction workflow={workflow} />
      <ButtonLink to="/workflows/$workflowId/edit" params={path} leftSection={<IconPencil size={15} />}>{t('app.edit')}</ButtonLink>
      {enabled ? (
        <Action label={t('workflows.disable')} icon={IconPlayerPause} confirm={t('workflows.disableAsk', { name })} touches={touches} call={() => request('POST', '/api/v1/workflows/{workflowId}:disable', { path })} />
      ) : (
        <Action label={t('workflows.enable')} icon={IconPlayerPlay} touches={touches} call={() => request('POST', '/api/v1/workflows/{workflowId}:enable', { path })} />
      )}
      <Action label={t('workflows.delete')} icon={IconTrash} danger confirm={t('workflows.deleteAsk', { name })} touches={['workflows', 'schedules']} done={() => void navigate({ to: '/workflows' })} call={() => request('DELETE', '/api/v1/workflows/{workflowId}', { path })} />
    </>
  )
}

function Overview({ workflow }: { workflow: Workflow }) {
  const t = useT()
  const { node } = route.useSearch()
  const navigate = route.useNavigate()
  const { workflowId, name } = workflow
  const { data, error, refetch } = useAnswer('workflow', request('GET', '/api/v1/workflows/{workflowId}/graph', { path: { workflowId } }))
  const fanOuts = useMemo(() => new Set((workflow.dag.nodes as { id: string; forEach?: unknown }[]).filter(({ forEach }) => forEach !== undefined && forEach !== null).map(({ id }) => id)), [workflow.dag])
  const picture = useMemo((): Picture | undefined => data && {
    nodes: data.nodes.map(({ nodeId, job }) => ({ id: nodeId, does: doing(job), counts: fanOuts.has(nodeId) ? {} : undefined, wrong: !job.enabled })),
    edges: data.edges.map(({ from, to }) => [from, to]),
  }, [data, fanOuts])
  const select = (id: string | undefined) => void navigate({ search: (before) => ({ ...before, node: id }), replace: true, resetScroll: false })
  const chosen = (workflow.dag.nodes as { id: string }[]).find(({ id }) => id === node)
  return (
    <>
      {picture === undefined ? (error ? <ErrorBox error={error} retry={() => void refetch()} /> : <Loading />) : (
        <Beside label={t('workflows.nodeNamed', { name: chosen?.id ?? '' })} panel={chosen ? <NodeDefinition node={chosen} onClose={() => select(undefined)} /> : null} onClose={() => select(undefined)}>
          <Graph picture={picture} label={t('workflows.graphOf', { name })} selected={node} onSelect={select} height="clamp(280px, 42vh, 520px)" />
        </Beside>
      )}
      <Section title={t('workflows.grid')}><RunGrid workflowId={workflowId} label={t('workflows.gridOf', { name })} /></Section>
    </>
  )
}

function NodeDefinition({ node, onClose }: { node: { id: string }; onClose: () => void }) {
  const t = useT()
  return (
    <Stack gap="xs">
      <PanelTitle title={node.id} onClose={onClose} />
      <JsonView label={t('workflows.definition')} value={node} />
    </Stack>
  )
}
