/** The form itself: what, when, and by which rules. */
import { Alert, Button, Group, Paper, SegmentedControl, Stack, Text, TextInput, Textarea } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useMemo, useRef, useState } from 'react'
import { Refusal } from '@/api/client'
import { useT } from '@/i18n'
import { CallMenu } from '@/parts/actions'
import { useFirstProblem } from '@/parts/first-problem'
import { ButtonLink } from '@/parts/link'
import { ErrorBox, Section } from '@/parts/page'
import { type ScheduleDraft, isAtField, isWhole } from '@/parts/schedule/draft'
import { usePreview } from '@/parts/schedule/preview'
import { useDraftWords } from '@/parts/schedule/words'
import { CallFields } from './call-fields'
import type { JobDraft } from './draft'
import classes from './form.module.css'
import { FormSchedules } from './form-schedules'
import { Leaving } from './leaving'
import { type ProblemOf, type Problems, areAtFields, problemIn, problemsOf, refused } from './problems'
import { RuleFields } from './rule-fields'
import { type Saved, type ScheduleItem, ScheduleRefused, callsOf, save } from './saving'
import { TYPES } from './types'
import { WorkFields } from './work-fields'

export interface Start {
  draft: JobDraft
  schedules: readonly ScheduleItem[]
  saved: Saved | null
}

/** Why it is not saved. */
interface Trouble {
  problems: Problems
  refusal?: Refusal
  /** The schedule that it is about, and what was refused of it. */
  schedule?: string
  draft?: ScheduleDraft
}
const NO_TROUBLE: Trouble = { problems: {} }
const INCOMPLETE = 'INCOMPLETE'

export type SetDraft = (patch: Partial<JobDraft>) => void
export interface FieldsProps {
  draft: JobDraft
  set: SetDraft
  problem: ProblemOf
}

export function JobForm({ start, done }: { start: Start; done: (jobId: string) => void }) {
  const t = useT()
  const client = useQueryClient()
  const [draft, setDraft] = useState(start.draft)
  const [items, setItems] = useState(start.schedules)
  const [saved, setSaved] = useState(start.saved)
  const [trouble, setTrouble] = useState(NO_TROUBLE)
  const [busy, setBusy] = useState(false)
  const left = useRef(false)
  const changed = JSON.stringify([draft, items]) !== JSON.stringify([start.draft, start.schedules])
  const set: SetDraft = (patch) => setDraft((before) => ({ ...before, ...patch }))
  const standing = standingOf(trouble, draft, items, t)
  const problem = problemIn(standing.problems)
  const form = useFirstProblem<HTMLFormElement>(trouble === NO_TROUBLE ? null : trouble)

  const submit = async (event: FormEvent) => {
    event.preventDefault()
    const found = troubleBefore(draft, items, t)
    setTrouble(found ?? NO_TROUBLE)
    if (found) return
    setBusy(true)
    try {
      const { jobId } = await save(saved, draft, items, (now, rows) => { setSaved(now); setItems(rows) })
      left.current = true
      await client.invalidateQueries({ predicate: ({ queryKey: [topic] }) => ['job', 'jobs', 'schedules'].includes(topic as string) })
      done(jobId)
    } catch (error) {
      setTrouble(troubleOf(error, items))
    } finally {
      setBusy(false)
    }
  }

  return (
    <form ref={form} className={classes.form} onSubmit={(event) => void submit(event)} noValidate>
      <What draft={draft} set={set} problem={problem} />
      <FormSchedules items={items} onChange={setItems} refused={standing.schedule === undefined ? undefined : { key: standing.schedule, refusal: standing.refusal! }} />
      <RuleFields draft={draft} set={set} problem={problem} />
      <Told trouble={standing} type={draft.type} isHalf={saved !== null && start.saved === null} />
      <Group className={classes.buttons} justify="space-between" gap="xs">
        {standing === NO_TROUBLE ? <RunsWhen items={items} /> : <Text size="sm" c="var(--state-bad)" role="alert">{t('jobs.lookAbove')}</Text>}
        <Buttons jobId={saved?.jobId} busy={busy} calls={calls(saved, draft, items, t)} />
      </Group>
      <Leaving changed={changed} left={left} />
    </form>
  )
}

function calls(saved: Saved | null, draft: JobDraft, items: readonly ScheduleItem[], t: ReturnType<typeof useT>) {
  return Object.keys(problemsOf(draft, t)).length > 0 ? [] : callsOf(saved, draft, items)
}

/** What can be seen without asking. */
function troubleBefore(draft: JobDraft, items: readonly ScheduleItem[], t: ReturnType<typeof useT>): Trouble | undefined {
  const problems = problemsOf(draft, t)
  if (Object.keys(problems).length > 0) return { problems }
  const open = items.find((item) => !isWhole(item.draft))
  if (open === undefined) return undefined
  const field = open.draft.kind === 'once' ? 'runAt' : open.draft.kind
  return { problems: {}, schedule: open.key, refusal: new Refusal(400, INCOMPLETE, t('jobs.needed'), { field }) }
}

/** What is left of it: what was seen without asking goes as soon as it is put right, what was said of a schedule when that is changed. */
function standingOf(trouble: Trouble, draft: JobDraft, items: readonly ScheduleItem[], t: ReturnType<typeof useT>): Trouble {
  if (trouble.draft !== undefined && items.every((item) => item.draft !== trouble.draft)) return NO_TROUBLE
  if (trouble === NO_TROUBLE || (trouble.refusal && trouble.refusal.code !== INCOMPLETE)) return trouble
  if (trouble.schedule !== undefined) return items.some((item) => item.key === trouble.schedule && !isWhole(item.draft)) ? trouble : NO_TROUBLE
  const now = problemsOf(draft, t)
  const problems = Object.fromEntries(Object.entries(trouble.problems).filter(([field]) => field in now))
  return Object.keys(problems).length > 0 ? { problems } : NO_TROUBLE
}

function troubleOf(error: unknown, items: readonly ScheduleItem[]): Trouble {
  if (error instanceof ScheduleRefused) return { problems: {}, schedule: error.key, draft: items.find(({ key }) => key === error.key)?.draft, refusal: error.refusal }
  if (error instanceof Refusal) return { problems: refused(error), refusal: error }
  throw error
}

function What({ draft, set, problem }: FieldsProps) {
  const t = useT()
  return (
    <Section title={t('jobs.whatItDoes')}>
      <Paper withBorder p="md">
        <Stack gap="sm">
          <div className={classes.named}>
            <TextInput label={t('app.name')} required value={draft.name} onChange={(event) => set({ name: event.currentTarget.value })} error={problem('name')} data-autofocus autoFocus maxLength={128} />
            <Textarea label={t('app.description')} autosize minRows={1} maxRows={4} maxLength={512} value={draft.description} onChange={(event) => set({ description: event.currentTarget.value })} error={problem('description')} />
          </div>
          <TypeChoice draft={draft} set={set} problem={problem} />
          {draft.type === 'http' ? <CallFields draft={draft} set={set} problem={problem} /> : <WorkFields draft={draft} set={set} problem={problem} />}
        </Stack>
      </Paper>
    </Section>
  )
}

const OTHER = 'other'

function TypeChoice({ draft, set, problem }: FieldsProps) {
  const t = useT()
  const chosen = (TYPES as readonly string[]).includes(draft.type) ? draft.type : OTHER
  const data = useMemo(() => [{ value: 'http', label: t('jobs.typeHttp') }, { value: 'shell', label: t('jobs.typeShell') }, { value: 'python', label: t('jobs.typePython') }, { value: OTHER, label: t('jobs.typeOther') }], [t])
  return (
    <>
      <SegmentedControl className={classes.types} aria-label={t('app.type')} value={chosen} onChange={(next) => set({ type: next === OTHER ? '' : next })} data={data} />
      {chosen === OTHER ? <TextInput label={t('jobs.typeName')} required value={draft.type} onChange={(event) => set({ type: event.currentTarget.value })} error={problem('type')} />
        : problem('type') && <Text size="sm" c="var(--state-bad)" role="alert">{problem('type')}</Text>}
    </>
  )
}

/** What went wrong, where no field shows it; and what was saved nevertheless. */
function Told({ trouble, type, isHalf }: { trouble: Trouble; type: string; isHalf: boolean }) {
  const t = useT()
  if (trouble === NO_TROUBLE) return null
  const { refusal } = trouble
  const isAtItsField = trouble.schedule === undefined ? areAtFields(trouble.problems, type) : refusal !== undefined && isAtField(refusal)
  return (
    <Stack mt="md" gap="xs">
      {isHalf && <Alert title={t('jobs.halfTitle')}>{t('jobs.halfTold')}</Alert>}
      {refusal && !isAtItsField && <ErrorBox error={refusal} />}
    </Stack>
  )
}

/** When it will run, beside the button that makes it so: its schedule may be out of sight. */
function RunsWhen({ items }: { items: readonly ScheduleItem[] }) {
  const t = useT()
  const [first] = items
  if (first === undefined) return <Text size="sm" c="dimmed">{t('jobs.noSchedule')}</Text>
  return items.length > 1 ? <Text size="sm" c="dimmed">{t('jobs.runsBySchedules', { n: items.length })}</Text> : <RunsBy item={first} />
}

function RunsBy({ item: { draft, saved } }: { item: ScheduleItem }) {
  const t = useT()
  const when = useDraftWords(draft, usePreview(draft, saved).data)
  return <Text size="sm" c="dimmed">{when === '' ? t('jobs.runsNever') : t('jobs.runsWhen', { when })}</Text>
}

function Buttons({ jobId, busy, calls }: { jobId?: string; busy: boolean; calls: ReturnType<typeof callsOf> }) {
  const t = useT()
  const label = jobId === undefined ? t('jobs.makeIt') : t('jobs.save')
  return (
    <Group gap="xs" ml="auto">
      {jobId === undefined ? <ButtonLink to="/jobs">{t('app.cancel')}</ButtonLink> : <ButtonLink to="/jobs/$jobId" params={{ jobId }}>{t('app.cancel')}</ButtonLink>}
      <Button.Group>
        <Button type="submit" size="xs" loading={busy}>{label}</Button>
        <CallMenu label={label} calls={calls} variant="filled" />
      </Button.Group>
    </Group>
  )
}
