/** Writes a workflow: as a form or as a text, which are the same thing, with its graph and what is wrong with it beside. */
import { Button, Group, Modal, SegmentedControl, Stack, Text, TextInput } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { IconAlertTriangle, IconCircleCheck } from '@tabler/icons-react'
import { useBlocker, useNavigate } from '@tanstack/react-router'
import { Suspense, lazy, useMemo, useRef, useState } from 'react'
import { type Refusal, request } from '@/api/client'
import { useAnswer, useSend } from '@/api/queries'
import type { Workflow } from '@/api/shapes'
import { useT } from '@/i18n'
import { CallMenu } from '@/parts/actions'
import { ErrorBox, Loading, PageTitle } from '@/parts/page'
import { type Dag, type Draft, type Problem, pictureOf, problemOf } from './definition'
import classes from './editor.module.css'
import { Graph } from './graph'
import { NodeCards } from './node-cards'
import { Options } from './options'

const TextEditor = lazy(async () => ({ default: (await import('./text-editor')).TextEditor }))
const TOUCHES = ['workflow', 'workflows', 'search'] as const

interface EditorProps {
  title: string
  initial: Draft
  /** The workflow that is changed, as it was read; none for a new one. */
  before?: Workflow
}

export function WorkflowEditor({ title, initial, before }: EditorProps) {
  const t = useT()
  const navigate = useNavigate()
  const [draft, setDraft] = useState(initial)
  const [view, setView] = useState<'form' | 'text'>('form')
  const [unreadable, setUnreadable] = useState(false)
  const [chosen, setChosen] = useState<string>()
  const change = useSend<Workflow>(TOUCHES)
  const check = useCheck(draft.dag, before?.workflowId)
  const problem = unreadable ? undefined : ((change.error && problemOf(change.error)) ?? check.problem)
  const dirty = useMemo(() => unreadable || JSON.stringify(draft) !== JSON.stringify(initial), [draft, initial, unreadable])
  const saved = useRef(false)
  const call = before === undefined
    ? request('POST', '/api/v1/workflows', { body: { name: draft.name.trim(), description: draft.description, dag: draft.dag, workflowId: draft.workflowId.trim() || undefined } })
    : request('PUT', '/api/v1/workflows/{workflowId}', { path: { workflowId: before.workflowId }, body: { name: draft.name.trim(), description: draft.description, dag: draft.dag, version: before.version } })
  const save = () => change.mutate(call, {
    onSuccess: ({ workflowId }) => {
      saved.current = true
      void navigate({ to: '/workflows/$workflowId', params: { workflowId } })
    },
  })
  const edit = (patch: Partial<Draft>) => {
    change.reset()
    setDraft({ ...draft, ...patch })
  }
  const setDag = (dag: Dag) => edit({ dag })
  const written = (dag: Dag | undefined) => {
    setUnreadable(dag === undefined)
    if (dag) setDag(dag)
  }
  const wrong = (field: string) => (change.error?.field === field ? change.error.message : undefined)
  return (
    <>
      <PageTitle title={title}>
        <Button size="xs" variant="default" onClick={() => void navigate(before ? { to: '/workflows/$workflowId', params: { workflowId: before.workflowId } } : { to: '/workflows' })}>{t('app.cancel')}</Button>
        <Button.Group>
          <Button size="xs" disabled={unreadable || draft.name.trim() === ''} loading={change.isPending} onClick={save}>{t('workflows.save')}</Button>
          <CallMenu label={t('workflows.save')} calls={[call]} variant="filled" />
        </Button.Group>
      </PageTitle>
      {change.error && !isPlaced(change.error) && <ErrorBox error={change.error} />}
      <div className={classes.page}>
        <Stack gap="md" className={classes.left}>
          <div className={classes.names}>
            <TextInput label={t('app.name')} required value={draft.name} onChange={(event) => edit({ name: event.currentTarget.value })} error={wrong('name')} data-autofocus />
            {before === undefined && <TextInput label={t('workflows.ownId')} description={t('workflows.ownIdHint')} inputWrapperOrder={['label', 'input', 'description', 'error']} value={draft.workflowId} onChange={(event) => edit({ workflowId: event.currentTarget.value })} error={wrong('workflowId')} />}
            <TextInput className={classes.wide} label={t('app.description')} value={draft.description} onChange={(event) => edit({ description: event.currentTarget.value })} error={wrong('description')} />
          </div>
          <Group justify="space-between">
            <SegmentedControl size="xs" aria-label={t('workflows.writeAs')} value={view} onChange={(next) => !unreadable && setView(next as 'form' | 'text')} data={[{ value: 'form', label: t('workflows.asForm'), disabled: unreadable }, { value: 'text', label: t('workflows.asText') }]} />
            {unreadable && <Text size="xs" c="dimmed">{t('workflows.unreadable')}</Text>}
          </Group>
          {view === 'form' ? (
            <>
              <NodeCards dag={draft.dag} onChange={setDag} problem={problem} chosen={chosen} onChoose={setChosen} />
              <Options dag={draft.dag} onChange={setDag} problem={problem} />
            </>
          ) : (
            <Suspense fallback={<Loading />}><div><TextEditor dag={draft.dag} onChange={written} problem={problem} chosen={chosen} /></div></Suspense>
          )}
        </Stack>
        <Preview dag={draft.dag} problem={problem} checked={check.checked && !unreadable} chosen={chosen} onChoose={setChosen} name={draft.name} />
      </div>
      <Leaving dirty={dirty} saved={() => saved.current} />
    </>
  )
}

/** Whether a field shows it. */
const isPlaced = (error: Refusal) => problemOf(error) !== undefined || ['name', 'description', 'workflowId'].includes(error.field ?? '')

/** What saving would say of it, asked when typing pauses. */
function useCheck(dag: Dag, workflowId: string | undefined): { problem: Problem | undefined; checked: boolean } {
  const [asked] = useDebouncedValue(dag, 350)
  const call = asked.nodes.length === 0 ? null
    : workflowId === undefined ? request('POST', '/api/v1/workflows:validate', { body: { dag: asked } }) : request('POST', '/api/v1/workflows/{workflowId}:validate', { path: { workflowId }, body: { dag: asked } })
  const { error, isPlaceholderData, isSuccess } = useAnswer('search', call)
  return { problem: call !== null && error ? problemOf(error) : undefined, checked: call !== null && isSuccess && !isPlaceholderData && asked === dag }
}

interface PreviewProps {
  dag: Dag
  problem: Problem | undefined
  checked: boolean
  chosen: string | undefined
  onChoose: (id: string | undefined) => void
  name: string
}

function Preview({ dag, problem, checked, chosen, onChoose, name }: PreviewProps) {
  const t = useT()
  const wrong = useMemo(() => new Set(problem?.nodes), [problem])
  const picture = useMemo(() => pictureOf(dag, wrong), [dag, wrong])
  return (
    <section className={classes.preview} aria-label={t('workflows.preview')}>
      <Graph picture={picture} label={t('workflows.graphOf', { name: name || t('workflows.unnamed') })} selected={chosen} onSelect={onChoose} height="clamp(300px, 56vh, 640px)" />
      <Group gap={6} mt="xs" wrap="nowrap" align="flex-start" role="status">
        {problem && <><IconAlertTriangle size={16} className={classes.bad} aria-hidden /><Text size="sm">{problem.message}{problem.field && <Text span size="xs" c="dimmed" ff="monospace"> {problem.field}</Text>}</Text></>}
        {!problem && checked && <><IconCircleCheck size={16} className={classes.good} aria-hidden /><Text size="sm">{t('workflows.valid')}</Text></>}
      </Group>
    </section>
  )
}

function Leaving({ dirty, saved }: { dirty: boolean; saved: () => boolean }) {
  const t = useT()
  const blocker = useBlocker({ shouldBlockFn: () => dirty && !saved(), enableBeforeUnload: () => dirty && !saved(), withResolver: true })
  return (
    <Modal opened={blocker.status === 'blocked'} onClose={() => blocker.reset?.()} title={t('workflows.leaveAsk')} closeButtonProps={{ 'aria-label': t('app.close') }}>
      <Text size="sm" mb="md">{t('workflows.leaveHint')}</Text>
      <Group justify="flex-end" gap="xs">
        <Button variant="default" onClick={() => blocker.reset?.()} data-autofocus>{t('workflows.stay')}</Button>
        <Button color="red" onClick={() => blocker.proceed?.()}>{t('workflows.leave')}</Button>
      </Group>
    </Modal>
  )
}

export const emptyDraft = (): Draft => ({ name: '', description: '', workflowId: '', dag: { nodes: [] } })
export const draftOf = ({ name, description, workflowId, dag }: Workflow): Draft => ({ name, description, workflowId, dag: dag as Dag })
