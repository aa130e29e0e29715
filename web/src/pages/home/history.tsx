/** How it went in the last hours: what ended, and how late what was planned began. */
import { Paper, SegmentedControl, SimpleGrid, Text } from '@mantine/core'
import { useNavigate } from '@tanstack/react-router'
import { useMemo } from 'react'
import type { Schemas } from '@/api/client'
import { useT } from '@/i18n'
import { Chart } from '@/parts/chart'
import { Section } from '@/parts/page'
import { colourOf } from '@/states'
import { Instant } from '@/time'
import { HOURS } from './search'
import classes from './home.module.css'

type History = Schemas['HistoryShown']

export function HistoryPanel({ history, hours }: { history: History; hours: string }) {
  const t = useT()
  const navigate = useNavigate()
  const { times, ended, late } = useSeries(history)
  const begins = history.steps[0]?.at
  return (
    <Section title={t('home.history')} actions={
      <SegmentedControl size="xs" value={hours} aria-label={t('home.hours')} data={HOURS.map((value) => ({ value, label: t('home.lastHours', { n: Number(value) }) }))}
        onChange={(next) => void navigate({ to: '/', search: { hours: HOURS.find((each) => each === next) }, replace: true, resetScroll: false })} />
    }>
      <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="lg">
        <Paper withBorder className={classes.chart}>
          <Text size="sm" fw={500} mb={4}>{t('home.throughput')}</Text>
          <Chart label={t('home.throughput')} kind="bars" times={times} series={ended} height={150} />
        </Paper>
        <Paper withBorder className={classes.chart}>
          <Text size="sm" fw={500} mb={4}>{t('home.lateness')}</Text>
          <Chart label={t('home.lateness')} unit="ms" times={times} series={late} height={150} />
        </Paper>
      </SimpleGrid>
      {begins !== undefined && Date.parse(history.since) > Date.parse(begins) && <Text size="xs" c="dimmed" mt={6}>{t('home.wholeSince')} <Instant at={history.since} exact /></Text>}
    </Section>
  )
}

function useSeries({ steps }: History) {
  const t = useT()
  return useMemo(
    () => ({
      times: steps.map(({ at }) => at),
      ended: [
        { label: t('home.succeeded'), colour: colourOf('SUCCESS'), values: steps.map(({ succeeded }) => succeeded) },
        { label: t('home.failed'), colour: colourOf('FAILED'), values: steps.map(({ failed }) => failed) },
      ],
      late: [
        { label: t('home.lateP50'), colour: colourOf('RUNNING'), values: steps.map(({ lateP50Millis }) => lateP50Millis) },
        { label: t('home.lateP99'), colour: colourOf('RETRYING'), values: steps.map(({ lateP99Millis }) => lateP99Millis) },
      ],
    }),
    [steps, t],
  )
}
