import { oneOf, reads, text } from '@/app/search'

export const jobsSearch = reads({ keyword: text, type: text, enabled: oneOf('true', 'false') })
/** `day`: whose runs are listed; `until`: the last day that the calendar shows; `made`: it was made just now. */
export const jobSearch = reads({ tab: oneOf('config', 'history'), day: text, until: text, made: oneOf('true') })
/** `from`: the job that a new one begins as a copy of. */
export const jobFormSearch = reads({ from: text })
export type JobSearch = ReturnType<typeof jobSearch>
