/** Chooses a job, a workflow or a plan by a part of its name: the server looks for it, nothing is loaded before. */
import { Select } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { IconSearch } from '@tabler/icons-react'
import { useState } from 'react'
import { type AnswerOf, request } from '@/api/client'
import { useAnswer } from '@/api/queries'
import { useT } from '@/i18n'

/** As lists of runs know it: a plan's id stands where a workflow's does. */
export interface ChosenTarget {
  jobId?: string
  workflowId?: string
}

interface TargetPickerProps {
  label: string
  value: ChosenTarget
  /** One of both, or none. */
  onChange: (chosen: ChosenTarget) => void
  width?: number
  /** It is where `/` leads. */
  isFirst?: boolean
}

type Found = AnswerOf<'/api/v1/search', 'GET'>
const asked = (q: string, size: number) => (q === '' ? null : request('GET', '/api/v1/search', { query: { q, size } }))

export function TargetPicker({ label, value, onChange, width = 220, isFirst }: TargetPickerProps) {
  const t = useT()
  const [typed, setTyped] = useState('')
  const [wanted] = useDebouncedValue(typed.trim(), 200)
  const id = value.jobId ?? value.workflowId ?? ''
  const chosen = id === '' ? null : `${value.jobId === undefined ? 'workflow' : 'job'} ${id}`
  const named = useAnswer('search', asked(id, 1)).data
  const name = (id !== '' && named && nameOf(named, id)) || id
  // What was chosen stands in the field: that is no question.
  const found = useAnswer('search', wanted === name ? null : asked(wanted, 8)).data
  const groups = found === undefined || wanted === '' || wanted === name ? [] : groupsOf(found, [t('app.jobs'), t('app.workflows'), t('app.plans')])
  const known = chosen === null || groups.some(({ items }) => items.some((item) => item.value === chosen)) ? [] : [{ value: chosen, label: name }]
  return (
    <Select size="xs" w={width} aria-label={label} placeholder={label} searchable clearable leftSection={<IconSearch size={14} />} rightSectionPointerEvents="all"
      data-filter={isFirst || undefined} onKeyDown={(event) => event.key === 'Escape' && event.currentTarget.blur()}
      data={[...known, ...groups]} filter={({ options }) => options} value={chosen} onSearchChange={setTyped}
      nothingFoundMessage={wanted === '' || wanted === name ? t('app.typeToSearch') : t('app.nothingFound', { q: wanted })}
      onChange={(next) => {
        const [kind, ...rest] = (next ?? '').split(' ')
        onChange({ jobId: kind === 'job' ? rest.join(' ') : undefined, workflowId: kind === 'workflow' ? rest.join(' ') : undefined })
      }} />
  )
}

const nameOf = (found: Found, id: string) =>
  [...found.jobs, ...found.workflows, ...found.plans.map(({ planId, name }) => ({ id: planId, name }))].find((each) => each.id === id)?.name

function groupsOf(found: Found, [jobs, workflows, plans]: readonly [string, string, string]) {
  return [
    { group: jobs, items: found.jobs.map(({ id, name }) => ({ value: `job ${id}`, label: name })) },
    { group: workflows, items: found.workflows.map(({ id, name }) => ({ value: `workflow ${id}`, label: name })) },
    { group: plans, items: found.plans.map(({ planId, name }) => ({ value: `workflow ${planId}`, label: name })) },
  ].filter(({ items }) => items.length > 0)
}
