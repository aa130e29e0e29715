/** What a graph draws: of a definition, of a run, or of what is being written. */
import type { Edge } from './layout'

/** How many items of a fan-out are in each state. */
export type Counts = Readonly<Record<string, number>>
export interface Drawn {
  id: string
  /** What it runs: the type of its executor, or the name of its job. */
  does: string
  status?: string
  /** Of a node that works on items; empty before they are known. */
  counts?: Counts
  /** Something is wrong with its definition. */
  wrong?: boolean
}
export interface Picture {
  nodes: readonly Drawn[]
  edges: readonly Edge[]
}

/** Of a graph that repeats itself or names what is not there, what can be drawn. */
export function drawable(nodes: readonly { id: string; needs: readonly string[] }[]): { ids: string[]; edges: Edge[] } {
  const ids = [...new Set(nodes.map(({ id }) => id))]
  const known = new Set(ids)
  const edges = nodes.flatMap(({ id, needs }) => [...new Set(needs)].filter((need) => known.has(need) && need !== id).map((need): Edge => [need, id]))
  return { ids, edges }
}

export const countOf = (counts: Counts) => Object.values(counts).reduce((sum, each) => sum + each, 0)

export function countBy(statuses: Iterable<string>): Counts {
  const counts: Record<string, number> = {}
  for (const status of statuses) counts[status] = (counts[status] ?? 0) + 1
  return counts
}
