/** A run of a workflow as its pictures show it: nodes with their states, the items of a fan-out counted under their node. */
import { useMemo } from 'react'
import { type Schemas, request } from '@/api/client'
import { useAnswer } from '@/api/queries'
import type { Counts, Picture } from './graph-model'
import type { Edge } from './layout'

type Standing = Schemas['StandingShown']
type GraphNode = Standing['nodes'][number]

export interface RunNode {
  id: string
  job: GraphNode['job']
  needs: readonly string[]
  rule: string
  when: string | null
  status: string
  attempt: number
  error: string | null
  reason: string | null
  startedAt: string | null
  endedAt: string | null
  /** Of a fan-out; empty before its items are known. */
  counts?: Counts
}
export interface RunModel {
  status: string
  nodes: readonly RunNode[]
  picture: Picture
}

/** What a node does, in a word or two. */
export const doing = (job: GraphNode['job']) => (job.jobId === null ? (job.type ?? '') : job.name)

export function useRunModel(runId: string) {
  const { data, error, refetch } = useAnswer('run', request('GET', '/api/v1/runs/{runId}/standing', { path: { runId } }))
  const links = data?.edges
  const edges = useMemo(() => links?.map(({ from, to }): Edge => [from, to]) ?? [], [links])
  const model = useMemo(() => data && modelOf(data, edges), [data, edges])
  return { model, error, refetch }
}

function modelOf(standing: Standing, edges: readonly Edge[]): RunModel {
  const nodes = standing.nodes.map((node): RunNode => {
    const { status, attempt, lastError, startedAt, endedAt } = node.state
    return {
      id: node.nodeId, job: node.job, needs: node.dependsOn, rule: node.triggerRule, when: node.when, reason: node.reason,
      status, attempt, error: lastError, startedAt, endedAt, counts: node.items ?? undefined,
    }
  })
  const drawn = nodes.map(({ id, job, status, counts }) => ({ id, does: doing(job), status, counts }))
  return { status: standing.status, nodes, picture: { nodes: drawn, edges } }
}
