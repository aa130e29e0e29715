/** A run of a workflow: its graph, when what ran, its nodes as a list. One node is chosen in all of them, by the URL. */
import { SegmentedControl, VisuallyHidden } from '@mantine/core'
import { IconBinaryTree, IconListDetails, IconTimeline } from '@tabler/icons-react'
import { getRouteApi } from '@tanstack/react-router'
import { useT } from '@/i18n'
import { Beside } from '@/parts/beside'
import { ErrorBox, Loading } from '@/parts/page'
import { StateBadge } from '@/states'
import { Gantt } from './gantt'
import { Graph } from './graph'
import { countBy } from './graph-model'
import { NodeList } from './node-list'
import { NodePanel } from './node-panel'
import { type RunModel, useRunModel } from './run-model'
import classes from './run-view.module.css'

const route = getRouteApi('/runs/$runId')
type View = 'graph' | 'gantt' | 'list'
const VIEWS = [['graph', IconBinaryTree], ['gantt', IconTimeline], ['list', IconListDetails]] as const

export function WorkflowRunView({ runId }: { runId: string }) {
  const t = useT()
  const { view = 'graph', node } = route.useSearch()
  const navigate = route.useNavigate()
  const { model, error, refetch } = useRunModel(runId)
  if (model === undefined) return error ? <ErrorBox error={error} retry={() => void refetch()} /> : <Loading />
  const patch = (search: { node?: string; view?: View }) => void navigate({ search: (before) => ({ ...before, ...search }), replace: true, resetScroll: false })
  const select = (id: string | undefined) => patch({ node: id })
  const panel = node === undefined ? null : <NodePanel runId={runId} nodeId={node} model={model} onSelect={select} onClose={() => select(undefined)} />
  return (
    <Beside label={t('workflows.nodeNamed', { name: node ?? '' })} panel={panel} onClose={() => select(undefined)}>
      <div className={classes.bar}>
        <SegmentedControl size="xs" aria-label={t('workflows.views')} value={view} onChange={(next) => patch({ view: next === 'graph' ? undefined : (next as View) })}
          data={VIEWS.map(([value, Shown]) => ({ value, label: <span className={classes.choice}><Shown size={15} aria-hidden />{t(`workflows.${value}`)}</span> }))} />
        <Summary model={model} />
      </div>
      {error && <ErrorBox error={error} retry={() => void refetch()} />}
      {view === 'graph' && <Graph picture={model.picture} label={t('workflows.graphOf', { name: runId })} selected={node} onSelect={select} />}
      {view === 'gantt' && <Gantt nodes={model.nodes} label={t('workflows.ganttOf', { name: runId })} selected={node} onSelect={select} />}
      {view === 'list' && <NodeList runId={runId} nodes={model.nodes} label={t('workflows.nodesOf', { name: runId })} refresh={refetch} />}
    </Beside>
  )
}

/** How many nodes are in each state. */
function Summary({ model }: { model: RunModel }) {
  const t = useT()
  const counts = Object.entries(countBy(model.nodes.map(({ status }) => status)))
  return (
    <div className={classes.summary} role="group" aria-label={t('workflows.nodes')}>
      {counts.map(([status, n]) => <span key={status} className={classes.count}><StateBadge status={status} /> {n}</span>)}
      <VisuallyHidden>{t('workflows.nodeCount', { n: model.nodes.length })}</VisuallyHidden>
    </div>
  )
}
