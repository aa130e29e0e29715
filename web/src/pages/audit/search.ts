import { number, reads, text } from '@/app/search'

/** `entry` is the one that is looked at. */
export const auditSearch = reads({ subject: text, actor: text, entry: number })
