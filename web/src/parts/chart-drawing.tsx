/** The drawing of a Chart, by uPlot: follows the theme, the zone and the room that there is. */
import 'uplot/dist/uPlot.min.css'
import { useComputedColorScheme } from '@mantine/core'
import { useElementSize, useMergedRef } from '@mantine/hooks'
import { useEffect, useRef } from 'react'
import uPlot from 'uplot'
import { axisTime } from '@/time'
import type { ChartProps, ChartSeries, Format } from './chart'

interface DrawingProps extends Required<Pick<ChartProps, 'times' | 'series' | 'kind' | 'unit' | 'height'>> {
  zone: string
  format: Format
  onPoint: (index: number | null) => void
}

const MINUTE = 60
const DAY = 86_400
const STEPS = {
  count: [1, 2, 5].flatMap((first) => Array.from({ length: 12 }, (_, power) => first * 10 ** power)).sort((a, b) => a - b),
  ms: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 10e3, 15e3, 30e3, 60e3, 120e3, 300e3, 600e3, 900e3, 1800e3, 3600e3, 7200e3, 14400e3, 43200e3, 86400e3, 172800e3, 604800e3],
}

export function Drawing(props: DrawingProps) {
  const { ref: measured, width } = useElementSize()
  const place = useRef<HTMLDivElement>(null)
  const ref = useMergedRef(measured, place)
  const plot = useRef<uPlot>(null)
  const latest = useRef(props)
  useEffect(() => {
    latest.current = props
  })
  const scheme = useComputedColorScheme()
  const looks = JSON.stringify([props.kind, props.unit, props.height, props.zone, props.series.map(({ label, colour }) => [label, colour])])
  const drawn = width > 0
  useEffect(() => {
    if (!drawn || place.current === null) return
    const made = new uPlot(optionsOf(latest.current, place.current), dataOf(latest.current), place.current)
    plot.current = made
    return () => {
      plot.current = null
      made.destroy()
    }
  }, [drawn, looks, scheme])
  useEffect(() => plot.current?.setSize({ width, height: props.height }), [width, props.height])
  const { times, series, kind } = props
  useEffect(() => plot.current?.setData(dataOf({ times, series, kind })), [times, series, kind])
  return <div ref={ref} style={{ height: props.height }} />
}

/** Seconds, then the series; those of stacked bars from the highest stack, which is drawn first, to the lowest. */
function dataOf({ times, series, kind }: Pick<DrawingProps, 'times' | 'series' | 'kind'>): uPlot.AlignedData {
  const seconds = times.map((at) => Date.parse(at) / 1000)
  if (kind === 'line') return [seconds, ...series.map(({ values }) => [...values])]
  const stacks = series.map((_, top) => seconds.map((_at, index) => series.slice(0, top + 1).reduce((sum, { values }) => sum + (values[index] ?? 0), 0)))
  return [seconds, ...stacks.reverse()]
}

function optionsOf({ series, kind, unit, height, zone, format, onPoint }: DrawingProps, place: HTMLElement): uPlot.Options {
  const style = getComputedStyle(place)
  const colour = (given: string) => given.replace(/var\((--[\w-]+)\)/g, (_, name: string) => style.getPropertyValue(name).trim())
  const axis = { stroke: colour('var(--mantine-color-dimmed)'), font: `11px ${style.fontFamily}`, grid: { stroke: colour('var(--line-faint)'), width: 1 }, ticks: { show: false } }
  const drawn = (each: ChartSeries): uPlot.Series => (kind === 'line' ? line(colour(each.colour)) : bars(colour(each.colour)))
  return {
    width: place.clientWidth,
    height,
    padding: [8, 18, 0, 0],
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { show: kind === 'line' } },
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), zone),
    scales: {
      x: { range: (plot, first, last) => [first, last + (kind === 'bars' ? step(plot.data[0]) : 0)] },
      y: { range: (_, _least, most) => [0, Math.max(1, most) * 1.08] },
    },
    axes: [
      { ...axis, size: 22, gap: 4, space: 56, values: (plot, splits, _axis, _space, every) => splits.map((at) => axisTime(at * 1000, zone, matters(span(plot.data[0]), every))) },
      { ...axis, size: 56, gap: 6, space: 28, incrs: STEPS[unit], values: (_, splits) => splits.map((value) => format(value)) },
    ],
    series: [{}, ...(kind === 'line' ? series : [...series].reverse()).map(drawn)],
    hooks: { setCursor: [(plot) => onPoint(plot.cursor.idx ?? null)] },
  }
}

const line = (stroke: string): uPlot.Series => ({ stroke, width: 1.75, points: { size: 4, fill: stroke } })
const bars = (fill: string): uPlot.Series => ({ fill, stroke: fill, width: 0, points: { show: false }, paths: uPlot.paths.bars!({ size: [0.82, 28], align: 1 }) })

const span = (seconds: ArrayLike<number>) => (seconds[seconds.length - 1] ?? 0) - (seconds[0] ?? 0)
const matters = (all: number, every: number) => (all > 2 * DAY ? 'days' : every < MINUTE ? 'seconds' : 'minutes')
const step = (seconds: ArrayLike<number>) => (seconds.length > 1 ? seconds[1]! - seconds[0]! : 60)
