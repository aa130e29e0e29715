/** How many of an instance's places are taken. */
import { Text } from '@mantine/core'
import { useT } from '@/i18n'
import classes from './places.module.css'

export function Places({ running, places }: { running: number; places: number }) {
  const t = useT()
  if (places === 0) return <Text span inherit c="dimmed" title={t('instances.noPlaces')}>–</Text>
  return (
    <span className={classes.places} title={t('instances.placesUsed', { n: running, places })}>
      <span className={classes.bar} aria-hidden><span style={{ width: `${Math.min(100, (100 * running) / places)}%` }} /></span>
      <span className="figures">{running}/{places}</span>
    </span>
  )
}
