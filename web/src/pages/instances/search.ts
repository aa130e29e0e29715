import { oneOf, reads, text } from '@/app/search'

export const INSTANCE_STATES = ['ALIVE', 'LEFT', 'DEAD'] as const
/** `instance` is the one that is looked at. */
export const instancesSearch = reads({ status: oneOf(...INSTANCE_STATES), instance: text })
