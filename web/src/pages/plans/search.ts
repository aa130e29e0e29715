import { number, oneOf, reads, text } from '@/app/search'

export const PLAN_STATES = ['READY', 'RUNNING', 'PAUSED', 'COMPLETED', 'FAILED', 'CANCELLED'] as const
export const TASK_STATES = ['CREATED', 'WAITING_FOR_LOCK', 'RUNNING', 'PAUSED', 'COMPLETED', 'FAILED', 'CANCELLED'] as const

export const plansSearch = reads({ keyword: text, status: oneOf(...PLAN_STATES) })
export const planSearch = reads({
  tab: oneOf('tenants', 'history', 'details'),
  // which tenants are shown
  keyword: text, status: oneOf(...TASK_STATES), wave: number,
  // which one is looked at, and what of it
  tenant: text, part: oneOf('stages', 'checkpoint', 'history'),
})
export type PlanSearch = ReturnType<typeof planSearch>
