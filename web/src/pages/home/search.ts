import { oneOf, reads } from '@/app/search'

/** How far back the charts go, in hours. */
export const HOURS = ['1', '6', '24', '48'] as const
export const homeSearch = reads({ hours: oneOf(...HOURS) })
