/** Why a plan stands, in words, and what would make it go on. */
import { Alert, Text } from '@mantine/core'
import { IconInfoCircle, IconPlayerPause, IconShieldX } from '@tabler/icons-react'
import { useAnswer } from '@/api/queries'
import type { Plan } from '@/api/shapes'
import { type Translate, useT } from '@/i18n'
import { Instant } from '@/time'
import { auditOf } from './history'
import classes from './plan.module.css'

interface Told {
  title: string
  hint?: string
  bad?: boolean
}

export function Standing({ plan }: { plan: Plan }) {
  const t = useT()
  if (plan.pauseReason === 'paused' && plan.status === 'PAUSED') return <PausedByPerson plan={plan} />
  const told = toldOf(t, plan)
  if (told === undefined) return null
  const Shown = told.bad ? IconShieldX : IconInfoCircle
  return (
    <Alert variant="default" className={classes.standing} classNames={{ body: classes.standingBody }} data-bad={told.bad || undefined} icon={<Shown />} title={told.title} role="status">
      {told.hint && <Text size="sm">{told.hint}</Text>}
    </Alert>
  )
}

function toldOf(t: Translate, plan: Plan): Told | undefined {
  if (plan.status === 'READY') return { title: t('plans.standsReady') }
  if (plan.status === 'FAILED') return { title: t('plans.standsFailed', { n: plan.tasks.failed }), bad: true }
  if (plan.status === 'CANCELLED') return { title: t('plans.standsCancelled'), hint: plan.message ? t('plans.standsReason', { reason: plan.message }) : undefined }
  if (plan.status !== 'PAUSED') return undefined
  if (plan.pauseReason === 'wave_done') return { title: t('plans.standsWave', { wave: plan.currentWave }) }
  return plan.pauseReason === 'gate' ? gateTold(t, plan) : { title: t('plans.standsBudget', { failed: plan.tasks.failed, total: plan.tenants, budget: String(plan.failureBudget) }), hint: t('plans.standsBudgetHint'), bad: true }
}

function gateTold(t: Translate, plan: Plan): Told {
  const wave = plan.waves.find((each) => each.wave === plan.currentWave)
  if (wave === undefined) return { title: plan.message ?? '', bad: true }
  const { tasks: { failed, waiting, running, paused }, tenants: total } = wave
  const most = wave.gate?.maxFailedPercent ?? 100
  if (failed * 100 <= most * total && waiting + running + paused === 0) return { title: t('plans.standsGateMet', { wave: wave.wave }) }
  return { title: t('plans.standsGate', { wave: wave.wave, failed, total, most }), hint: t('plans.standsGateHint'), bad: true }
}

/** Who paused it is in the audit. */
function PausedByPerson({ plan }: { plan: Plan }) {
  const t = useT()
  const { data } = useAnswer('plan', auditOf(`plan/${plan.planId}`))
  const order = data?.items.find(({ action }) => action === 'plan.pause')
  // Where the order is known, so is whether one was given: the plan says something in any case.
  const reason = order ? order.reason : plan.message
  return (
    <Alert variant="default" className={classes.standing} classNames={{ body: classes.standingBody }} icon={<IconPlayerPause />} role="status"
      title={order ? t('plans.standsPersonNamed', { actor: order.actor, address: order.address }) : t('plans.standsPerson')}>
      {reason && <Text size="sm">{t('plans.standsReason', { reason })}</Text>}
      {order && <Text size="xs" c="dimmed"><Instant at={order.at} /></Text>}
    </Alert>
  )
}
