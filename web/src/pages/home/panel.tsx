/** A part of the page with a frame of its own, a link to all of it, and a height that stays. */
import { Paper } from '@mantine/core'
import type { ReactNode } from 'react'
import { Section } from '@/parts/page'
import classes from './home.module.css'

interface PanelProps {
  title: string
  actions?: ReactNode
  /** As high as its neighbours, whatever is in it; what is more is scrolled to. */
  steady?: boolean
  children: ReactNode
}

export function Panel({ title, actions, steady, children }: PanelProps) {
  return (
    <Section title={title} actions={actions}>
      <Paper withBorder className={classes.panel} data-steady={steady || undefined}>{children}</Paper>
    </Section>
  )
}
