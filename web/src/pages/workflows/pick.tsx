/** Choosing a job or a workflow by typing a part of its name; the server is asked, never for all of them. */
import { Select, type SelectProps } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { useState } from 'react'
import { request } from '@/api/client'
import { useAnswer } from '@/api/queries'

type PickProps = Pick<SelectProps, 'label' | 'error' | 'description' | 'placeholder'> & { value: string; onChange: (id: string) => void }
interface Found {
  id: string
  name: string
}

export function PickJob(props: PickProps) {
  const [typed, setTyped] = useState('')
  const [keyword] = useDebouncedValue(typed, 200)
  const { data } = useAnswer('jobs', request('GET', '/api/v1/jobs', { query: { keyword, size: 20 } }))
  const own = useAnswer('job', props.value === '' ? null : request('GET', '/api/v1/jobs/{jobId}', { path: { jobId: props.value } }))
  const chosen = own.data && props.value !== '' ? [{ id: props.value, name: own.data.name }] : []
  return <Pick {...props} found={[...chosen, ...(data?.items ?? []).map(({ jobId, name }) => ({ id: jobId, name }))]} typed={typed} onType={setTyped} />
}

export function PickWorkflow(props: PickProps) {
  const [typed, setTyped] = useState('')
  const [keyword] = useDebouncedValue(typed, 200)
  const { data } = useAnswer('workflows', request('GET', '/api/v1/workflows', { query: { keyword, size: 20 } }))
  const own = useAnswer('workflow', props.value === '' ? null : request('GET', '/api/v1/workflows/{workflowId}', { path: { workflowId: props.value } }))
  const chosen = own.data && props.value !== '' ? [{ id: props.value, name: own.data.name }] : []
  return <Pick {...props} found={[...chosen, ...(data?.items ?? []).map(({ workflowId, name }) => ({ id: workflowId, name }))]} typed={typed} onType={setTyped} />
}

function Pick({ found, value, onChange, typed, onType, ...rest }: PickProps & { found: readonly Found[]; typed: string; onType: (text: string) => void }) {
  const known = new Map([...(value === '' ? [] : [{ id: value, name: value }]), ...found].map(({ id, name }) => [id, name]))
  return (
    <Select {...rest} searchable value={value === '' ? null : value} onChange={(next) => onChange(next ?? '')} searchValue={typed} onSearchChange={onType} filter={({ options }) => options}
      data={[...known].map(([id, name]) => ({ value: id, label: name }))} />
  )
}
