/** A graph of nodes. Its drawing is loaded with the first one; one that is very large is drawn when somebody says so. */
import { Box, Button } from '@mantine/core'
import { IconBinaryTree2, IconSchema } from '@tabler/icons-react'
import { Suspense, lazy, useState } from 'react'
import { useT } from '@/i18n'
import { EmptyState, Loading } from '@/parts/page'
import type { Picture } from './graph-model'
import classes from './graph.module.css'

const Canvas = lazy(() => import('./graph-canvas').then(({ GraphCanvas }) => ({ default: GraphCanvas })))
/** Above, it asks first. */
export const MANY_NODES = 500

interface GraphProps {
  picture: Picture
  /** What it shows, for who cannot see it. */
  label: string
  selected?: string
  onSelect?: (id: string | undefined) => void
  height?: string | number
}

export function Graph({ picture, label, selected, onSelect, height = 'clamp(320px, 58vh, 720px)' }: GraphProps) {
  const t = useT()
  const [wanted, setWanted] = useState(false)
  const count = picture.nodes.length
  if (count === 0) return <Box className={classes.frame} h={height}><EmptyState icon={IconSchema} title={t('workflows.noNodes')} hint={t('workflows.noNodesHint')} /></Box>
  if (count > MANY_NODES && !wanted) {
    return (
      <Box className={classes.frame}>
        <EmptyState icon={IconBinaryTree2} title={t('workflows.manyNodes', { n: count })} hint={t('workflows.manyNodesHint')}>
          <Button size="xs" mt="xs" variant="default" onClick={() => setWanted(true)}>{t('workflows.drawAnyway')}</Button>
        </EmptyState>
      </Box>
    )
  }
  return (
    <Box className={classes.frame} h={height}>
      <Suspense fallback={<Loading />}>
        <Canvas picture={picture} label={label} selected={selected} onSelect={onSelect} />
      </Suspense>
    </Box>
  )
}
