/** What a person can order a node to do, as its state allows. */
import { Group } from '@mantine/core'
import { IconCheck, IconPlayerSkipForward, IconRefresh } from '@tabler/icons-react'
import { useState } from 'react'
import { request } from '@/api/client'
import { useT } from '@/i18n'
import { Action } from '@/parts/actions'
import { JsonInput, parsedJson } from '@/parts/json-input'
import type { NodeDetail } from './node-panel'

const TOUCHES = ['run', 'activity'] as const
const UNSUCCESSFUL = ['FAILED', 'STOPPED']

interface Props {
  runId: string
  detail: NodeDetail
  runStatus: string
  /** It waits for a person, a callback or a time. */
  waits: boolean
}

export function NodeActions({ runId, detail, runStatus, waits }: Props) {
  const t = useT()
  const { nodeId, status } = detail
  const path = { runId, nodeId }
  if (runStatus === 'CLOSED') return null
  const failed = UNSUCCESSFUL.includes(status)
  const completable = failed || status === 'RUNNING'
  const skippable = failed || status === 'PENDING' || status === 'RETRYING' || (status === 'RUNNING' && (waits || detail.deadlineAt !== null))
  if (!completable && !skippable) return null
  return (
    <Group gap="xs">
      {failed && <Action label={t('workflows.retryNode')} icon={IconRefresh} confirm={t('workflows.retryNodeAsk', { name: nodeId })} reason touches={TOUCHES}
        call={(reason) => request('POST', '/api/v1/runs/{runId}/nodes/{nodeId}:retry', { path, body: { reason: reason || undefined } })} />}
      {completable && <CompleteAction runId={runId} nodeId={nodeId} />}
      {skippable && <Action label={t('workflows.skipNode')} icon={IconPlayerSkipForward} confirm={t('workflows.skipNodeAsk', { name: nodeId })} reason touches={TOUCHES}
        call={(reason) => request('POST', '/api/v1/runs/{runId}/nodes/{nodeId}:skip', { path, body: { reason: reason || undefined } })} />}
    </Group>
  )
}

function CompleteAction({ runId, nodeId }: { runId: string; nodeId: string }) {
  const t = useT()
  const [output, setOutput] = useState('')
  const read = parsedJson(output)
  const artifact = read.ok ? read.value : undefined
  return (
    <Action label={t('workflows.completeNode')} icon={IconCheck} confirm={t('workflows.completeNodeAsk', { name: nodeId })} reason ready={read.ok} touches={TOUCHES} done={() => setOutput('')}
      call={(reason) => request('POST', '/api/v1/runs/{runId}/nodes/{nodeId}:complete', { path: { runId, nodeId }, body: { artifact, reason: reason || undefined } })}>
      <JsonInput label={t('workflows.output')} description={t('workflows.outputHint')} value={output} onChange={setOutput} placeholder={'{"rows": 3}'} />
    </Action>
  )
}
