/** Places the nodes of a graph, beside the page: of some thousand nodes that takes seconds. */
import { Graph, layout } from '@dagrejs/dagre'
import { plainLayout } from './layered'
import type { LayoutAnswer, LayoutQuestion, Place } from './layout'

/** Above, untangling is not worth the time that it takes: 500 nodes 2.3 s, 1,000 nodes 8.7 s. */
const MANY = 250

self.onmessage = ({ data }: MessageEvent<LayoutQuestion>) => {
  const answer: LayoutAnswer = { places: data.ids.length > MANY ? plainLayout(data) : fineLayout(data) }
  self.postMessage(answer)
}

function fineLayout({ ids, edges, direction, width, height }: LayoutQuestion): Place[] {
  const graph = new Graph()
  graph.setGraph({ rankdir: direction, nodesep: 18, ranksep: 56 })
  graph.setDefaultEdgeLabel(() => ({}))
  for (const id of ids) graph.setNode(id, { width, height })
  for (const [from, to] of edges) graph.setEdge(from, to)
  layout(graph)
  return ids.map((id) => {
    const { x, y } = graph.node(id) as { x: number; y: number }
    return { x: Math.round(x - width / 2), y: Math.round(y - height / 2) }
  })
}
