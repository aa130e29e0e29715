/** "Is any instant missing?": every planned instant of a span worked out anew, and looked for in the ledger. */
import { Button, Group, Modal, SegmentedControl, Stack, Text, ThemeIcon } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { IconAlertTriangle, IconCheck, IconShieldCheck } from '@tabler/icons-react'
import { useState } from 'react'
import { type Schemas, request } from '@/api/client'
import { useAnswer } from '@/api/queries'
import { useT } from '@/i18n'
import { TextLink } from '@/parts/link'
import { ErrorBox, Loading } from '@/parts/page'
import { absolute, useZone } from '@/time'
import { useReasons } from './reasons'

const DAYS = ['1', '7', '30']
const DAY = 86_400_000

export function LedgerCheck() {
  const t = useT()
  const [opened, { open, close }] = useDisclosure(false)
  return (
    <>
      <Button variant="default" size="xs" leftSection={<IconShieldCheck size={15} />} onClick={open}>{t('schedules.check')}</Button>
      <Modal opened={opened} onClose={close} title={t('schedules.check')} size="lg" closeButtonProps={{ 'aria-label': t('app.close') }}>{opened && <Checked />}</Modal>
    </>
  )
}

function Checked() {
  const t = useT()
  const [until] = useState(() => Date.now())
  const [days, setDays] = useState(DAYS[0]!)
  const from = new Date(until - Number(days) * DAY).toISOString()
  const { data, error, isPlaceholderData } = useAnswer('occurrences', request('GET', '/api/v1/schedules:audit', { query: { from, to: new Date(until).toISOString() } }))
  return (
    <Stack gap="sm">
      <SegmentedControl size="xs" aria-label={t('schedules.checkSpan')} value={days} onChange={setDays} data={DAYS.map((value) => ({ value, label: t('schedules.lastDays', { n: Number(value) }) }))} />
      {error ? <ErrorBox error={error} /> : data === undefined || isPlaceholderData ? <Loading /> : <Verdict report={data} />}
      <Text size="xs" c="dimmed">{t('schedules.checkHint')}</Text>
    </Stack>
  )
}

function Verdict({ report }: { report: Schemas['AuditBody'] }) {
  const t = useT()
  const zone = useZone()
  const reasons = useReasons()
  const whole = report.lost === 0 && report.unplanned === 0
  const Shown = whole ? IconCheck : IconAlertTriangle
  const figures = [
    [t('schedules.checkRan'), report.ran], ...Object.entries(report.skipped).map(([reason, n]) => [t('schedules.checkSkipped', { reason: reasons(reason) }), n] as const),
    [t('schedules.checkMissed'), report.missed], [t('schedules.checkWaiting'), report.waiting], [t('schedules.checkDropped'), report.dropped], [t('schedules.checkUnplanned'), report.unplanned],
  ] as const
  return (
    <div role="status">
      <Group gap="sm" wrap="nowrap" mb="xs">
        <ThemeIcon variant="light" size={38} radius="xl" color={whole ? 'teal' : 'red'}><Shown size={20} /></ThemeIcon>
        <div>
          <Text fw={600}>{whole ? t('schedules.noneMissing', { n: report.planned }) : t('schedules.someMissing', { n: report.lost, of: report.planned })}</Text>
          <Text size="xs" c="dimmed" className="figures">{t('schedules.checkedSpan', { n: report.schedules, since: absolute(report.since, zone), until: absolute(report.until, zone) })}</Text>
        </div>
      </Group>
      {figures.filter(([, n]) => n > 0).map(([name, n]) => <Group key={name} justify="space-between" py={2}><Text size="sm">{name}</Text><Text size="sm" className="figures">{t('schedules.number', { n })}</Text></Group>)}
      {report.findings.map(({ scheduleId, lost, unplanned }) => (
        <Text key={scheduleId} size="sm"><TextLink to="/schedules/$scheduleId" params={{ scheduleId }}>{scheduleId}</TextLink> · {t('schedules.finding', { lost, unplanned })}</Text>
      ))}
    </div>
  )
}
