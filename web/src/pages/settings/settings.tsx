/** Settings that belong together, as the settings file has them. */
import { Badge, Code, Paper, Text, Title } from '@mantine/core'
import { Fragment } from 'react'
import type { Schemas } from '@/api/client'
import { useT } from '@/i18n'
import classes from './settings.module.css'

export type Setting = Schemas['SettingShown']

/** Whether somebody set it. */
export const isSet = ({ source }: Setting) => source !== 'default'

/** By the part before the first dot, in the order they come. */
export function grouped(settings: readonly Setting[]): [string, Setting[]][] {
  const groups = new Map<string, Setting[]>()
  for (const each of settings) {
    const prefix = each.name.includes('.') ? each.name.slice(0, each.name.indexOf('.')) : ''
    groups.set(prefix, [...(groups.get(prefix) ?? []), each])
  }
  return [...groups]
}

export function SettingGroup({ prefix, settings }: { prefix: string; settings: readonly Setting[] }) {
  const t = useT()
  return (
    <section className={classes.group}>
      <Title order={3} className={classes.prefix}>{prefix || t('settings.general')}</Title>
      <Paper withBorder>{settings.map((each) => <SettingRow key={each.name} setting={each} />)}</Paper>
    </section>
  )
}

function SettingRow({ setting }: { setting: Setting }) {
  const t = useT()
  const { name, value, source, description } = setting
  return (
    <div className={classes.row} data-set={isSet(setting) || undefined}>
      <div className={classes.name}><Breakable text={name} /></div>
      <div className={classes.value}>{value === '' ? <Text span inherit c="dimmed" ff="text">{t('settings.unset')}</Text> : value}</div>
      <div className={classes.meaning}>
        <Words text={description} />
        {isSet(setting) && <Badge size="sm" variant="light" tt="none" className={classes.source} title={t('settings.source')}>{source}</Badge>}
      </div>
    </div>
  )
}

/** A long name that is broken where its parts end. */
const Breakable = ({ text }: { text: string }) => text.split(/(?<=[._])/).map((part, index) => <Fragment key={index}>{part}<wbr /></Fragment>)

/** A text in which what is between backticks is code. */
const Words = ({ text }: { text: string }) => <Text size="sm" c="dimmed">{text.split('`').map((part, index) => (index % 2 === 1 ? <Code key={index}>{part}</Code> : part))}</Text>
