/** What a node wrote, made and was: one tab of the panel each. Which is open is in the URL, and stays with the next node. */
import { Tabs, Text } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import { request } from '@/api/client'
import { useAnswer } from '@/api/queries'
import { useT } from '@/i18n'
import { Attempts } from '@/parts/attempts'
import { JsonView } from '@/parts/json'
import { LogView } from '@/parts/logs'
import { ErrorBox, Loading } from '@/parts/page'
import { hasEnded } from '@/states'
import { type Counts, countOf } from './graph-model'
import { NodeItems } from './node-items'
import type { NodeDetail } from './node-panel'
import classes from './node-panel.module.css'

const route = getRouteApi('/runs/$runId')

interface PartsProps {
  runId: string
  detail: NodeDetail
  /** Of a fan-out. */
  counts: Counts | undefined
  onSelect: (id: string) => void
}

export function NodeParts({ runId, detail, counts, onSelect }: PartsProps) {
  const t = useT()
  const { part } = route.useSearch()
  const navigate = route.useNavigate()
  const tabs = [
    ...(counts ? [['items', t('workflows.items', { n: countOf(counts) })]] : [['logs', t('workflows.logs')]]),
    ['output', t('workflows.output')],
    ...(counts ? [] : [['attempts', t('workflows.attemptsTab')]]),
    ...(detail.checkpoint === null ? [] : [['checkpoint', t('workflows.checkpoint')]]),
    ['definition', t('workflows.definition')],
  ] as [string, string][]
  const open = tabs.some(([name]) => name === part) ? part! : tabs[0]![0]
  return (
    <Tabs value={open} onChange={(next) => void navigate({ search: (before) => ({ ...before, part: next ?? undefined }), replace: true, resetScroll: false })} keepMounted={false} classNames={{ tab: classes.tab }}>
      <Tabs.List mb="xs">{tabs.map(([name, title]) => <Tabs.Tab key={name} value={name}>{title}</Tabs.Tab>)}</Tabs.List>
      {counts && <Tabs.Panel value="items"><NodeItems key={detail.nodeId} runId={runId} nodeId={detail.nodeId} counts={counts} onSelect={onSelect} /></Tabs.Panel>}
      <Tabs.Panel value="logs"><LogView runId={runId} nodeId={detail.nodeId} live={!hasEnded(detail.status)} /></Tabs.Panel>
      <Tabs.Panel value="output">{detail.artifact === null ? <Text size="sm" c="dimmed">{t('workflows.noOutput')}</Text> : <JsonView label={t('workflows.output')} value={detail.artifact} />}</Tabs.Panel>
      <Tabs.Panel value="attempts"><Attempts key={detail.nodeId} attempts={detail.attempts} /></Tabs.Panel>
      <Tabs.Panel value="checkpoint"><JsonView label={t('workflows.checkpoint')} value={detail.checkpoint} /></Tabs.Panel>
      <Tabs.Panel value="definition"><Definition runId={runId} nodeId={detail.parentNodeId ?? detail.nodeId} /></Tabs.Panel>
    </Tabs>
  )
}

/** The node as the run started with it, whatever became of the workflow since. */
function Definition({ runId, nodeId }: { runId: string; nodeId: string }) {
  const t = useT()
  const { data, error, refetch } = useAnswer('run', request('GET', '/api/v1/runs/{run_id}', { path: { run_id: runId } }))
  if (data === undefined) return error ? <ErrorBox error={error} retry={() => void refetch()} /> : <Loading />
  const nodes = 'dag' in data ? (data.dag as { nodes?: { id: string }[] }).nodes : undefined
  const found = nodes?.find(({ id }) => id === nodeId)
  return found ? <JsonView label={t('workflows.definition')} value={found} /> : <Text size="sm" c="dimmed">{t('workflows.goneFromRun')}</Text>
}
