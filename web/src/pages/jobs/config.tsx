/** A job's definition, for people: what it calls or runs, and by which rules. */
import { Badge, Code, Group, Text } from '@mantine/core'
import type { JobFound } from '@/api/shapes'
import { type Translate, useT } from '@/i18n'
import { Fact, Facts } from '@/parts/facts'
import { JsonView } from '@/parts/json'
import { Section } from '@/parts/page'
import { duration } from '@/time'
import classes from './job.module.css'

export function ConfigView({ job }: { job: JobFound }) {
  const t = useT()
  return (
    <div className={`${classes.pair} ${classes.config}`}>
      <Section title={t('jobs.whatItDoes')}><Work job={job} /></Section>
      <Section title={t('jobs.rules')}><Rules job={job} /></Section>
      <div className={classes.whole}><Section title={t('jobs.asApi')}><JsonView label={t('jobs.asApi')} value={definition(job)} /></Section></div>
    </div>
  )
}

/** Without what became of it. */
function definition({ taskId: _task, contract: _contract, version: _version, lastRun: _last, nextRunAt: _next, schedules: _schedules, paused: _paused, ...own }: JobFound) {
  return own
}

function Work({ job: { type, configJson: config } }: { job: JobFound }) {
  const t = useT()
  if (type === 'http') return <Call config={config} />
  if (type === 'shell') {
    return (
      <Facts framed>
        <Fact name={t('jobs.cmd')}><Code block>{Array.isArray(config.cmd) ? JSON.stringify(config.cmd) : String(config.cmd)}</Code></Fact>
        {config.cwd !== undefined && <Fact name={t('jobs.cwd')}><Code>{String(config.cwd)}</Code></Fact>}
        {config.env !== undefined && <Fact name={t('jobs.env')}><Pairs value={config.env} /></Fact>}
      </Facts>
    )
  }
  if (type === 'python') {
    return (
      <Facts framed>
        <Fact name={t('jobs.function')}><Code>{String(config.function)}</Code></Fact>
        {config.params !== undefined && <Fact name={t('jobs.params')}><JsonView label={t('jobs.params')} value={config.params} /></Fact>}
      </Facts>
    )
  }
  return <JsonView label={type} value={config} />
}

function Call({ config: { method, url, headers, body, mode, callback_timeout: wait, follow_redirects: follows, connect_timeout: connect } }: { config: JobFound['configJson'] }) {
  const t = useT()
  return (
    <Facts framed>
      <Fact name={t('jobs.request')}><Group gap={6} wrap="nowrap" align="baseline"><Badge variant="light" radius="sm" flex="none">{String(method ?? 'GET')}</Badge><Text span ff="monospace" size="sm" className={classes.url}>{String(url)}</Text></Group></Fact>
      {headers !== undefined && <Fact name={t('jobs.headers')}><Pairs value={headers} /></Fact>}
      {body !== undefined && <Fact name={t('jobs.body')}>{typeof body === 'string' ? <Code block>{body}</Code> : <JsonView label={t('jobs.body')} value={body} />}</Fact>}
      <Fact name={t('jobs.mode')}>{mode === 'async' ? t('jobs.asyncTold', { wait: String(wait) }) : t('jobs.syncTold')}</Fact>
      {connect !== undefined && <Fact name={t('jobs.connectTimeout')}>{String(connect)}</Fact>}
      {follows === true && <Fact name={t('jobs.followRedirects')}>{t('app.yes')}</Fact>}
    </Facts>
  )
}

function Pairs({ value }: { value: unknown }) {
  return <>{Object.entries(value as Record<string, unknown>).map(([name, each]) => <div key={name}><Code className={classes.url}>{name}: {String(each)}</Code></div>)}</>
}

function Rules({ job }: { job: JobFound }) {
  const t = useT()
  return (
    <Facts framed>
      <Fact name={t('jobs.timeout')}>{t('jobs.timeoutTold', { timeout: job.timeout })}</Fact>
      <Fact name={t('jobs.retry')}>{retryText(t, job.retry)}</Fact>
      <Fact name={t('jobs.concurrency')}>{concurrencyText(t, job)}</Fact>
      <Fact name={t('jobs.recovery')}>{job.recovery === 'retry' ? t('jobs.recoveryRetry') : t('jobs.recoveryFail')}</Fact>
      <Fact name={t('jobs.queue')}><Code>{job.workerQueue}</Code></Fact>
      {Object.keys(job.labels).length > 0 && <Fact name={t('jobs.labels')}><Pairs value={job.labels} /></Fact>}
    </Facts>
  )
}

function retryText(t: Translate, { maxAttempts, backoffMillis, backoffMultiplier }: JobFound['retry']): string {
  if (maxAttempts === 1) return t('jobs.noRetry')
  const times = t('jobs.attemptsTold', { n: maxAttempts, wait: duration(backoffMillis) })
  return backoffMultiplier === 1 ? times : `${times}, ${t('jobs.multiplierTold', { factor: String(backoffMultiplier) })}`
}

function concurrencyText(t: Translate, { concurrencyPolicy, maxConcurrency }: JobFound): string {
  if (concurrencyPolicy === 'PARALLEL') return t('jobs.parallelTold')
  return concurrencyPolicy === 'QUEUE' ? t('jobs.queueTold', { n: maxConcurrency }) : t('jobs.skipTold', { n: maxConcurrency })
}
