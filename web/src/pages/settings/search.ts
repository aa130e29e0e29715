import { flag, reads, text } from '@/app/search'

/** `changed`: only what is not as it comes. */
export const settingsSearch = reads({ q: text, changed: flag })
