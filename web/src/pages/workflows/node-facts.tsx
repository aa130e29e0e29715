/** What is known of a node at a glance: what it does, since when, what it waits for, why it was left out. */
import { Anchor, Code, Group } from '@mantine/core'
import { useT } from '@/i18n'
import { Fact, Facts } from '@/parts/facts'
import { TextLink } from '@/parts/link'
import { StateBadge, hasEnded } from '@/states'
import { Instant } from '@/time'
import { NodeDuration, reasonText } from './node-list'
import type { NodeDetail } from './node-panel'
import classes from './node-panel.module.css'
import { type RunModel, type RunNode } from './run-model'

interface FactsProps {
  detail: NodeDetail
  /** As the graph has it; of an item, the node that it belongs to. */
  node: RunNode | undefined
  model: RunModel
  onSelect: (id: string) => void
}

export function NodeFacts({ detail, node, model, onSelect }: FactsProps) {
  const t = useT()
  const isItem = detail.parentNodeId !== null
  return (
    <Facts>
      {node && <Fact name={t('workflows.does')}>{node.job.jobId === null ? node.job.type : <TextLink to="/jobs/$jobId" params={{ jobId: node.job.jobId }}>{node.job.name}</TextLink>}</Fact>}
      {isItem && <Fact name={t('workflows.itemOf')}><NodeLink id={detail.parentNodeId!} onSelect={onSelect} /></Fact>}
      {detail.childRunId && <Fact name={t('workflows.childRun')}><TextLink to="/runs/$runId" params={{ runId: detail.childRunId }}>{detail.childRunId}</TextLink></Fact>}
      {detail.startedAt && <Fact name={t('workflows.started')}><Instant at={detail.startedAt} exact /></Fact>}
      {detail.startedAt && <Fact name={t('workflows.duration')}><NodeDuration node={detail} /></Fact>}
      {detail.attempt > 0 && <Fact name={t('workflows.attempt')}>{detail.attempt}</Fact>}
      {detail.readyAt && !hasEnded(detail.status) && <Fact name={t('workflows.goesOn')}><Instant at={detail.readyAt} exact /></Fact>}
      {detail.deadlineAt && !hasEnded(detail.status) && <Fact name={t('workflows.deadline')}><Instant at={detail.deadlineAt} exact /></Fact>}
      {detail.reason && <Fact name={t('workflows.why')}>{reasonText(t, detail.reason)}</Fact>}
      {node && !isItem && <Needs node={node} model={model} onSelect={onSelect} waits={detail.status === 'PENDING'} />}
      {node && !isItem && node.rule !== 'all_success' && <Fact name={t('workflows.rule')}><Code>{node.rule}</Code></Fact>}
      {node?.when && !isItem && <Fact name={t('workflows.when')}><Code>{node.when}</Code></Fact>}
    </Facts>
  )
}

/** What it depends on; of one that waits, only what it waits for. */
function Needs({ node, model, onSelect, waits }: { node: RunNode; model: RunModel; onSelect: (id: string) => void; waits: boolean }) {
  const t = useT()
  const before = node.needs.flatMap((id) => model.nodes.find((each) => each.id === id) ?? [])
  const open = before.filter(({ status }) => !hasEnded(status))
  const shown = waits && open.length > 0 ? open : before
  if (shown.length === 0) return null
  return (
    <Fact name={waits && open.length > 0 ? t('workflows.waitsFor') : t('workflows.after')}>
      <Group gap="4px 10px">{shown.map(({ id, status }) => <span key={id} className={classes.needed}><StateBadge status={status} compact /><NodeLink id={id} onSelect={onSelect} /></span>)}</Group>
    </Fact>
  )
}

function NodeLink({ id, onSelect }: { id: string; onSelect: (id: string) => void }) {
  return <Anchor component="button" type="button" inherit onClick={() => onSelect(id)}>{id}</Anchor>
}
