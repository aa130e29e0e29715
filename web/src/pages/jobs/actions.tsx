/** What can be done with a job. */
import { Text } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { IconCopyPlus, IconPencil, IconPlayerPause, IconPlayerPlay, IconPlayerTrackNext, IconTrash } from '@tabler/icons-react'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { request } from '@/api/client'
import type { JobFound } from '@/api/shapes'
import { useT } from '@/i18n'
import { Action } from '@/parts/actions'
import { JsonInput, parsedJson } from '@/parts/json-input'
import { ButtonLink, TextLink } from '@/parts/link'
import { type Body, BodyInput, bodyFrom, isSendable, readBody } from './body'

export function JobActions({ job }: { job: JobFound }) {
  const t = useT()
  const navigate = useNavigate()
  const path = { jobId: job.jobId }
  return (
    <>
      <RunNow job={job} label={t('jobs.runNow')} />
      <ButtonLink to="/jobs/$jobId/edit" params={path} leftSection={<IconPencil size={15} />}>{t('app.edit')}</ButtonLink>
      {job.enabled
        ? <Action label={t('jobs.disable')} icon={IconPlayerPause} call={() => request('POST', '/api/v1/jobs/{jobId}:disable', { path })} touches={['job', 'jobs', 'schedules']} />
        : <Action label={t('jobs.enable')} icon={IconPlayerPlay} call={() => request('POST', '/api/v1/jobs/{jobId}:enable', { path })} touches={['job', 'jobs', 'schedules']} />}
      <ButtonLink to="/jobs/new" search={{ from: job.jobId }} leftSection={<IconCopyPlus size={15} />}>{t('jobs.duplicate')}</ButtonLink>
      <Action label={t('jobs.delete')} icon={IconTrash} call={() => request('DELETE', '/api/v1/jobs/{jobId}', { path })} touches={['jobs']} danger
        confirm={t('jobs.deleteSure', { name: job.name })} done={() => void navigate({ to: '/jobs' })}>
        <Text size="sm">{t('jobs.deleteMeans')}</Text>
      </Action>
    </>
  )
}

/** A run at once, of a call with another body, of anything with another input. */
export function RunNow({ job, label }: { job: JobFound; label: string }) {
  const t = useT()
  const [body, setBody] = useState<Body>()
  const [input, setInput] = useState('')
  const given = parsedJson(input)
  const isObject = given.ok && (given.value === undefined || (typeof given.value === 'object' && given.value !== null && !Array.isArray(given.value)))
  const ready = isObject && (body === undefined || isSendable(body))
  const whole = ready ? { ...(given.value as object | undefined), ...(body && { override_body: readBody(body) }) } : {}
  const call = (reason: string) => request('POST', '/api/v1/jobs/{jobId}:run', { path: { jobId: job.jobId }, body: { input: Object.keys(whole).length > 0 ? whole : undefined, reason: reason || undefined } })
  const started = ({ runId }: { runId: string }) => {
    setBody(undefined)
    notifications.show({ message: <>{t('jobs.started')} <TextLink to="/runs/$runId" params={{ runId }}>{t('runs.one', { id: runId })}</TextLink></> })
  }
  return (
    <Action label={label} icon={IconPlayerTrackNext} primary call={call} touches={['job', 'activity', 'jobs']} confirm={t('jobs.runTitle', { name: job.name })} reason ready={ready} done={started}>
      {job.type === 'http' && <BodyInput label={t('jobs.runBody')} description={t('jobs.runBodyHint')} value={body ?? bodyFrom(job.configJson.body)} onChange={setBody} />}
      <JsonInput label={t('jobs.input')} description={t('jobs.inputHint')} placeholder="{}" value={input} onChange={setInput} minRows={2} error={given.ok && !isObject ? t('jobs.mustBeObject') : undefined} />
    </Action>
  )
}
