import { instant, oneOf, reads, text } from '@/app/search'

export const schedulesSearch = reads({
  keyword: text, status: oneOf('ACTIVE', 'PAUSED', 'PARKED', 'FINISHED'), kind: oneOf('cron', 'every', 'once'), jobId: text, workflowId: text,
  /** Of the forecast. */
  hour: instant,
})
export type SchedulesSearch = ReturnType<typeof schedulesSearch>
/** Whose schedule it will be, where that is known already. */
export const newScheduleSearch = reads({ jobId: text, workflowId: text })
