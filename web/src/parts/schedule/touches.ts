/** What a change of a schedule is seen in. */
export const TOUCHES = ['schedules', 'occurrences', 'forecast', 'jobs', 'job', 'workflows', 'workflow'] as const
