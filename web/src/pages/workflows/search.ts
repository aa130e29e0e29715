import { number, oneOf, reads, text } from '@/app/search'

export const workflowsSearch = reads({ keyword: text, enabled: oneOf('true', 'false') })
export type WorkflowsSearch = ReturnType<typeof workflowsSearch>
export const WORKFLOW_TABS = ['overview', 'runs', 'schedules', 'versions'] as const
/** `version` and `against` are two that are compared. */
export const workflowSearch = reads({ tab: oneOf(...WORKFLOW_TABS), node: text, version: number, against: number })
