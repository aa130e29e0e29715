/** What runs now, with how long it has. */
import { Text } from '@mantine/core'
import { IconMoon } from '@tabler/icons-react'
import { useState } from 'react'
import { request } from '@/api/client'
import { useAnswer } from '@/api/queries'
import type { Run } from '@/api/shapes'
import { useT } from '@/i18n'
import { RowLink, TextLink } from '@/parts/link'
import { useSteady } from '@/parts/steady'
import { StateBadge } from '@/states'
import { Duration } from '@/time'
import { Answered, Nothing } from './nothing'
import { Panel } from './panel'
import classes from './home.module.css'

const STATES = ['RUNNING', 'RETRYING', 'CALLBACK_PENDING', 'STOPPING']
const SHOWN = 20
const NONE: readonly Run[] = []
const idOf = (run: Run) => run.id

export function RunningPanel() {
  const t = useT()
  const answer = useAnswer('activity', request('GET', '/api/v1/activity', { query: { status: STATES.join(','), size: SHOWN } }))
  const [held, setHeld] = useState(false)
  const { rows } = useSteady(answer.data?.items ?? NONE, idOf, held)
  const total = answer.data?.total ?? rows.length
  return (
    <Panel steady title={t('home.runningNow')} actions={<TextLink to="/runs" search={{ status: STATES }} size="xs">{t('home.allOf', { n: total })}</TextLink>}>
      <Answered answer={answer}>
        {rows.length === 0 && <Nothing icon={IconMoon} text={t('home.nothingRuns')} />}
        <div onPointerEnter={(event) => event.pointerType === 'mouse' && setHeld(true)} onPointerLeave={() => setHeld(false)}>
          {rows.map((run) => (
            <div key={run.id} className={classes.row}>
              <StateBadge status={run.status} compact />
              <span className={classes.grow}><RowLink to="/runs/$runId" params={{ runId: run.id }} title={run.target.name}>{run.target.name}</RowLink></span>
              {run.tenantId && <Text span size="xs" c="dimmed">{run.tenantId}</Text>}
              <Text span size="sm"><Duration millis={run.durationMillis} since={run.startedAt ?? run.createdAt} /></Text>
            </div>
          ))}
        </div>
      </Answered>
    </Panel>
  )
}
