/** Where a refused body is wrong: the field's own message for that field, and the rest for whatever is around it. */
import type { Refusal } from '@/api/client'

export interface Wrong {
  /** What is wrong with just this field. */
  at: (field: string) => string | undefined
  /** What is wrong somewhere below this field, but not with one of those that say it themselves. */
  below: (field: string, shown: readonly string[]) => string | undefined
}

export function wrongWith(error: Refusal | null): Wrong {
  const field = error?.field
  const told = error?.message
  return {
    at: (name) => (field === name ? told?.replace(`${field}: `, '') : undefined),
    below: (name, shown) => (field !== undefined && (field === name || field.startsWith(`${name}.`) || field.startsWith(`${name}[`)) && !shown.includes(field) ? told : undefined),
  }
}
