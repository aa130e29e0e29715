/** What the audit calls the things that people do, in words. */
import type { Key, Translate } from '@/i18n'

const WORDS: Readonly<Record<string, Key>> = {
  'job.created': 'audit.jobCreated',
  'job.changed': 'audit.jobChanged',
  'job.deleted': 'audit.jobDeleted',
  'workflow.created': 'audit.workflowCreated',
  'workflow.changed': 'audit.workflowChanged',
  'workflow.enabled': 'audit.workflowEnabled',
  'workflow.disabled': 'audit.workflowDisabled',
  'workflow.deleted': 'audit.workflowDeleted',
  'schedule.created': 'audit.scheduleCreated',
  'schedule.changed': 'audit.scheduleChanged',
  'schedule.paused': 'audit.schedulePaused',
  'schedule.resumed': 'audit.scheduleResumed',
  'schedule.deleted': 'audit.scheduleDeleted',
  'execution.requested': 'audit.runRequested',
  'execution.canceled': 'audit.runCanceled',
  'run.requested': 'audit.runRequested',
  'run.stopping': 'audit.runStopped',
  'run.reopened': 'audit.runReopened',
  'run.closed': 'audit.runClosed',
  'node.retried': 'audit.nodeRetried',
  'node.completed': 'audit.nodeCompleted',
  'node.skipped': 'audit.nodeSkipped',
  'plan.created': 'audit.planCreated',
  'plan.start': 'audit.planStarted',
  'plan.pause': 'audit.planPaused',
  'plan.resume': 'audit.planResumed',
  'plan.cancel': 'audit.planCancelled',
  'plan.retry_failed': 'audit.planRetried',
  'task.pause': 'audit.taskPaused',
  'task.resume': 'audit.taskResumed',
  'task.retry': 'audit.taskRetried',
  'task.cancel': 'audit.taskCancelled',
  'task.checkpoint': 'audit.taskCheckpoint',
  'failures.acknowledged': 'audit.failuresAcknowledged',
}

export function actionText(t: Translate, action: string): string {
  const key = WORDS[action]
  return key === undefined ? action : t(key)
}
