/** Names and their values: headers, variables, labels. */
import { ActionIcon, Button, Input, TextInput } from '@mantine/core'
import { IconPlus, IconX } from '@tabler/icons-react'
import { Fragment } from 'react'
import { useT } from '@/i18n'
import type { Pair } from './draft'
import classes from './form.module.css'

interface PairsInputProps {
  label: string
  /** What the button says that adds one. */
  add: string
  description?: string
  value: readonly Pair[]
  onChange: (pairs: readonly Pair[]) => void
  error?: string
}

export function PairsInput({ label, add, description, value, onChange, error }: PairsInputProps) {
  const t = useT()
  const change = (index: number, patch: Partial<Pair>) => onChange(value.map((pair, at) => (at === index ? { ...pair, ...patch } : pair)))
  const named = (what: string, index: number) => `${label} ${index + 1}: ${what}`
  return (
    <Input.Wrapper description={description} error={error} role="group" aria-label={label} inputWrapperOrder={['input', 'description', 'error']}>
      <div className={classes.added}>
        <Input.Label labelElement="div">{label}</Input.Label>
        <Button size="compact-xs" variant="subtle" leftSection={<IconPlus size={13} />} onClick={() => onChange([...value, { name: '', value: '' }])}>{add}</Button>
      </div>
      {value.length > 0 && (
        <div className={classes.pairs}>
          {value.map((pair, index) => (
            <Fragment key={index}>
              <TextInput size="xs" aria-label={named(t('app.name'), index)} placeholder={t('app.name')} value={pair.name} onChange={(event) => change(index, { name: event.currentTarget.value })} aria-invalid={error ? true : undefined} />
              <TextInput size="xs" aria-label={named(t('jobs.value'), index)} placeholder={t('jobs.value')} value={pair.value} onChange={(event) => change(index, { value: event.currentTarget.value })} />
              <ActionIcon variant="subtle" color="gray" aria-label={t('jobs.removePair', { name: pair.name || String(index + 1) })} onClick={() => onChange(value.filter((_, at) => at !== index))}><IconX size={14} /></ActionIcon>
            </Fragment>
          ))}
        </div>
      )}
    </Input.Wrapper>
  )
}
