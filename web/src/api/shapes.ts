/** Short names for those of the API's description that several pages use. */
import type { Schemas } from './client'

export type Job = Schemas['ksana__api__contracts__jobchain__job_models__JobShown']
/** A job with what became of it. */
export type JobFound = Schemas['JobFound']
export type Schedule = Schemas['ksana__api__contracts__schedules_models__ScheduleShown']
/** As lists show it: with what became of its last instant, where that was asked for. */
export type ScheduleRow = Schemas['ScheduleListed']
export type Occurrence = Schemas['OccurrenceShown']
export type Workflow = Schemas['WorkflowShown']
export type Plan = Schemas['PlanShown']
/** As their lists show them. */
export type JobRow = Schemas['JobsShown']['items'][number]
export type WorkflowRow = Schemas['WorkflowsShown']['items'][number]
export type PlanRow = Schemas['PlansShown']['items'][number]
/** A run of a job or of a workflow, as lists show both. */
export type Run = Schemas['ActivityItem']
export type Target = Schemas['Target']
export type AuditEntry = Schemas['AuditShown']['items'][number]
