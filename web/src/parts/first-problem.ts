/** After a refusal: leads to the first field that is marked, or to what is told where no field is. */
import { type RefObject, useEffect, useRef } from 'react'

const MARKED = '[aria-invalid="true"], [data-told]'

/** `trouble` is another object whenever something was refused, and null while nothing is. Goes around the fields. */
export function useFirstProblem<E extends HTMLElement>(trouble: object | null): RefObject<E | null> {
  const around = useRef<E>(null)
  useEffect(() => {
    if (trouble === null) return
    const frame = window.requestAnimationFrame(() => {
      const first = around.current?.querySelector<HTMLElement>(MARKED)
      first?.focus({ preventScroll: true })
      // In the middle: neither below what sticks to the end of a form, nor without its label.
      first?.scrollIntoView({ block: 'center' })
    })
    return () => window.cancelAnimationFrame(frame)
  }, [trouble])
  return around
}
