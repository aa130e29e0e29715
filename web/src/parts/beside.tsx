/** What is looked at more closely, beside the list or picture that it was chosen in; on a narrow screen, above it. */
import { ActionIcon, Drawer, Group, Title } from '@mantine/core'
import { useMediaQuery } from '@mantine/hooks'
import { IconX } from '@tabler/icons-react'
import type { ReactNode } from 'react'
import { useT } from '@/i18n'
import classes from './beside.module.css'

interface BesideProps {
  /** Of what is looked at, for who cannot see it. */
  label: string
  /** Null: nothing is. */
  panel: ReactNode
  onClose: () => void
  children: ReactNode
}

export function Beside({ label, panel, onClose, children }: BesideProps) {
  const narrow = useMediaQuery('(max-width: 62em)', window.matchMedia('(max-width: 62em)').matches)
  return (
    <div className={classes.view} data-panel={(panel !== null && !narrow) || undefined}>
      <div className={classes.main}>{children}</div>
      {panel !== null && (narrow ? (
        <Drawer opened onClose={onClose} position="bottom" size="88%" withCloseButton={false} attributes={{ content: { 'aria-label': label } }}>{panel}</Drawer>
      ) : <aside className={classes.aside} aria-label={label}>{panel}</aside>)}
    </div>
  )
}

/** What a panel is about, and the way out of it. */
export function PanelTitle({ title, onClose }: { title: string; onClose: () => void }) {
  const t = useT()
  return (
    <Group justify="space-between" wrap="nowrap" align="flex-start">
      <Title order={2} className={classes.title}>{title}</Title>
      <ActionIcon variant="subtle" color="gray" size="sm" aria-label={t('app.close')} onClick={onClose}><IconX size={16} /></ActionIcon>
    </Group>
  )
}
