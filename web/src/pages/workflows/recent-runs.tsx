/** How the last runs went, oldest first, as a row of icons that lead to them. */
import { Text } from '@mantine/core'
import type { Run } from '@/api/shapes'
import { useT } from '@/i18n'
import { TextLink } from '@/parts/link'
import { StateBadge } from '@/states'
import classes from './recent-runs.module.css'

export function RecentRuns({ runs, name }: { runs: readonly Run[]; name: string }) {
  const t = useT()
  if (runs.length === 0) return <Text span inherit c="dimmed">{t('workflows.neverRan')}</Text>
  return (
    <span className={classes.strip} role="group" aria-label={t('workflows.recentOf', { name })}>
      {runs.toReversed().map((run) => <TextLink key={run.id} to="/runs/$runId" params={{ runId: run.id }} preload={false} className={classes.run} title={run.id}><StateBadge status={run.status} compact /></TextLink>)}
    </span>
  )
}
