/** JSON for people: coloured by kind, folded where it is long, copied as it is. */
import { ActionIcon, Box, Button, CopyButton, Tooltip } from '@mantine/core'
import { IconCheck, IconCopy } from '@tabler/icons-react'
import { type ReactNode, useState } from 'react'
import { useT } from '@/i18n'
import classes from './json.module.css'

const TOKEN = /("(?:\\.|[^"\\])*")(\s*:)?|\b(?:true|false|null)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g
const FOLDED = 24

function coloured(text: string): ReactNode[] {
  const parts: ReactNode[] = []
  let last = 0
  for (const found of text.matchAll(TOKEN)) {
    parts.push(text.slice(last, found.index))
    const kind = found[1] === undefined ? 'literal' : found[2] === undefined ? 'string' : 'name'
    parts.push(<span key={found.index} className={classes[kind]}>{found[1] ?? found[0]}</span>, found[2] ?? '')
    last = found.index + found[0].length
  }
  return [...parts, text.slice(last)]
}

export function JsonView({ value, label }: { value: unknown; label: string }) {
  const t = useT()
  const [whole, setWhole] = useState(false)
  const text = JSON.stringify(value, null, 2) ?? 'null'
  const lines = text.split('\n')
  const shown = whole ? text : lines.slice(0, FOLDED).join('\n')
  return (
    <Box className={classes.box}>
      <CopyButton value={text}>
        {({ copied, copy }) => (
          <Tooltip label={copied ? t('app.copied') : t('app.copy')}>
            <ActionIcon className={classes.copy} variant="subtle" color="gray" size="sm" onClick={copy} aria-label={t('app.copy')}>
              {copied ? <IconCheck size={14} /> : <IconCopy size={14} />}
            </ActionIcon>
          </Tooltip>
        )}
      </CopyButton>
      <pre className={classes.text} tabIndex={0} aria-label={label} role="region">{coloured(shown)}</pre>
      {lines.length > FOLDED && (
        <Button size="compact-xs" variant="subtle" m={4} onClick={() => setWhole(!whole)}>{whole ? t('app.collapse') : t('app.expand')}</Button>
      )}
    </Box>
  )
}
