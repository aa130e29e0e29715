/**
 * Figures over time, small: lines or stacked bars. What draws them is loaded with the first chart that is shown, into room that was
 * kept for it. Who cannot see it hears each series' latest and highest figure.
 */
import { Suspense, lazy, useState } from 'react'
import { language, localeOf, useT } from '@/i18n'
import { absolute, duration, useZone } from '@/time'
import classes from './chart.module.css'

const Drawing = lazy(() => import('./chart-drawing').then(({ Drawing }) => ({ default: Drawing })))

export interface ChartSeries {
  label: string
  /** Any colour of CSS, variables too: `colourOf('FAILED')`. */
  colour: string
  /** One for each time; null where there is none, which is a gap in a line. */
  values: readonly (number | null)[]
}

export interface ChartProps {
  /** What it shows, for who cannot see it. */
  label: string
  /** Instants in ascending order; of bars, when each begins. */
  times: readonly string[]
  series: readonly ChartSeries[]
  /** Bars are stacked, the first series at the bottom. */
  kind?: 'line' | 'bars'
  unit?: 'ms' | 'count'
  height?: number
  /** The zone of the schedule that it is about. */
  zone?: string | null
}

export function Chart({ label, times, series, kind = 'line', unit = 'count', height = 140, zone }: ChartProps) {
  const t = useT()
  const shownZone = useZone(zone)
  const [pointed, setPointed] = useState<number | null>(null)
  const format = useFormat(unit)
  const at = pointed === null ? undefined : times[pointed]
  const nothing = series.every(({ values }) => values.every((value) => (unit === 'count' ? !value : value == null)))
  return (
    <figure className={classes.chart} aria-label={label}>
      <div className={classes.legend} aria-hidden>
        {series.map((each) => (
          <span key={each.label} className={classes.name}>
            <span className={classes.mark} style={{ background: each.colour }} />
            {each.label}
            {pointed !== null && <b className="figures">{shown(each.values[pointed], format)}</b>}
          </span>
        ))}
        <span className={classes.when}>{at === undefined ? shownZone : absolute(at, shownZone)}</span>
      </div>
      <div className={classes.room} style={{ height }} aria-hidden>
        {nothing ? <span className={classes.nothing}>{t('app.chartNothing')}</span> : (
          <Suspense><Drawing times={times} series={series} kind={kind} unit={unit} height={height} zone={shownZone} format={format} onPoint={setPointed} /></Suspense>
        )}
      </div>
      <figcaption className="visually-hidden">
        {series.map(({ label: name, values }) => t('app.chartTold', { name, latest: shown(values.findLast((value) => value != null), format), highest: shown(highest(values), format) })).join(' ')}
      </figcaption>
    </figure>
  )
}

export type Format = (value: number) => string

function useFormat(unit: 'ms' | 'count'): Format {
  const lang = language.use()
  return unit === 'ms' ? duration : (value) => new Intl.NumberFormat(localeOf(lang)).format(value)
}

const shown = (value: number | null | undefined, format: Format) => (value == null ? '–' : format(value))

const highest = (values: readonly (number | null)[]) =>
  values.reduce<number | null>((before, value) => (value !== null && (before === null || value > before) ? value : before), null)
