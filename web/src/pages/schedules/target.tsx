/** The job or workflow that a schedule is for, found by the server as somebody types. */
import { Select } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { useState } from 'react'
import { request } from '@/api/client'
import { useAnswer } from '@/api/queries'
import { useT } from '@/i18n'

export interface Owner {
  jobId?: string
  workflowId?: string
}

const FOUND = 20
const valueOf = ({ jobId, workflowId }: Owner) => (jobId !== undefined ? `job ${jobId}` : workflowId !== undefined ? `workflow ${workflowId}` : null)
const ownerOf = (value: string | null): Owner => {
  const [kind, id] = value?.split(/ (.*)/s) ?? []
  return kind === 'job' ? { jobId: id } : kind === 'workflow' ? { workflowId: id } : {}
}

/** Before anything is typed, the first of both; a chosen one stays in the list, by its name as soon as that is known. */
function useChoices(typed: string, chosen: string | null) {
  const t = useT()
  const [asked] = useDebouncedValue(typed.trim(), 200)
  const found = useAnswer('search', asked === '' ? null : request('GET', '/api/v1/search', { query: { q: asked, size: FOUND } })).data
  const jobs = useAnswer('jobs', asked === '' ? request('GET', '/api/v1/jobs', { query: { size: FOUND } }) : null).data?.items.map(({ jobId, name }) => ({ id: jobId, name }))
  const workflows = useAnswer('workflows', asked === '' ? request('GET', '/api/v1/workflows', { query: { size: FOUND } }) : null).data?.items.map(({ workflowId, name }) => ({ id: workflowId, name }))
  const choices = (kind: 'job' | 'workflow', items: readonly { id: string; name: string }[] = []) => items.map(({ id, name }) => ({ value: `${kind} ${id}`, label: name }))
  const groups = [
    { group: t('app.jobs'), items: choices('job', asked === '' ? jobs : found?.jobs) },
    { group: t('app.workflows'), items: choices('workflow', asked === '' ? workflows : found?.workflows) },
  ]
  const listed = chosen === null || groups.some(({ items }) => items.some(({ value }) => value === chosen))
  const id = chosen?.replace(/^\w+ /, '') ?? ''
  const named = useAnswer('search', listed ? null : request('GET', '/api/v1/search', { query: { q: id, size: 1 } })).data
  if (listed) return groups
  const name = [...(named?.jobs ?? []), ...(named?.workflows ?? [])].find((each) => each.id === id)?.name
  return [...groups, { group: t('schedules.chosen'), items: [{ value: chosen, label: name ?? id }] }]
}

export function TargetInput({ value, onChange, error }: { value: Owner; onChange: (owner: Owner) => void; error?: string }) {
  const t = useT()
  const [typed, setTyped] = useState('')
  const chosen = valueOf(value)
  // Once chosen, the input holds its name: that is no question.
  const groups = useChoices(typed, chosen)
  return (
    <Select label={t('schedules.targetLabel')} description={t('schedules.targetHint')} searchable clearable data={groups} filter={({ options }) => options} value={chosen} onChange={(next) => onChange(ownerOf(next))}
      searchValue={typed} onSearchChange={setTyped} error={error} nothingFoundMessage={t('schedules.noTarget')} maw={520} />
  )
}
