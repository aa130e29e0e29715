/** What something was done to, by the name that people know it by, and the way there while it is there. */
import type { AuditEntry } from '@/api/shapes'
import { useT } from '@/i18n'
import { TextLink, pageOf } from '@/parts/link'

export function Subject({ entry: { subject, run, target, data } }: { entry: AuditEntry }) {
  const t = useT()
  const name = target?.name ?? (typeof data.name === 'string' ? data.name : undefined)
  if (run !== null) {
    const shown = name === undefined ? t('audit.run', { run }) : t('audit.runOf', { run, name })
    return <TextLink to="/runs/$runId" params={{ runId: run }} title={shown}>{shown}</TextLink>
  }
  if (target !== null) return <TextLink {...pageOf(target)} title={target.name}>{target.name}</TextLink>
  return <span title={subject}>{name ?? subject}</span>
}
