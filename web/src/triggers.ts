/** What makes a run happen, in words. */
import type { Translate } from '@/i18n'

export const TRIGGERS = ['schedule', 'manual', 'workflow', 'plan'] as const

export function triggerText(t: Translate, trigger: string): string {
  switch (trigger) {
    case 'schedule': return t('runs.bySchedule')
    case 'manual': return t('runs.byHand')
    case 'workflow': return t('runs.byWorkflow')
    case 'plan': return t('runs.byPlan')
    default: return trigger
  }
}
