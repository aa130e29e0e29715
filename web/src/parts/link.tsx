/** Links of the console's own. `RowLink` is the one that a row of a Table follows; `ButtonLink` looks like a button. */
import { Anchor, type AnchorProps, Button, type ButtonProps } from '@mantine/core'
import { type LinkComponent, createLink } from '@tanstack/react-router'
import { type ComponentPropsWithRef, forwardRef } from 'react'
import type { Target } from '@/api/shapes'

type Props = AnchorProps & Omit<ComponentPropsWithRef<'a'>, keyof AnchorProps>

const Plain = forwardRef<HTMLAnchorElement, Props>((props, ref) => <Anchor ref={ref} inherit {...props} />)
Plain.displayName = 'Plain'
const Row = forwardRef<HTMLAnchorElement, Props>((props, ref) => <Anchor ref={ref} inherit fw={500} c="inherit" {...props} className="primary" />)
Row.displayName = 'Row'

const linkOf = (component: typeof Plain): LinkComponent<typeof Plain> => createLink(component)
export const TextLink = linkOf(Plain)
export const RowLink = linkOf(Row)

/** The page of a job, a workflow or a plan. */
export const pageOf = ({ kind, id }: Pick<Target, 'kind' | 'id'>) => {
  if (kind === 'job') return { to: '/jobs/$jobId', params: { jobId: id } } as const
  return kind === 'workflow' ? ({ to: '/workflows/$workflowId', params: { workflowId: id } } as const) : ({ to: '/plans/$planId', params: { planId: id } } as const)
}

/** The name of what a run is of, which leads there unless it was deleted. */
export function TargetLink({ target }: { target: Target }) {
  return target.deleted ? <span>{target.name}</span> : <RowLink {...pageOf(target)} title={target.name}>{target.name}</RowLink>
}

const Pressed = forwardRef<HTMLAnchorElement, ButtonProps & Omit<ComponentPropsWithRef<'a'>, keyof ButtonProps>>((props, ref) => <Button component="a" ref={ref} size="xs" variant="default" {...props} />)
Pressed.displayName = 'Pressed'
export const ButtonLink: LinkComponent<typeof Pressed> = createLink(Pressed)
