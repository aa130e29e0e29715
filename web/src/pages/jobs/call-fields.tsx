/** What an HTTP job calls. */
import { Button, Group, Select, Switch, TextInput } from '@mantine/core'
import { useT } from '@/i18n'
import { MONOSPACE } from '@/parts/json-input'
import { BodyInput } from './body'
import classes from './form.module.css'
import type { FieldsProps } from './job-form'
import { PairsInput } from './pairs'
import { METHODS } from './types'

const WITHOUT_BODY = new Set(['GET', 'HEAD'])

export function CallFields({ draft, set, problem }: FieldsProps) {
  const t = useT()
  return (
    <>
      <div className={classes.call}>
        <Group gap="xs" align="flex-start" wrap="nowrap">
          <Select label={t('jobs.method')} w={108} allowDeselect={false} data={METHODS} value={draft.method} onChange={(method) => set({ method: method ?? 'GET' })} error={problem('configJson.method')} />
          <TextInput label={t('jobs.url')} required flex={1} type="url" inputMode="url" placeholder="https://example.com/ping" value={draft.url} onChange={(event) => set({ url: event.currentTarget.value })} error={problem('configJson.url')} styles={MONOSPACE} spellCheck={false} />
        </Group>
        <Button className={classes.own} data-taken={draft.url !== '' || undefined} size="compact-xs" variant="subtle" onClick={() => set({ url: `${window.location.origin}/health` })}>{t('jobs.ownHealth')}</Button>
      </div>
      <PairsInput label={t('jobs.headers')} add={t('jobs.addHeader')} value={draft.headers} onChange={(headers) => set({ headers })} error={problem('configJson.headers')} />
      {(!WITHOUT_BODY.has(draft.method) || draft.body.text !== '') && (
        <BodyInput label={t('jobs.body')} description={t('jobs.templates')} value={draft.body} onChange={(body) => set({ body })} error={problem('configJson.body')} />
      )}
      <Switch label={t('jobs.async')} description={t('jobs.asyncHint')} checked={draft.isAsync} onChange={(event) => set({ isAsync: event.currentTarget.checked })} error={problem('configJson.mode')} />
      {draft.isAsync && (
        <TextInput label={t('jobs.callbackTimeout')} description={t('jobs.durationHint')} placeholder="5m" maw={260} value={draft.callbackTimeout} onChange={(event) => set({ callbackTimeout: event.currentTarget.value })} error={problem('configJson.callback_timeout')} />
      )}
    </>
  )
}
