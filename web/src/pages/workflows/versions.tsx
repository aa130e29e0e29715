/** Every definition that a workflow had: one of them whole, or what changed between two. */
import { Group, Select, Text } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import { useMemo } from 'react'
import { type Schemas, request } from '@/api/client'
import { useAnswer, useRows } from '@/api/queries'
import type { Workflow } from '@/api/shapes'
import { useT } from '@/i18n'
import { JsonView } from '@/parts/json'
import { RowLink } from '@/parts/link'
import { ErrorBox, Loading, Section } from '@/parts/page'
import { type Column, Table } from '@/parts/table'
import { Instant } from '@/time'
import { aroundChanges, difference } from './diff'
import classes from './versions.module.css'

type Version = Schemas['VersionSummary']
const route = getRouteApi('/workflows/$workflowId')

export function Versions({ workflow }: { workflow: Workflow }) {
  const t = useT()
  const { workflowId } = workflow
  const { version: shown = workflow.version, against = shown > 1 ? shown - 1 : undefined } = route.useSearch()
  const navigate = route.useNavigate()
  const rows = useRows<Version>('workflow', request('GET', '/api/v1/workflows/{workflowId}/versions', { path: { workflowId }, query: { size: 50 } }))
  const columns = useMemo<readonly Column<Version>[]>(
    () => [
      { key: 'version', header: t('workflows.version'), width: '90px', render: (each) => <RowLink to="/workflows/$workflowId" params={{ workflowId }} search={{ tab: 'versions', version: each.version }} replace resetScroll={false}>{each.version}</RowLink> },
      { key: 'at', header: t('app.created'), width: 'minmax(110px, 200px)', render: (each) => <Instant at={each.createdAt} exact /> },
      { key: 'by', header: t('workflows.by'), width: 'minmax(60px, 1fr)', render: (each) => each.createdBy },
      { key: 'name', header: t('app.name'), width: 'minmax(80px, 1fr)', wide: true, render: (each) => each.name },
      { key: 'description', header: t('app.description'), width: 'minmax(0, 2fr)', wide: true, render: (each) => each.description },
    ],
    [t, workflowId],
  )
  const others = rows.rows.map(({ version }) => version).filter((each) => each !== shown)
  return (
    <>
      <Table label={t('workflows.versions')} rows={rows} idOf={(each) => String(each.version)} columns={columns} empty={null} />
      <Section title={t('workflows.versionNo', { n: shown })} actions={others.length > 0 && (
        <Group gap={6} wrap="nowrap">
          <Text size="sm" c="dimmed">{t('workflows.against')}</Text>
          <Select size="xs" w={110} aria-label={t('workflows.against')} data={[{ value: '0', label: t('workflows.nothingElse') }, ...others.map((each) => ({ value: String(each), label: t('workflows.versionNo', { n: each }) }))]}
            value={String(against ?? 0)} allowDeselect={false} onChange={(next) => void navigate({ search: (before) => ({ ...before, version: shown, against: Number(next) }), replace: true, resetScroll: false })} />
        </Group>
      )}>
        <Shown workflowId={workflowId} version={shown} against={against === 0 ? undefined : against} />
      </Section>
    </>
  )
}

function useVersion(workflowId: string, version: number | undefined) {
  return useAnswer('workflow', version === undefined ? null : request('GET', '/api/v1/workflows/{workflowId}/versions/{version}', { path: { workflowId, version } }))
}

function Shown({ workflowId, version, against }: { workflowId: string; version: number; against?: number }) {
  const t = useT()
  const now = useVersion(workflowId, version)
  const then = useVersion(workflowId, against)
  const error = now.error ?? then.error
  if (error) return <ErrorBox error={error} />
  if (now.data?.version !== version || (against !== undefined && then.data?.version !== against)) return <Loading />
  if (against === undefined) return <JsonView label={t('workflows.versionNo', { n: version })} value={now.data.dag} />
  const text = (each: Schemas['VersionShown']) => JSON.stringify({ name: each.name, description: each.description, dag: each.dag }, null, 2)
  return <Difference before={text(then.data!)} after={text(now.data)} />
}

const SIGNS = { same: ' ', gone: '−', new: '+' } as const

function Difference({ before, after }: { before: string; after: string }) {
  const t = useT()
  const lines = useMemo(() => aroundChanges(difference(before, after)), [before, after])
  return (
    <pre className={classes.diff} tabIndex={0} role="region" aria-label={t('workflows.difference')}>
      {lines.map((line, index) => (line === null ? <span key={index} className={classes.left}>⋯</span> : <span key={index} className={classes[line.kind]}>{SIGNS[line.kind]} {line.text}</span>))}
    </pre>
  )
}
