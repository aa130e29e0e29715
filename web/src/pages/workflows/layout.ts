/** Where the nodes of a graph are drawn. A worker says so; what it said is kept until the graph is another one. */
import { useEffect, useMemo, useState } from 'react'

export type Direction = 'LR' | 'TB'
export type Edge = readonly [from: string, to: string]
export interface Place {
  x: number
  y: number
}
export interface LayoutQuestion {
  direction: Direction
  width: number
  height: number
  ids: readonly string[]
  edges: readonly Edge[]
}
export interface LayoutAnswer {
  places: readonly Place[]
}

export const NODE = { width: 200, height: 52 } as const

/** The places of nodes by id, null before they are known. The same graph, whatever its nodes' states are, is placed once. */
export function usePlaces(ids: readonly string[], edges: readonly Edge[], direction: Direction): { places: ReadonlyMap<string, Place> | null; failed: boolean } {
  const shape = useMemo(() => JSON.stringify([direction, ids, edges]), [direction, ids, edges])
  const [answer, setAnswer] = useState<{ shape: string; places: ReadonlyMap<string, Place> | null } | null>(null)
  useEffect(() => {
    const [way, names, links] = JSON.parse(shape) as [Direction, string[], Edge[]]
    const worker = new Worker(new URL('./layout.worker.ts', import.meta.url), { type: 'module' })
    const known = new Set(names)
    worker.onmessage = ({ data }: MessageEvent<LayoutAnswer>) => {
      setAnswer({ shape, places: new Map(names.map((id, index) => [id, data.places[index]!])) })
      worker.terminate()
    }
    worker.onerror = () => setAnswer({ shape, places: null })
    const question: LayoutQuestion = { direction: way, ...NODE, ids: names, edges: links.filter(([from, to]) => known.has(from) && known.has(to)) }
    worker.postMessage(question)
    return () => worker.terminate()
  }, [shape])
  return { places: answer?.shape === shape ? answer.places : null, failed: answer?.shape === shape && answer.places === null }
}
