/** Filters of a list, all of them in the URL. Texts are applied when typing pauses. */
import { Button, Group, MultiSelect, Select, TextInput } from '@mantine/core'
import { useDebouncedCallback } from '@mantine/hooks'
import { IconSearch, IconX } from '@tabler/icons-react'
import { Fragment, type ReactNode, useEffect, useState } from 'react'
import { useT } from '@/i18n'
import { instantAt, useZone, wallClock } from '@/time'

interface Choice {
  value: string
  label: string
}
interface Base<N extends string> {
  name: N
  label: string
  width?: number
}
export type Field<N extends string = string> =
  | (Base<N> & { kind: 'text' })
  | (Base<N> & { kind: 'one'; choices: readonly Choice[] })
  | (Base<N> & { kind: 'many'; choices: readonly Choice[] })
  | (Base<N> & { kind: 'instant' })
  /** One that draws itself; `also` are further parameters that it sets. */
  | (Base<N> & { kind: 'own'; also?: readonly N[]; show: () => ReactNode })

interface FilterBarProps<S extends object> {
  fields: readonly Field<keyof S & string>[]
  /** The search parameters, as the router has them. */
  search: S
  onChange: (patch: Partial<S>) => void
}

/** The first text field is where `/` leads. */
export function FilterBar<S extends object>({ fields, search, onChange }: FilterBarProps<S>) {
  const t = useT()
  const value = (name: keyof S) => search[name]
  const set = (name: keyof S, next: unknown) => onChange({ [name]: next === '' || next === null ? undefined : next } as Partial<S>)
  const names = fields.flatMap((field) => [field.name, ...(field.kind === 'own' ? (field.also ?? []) : [])])
  const used = names.some((name) => value(name) !== undefined)
  const first = fields.find(({ kind }) => kind === 'text')?.name
  return (
    <Group gap="xs" mb="sm" role="search" aria-label={t('app.filter')}>
      {fields.map((field) => {
        const common = { key: field.name, size: 'xs', 'aria-label': field.label, placeholder: field.label, w: field.width ?? 170 } as const
        const { key, ...rest } = common
        if (field.kind === 'text') return <TextFilter key={key} {...rest} value={String(value(field.name) ?? '')} isFirst={field.name === first} onChange={(next) => set(field.name, next)} />
        if (field.kind === 'one') return <Select key={key} {...rest} clearable data={[...field.choices]} value={(value(field.name) as string | undefined) ?? null} onChange={(next) => set(field.name, next)} />
        if (field.kind === 'many') return <ManyFilter key={key} {...rest} choices={field.choices} value={(value(field.name) as string[] | undefined) ?? []} onChange={(next) => set(field.name, next.length > 0 ? next : undefined)} />
        if (field.kind === 'own') return <Fragment key={key}>{field.show()}</Fragment>
        return <InstantInput key={key} label={field.label} value={value(field.name) as string | undefined} onChange={(next) => set(field.name, next)} />
      })}
      {used && (
        <Button size="xs" variant="subtle" color="gray" leftSection={<IconX size={14} />} onClick={() => onChange(Object.fromEntries(names.map((name) => [name, undefined])) as Partial<S>)}>
          {t('app.clear')}
        </Button>
      )}
    </Group>
  )
}

interface InputProps {
  size: 'xs'
  w: number
  'aria-label': string
  placeholder: string
}

function TextFilter({ value, onChange, isFirst, ...rest }: InputProps & { value: string; onChange: (next: string) => void; isFirst: boolean }) {
  const [typed, setTyped] = useState(value)
  const [applied, setApplied] = useState(value)
  const apply = useDebouncedCallback((next: string) => {
    setApplied(next)
    onChange(next.trim())
  }, 250)
  useEffect(() => {
    if (value !== applied.trim()) {
      // eslint-disable-next-line react-hooks/set-state-in-effect -- the URL was changed by another than this input
      setTyped(value)
      setApplied(value)
    }
  }, [value, applied])
  return (
    <TextInput
      {...rest}
      leftSection={<IconSearch size={14} />}
      value={typed}
      data-filter={isFirst || undefined}
      onChange={(event) => {
        setTyped(event.currentTarget.value)
        apply(event.currentTarget.value)
      }}
      onKeyDown={(event) => event.key === 'Escape' && event.currentTarget.blur()}
    />
  )
}

function ManyFilter({ value, onChange, choices, ...rest }: InputProps & { value: string[]; onChange: (next: string[]) => void; choices: readonly Choice[] }) {
  return <MultiSelect {...rest} w={undefined} miw={rest.w} maw={rest.w + 60} styles={{ inputField: { minWidth: 24 } }} placeholder={value.length > 0 ? undefined : rest.placeholder} clearable searchable hidePickedOptions data={[...choices]} value={value} onChange={onChange} />
}

/** An instant, typed in the zone that labels are in. */
export function InstantInput({ label, value, onChange }: { label: string; value: string | undefined; onChange: (next: string | undefined) => void }) {
  const zone = useZone()
  const shown = value === undefined || Number.isNaN(Date.parse(value)) ? '' : wallClock(value, zone)
  return (
    <TextInput size="xs" w={200} type="datetime-local" step={1} aria-label={`${label} (${zone})`} title={`${label} (${zone})`} value={shown}
      onChange={(event) => onChange(event.currentTarget.value === '' ? undefined : instantAt(event.currentTarget.value, zone))} />
  )
}
