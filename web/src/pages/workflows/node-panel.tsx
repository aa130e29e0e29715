/** One node of a run: how it stands and why, what came out of it, and what can be done about it. */
import { Group, Stack } from '@mantine/core'
import { type Schemas, request } from '@/api/client'
import { useAnswer } from '@/api/queries'
import { PanelTitle } from '@/parts/beside'
import { ErrorText } from '@/parts/error-text'
import { ErrorBox, Loading } from '@/parts/page'
import { StateBadge } from '@/states'
import { NodeActions } from './node-actions'
import { NodeFacts } from './node-facts'
import { NodeParts } from './node-parts'
import type { RunModel } from './run-model'

export type NodeDetail = Schemas['NodeDetail']

interface PanelProps {
  runId: string
  nodeId: string
  model: RunModel
  onSelect: (id: string) => void
  onClose: () => void
}

export function NodePanel({ runId, nodeId, model, onSelect, onClose }: PanelProps) {
  const { data, error, refetch } = useAnswer('run', request('GET', '/api/v1/runs/{runId}/nodes/{nodeId}', { path: { runId, nodeId } }))
  return (
    <Stack gap="sm">
      <PanelTitle title={nodeId} onClose={onClose} />
      {data === undefined ? (error ? <ErrorBox error={error} retry={() => void refetch()} /> : <Loading />) : <Content runId={runId} detail={data} model={model} onSelect={onSelect} />}
    </Stack>
  )
}

function Content({ runId, detail, model, onSelect }: { runId: string; detail: NodeDetail; model: RunModel; onSelect: (id: string) => void }) {
  const node = model.nodes.find(({ id }) => id === (detail.parentNodeId ?? detail.nodeId))
  return (
    <>
      <Group gap="xs"><StateBadge status={detail.status} /></Group>
      <NodeActions runId={runId} detail={detail} runStatus={model.status} waits={node?.job.type === 'wait'} />
      <NodeFacts detail={detail} node={node} model={model} onSelect={onSelect} />
      {detail.lastError && <ErrorText text={detail.lastError} />}
      <NodeParts runId={runId} detail={detail} counts={detail.parentNodeId === null ? node?.counts : undefined} onSelect={onSelect} />
    </>
  )
}
