/** A plain editor for code: line numbers, Tab for two spaces (Escape, then Tab, leaves it), and a mark where something is wrong. */
import { Text } from '@mantine/core'
import { IconAlertCircle } from '@tabler/icons-react'
import { type KeyboardEvent, useEffect, useMemo, useRef } from 'react'
import { useT } from '@/i18n'
import classes from './code-editor.module.css'

export interface Mark {
  /** From 1. */
  line: number
  message: string
}

interface EditorProps {
  value: string
  onChange: (text: string) => void
  label: string
  mark?: Mark
  /** Where to go, whenever another object comes. */
  jump?: { line: number }
}

const LINE = 20

export function CodeEditor({ value, onChange, label, mark, jump }: EditorProps) {
  const t = useT()
  const area = useRef<HTMLTextAreaElement>(null)
  const leaving = useRef(false)
  const count = useMemo(() => value.split('\n').length, [value])
  useEffect(() => {
    if (jump && area.current) goTo(area.current, jump.line)
  }, [jump])
  const pressed = (event: KeyboardEvent<HTMLTextAreaElement>) => {
    if (event.key === 'Tab' && !leaving.current && !event.ctrlKey && !event.altKey && !event.metaKey) {
      event.preventDefault()
      indent(event.currentTarget, event.shiftKey)
    } else if (event.key === 'Enter' && !event.nativeEvent.isComposing) {
      event.preventDefault()
      insert(`\n${indentationBefore(event.currentTarget)}`)
    }
    leaving.current = event.key === 'Escape'
  }
  return (
    <div className={classes.frame}>
      <div className={classes.scroll}>
        <div className={classes.lines} aria-hidden>
          {Array.from({ length: count }, (_, index) => <span key={index} data-wrong={mark?.line === index + 1 || undefined}>{index + 1}</span>)}
        </div>
        <div className={classes.text}>
          {mark && <div className={classes.mark} style={{ top: 8 + (mark.line - 1) * LINE }} />}
          <textarea ref={area} value={value} onChange={(event) => onChange(event.currentTarget.value)} onKeyDown={pressed} aria-label={label} aria-invalid={mark !== undefined} aria-describedby={mark ? 'code-problem' : undefined}
            rows={Math.max(count, 18)} wrap="off" spellCheck={false} autoCapitalize="off" autoComplete="off" autoCorrect="off" />
        </div>
      </div>
      {mark ? (
        <button type="button" id="code-problem" className={classes.problem} role="alert" onClick={() => area.current && goTo(area.current, mark.line)}>
          <IconAlertCircle size={16} aria-hidden /><span>{t('workflows.atLine', { n: mark.line })}: {mark.message}</span>
        </button>
      ) : <Text size="xs" c="dimmed" className={classes.hint}>{t('workflows.tabHint')}</Text>}
    </div>
  )
}

/** As if it was typed, so that it can be undone. */
function insert(text: string): void {
  document.execCommand('insertText', false, text)
}

function goTo(area: HTMLTextAreaElement, line: number): void {
  const lines = area.value.split('\n')
  const start = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0)
  area.focus({ preventScroll: true })
  area.setSelectionRange(start, start + (lines[line - 1]?.length ?? 0))
  area.closest(`.${classes.scroll}`)?.scrollTo({ top: Math.max(0, (line - 6) * LINE) })
}

function indentationBefore(area: HTMLTextAreaElement): string {
  const line = area.value.slice(area.value.lastIndexOf('\n', area.selectionStart - 1) + 1, area.selectionStart)
  return /^[ ]*(?:- )?/.exec(line)![0].replace('- ', '  ')
}

/** The lines of the selection, or the place of the cursor, two spaces to the right or to the left. */
function indent(area: HTMLTextAreaElement, back: boolean): void {
  const { selectionStart: start, selectionEnd: end, value } = area
  if (start === end && !back) return insert('  ')
  const from = value.lastIndexOf('\n', start - 1) + 1
  const lines = value.slice(from, end).split('\n')
  const moved = lines.map((line) => (back ? line.replace(/^ {1,2}/, '') : `  ${line}`)).join('\n')
  area.setSelectionRange(from, end)
  insert(moved)
  area.setSelectionRange(from, from + moved.length)
}
