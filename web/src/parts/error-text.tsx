/** An error as it came, however long it is. */
import { useT } from '@/i18n'
import classes from './error-text.module.css'

export function ErrorText({ text }: { text: string }) {
  const t = useT()
  return <pre className={classes.error} tabIndex={0} role="region" aria-label={t('runs.error')}>{text}</pre>
}
