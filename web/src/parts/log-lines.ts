/** Lines of what attempts wrote, made of the parts that it is kept in: a part may end, and the next begin, within a line. */
import type { Schemas } from '@/api/client'

export type LogPart = Schemas['LogPart']
export interface Line {
  readonly text: string
  readonly stream: string
  /** Which claim wrote it. */
  readonly epoch: number
  readonly at: string
  /** Its end has not come yet. */
  readonly open: boolean
}

/** Colours and movements of the cursor, for a terminal. */
// eslint-disable-next-line no-control-regex
const ESCAPES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-Z\\-_])/g

/** What a terminal would show of a line: of one that was written over, what was written last. */
function shown(text: string): string {
  const plain = text.includes('\u001b') ? text.replace(ESCAPES, '') : text
  const whole = plain.endsWith('\r') ? plain.slice(0, -1) : plain
  return whole.includes('\r') ? whole.slice(whole.lastIndexOf('\r') + 1) : whole
}

function linesOf({ text, stream, epoch, at }: LogPart): Line[] {
  const texts = text.split('\n')
  const rest = texts.pop() ?? ''
  const whole = texts.map((each): Line => ({ text: shown(each), stream, epoch, at, open: false }))
  return rest === '' ? whole : [...whole, { text: shown(rest), stream, epoch, at, open: true }]
}

/** `newer` put after `older`; a line that goes on in it becomes one. */
export function joined(older: readonly Line[], newer: readonly Line[]): Line[] {
  const last = older.at(-1)
  const [first, ...rest] = newer
  if (!last?.open || !first || last.stream !== first.stream || last.epoch !== first.epoch) return [...older, ...newer]
  return [...older.slice(0, -1), { ...last, text: last.text + first.text, open: first.open }, ...rest]
}

export function linesOfParts(parts: readonly LogPart[]): Line[] {
  const lines: Line[] = []
  for (const part of parts) {
    const more = linesOf(part)
    const last = lines.pop()
    const seam = last ? joined([last], more) : more
    for (const line of seam) lines.push(line)
  }
  return lines
}
