/**
 * A schedule as a form: `<ScheduleEditor value={draft} onChange={setDraft} error={refusal} />`. Beside it, what it would do.
 * `draft.ts` makes drafts of schedules, and bodies of drafts.
 */
import { Button, Chip, Collapse, Group, NumberInput, SegmentedControl, Select, Stack, Text, TextInput } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { IconChevronDown, IconChevronRight } from '@tabler/icons-react'
import type { Refusal } from '@/api/client'
import type { Schedule } from '@/api/shapes'
import { inWords, isBare, millisOf } from '@/durations'
import { type Key, type Translate, language, useT } from '@/i18n'
import { JsonInput } from '@/parts/json-input'
import type { ScheduleDraft, ScheduleKind } from './draft'
import { Instants } from './instants'
import { countsFromSaving, usePreview, useRolling } from './preview'
import classes from './schedule.module.css'
import { useDraftWords, useScheduleWords } from './words'
import { ZoneInput } from './zone'

interface EditorProps {
  value: ScheduleDraft
  onChange: (draft: ScheduleDraft) => void
  /** As Ksana has it, if it does. */
  saved: Schedule | null
  /** Why it was not saved, until something is changed. Named fields show it; what else is wrong is for the form around. */
  error?: Refusal | null
  /** Without the input of its runs, where that is asked for elsewhere. */
  withoutInput?: boolean
}

type Set = (patch: Partial<ScheduleDraft>) => void
type Problem = (field: keyof ScheduleDraft) => string | undefined

/** The fields that a ScheduleEditor shows errors at. */
const FOLDED: readonly (keyof ScheduleDraft)[] = ['startAt', 'endAt', 'jitter', 'misfirePolicy', 'catchupLimit', 'misfireGrace', 'input']

export function ScheduleEditor({ value, onChange, saved, error, withoutInput = false }: EditorProps) {
  const t = useT()
  const preview = usePreview(value, saved)
  const fromSaving = countsFromSaving(value, saved)
  useRolling(preview, !fromSaving)
  const told = error?.field ? error : preview.error
  const problem: Problem = (field) => (told?.field === field ? problemAt(told, value, t) : undefined)
  const set: Set = (patch) => onChange({ ...value, ...patch })
  return (
    <div className={classes.editor}>
      <Stack gap="sm">
        <When draft={value} set={set} problem={problem} />
        <ZoneInput value={value.timezone} onChange={(timezone) => set({ timezone })} error={problem('timezone')} />
        <Further draft={value} set={set} problem={problem} withoutInput={withoutInput} />
      </Stack>
      <Preview draft={value} fromSaving={fromSaving} answer={preview.data} />
    </div>
  )
}

const LENGTHS: readonly string[] = ['every', 'jitter', 'misfireGrace'] satisfies (keyof ScheduleDraft)[]

/** In the words of the form, where it has some. */
function problemAt(told: Refusal, draft: ScheduleDraft, t: Translate): string {
  const field = told.field as keyof ScheduleDraft
  return LENGTHS.includes(field) && draft[field].trim() !== '' && millisOf(draft[field]) === undefined ? t('app.noLength') : told.atField
}

const KINDS: readonly { value: ScheduleKind; text: Key }[] = [{ value: 'cron', text: 'schedules.kindCron' }, { value: 'every', text: 'schedules.kindEvery' }, { value: 'once', text: 'schedules.kindOnce' }]
const CRONS: readonly { value: string; text: Key }[] = [
  { value: '0 * * * *', text: 'schedules.hourly' }, { value: '0 9 * * *', text: 'schedules.daily' }, { value: '0 9 * * MON-FRI', text: 'schedules.weekdays' },
  { value: '0 9 * * MON', text: 'schedules.weekly' }, { value: '0 9 1 * *', text: 'schedules.monthly' },
]
const INTERVALS = ['10s', '30s', '1m', '5m', '15m', '1h', '12h']

function When({ draft, set, problem }: { draft: ScheduleDraft; set: Set; problem: Problem }) {
  const t = useT()
  return (
    <>
      <SegmentedControl className={classes.kinds} aria-label={t('schedules.kind')} value={draft.kind} onChange={(kind) => set({ kind: kind as ScheduleKind })} data={KINDS.map(({ value, text }) => ({ value, label: t(text) }))} fullWidth />
      {draft.kind === 'cron' && (
        <>
          <TextInput label={t('schedules.cron')} description={t('schedules.cronHint')} placeholder="0 9 * * MON-FRI" value={draft.cron} onChange={(event) => set({ cron: event.currentTarget.value })} error={problem('cron')} spellCheck={false} styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)' } }} />
          <Suggestions label={t('schedules.suggestions')} chosen={draft.cron} choices={CRONS.map(({ value, text }) => ({ value, label: t(text) }))} choose={(cron) => set({ cron })} />
        </>
      )}
      {draft.kind === 'every' && (
        <>
          <TextInput label={t('schedules.interval')} description={<IntervalTold every={draft.every} />} placeholder="15m" value={draft.every} onChange={(event) => set({ every: event.currentTarget.value })} error={problem('every')} />
          <Suggestions label={t('schedules.suggestions')} chosen={draft.every} choices={INTERVALS.map((value) => ({ value, label: value }))} choose={(every) => set({ every })} />
        </>
      )}
      {draft.kind === 'once' && <WallInput label={t('schedules.runAt')} zone={draft.timezone} value={draft.runAt} onChange={(runAt) => set({ runAt })} error={problem('runAt')} />}
    </>
  )
}

/** What was written, in words: of a number alone nobody would know the unit. */
function IntervalTold({ every }: { every: string }) {
  const t = useT()
  const words = useScheduleWords()({ cronInWords: null, every, runAt: null, timezone: '' })
  if (words === '') return t('schedules.intervalHint')
  return isBare(every) ? t('schedules.bareInterval', { words }) : words
}

function Suggestions({ label, chosen, choices, choose }: { label: string; chosen: string; choices: readonly { value: string; label: string }[]; choose: (value: string) => void }) {
  return (
    <Chip.Group value={chosen} onChange={(value) => choose(value as string)}>
      <Group gap={6} mt={-4} role="group" aria-label={label}>{choices.map(({ value, label: text }) => <Chip key={value} value={value} size="xs" variant="outline">{text}</Chip>)}</Group>
    </Chip.Group>
  )
}

interface WallProps {
  label: string
  zone: string
  value: string
  onChange: (wall: string) => void
  error?: string
}

/** What a clock of the zone shows. */
const WallInput = ({ zone, onChange, ...rest }: WallProps) =>
  <TextInput {...rest} type="datetime-local" step={1} description={zone} onChange={(event) => onChange(event.currentTarget.value)} />

function Further({ draft, set, problem, withoutInput }: { draft: ScheduleDraft; set: Set; problem: Problem; withoutInput: boolean }) {
  const t = useT()
  const [opened, { toggle }] = useDisclosure(FOLDED.some((name) => draft[name] !== '' && draft[name] !== 'FIRE_NOW'))
  const shown = opened || FOLDED.some((name) => problem(name) !== undefined)
  const Mark = shown ? IconChevronDown : IconChevronRight
  return (
    <div>
      <Button variant="subtle" color="gray" size="compact-sm" onClick={toggle} leftSection={<Mark size={14} />} aria-expanded={shown}>{t('schedules.further')}</Button>
      {/* At once: a field that was refused is looked for as soon as it is marked. */}
      <Collapse expanded={shown} transitionDuration={0}>
        <div className={classes.further}>
          <WallInput label={t('schedules.startAt')} zone={draft.timezone} value={draft.startAt} onChange={(startAt) => set({ startAt })} error={problem('startAt')} />
          <WallInput label={t('schedules.endAt')} zone={draft.timezone} value={draft.endAt} onChange={(endAt) => set({ endAt })} error={problem('endAt')} />
          <TextInput label={t('schedules.jitter')} description={t('schedules.jitterHint')} placeholder="0s" value={draft.jitter} onChange={(event) => set({ jitter: event.currentTarget.value })} error={problem('jitter')} />
          <TextInput label={t('schedules.grace')} description={t('schedules.graceHint')} placeholder="1m" value={draft.misfireGrace} onChange={(event) => set({ misfireGrace: event.currentTarget.value })} error={problem('misfireGrace')} />
          <Select label={t('schedules.misfire')} description={t('schedules.misfireHint')} allowDeselect={false} value={draft.misfirePolicy} onChange={(next) => set({ misfirePolicy: (next ?? 'FIRE_NOW') as ScheduleDraft['misfirePolicy'] })} error={problem('misfirePolicy')}
            data={[{ value: 'FIRE_NOW', label: t('schedules.fireNow') }, { value: 'SKIP', label: t('schedules.skip') }, { value: 'CATCH_UP_LIMITED', label: t('schedules.catchUp') }]} />
          {draft.misfirePolicy === 'CATCH_UP_LIMITED' && (
            <NumberInput label={t('schedules.catchupLimit')} description={t('schedules.catchupLimitHint')} placeholder="5" min={0} max={100} allowDecimal={false} value={draft.catchupLimit} onChange={(next) => set({ catchupLimit: String(next) })} error={problem('catchupLimit')} />
          )}
        </div>
        {!withoutInput && <JsonInput mt="sm" label={t('schedules.input')} description={t('schedules.inputHint')} value={draft.input} onChange={(input) => set({ input })} error={problem('input')} />}
      </Collapse>
    </div>
  )
}

function Preview({ draft, fromSaving, answer }: { draft: ScheduleDraft; fromSaving: boolean; answer: ReturnType<typeof usePreview>['data'] }) {
  const t = useT()
  const words = useDraftWords(draft, answer)
  return (
    <section className={classes.preview} aria-label={t('schedules.preview')} aria-live="polite">
      {answer === undefined ? <Text size="sm" c="dimmed">{t('schedules.previewHint')}</Text> : (
        <>
          <Text fw={600} mb="xs">{words}</Text>
          {fromSaving && answer.instants.length > 0 ? <FromSaving every={draft.every} /> : <Instants answer={answer} />}
        </>
      )}
    </section>
  )
}

function FromSaving({ every }: { every: string }) {
  const t = useT()
  const lang = language.use()
  return <Text size="sm">{t('schedules.fromSaving', { every: inWords(millisOf(every) ?? 0, lang) })}</Text>
}
