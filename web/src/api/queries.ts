/**
 * How pages ask: `useAnswer(topic, call)` for one answer, `useRows` for lists that grow downwards.
 * The topic is what events refresh (events.ts); old data stays while new is fetched.
 */
import { QueryClient, keepPreviousData, useInfiniteQuery, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useMemo } from 'react'
import { type Call, Refusal, send } from './client'

/** What can change, as far as refreshing is concerned. */
export const TOPICS = [
  'activity', 'run', 'jobs', 'job', 'calendar', 'schedules', 'occurrences', 'workflows', 'workflow', 'plans', 'plan',
  'instances', 'overview', 'failures', 'forecast', 'audit', 'settings', 'search',
] as const
export type Topic = (typeof TOPICS)[number]

const worthRetrying = (failures: number, error: Error) => failures < 2 && error instanceof Refusal && (error.status === 0 || error.status >= 502)

export const queryClient = new QueryClient({
  defaultOptions: { queries: { staleTime: 10_000, gcTime: 300_000, retry: worthRetrying, refetchOnWindowFocus: false } },
})

export const keyOf = (topic: Topic, call: Call) => [topic, call.method, call.path, call.query, call.body ?? null] as const

/** One answer, refreshed with its topic. `call` null: not yet. */
export function useAnswer<T>(topic: Topic, call: Call<T> | null) {
  return useQuery<T, Refusal>({
    queryKey: call === null ? [topic, 'none'] : keyOf(topic, call),
    queryFn: ({ signal }) => send(call!, signal),
    enabled: call !== null,
    placeholderData: keepPreviousData,
  })
}

export interface Rows<R> {
  rows: readonly R[]
  total: number | undefined
  /** False where there are more than were counted. */
  totalIsExact: boolean
  error: Refusal | null
  /** Nothing has come yet. */
  loading: boolean
  /** Rows of an earlier question are shown until those of this one come. */
  old: boolean
  /** There are changes that were not fetched, since many pages are shown. */
  outdated: boolean
  more: boolean
  /** The answers have few rows each, and many were asked for: whoever looks says whether to go on. */
  sparse: boolean
  fetchMore: () => void
  refresh: () => void
}

/** A filter that no index serves answers a part of the history at a time, with what it found there. */
const UNASKED_PAGES = 10
const FEW_ROWS = 20

/** What a page of any of our lists has in common. */
interface Page<R> {
  items: readonly R[]
  total?: number | null
  totalIsExact?: boolean
  next?: string | number | null
}

/**
 * A list in pages. Keyset lists (`next` in the answer) go on by `cursor`; the others by `page`, until `total` is reached.
 * `call` is the first page, without `cursor` and `page`. Lists that go on otherwise say how, by `goOn`.
 */
export function useRows<R, P extends Page<R> = Page<R>>(topic: Topic, call: Call<P>, goOn: (last: P, all: P[]) => Record<string, unknown> | undefined = nextPage): Rows<R> {
  const client = useQueryClient()
  const key = keyOf(topic, call)
  const query = useInfiniteQuery({
    queryKey: [...key, 'rows'],
    queryFn: ({ signal, pageParam }) => send({ ...call, query: { ...call.query, ...pageParam } }, signal),
    initialPageParam: {} as Record<string, unknown>,
    getNextPageParam: (last: P, all: P[]) => goOn(last, all),
    placeholderData: keepPreviousData,
    staleTime: Infinity,
  })
  const pages = query.data?.pages
  const rows = useMemo(() => pages?.flatMap((page) => page.items) ?? [], [pages])
  return {
    rows,
    total: pages?.[0]?.total ?? undefined,
    totalIsExact: pages?.[0]?.totalIsExact ?? true,
    error: query.error as Refusal | null,
    loading: query.isPending,
    old: query.isPlaceholderData,
    outdated: query.isStale && !query.isFetching,
    more: query.hasNextPage,
    sparse: pages !== undefined && pages.length >= UNASKED_PAGES && rows.length < pages.length * FEW_ROWS,
    fetchMore: () => void (query.isFetchingNextPage || query.fetchNextPage()),
    refresh: () => void client.resetQueries({ queryKey: [...key, 'rows'] }),
  }
}

/** An answer that is a whole list, for a Table. */
export function wholeList<R>(answer: { error: Refusal | null; isPending: boolean; refetch: () => unknown }, rows: readonly R[]): Rows<R> {
  return {
    rows, total: rows.length, totalIsExact: true, error: answer.error, loading: answer.isPending, old: false, outdated: false,
    more: false, sparse: false, fetchMore: () => undefined, refresh: () => void answer.refetch(),
  }
}

function nextPage<R>(last: Page<R>, all: Page<R>[]): Record<string, unknown> | undefined {
  if (last.next !== undefined) return last.next === null ? undefined : { cursor: last.next }
  const seen = all.reduce((sum, page) => sum + page.items.length, 0)
  return last.items.length > 0 && seen < (last.total ?? 0) ? { page: all.length + 1 } : undefined
}

/** Sends changes, and refreshes what they touch without waiting for the event. */
export function useSend<T>(touched: readonly Topic[]) {
  const client = useQueryClient()
  return useMutation<T, Refusal, Call<T>>({
    mutationFn: (call) => send(call),
    onSettled: () => Promise.all(touched.map((topic) => client.invalidateQueries({ queryKey: [topic] }))),
  })
}
