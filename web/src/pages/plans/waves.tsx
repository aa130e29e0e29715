/** The waves of a plan in their order, with the gate between each and the next. */
import { Text, UnstyledButton } from '@mantine/core'
import { IconChevronRight, IconLock, IconLockOpen2, IconPlayerPause } from '@tabler/icons-react'
import { Fragment } from 'react'
import type { Plan } from '@/api/shapes'
import { useT } from '@/i18n'
import { Section } from '@/parts/page'
import { StateBadge } from '@/states'
import classes from './plan.module.css'
import { ProgressCell } from './progress'

type Wave = Plan['waves'][number]
const LOOKS: Readonly<Record<Wave['status'], string>> = { PENDING: 'PENDING', RUNNING: 'RUNNING', DONE: 'FINISHED' }

interface WavesProps {
  plan: Plan
  /** Whose tenants are shown. */
  chosen?: number
  onChoose: (wave: number | undefined) => void
}

export function Waves({ plan, chosen, onChoose }: WavesProps) {
  const t = useT()
  if (plan.waves.length < 2) return null
  return (
    <Section title={t('plans.waves')}>
      <div className={classes.waves} tabIndex={0} role="group" aria-label={t('plans.waves')}>
        {plan.waves.map((wave, index) => (
          <Fragment key={wave.wave}>
            {index > 0 && <IconChevronRight size={16} className={classes.between} aria-hidden />}
            <UnstyledButton className={classes.wave} data-on={wave.wave === chosen || undefined} aria-pressed={wave.wave === chosen} title={t('plans.showWave', { wave: wave.wave })}
              onClick={() => onChoose(wave.wave === chosen ? undefined : wave.wave)}>
              <WaveCard plan={plan} wave={wave} />
            </UnstyledButton>
          </Fragment>
        ))}
      </div>
    </Section>
  )
}

function WaveCard({ plan, wave }: { plan: Plan; wave: Wave }) {
  const t = useT()
  return (
    <>
      <span className={classes.waveHead}>
        <b>{t('plans.waveN', { wave: wave.wave })}</b>
        <StateBadge status={plan.status === 'CANCELLED' && wave.status !== 'DONE' ? 'CANCELLED' : LOOKS[wave.status]} />
      </span>
      <Text span size="xs" c="dimmed">{extent(t, wave)}</Text>
      <ProgressCell counts={wave.tasks} />
      <Gate plan={plan} wave={wave} />
      {wave.pauseAfter && <span className={classes.gate}><IconPlayerPause size={14} aria-hidden />{t('plans.pauseAfter')}</span>}
    </>
  )
}

function extent(t: ReturnType<typeof useT>, wave: Wave): string {
  const tenants = t('plans.tenantCount', { n: wave.tenants })
  if (wave.percent !== null) return `${tenants} · ${t('plans.percent', { n: wave.percent })}`
  return wave.size === null ? `${tenants} · ${t('plans.rest')}` : tenants
}

/** A gate is looked at when its wave is done: then it is passed, or shut until somebody does something. */
function Gate({ plan, wave }: { plan: Plan; wave: Wave }) {
  const t = useT()
  if (wave.gate === null) return null
  const { maxFailedPercent: most } = wave.gate
  const failed = wave.tenants === 0 ? 0 : (wave.tasks.failed * 100) / wave.tenants
  const passed = plan.currentWave > wave.wave || (wave.status === 'DONE' && failed <= most)
  const shut = wave.status === 'DONE' && !passed
  const Shown = passed ? IconLockOpen2 : IconLock
  return (
    <span className={classes.gate} data-tone={passed ? 'good' : shut ? 'bad' : undefined}>
      <Shown size={14} aria-hidden />
      <span>{t('plans.gate', { most })}{(passed || shut) && ` · ${passed ? t('plans.gatePassed') : t('plans.gateShut')} (${t('plans.gateNow', { now: Math.round(failed * 10) / 10 })})`}</span>
    </span>
  )
}
