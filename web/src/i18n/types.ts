import type { en } from './en'

/** The same keys as another catalogue's section, no more and no fewer. */
export type Like<T> = { readonly [K in keyof T]: string }
export type Catalogue = { readonly [S in keyof typeof en]: Like<(typeof en)[S]> }
