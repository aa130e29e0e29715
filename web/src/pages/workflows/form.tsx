/** A new workflow, and one that is changed. */
import { getRouteApi } from '@tanstack/react-router'
import { useState } from 'react'
import { request } from '@/api/client'
import { useAnswer } from '@/api/queries'
import type { Workflow } from '@/api/shapes'
import { useT } from '@/i18n'
import { ErrorBox, Loading, PageTitle } from '@/parts/page'
import { WorkflowEditor, draftOf, emptyDraft } from './editor'

const route = getRouteApi('/workflows/$workflowId/edit')

export function NewWorkflowPage() {
  const t = useT()
  const [initial] = useState(emptyDraft)
  return <WorkflowEditor title={t('workflows.create')} initial={initial} />
}

export function EditWorkflowPage() {
  const t = useT()
  const { workflowId } = route.useParams()
  const { data, error, refetch } = useAnswer('workflow', request('GET', '/api/v1/workflows/{workflowId}', { path: { workflowId } }))
  if (data === undefined || data.workflowId !== workflowId) return <><PageTitle title={t('workflows.edit')} />{error ? <ErrorBox error={error} retry={() => void refetch()} /> : <Loading />}</>
  return <Opened key={workflowId} workflow={data} />
}

/** As it was when it was opened, whatever others do meanwhile: they are told apart by the version when it is saved. */
function Opened({ workflow }: { workflow: Workflow }) {
  const t = useT()
  const [before] = useState(workflow)
  const [initial] = useState(() => draftOf(before))
  return <WorkflowEditor title={t('workflows.editNamed', { name: before.name })} initial={initial} before={before} />
}
