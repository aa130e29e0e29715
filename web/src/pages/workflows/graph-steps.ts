/** Where an arrow key leads from a node: along the edges, and to the neighbours across them. */
import type { Picture } from './graph-model'
import type { Direction, Place } from './layout'

type Places = ReadonlyMap<string, Place>

export function step(key: string, from: string, { edges }: Picture, places: Places, direction: Direction): string | undefined {
  const across = direction === 'LR'
  const [before, after] = across ? ['ArrowLeft', 'ArrowRight'] : ['ArrowUp', 'ArrowDown']
  const [less, more] = across ? ['ArrowUp', 'ArrowDown'] : ['ArrowLeft', 'ArrowRight']
  if (key === after) return nearest(from, edges.filter(([start]) => start === from).map(([, end]) => end), places)
  if (key === before) return nearest(from, edges.filter(([, end]) => end === from).map(([start]) => start), places)
  if (key === less || key === more) return beside(from, places, across, key === more ? 1 : -1)
  return undefined
}

const distance = (a: Place, b: Place) => Math.abs(a.x - b.x) + Math.abs(a.y - b.y)

function nearest(from: string, ids: readonly string[], places: Places): string | undefined {
  const here = places.get(from)!
  return [...ids].sort((a, b) => distance(here, places.get(a)!) - distance(here, places.get(b)!))[0]
}

/** The next one of the same rank. */
function beside(from: string, places: Places, across: boolean, sign: 1 | -1): string | undefined {
  const here = places.get(from)!
  const along = across ? 'y' : 'x'
  const rank = across ? 'x' : 'y'
  const others = [...places].filter(([, place]) => place[rank] === here[rank] && (place[along] - here[along]) * sign > 0)
  return nearest(from, others.map(([id]) => id), places)
}
