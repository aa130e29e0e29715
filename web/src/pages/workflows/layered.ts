/** Ranks of a graph by its longest paths, and a plain way to place very large ones. */
import type { Direction, Edge, LayoutQuestion, Place } from './layout'

const BETWEEN = { along: 56, across: 18 } as const
const SWEEPS = 4

/** How far each node is from the start. What is in a cycle, or after one, comes first. */
export function ranksOf(ids: readonly string[], edges: readonly Edge[]): ReadonlyMap<string, number> {
  const after = new Map<string, string[]>(ids.map((id) => [id, []]))
  const open = new Map<string, number>(ids.map((id) => [id, 0]))
  for (const [from, to] of edges) {
    after.get(from)?.push(to)
    open.set(to, (open.get(to) ?? 0) + 1)
  }
  const ranks = new Map<string, number>(ids.map((id) => [id, 0]))
  const ready = ids.filter((id) => open.get(id) === 0)
  for (let id = ready.pop(); id !== undefined; id = ready.pop()) {
    for (const next of after.get(id) ?? []) {
      ranks.set(next, Math.max(ranks.get(next) ?? 0, ranks.get(id)! + 1))
      open.set(next, open.get(next)! - 1)
      if (open.get(next) === 0) ready.push(next)
    }
  }
  return ranks
}

/** The direction in which more of it can be read in a box of this shape. */
export function betterDirection(ids: readonly string[], edges: readonly Edge[], node: { width: number; height: number }, box: { width: number; height: number }): Direction {
  const breadths = new Map<number, number>()
  for (const rank of ranksOf(ids, edges).values()) breadths.set(rank, (breadths.get(rank) ?? 0) + 1)
  const depth = breadths.size
  const breadth = [...breadths.values()].reduce((a, b) => Math.max(a, b), 1)
  const zoom = (width: number, height: number) => Math.min(box.width / width, box.height / height, 1)
  const lying = zoom(depth * (node.width + BETWEEN.along), breadth * (node.height + BETWEEN.across))
  const standing = zoom(breadth * (node.width + BETWEEN.across), depth * (node.height + BETWEEN.along))
  return standing > lying ? 'TB' : 'LR'
}

/** Rank by rank, each node near the middle of what it depends on. */
export function plainLayout({ ids, edges, direction, width, height }: LayoutQuestion): Place[] {
  const ranks = ranksOf(ids, edges)
  const columns: string[][] = []
  for (const id of ids) (columns[ranks.get(id)!] ??= []).push(id)
  const places = orderedPlaces(columns, edges)
  const across = direction === 'LR'
  return ids.map((id) => {
    const rank = ranks.get(id)!
    const place = places.get(id)!
    return across
      ? { x: rank * (width + BETWEEN.along), y: Math.round(place * (height + BETWEEN.across)) }
      : { x: Math.round(place * (width + BETWEEN.across)), y: rank * (height + BETWEEN.along) }
  })
}

/** Sorted by the middle of their neighbours, to and fro, and centred. */
function orderedPlaces(columns: string[][], edges: readonly Edge[]): ReadonlyMap<string, number> {
  const before = neighbours(edges.map(([from, to]) => [to, from]))
  const after = neighbours(edges)
  const places = new Map<string, number>()
  const settle = (column: readonly string[]) => column.forEach((id, index) => places.set(id, index - column.length / 2))
  columns.forEach(settle)
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const beside = sweep % 2 === 0 ? before : after
    for (const column of sweep % 2 === 0 ? columns : columns.toReversed()) {
      const middle = new Map(column.map((id) => [id, average(beside.get(id), places) ?? places.get(id)!]))
      column.sort((a, b) => middle.get(a)! - middle.get(b)!)
      settle(column)
    }
  }
  return places
}

function neighbours(edges: readonly Edge[]): ReadonlyMap<string, string[]> {
  const found = new Map<string, string[]>()
  for (const [from, to] of edges) {
    const own = found.get(from)
    if (own) own.push(to)
    else found.set(from, [to])
  }
  return found
}

const average = (ids: readonly string[] | undefined, places: ReadonlyMap<string, number>) =>
  ids === undefined || ids.length === 0 ? undefined : ids.reduce((sum, id) => sum + places.get(id)!, 0) / ids.length
