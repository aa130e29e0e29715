/** One line of a log. */
import { type CSSProperties, type ReactNode, type Ref, memo } from 'react'
import { useT } from '@/i18n'
import { absolute } from '@/time'
import type { Line } from './log-lines'
import classes from './logs.module.css'

interface LogRowProps {
  line: Line
  index: number
  start: number
  zone: string
  /** It is the first of what its claim wrote. */
  begins: boolean
  /** What is searched for, in lower case; empty: nothing. */
  wanted: string
  /** It is the place that was found. */
  current: boolean
  measured?: Ref<HTMLDivElement>
}

export const LogRow = memo(function LogRow({ line, index, start, zone, begins, wanted, current, measured }: LogRowProps) {
  const t = useT()
  const style: CSSProperties = { transform: `translateY(${start}px)` }
  const at = absolute(line.at, zone, { millis: true })
  return (
    <div ref={measured} data-index={index} className={classes.line} data-stream={line.stream} data-begins={begins || undefined} data-current={current || undefined} style={style}>
      <span className={classes.at} title={at}>{at.split(' ')[1]}</span>
      <span className={classes.mark} title={line.stream}>{line.stream === 'stderr' ? <>!<span className="visually-hidden">stderr</span></> : ''}</span>
      {begins && <span className={classes.claim}>{t('runs.epoch', { n: line.epoch })}</span>}
      <span className={classes.text}>{wanted ? marked(line.text, wanted) : line.text}</span>
    </div>
  )
})

function marked(text: string, wanted: string): ReactNode[] {
  const parts: ReactNode[] = []
  const lower = text.toLowerCase()
  let last = 0
  for (let at = lower.indexOf(wanted); at >= 0; at = lower.indexOf(wanted, last)) {
    parts.push(text.slice(last, at), <mark key={at}>{text.slice(at, at + wanted.length)}</mark>)
    last = at + wanted.length
  }
  return [...parts, text.slice(last)]
}
