import { instant, many, oneOf, reads, text } from '@/app/search'

/** How far back a list goes that is about the last hours: counted from when it is opened. */
export const SPANS = { '1h': 3_600_000, '24h': 86_400_000, '7d': 604_800_000 } as const
export type Span = keyof typeof SPANS

export const runsSearch = reads({
  status: many, kind: oneOf('job', 'workflow'), jobId: text, workflowId: text, tenantId: text, trigger: oneOf('schedule', 'manual', 'workflow', 'plan'),
  last: oneOf('1h', '24h', '7d'), from: instant, to: instant, sort: oneOf('newest', 'longest', 'shortest'),
})
export type RunsSearch = ReturnType<typeof runsSearch>
export const runSearch = reads({ tab: text, node: text, view: oneOf('graph', 'gantt', 'list'), part: text })
