/** Two texts, line by line: what is only in the first, only in the second, and in both. */
export interface Line {
  kind: 'same' | 'gone' | 'new'
  text: string
}

/** Beyond, a line that moved is not looked for. */
const MOST_LINES = 4000

export function difference(before: string, after: string): Line[] {
  const [a, b] = [before.split('\n'), after.split('\n')]
  let start = 0
  while (start < Math.min(a.length, b.length) && a[start] === b[start]) start += 1
  let end = 0
  while (end < Math.min(a.length, b.length) - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1
  const same = (text: string): Line => ({ kind: 'same', text })
  return [...a.slice(0, start).map(same), ...middle(a.slice(start, a.length - end), b.slice(start, b.length - end)), ...a.slice(a.length - end).map(same)]
}

function middle(a: readonly string[], b: readonly string[]): Line[] {
  const gone = (text: string): Line => ({ kind: 'gone', text })
  const added = (text: string): Line => ({ kind: 'new', text })
  if (a.length * b.length > MOST_LINES * 250) return [...a.map(gone), ...b.map(added)]
  const lengths = commonLengths(a, b)
  const lines: Line[] = []
  let [i, j] = [0, 0]
  while (i < a.length && j < b.length) {
    const same = a[i] === b[j]
    const dropped = !same && lengths[i + 1]![j]! >= lengths[i]![j + 1]!
    lines.push(same ? { kind: 'same', text: a[i]! } : dropped ? gone(a[i]!) : added(b[j]!))
    if (same || dropped) i += 1
    if (same || !dropped) j += 1
  }
  return [...lines, ...a.slice(i).map(gone), ...b.slice(j).map(added)]
}

/** How many lines the rest from i and the rest from j have in common. */
function commonLengths(a: readonly string[], b: readonly string[]): Uint32Array[] {
  const lengths = Array.from({ length: a.length + 1 }, () => new Uint32Array(b.length + 1))
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      lengths[i]![j] = a[i] === b[j] ? lengths[i + 1]![j + 1]! + 1 : Math.max(lengths[i + 1]![j]!, lengths[i]![j + 1]!)
    }
  }
  return lengths
}

const AROUND = 3

/** Only what changed, with a few lines around it; null where something was left out. */
export function aroundChanges(lines: readonly Line[]): (Line | null)[] {
  const near = (index: number) => lines.slice(Math.max(0, index - AROUND), index + AROUND + 1).some(({ kind }) => kind !== 'same')
  const shown: (Line | null)[] = []
  lines.forEach((line, index) => {
    if (near(index)) shown.push(line)
    else if (shown.at(-1) !== null) shown.push(null)
  })
  return shown
}
