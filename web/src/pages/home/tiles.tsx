/** How many of everything there are now; each leads to the list of them. */
import { SimpleGrid } from '@mantine/core'
import { Link, type LinkProps } from '@tanstack/react-router'
import type { Schemas } from '@/api/client'
import { useT } from '@/i18n'
import { Tile } from '@/parts/page'
import { FAILED_STATES, colourOf } from '@/states'
import classes from './home.module.css'

type Overview = Schemas['OverviewShown']

interface Shown {
  label: string
  count: number
  /** The state whose colour it has while there are any. */
  state: string
  hint?: string
  to: LinkProps
}

const runs = (...status: string[]): LinkProps => ({ to: '/runs', search: { status } })

export function Tiles({ overview }: { overview: Overview }) {
  const t = useT()
  const { alive, lost } = overview.instances
  const tiles: readonly Shown[] = [
    { label: t('home.failures'), count: overview.failures, state: 'FAILED', to: runs(...FAILED_STATES) },
    { label: t('home.running'), count: overview.running, state: 'RUNNING', to: runs('RUNNING') },
    { label: t('home.ready'), count: overview.ready, state: 'SCHEDULED', to: runs('SCHEDULED') },
    { label: t('home.waiting'), count: overview.waiting, state: 'PENDING', to: runs('PENDING') },
    { label: t('home.callbacks'), count: overview.awaitingCallback, state: 'CALLBACK_PENDING', to: runs('CALLBACK_PENDING') },
    { label: t('home.retrying'), count: overview.retrying, state: 'RETRYING', to: runs('RETRYING') },
    { label: t('home.instances'), count: alive, state: lost > 0 ? 'LOST' : 'ALIVE', hint: lost > 0 ? t('home.lost', { n: lost }) : undefined, to: { to: '/instances' } },
  ]
  return (
    <SimpleGrid cols={{ base: 2, xs: 4, lg: 7 }} spacing="sm">
      {tiles.map(({ label, count, state, hint, to }) => (
        <Link key={label} {...to} className={classes.tile} data-none={count === 0 || undefined}>
          <Tile label={label} value={count} hint={hint} tone={count > 0 ? colourOf(state) : undefined} />
        </Link>
      ))}
    </SimpleGrid>
  )
}
