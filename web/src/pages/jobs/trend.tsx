/** How long the latest runs took, with the median and the 95th percentile as they went. */
import { useMemo } from 'react'
import type { Run } from '@/api/shapes'
import { useT } from '@/i18n'
import { Chart } from '@/parts/chart'
import { trendOf } from './figures'
import classes from './calendar.module.css'

export function Trend({ runs }: { runs: readonly Run[] }) {
  const t = useT()
  const { times, series } = useMemo(() => {
    const points = trendOf(runs)
    return {
      times: points.map(({ at }) => new Date(at).toISOString()),
      series: [
        { label: t('jobs.eachRun'), colour: 'var(--state-off)', values: points.map(({ millis }) => millis) },
        { label: t('jobs.p95'), colour: 'var(--state-warn)', values: points.map(({ p95 }) => p95) },
        { label: t('jobs.median'), colour: 'var(--state-busy)', values: points.map(({ median }) => median) },
      ],
    }
  }, [runs, t])
  return <div className={classes.frame}><Chart label={t('jobs.trend')} times={times} series={series} unit="ms" height={252} /></div>
}
