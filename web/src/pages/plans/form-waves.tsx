/** Who goes first: the waves of a new plan, and the gate after each. */
import { ActionIcon, Button, Checkbox, Group, NumberInput, Select, Stack, Text } from '@mantine/core'
import { IconPlus, IconTrash } from '@tabler/icons-react'
import { useT } from '@/i18n'
import { type WaveDraft, newWave } from './draft'
import classes from './form.module.css'
import type { Wrong } from './wrong'

export function WavesField({ waves, onChange, wrong }: { waves: readonly WaveDraft[]; onChange: (waves: readonly WaveDraft[]) => void; wrong: Wrong }) {
  const t = useT()
  const all = wrong.at('waves')
  return (
    <Stack gap="xs">
      <Text size="xs" c="dimmed">{t('plans.wavesHint')}</Text>
      {waves.map((wave, index) => (
        <WaveCardField key={wave.key} wave={wave} index={index} wrong={wrong} onChange={(patch) => onChange(waves.map((each) => (each === wave ? { ...each, ...patch } : each)))}
          onRemove={() => onChange(waves.filter((each) => each !== wave))} />
      ))}
      {all && <div className={classes.wrong} role="alert">{all}</div>}
      <Group><Button size="xs" variant="default" leftSection={<IconPlus size={15} />} onClick={() => onChange([...waves, newWave()])}>{t('plans.addWave')}</Button></Group>
    </Stack>
  )
}

interface WaveProps {
  wave: WaveDraft
  index: number
  wrong: Wrong
  onChange: (patch: Partial<WaveDraft>) => void
  onRemove: () => void
}

function WaveCardField({ wave, index, wrong, onChange, onRemove }: WaveProps) {
  const t = useT()
  const at = `waves[${index}]`
  const gate = `${at}.gate.maxFailedPercent`
  const amount = wrong.at(`${at}.size`) ?? wrong.at(`${at}.percent`)
  return (
    <div className={classes.card} role="group" aria-label={t('plans.waveN', { wave: index + 1 })} data-wrong={amount !== undefined || wrong.at(gate) !== undefined || undefined}>
      <div className={classes.cardHead}>
        <b>{t('plans.waveN', { wave: index + 1 })}</b>
        <ActionIcon variant="subtle" color="gray" size="sm" aria-label={t('plans.removeWave', { n: index + 1 })} onClick={onRemove}><IconTrash size={15} /></ActionIcon>
      </div>
      <div className={classes.pair}>
        <NumberInput label={t('plans.waveAmount')} min={0} value={wave.amount} error={amount} onChange={(next) => onChange({ amount: next })} />
        <Select label={t('plans.waveBy')} allowDeselect={false} value={wave.by} data={[{ value: 'size', label: t('plans.waveBySize') }, { value: 'percent', label: t('plans.waveByPercent') }]}
          onChange={(next) => onChange({ by: next === 'percent' ? 'percent' : 'size' })} />
        <NumberInput label={t('plans.waveGate')} description={t('plans.waveGateHint')} min={0} max={100} suffix=" %" value={wave.gate} error={wrong.at(gate)} onChange={(next) => onChange({ gate: next })} />
      </div>
      <Checkbox mt="xs" size="xs" label={t('plans.wavePause')} checked={wave.pauseAfter} onChange={(event) => onChange({ pauseAfter: event.currentTarget.checked })} />
    </div>
  )
}
