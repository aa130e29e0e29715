/** The nodes of a workflow as a list; the one that is chosen is open, here and in the graph beside it. */
import { ActionIcon, Button, Group, Text } from '@mantine/core'
import { IconAlertTriangle, IconChevronDown, IconChevronRight, IconPlus, IconTrash } from '@tabler/icons-react'
import type { ReactNode } from 'react'
import { useT } from '@/i18n'
import { type Dag, type NodeDef, type Problem, changeNode, kindOf, newNode, withoutNode } from './definition'
import classes from './editor.module.css'
import { NodeForm } from './node-form'

interface CardsProps {
  dag: Dag
  onChange: (dag: Dag) => void
  problem: Problem | undefined
  chosen: string | undefined
  onChoose: (id: string | undefined) => void
}

export function NodeCards({ dag, onChange, problem, chosen, onChoose }: CardsProps) {
  const t = useT()
  const ids = dag.nodes.map(({ id }) => id)
  const add = () => {
    const node = newNode(dag)
    onChange({ ...dag, nodes: [...dag.nodes, node] })
    onChoose(node.id)
  }
  const change = (index: number) => (node: NodeDef) => {
    onChange(changeNode(dag, index, node))
    onChoose(node.id)
  }
  return (
    <div>
      {dag.nodes.length === 0 && <Text size="sm" c="dimmed" mb="xs">{t('workflows.noNodesHint')}</Text>}
      <ul className={classes.cards}>
        {dag.nodes.map((node, index) => (
          <Card key={index} node={node} open={node.id === chosen && ids.indexOf(node.id) === index} problem={problem} place={`nodes[${index}]`} onToggle={() => onChoose(node.id === chosen ? undefined : node.id)} onDelete={() => onChange(withoutNode(dag, index))}>
            <NodeForm node={node} others={ids} onChange={change(index)} problem={(field) => (problem?.field === `nodes[${index}].${field}` || problem?.field.startsWith(`nodes[${index}].${field}[`) ? problem.message : undefined)} />
          </Card>
        ))}
      </ul>
      <Button size="xs" variant="default" leftSection={<IconPlus size={15} />} onClick={add}>{t('workflows.addNode')}</Button>
    </div>
  )
}

interface CardProps {
  node: NodeDef
  open: boolean
  problem: Problem | undefined
  place: string
  onToggle: () => void
  onDelete: () => void
  children: ReactNode
}

function Card({ node, open, problem, place, onToggle, onDelete, children }: CardProps) {
  const t = useT()
  const Mark = open ? IconChevronDown : IconChevronRight
  const wrong = problem !== undefined && (problem.field === place || problem.field.startsWith(`${place}.`) || problem.nodes.includes(node.id))
  return (
    <li className={classes.card} data-wrong={wrong || undefined} data-card={node.id}>
      <Group gap={4} wrap="nowrap" className={classes.cardHead}>
        <button type="button" className={classes.toggle} aria-expanded={open} onClick={onToggle}>
          <Mark size={15} aria-hidden />
          {wrong && <IconAlertTriangle size={15} color="var(--state-bad)" role="img" aria-label={t('workflows.wrong')} />}
          <span className={classes.cardName}>{node.id || t('workflows.unnamed')}</span>
          <span className={classes.cardKind}>{kindOf(node)}{node.dependsOn?.length ? ` ← ${node.dependsOn.join(', ')}` : ''}</span>
        </button>
        <ActionIcon variant="subtle" color="gray" size="md" aria-label={t('workflows.removeNode', { name: node.id })} onClick={onDelete}><IconTrash size={15} /></ActionIcon>
      </Group>
      {wrong && !open && <Text size="xs" px="sm" pb="xs" c="var(--state-bad)">{problem.message}</Text>}
      {open && <div className={classes.cardBody}>{wrong && <Text size="sm" mb="xs" c="var(--state-bad)">{problem.message}</Text>}{children}</div>}
    </li>
  )
}
