/**
 * The tasks of a plan by their place in it: only the pages in view are asked for and refreshed, so that a plan of ten thousand
 * tenants costs what one of a hundred does.
 */
import { useQueries } from '@tanstack/react-query'
import { useMemo, useState } from 'react'
import { type Call, type Schemas, request, send } from '@/api/client'
import { keyOf, useAnswer } from '@/api/queries'
import type { PlanSearch } from './search'

export type Task = Schemas['TaskSummary']
type TasksPage = Schemas['TasksShown']
export type TaskFilter = Pick<PlanSearch, 'keyword' | 'status' | 'wave'>
export const PAGE = 100

/** What is known of the list: how long it is, and the rows of some of its pages (from 1). */
export interface TaskWindow {
  total: number
  pages: ReadonlyMap<number, readonly Task[]>
}
export const taskAt = ({ pages }: TaskWindow, index: number): Task | undefined => pages.get(Math.floor(index / PAGE) + 1)?.[index % PAGE]

const callOf = (planId: string, filter: TaskFilter, page: number): Call<TasksPage> =>
  request('GET', '/api/v1/plans/{planId}/tasks', { path: { planId }, query: { ...filter, page, size: PAGE } })

/** `first` and `last` are the rows in view. While `held`, no row leaves its place. */
export function useTasks(planId: string, filter: TaskFilter, [first, last]: readonly [number, number], held: boolean) {
  const start = useAnswer('plan', callOf(planId, filter, 1))
  const others = useQueries({
    queries: pagesOf(first, last).filter((page) => page > 1).map((page) => {
      const call = callOf(planId, filter, page)
      return { queryKey: keyOf('plan', call), queryFn: ({ signal }: { signal: AbortSignal }) => send(call, signal) }
    }),
    combine: collected,
  })
  const found = useMemo<TaskWindow>(() => ({ total: start.data?.total ?? 0, pages: new Map([[1, start.data?.items ?? []], ...others]) }), [start.data, others])
  return { window: useHeld(found, held), loading: start.isPending, old: start.isPlaceholderData, error: start.error, refetch: start.refetch }
}

const collected = (answers: readonly { data?: TasksPage }[]) => answers.flatMap(({ data }) => (data ? [[data.page, data.items] as const] : []))

function pagesOf(first: number, last: number): number[] {
  const from = Math.floor(first / PAGE) + 1
  return Array.from({ length: Math.floor(last / PAGE) + 2 - from }, (_, index) => from + index)
}

function useHeld(now: TaskWindow, held: boolean): TaskWindow {
  const [state, setState] = useState({ source: now, held, shown: now })
  let current = state
  if (state.source !== now || state.held !== held) {
    current = { source: now, held, shown: held ? kept(state.shown, now) : now }
    setState(current)
  }
  return current.shown
}

/** The rows where they were, with their newest content; those that no longer belong there stay as they were seen last. */
function kept(before: TaskWindow, now: TaskWindow): TaskWindow {
  const newest = new Map([...now.pages.values()].flat().map((task) => [task.taskId, task]))
  const stayed = [...before.pages].map(([page, tasks]) => [page, tasks.map((task) => newest.get(task.taskId) ?? task)] as const)
  return { total: before.total, pages: new Map([...now.pages, ...stayed]) }
}

/** The state of one stage, by how far its task is. */
export function cellOf(task: Task, stage: number): string {
  if (stage <= task.lastCompletedStageIndex) return 'SUCCESS'
  if (stage > task.lastCompletedStageIndex + 1) return 'PENDING'
  if (task.status === 'CREATED' || task.status === 'COMPLETED' || (task.status === 'CANCELLED' && task.startedAt === null)) return 'PENDING'
  return task.status
}
