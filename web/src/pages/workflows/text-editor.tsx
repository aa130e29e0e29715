/** A definition as YAML or JSON. Loaded with the first look at a text: the reader of YAML, which knows where each part stands, comes with it. */
import { Group, SegmentedControl } from '@mantine/core'
import { useState } from 'react'
import { LineCounter, parseDocument, stringify } from 'yaml'
import { useT } from '@/i18n'
import { CodeEditor, type Mark } from './code-editor'
import { type Dag, type Problem, asDag, pathOf } from './definition'

type Language = 'yaml' | 'json'

interface TextProps {
  dag: Dag
  /** What was written; undefined while it cannot be read. */
  onChange: (dag: Dag | undefined) => void
  problem: Problem | undefined
  /** The node that was chosen elsewhere. */
  chosen?: string
}

const written = (dag: Dag, language: Language) => (language === 'json' ? `${JSON.stringify(dag, null, 2)}\n` : stringify(dag, { lineWidth: 0 }))

export function TextEditor({ dag, onChange, problem, chosen }: TextProps) {
  const t = useT()
  const [language, setLanguage] = useState<Language>('yaml')
  const [text, setText] = useState(() => written(dag, 'yaml'))
  const [known, setKnown] = useState(dag)
  if (known !== dag && same(known, dag)) setKnown(dag)
  else if (known !== dag) {
    setKnown(dag)
    setText(written(dag, language))
  }
  const read = readText(text)
  const change = (next: string) => {
    setText(next)
    const { value, mark } = readText(next)
    const made = mark ? undefined : asDag(value)
    if (made) setKnown(made)
    onChange(made)
  }
  const choose = (next: string) => {
    setLanguage(next as Language)
    if (read.mark === undefined) setText(written(dag, next as Language))
  }
  const mark = read.mark ?? (asDag(read.value) === undefined ? { line: 1, message: t('workflows.noObject') } : problem && { line: read.lineOf(pathOf(problem.field), problem.nodes[0]), message: problem.message })
  return (
    <>
      <Group justify="flex-end" mb={6}><SegmentedControl size="xs" aria-label={t('workflows.language')} value={language} onChange={choose} data={[{ value: 'yaml', label: 'YAML' }, { value: 'json', label: 'JSON' }]} /></Group>
      <Jumping value={text} onChange={change} label={t('workflows.definition')} mark={mark} node={chosen} lineOf={read.lineOf} />
    </>
  )
}

interface JumpingProps {
  value: string
  onChange: (text: string) => void
  label: string
  mark: Mark | undefined
  node: string | undefined
  lineOf: Read['lineOf']
}

/** Goes to a node when another one is chosen, and stays where it is while somebody types. */
function Jumping({ node, lineOf, ...rest }: JumpingProps) {
  const [last, setLast] = useState<string>()
  const [jump, setJump] = useState<{ line: number }>()
  if (node !== last) {
    setLast(node)
    if (node !== undefined) setJump({ line: lineOf(['nodes'], node) })
  }
  return <CodeEditor {...rest} jump={jump} />
}

const same = (a: Dag, b: Dag) => JSON.stringify(a) === JSON.stringify(b)

interface Read {
  value: unknown
  mark?: Mark
  /** The line of what is at a path, or of as much of it as there is; of the nodes as a whole, that of one of them. */
  lineOf: (path: readonly (string | number)[], node?: string) => number
}

/** YAML, of which JSON is a part. */
function readText(text: string): Read {
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false })
  const lineAt = (offset: number | undefined) => (offset === undefined ? 1 : Math.max(1, lines.linePos(offset).line))
  const place = (path: readonly (string | number)[]): number => {
    const found = path.length === 0 ? document.contents : document.getIn(path, true)
    if (typeof found === 'object' && found !== null && 'range' in found) return lineAt((found as { range?: [number, number, number] }).range?.[0])
    return path.length === 0 ? 1 : place(path.slice(0, -1))
  }
  const error = document.errors[0]
  const value: unknown = error ? undefined : document.toJS()
  const lineOf: Read['lineOf'] = (path, node) => {
    const index = path.length === 1 && path[0] === 'nodes' && node !== undefined ? (asDag(value)?.nodes.findIndex(({ id }) => id === node) ?? -1) : -1
    return place(index >= 0 ? ['nodes', index] : path)
  }
  return { value, lineOf, ...(error && { mark: { line: lineAt(error.pos[0]), message: error.message } }) }
}
