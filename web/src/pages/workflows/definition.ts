/** A workflow while somebody writes it. What the form does not know of it is kept as it is. */
import type { Refusal } from '@/api/client'
import { type Picture, drawable } from './graph-model'

export type Json = Record<string, unknown>
export interface NodeDef extends Json {
  id: string
  dependsOn?: string[]
}
export interface Dag extends Json {
  nodes: NodeDef[]
}
export interface Draft {
  name: string
  description: string
  workflowId: string
  dag: Dag
}

export const TYPES = ['shell', 'http', 'python', 'wait', 'workflow', 'job'] as const
export const RULES = ['all_success', 'all_done', 'all_failed', 'one_success', 'one_failed', 'none_failed'] as const

const isJson = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)

/** What was written, as far as a graph can be made of it: a text may hold anything. */
export function asDag(value: unknown): Dag | undefined {
  if (!isJson(value)) return undefined
  const nodes = Array.isArray(value.nodes) ? value.nodes.filter(isJson) : []
  return { ...value, nodes: nodes.map((node) => ({ ...node, id: String(node.id ?? '') })) }
}

export const without = <T extends Json>(from: T, ...names: string[]): T => Object.fromEntries(Object.entries(from).filter(([name]) => !names.includes(name))) as T

/** Puts a value; an empty text or list says nothing, and is left out. */
export function set<T extends Json>(from: T, name: string, value: unknown): T {
  const empty = value === undefined || value === '' || value === null || (Array.isArray(value) && value.length === 0)
  return empty ? without(from, name) : { ...from, [name]: value }
}

export function newNode(dag: Dag): NodeDef {
  const taken = new Set(dag.nodes.map(({ id }) => id))
  let number = dag.nodes.length + 1
  while (taken.has(`node-${number}`)) number += 1
  const last = dag.nodes.at(-1)?.id
  const id = `node-${number}`
  return { id, type: 'shell', cfg: { cmd: `echo ${id}` }, ...(last ? { dependsOn: [last] } : {}) }
}

export function changeNode(dag: Dag, index: number, node: NodeDef): Dag {
  const before = dag.nodes[index]?.id
  const nodes = dag.nodes.map((each, at) => (at === index ? node : renamed(each, before, node.id)))
  return { ...dag, nodes }
}

/** Those that depend on a node follow its new name. */
const renamed = (node: NodeDef, before: string | undefined, after: string): NodeDef =>
  before === undefined || before === after || !node.dependsOn?.includes(before) ? node : { ...node, dependsOn: node.dependsOn.map((each) => (each === before ? after : each)) }

export function withoutNode(dag: Dag, index: number): Dag {
  const gone = dag.nodes[index]?.id
  const nodes = dag.nodes.filter((_, at) => at !== index).map((node) => set(node, 'dependsOn', node.dependsOn?.filter((each) => each !== gone)))
  return { ...dag, nodes }
}

/** What a node runs: one of `TYPES`, or the type of a plug-in. */
export const kindOf = (node: NodeDef): string => (node.jobId === undefined ? String(node.type ?? '') : 'job')
export const isFanOut = (node: NodeDef) => node.forEach !== undefined && node.forEach !== null
const needsOf = ({ dependsOn }: NodeDef): string[] => (Array.isArray(dependsOn) ? dependsOn.map(String) : [])

export function pictureOf(dag: Dag, wrong: ReadonlySet<string>): Picture {
  const { ids, edges } = drawable(dag.nodes.map((node) => ({ id: node.id, needs: needsOf(node) })))
  const byId = new Map(dag.nodes.map((node) => [node.id, node]))
  const nodes = ids.filter((id) => id !== '').map((id) => ({ id, does: kindOf(byId.get(id)!), counts: isFanOut(byId.get(id)!) ? {} : undefined, wrong: wrong.has(id) }))
  return { nodes, edges: edges.filter(([from, to]) => from !== '' && to !== '') }
}

// What is wrong with it ------------------------------------------------------------------------------------------------

export interface Problem {
  /** Where in the dag: `nodes[1].cfg.url`; empty for the whole. */
  field: string
  message: string
  /** Those that are concerned. */
  nodes: readonly string[]
}

/** A refusal that is about the dag, with its place. */
export function problemOf(error: Refusal): Problem | undefined {
  const field = error.field
  if (field === undefined || !(field === 'dag' || field.startsWith('dag.') || field.startsWith('dag['))) return undefined
  const { node, cycle } = error.details as { node?: string; cycle?: string[] }
  const place = field.replace(/^dag\.?/, '')
  const message = error.message.startsWith(`${field}: `) ? error.message.slice(field.length + 2) : error.message
  return { field: place, message, nodes: cycle ?? (node === undefined ? [] : [node]) }
}

/** `nodes[1].cfg.url` → `['nodes', 1, 'cfg', 'url']`. */
export const pathOf = (field: string): (string | number)[] =>
  [...field.matchAll(/([^.[\]]+)|\[(\d+)\]/g)].map(([, name, index]) => (index === undefined ? name! : Number(index)))
