/**
 * The drawn graph, loaded only where one is looked at. Nodes are buttons: Tab goes through those in view, arrows go along the
 * edges. States are painted over places that stay: only another graph is laid out anew.
 */
import { Background, BackgroundVariant, Controls, type Edge as FlowEdge, type Node as FlowNode, Handle, MarkerType, Position, ReactFlow, ReactFlowProvider, useReactFlow, useStore } from '@xyflow/react'
import '@xyflow/react/dist/base.css'
import { useElementSize } from '@mantine/hooks'
import { type KeyboardEvent, memo, useCallback, useEffect, useMemo, useRef, useState } from 'react'
import { useT } from '@/i18n'
import { ErrorBox, Loading } from '@/parts/page'
import { GraphChoice, useChoice } from './graph-choice'
import type { Drawn, Picture } from './graph-model'
import { NodeFace } from './graph-node'
import { step } from './graph-steps'
import classes from './graph.module.css'
import { type Direction, NODE, type Place, usePlaces } from './layout'
import { betterDirection } from './layered'

type Shape = FlowNode<{ drawn: Drawn }, 'face'>
const nodeTypes = { face: memo(FlowFace) }
const HIDDEN_HANDLE = { opacity: 0, width: 1, height: 1, minWidth: 1, minHeight: 1, border: 0, pointerEvents: 'none' } as const
const FIT = { padding: 0.08, maxZoom: 1 }
/** Names can be read from here on; below, nodes are patches in the colour of their state. */
const READABLE = 0.34
const CLOSE = 0.7

interface CanvasProps {
  picture: Picture
  label: string
  selected?: string
  onSelect?: (id: string | undefined) => void
}

export function GraphCanvas(props: CanvasProps) {
  const { ref, width, height } = useElementSize()
  const [box, setBox] = useState<Box>()
  if (box === undefined && width > 0) setBox({ width, height })
  return <div ref={ref} className={classes.whole}>{box && <Placed {...props} box={box} />}</div>
}

interface Box {
  width: number
  height: number
}

/** The shape of the box when it was first drawn decides which way the graph goes: it does not turn round when a panel opens. */
function Placed({ picture, selected, onSelect, label, box }: CanvasProps & { box: Box }) {
  const t = useT()
  const ids = useMemo(() => picture.nodes.map(({ id }) => id), [picture.nodes])
  const direction = useMemo(() => betterDirection(ids, picture.edges, NODE, box), [ids, picture.edges, box])
  const { places, failed } = usePlaces(ids, picture.edges, direction)
  const choose = useCallback((id: string | undefined) => onSelect?.(id), [onSelect])
  const choice = useMemo(() => ({ selected, choose }), [selected, choose])
  if (failed) return <ErrorBox error={new Error(t('workflows.notPlaced'))} />
  if (places === null) return <Loading />
  return (
    <GraphChoice.Provider value={choice}>
      <ReactFlowProvider>
        <Flow picture={picture} places={places} direction={direction} label={label} />
      </ReactFlowProvider>
    </GraphChoice.Provider>
  )
}

function Flow({ picture, places, direction, label }: { picture: Picture; places: ReadonlyMap<string, Place>; direction: Direction; label: string }) {
  const t = useT()
  const { selected, choose } = useChoice()
  const nodes = useMemo(() => picture.nodes.map((drawn) => shapeOf(drawn, places.get(drawn.id)!, direction)), [picture.nodes, places, direction])
  const edges = useMemo(() => picture.edges.map(([from, to]) => edgeOf(from, to, from === selected || to === selected)), [picture.edges, selected])
  const box = useRef<HTMLDivElement>(null)
  const far = useStore(({ transform: [, , zoom] }) => zoom < READABLE)
  const size = useStore(({ width, height }) => `${width} ${height}`)
  const { fitView, setCenter, getZoom } = useReactFlow()
  /** Somebody went to a place of their own: it stays. */
  const moved = useRef(false)
  const wanted = useRef(selected)
  const show = useCallback((id: string) => {
    const place = places.get(id)
    if (place) void setCenter(place.x + NODE.width / 2, place.y + NODE.height / 2, { zoom: Math.max(getZoom(), CLOSE), duration: 150 })
  }, [places, setCenter, getZoom])
  useEffect(() => {
    wanted.current = selected
  }, [selected])
  useEffect(() => {
    if (moved.current) return
    void fitView(FIT).then(() => {
      if (wanted.current !== undefined && getZoom() < READABLE) show(wanted.current)
    })
  }, [size, places, fitView, getZoom, show])
  const walk = (event: KeyboardEvent) => {
    const from = (event.target as Element).closest<HTMLElement>('[data-node]')?.dataset.node
    const next = from === undefined ? undefined : step(event.key, from, picture, places, direction)
    if (next === undefined) return
    event.preventDefault()
    moved.current = true
    choose(next)
    show(next)
    focusSoon(box.current, next)
  }
  return (
    <div ref={box} className={classes.canvas} data-far={far || undefined} role="group" aria-label={label} aria-keyshortcuts="ArrowLeft ArrowRight ArrowUp ArrowDown" onKeyDown={walk}>
      <ReactFlow<Shape>
        nodes={nodes} edges={edges} nodeTypes={nodeTypes} key={direction} fitView fitViewOptions={FIT} onMove={(event) => event !== null && (moved.current = true)} minZoom={0.02} maxZoom={1.5} onlyRenderVisibleElements
        nodesDraggable={false} nodesConnectable={false} nodesFocusable={false} edgesFocusable={false} elementsSelectable={false} disableKeyboardA11y
        zoomOnScroll={false} preventScrolling={false} zoomOnPinch zoomOnDoubleClick={false} deleteKeyCode={null} selectionKeyCode={null}
        onPaneClick={() => selected !== undefined && choose(undefined)} ariaLabelConfig={controlNames(t)}
      >
        <Background variant={BackgroundVariant.Dots} gap={20} size={1} color="var(--mantine-color-default-border)" />
        <Controls showInteractive={false} />
      </ReactFlow>
    </div>
  )
}

const controlNames = (t: ReturnType<typeof useT>) => ({
  'controls.ariaLabel': t('workflows.zoom'), 'controls.zoomIn.ariaLabel': t('workflows.zoomIn'),
  'controls.zoomOut.ariaLabel': t('workflows.zoomOut'), 'controls.fitView.ariaLabel': t('workflows.fit'),
})

/** What is out of view is drawn, and can have the focus, a moment later. */
function focusSoon(box: HTMLElement | null, id: string, tries = 20): void {
  const found = [...(box?.querySelectorAll<HTMLElement>('[data-node]') ?? [])].find((each) => each.dataset.node === id)
  if (found) found.focus({ preventScroll: true })
  else if (tries > 0) requestAnimationFrame(() => focusSoon(box, id, tries - 1))
}

function shapeOf(drawn: Drawn, place: Place, direction: Direction): Shape {
  const across = direction === 'LR'
  const handle = { width: 1, height: 1 }
  return {
    id: drawn.id, type: 'face', position: place, data: { drawn }, ...NODE, measured: { ...NODE }, style: { pointerEvents: 'all' },
    sourcePosition: across ? Position.Right : Position.Bottom,
    targetPosition: across ? Position.Left : Position.Top,
    handles: [
      { ...handle, type: 'target', position: across ? Position.Left : Position.Top, x: across ? 0 : NODE.width / 2, y: across ? NODE.height / 2 : 0 },
      { ...handle, type: 'source', position: across ? Position.Right : Position.Bottom, x: across ? NODE.width : NODE.width / 2, y: across ? NODE.height / 2 : NODE.height },
    ],
  }
}

function edgeOf(from: string, to: string, near: boolean): FlowEdge {
  const color = near ? 'var(--edge-near)' : 'var(--edge)'
  return { id: `${from}\n${to}`, source: from, target: to, focusable: false, style: { stroke: color }, markerEnd: { type: MarkerType.ArrowClosed, width: 14, height: 14, color } }
}

function FlowFace({ data, sourcePosition, targetPosition }: { data: { drawn: Drawn }; sourcePosition?: Position; targetPosition?: Position }) {
  return (
    <>
      <Handle type="target" position={targetPosition ?? Position.Left} style={HIDDEN_HANDLE} isConnectable={false} />
      <NodeFace drawn={data.drawn} />
      <Handle type="source" position={sourcePosition ?? Position.Right} style={HIDDEN_HANDLE} isConnectable={false} />
    </>
  )
}
