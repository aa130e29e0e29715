/** What a panel shows in place of rows. */
import { Stack, Text } from '@mantine/core'
import type { Icon } from '@tabler/icons-react'
import type { ReactNode } from 'react'
import type { Refusal } from '@/api/client'
import { ErrorBox, Loading } from '@/parts/page'
import classes from './home.module.css'

export function Nothing({ icon: Shown, text, children }: { icon: Icon; text: string; children?: ReactNode }) {
  return (
    <Stack align="center" justify="center" gap={6} h="100%" p="md">
      <Shown size={26} stroke={1.3} className={classes.faint} aria-hidden />
      <Text size="sm" c="dimmed" ta="center">{text}</Text>
      {children}
    </Stack>
  )
}

interface AnsweredProps {
  answer: { data: unknown; error: Refusal | null; refetch: () => unknown }
  children: ReactNode
}

/** The rows when they are there; until then that they come, or why they do not. */
export function Answered({ answer, children }: AnsweredProps) {
  if (answer.data !== undefined) return <>{children}</>
  return answer.error ? <ErrorBox error={answer.error} retry={() => void answer.refetch()} /> : <Loading />
}
