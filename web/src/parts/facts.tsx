/** What is known of a thing: names and values in two columns. */
import type { ReactNode } from 'react'
import classes from './facts.module.css'

/** `framed`: as a box with lines between them. */
export function Facts({ framed, children }: { framed?: boolean; children: ReactNode }) {
  return <dl className={classes.facts} data-framed={framed || undefined}>{children}</dl>
}

export function Fact({ name, children }: { name: string; children: ReactNode }) {
  return <><dt>{name}</dt><dd>{children}</dd></>
}
