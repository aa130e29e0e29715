/** Why an instant was not run, in words. What has none is shown as the ledger has it. */
import { useCallback } from 'react'
import { type Key, useT } from '@/i18n'

const WORDS: Readonly<Record<string, Key>> = {
  misfire_skip: 'schedules.reasonMisfireSkip',
  misfire_collapsed: 'schedules.reasonCollapsed',
  catchup_limit: 'schedules.reasonCatchup',
  once_missed: 'schedules.reasonOnceMissed',
  paused: 'schedules.reasonPaused',
  schedule_changed: 'schedules.reasonChanged',
  concurrency_limit: 'schedules.reasonConcurrency',
  queue_full: 'schedules.reasonQueueFull',
  job_disabled: 'schedules.reasonJobDisabled',
  job_deleted: 'schedules.reasonJobDeleted',
  workflow_disabled: 'schedules.reasonWorkflowDisabled',
  workflow_deleted: 'schedules.reasonWorkflowDeleted',
  params_invalid: 'schedules.reasonParams',
}

export function useReasons(): (reason: string) => string {
  const t = useT()
  return useCallback((reason) => (WORDS[reason] ? t(WORDS[reason]) : reason), [t])
}
