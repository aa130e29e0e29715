/** One side of an exchange: its first line, its headers and its body, as JSON where it is. */
import { Code, Stack, Text } from '@mantine/core'
import { useT } from '@/i18n'
import classes from './attempts.module.css'
import { JsonView } from './json'

interface MessageProps {
  title: string
  /** `POST http://…`, or the status. */
  line: string | null
  headers: unknown
  /** What else is known of it, such as a command. */
  more?: unknown
  body: string | null
}

export function MessageView({ title, line, headers, more, body }: MessageProps) {
  const t = useT()
  const nothing = line === null && !isFull(headers) && !isFull(more) && body === null
  return (
    <Stack gap={6} component="section" aria-label={title} miw={0}>
      <Text size="sm" fw={600}>{title}</Text>
      {nothing && <Text size="sm" c="dimmed">{t('runs.nothingKept')}</Text>}
      {line !== null && <Code block className={classes.first}>{line}</Code>}
      {isFull(headers) && <Headers of={headers} />}
      {isFull(more) && <JsonView label={title} value={more} />}
      {body !== null && body !== '' && <BodyView label={t('runs.body')} text={body} />}
    </Stack>
  )
}

const isFull = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && Object.keys(value).length > 0

export function Headers({ of }: { of: Record<string, unknown> }) {
  return (
    <dl className={classes.headers}>
      {Object.entries(of).map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{String(value)}</dd></div>)}
    </dl>
  )
}

/** A body: as JSON if it is, else as it came. */
export function BodyView({ text, label }: { text: string; label: string }) {
  const value = parsed(text)
  return value === undefined ? <pre className={classes.raw} tabIndex={0} role="region" aria-label={label}>{text}</pre> : <JsonView label={label} value={value} />
}

function parsed(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' ? value : undefined
  } catch {
    return undefined // it is not JSON: shown as it is
  }
}
