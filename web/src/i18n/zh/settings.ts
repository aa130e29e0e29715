import type { Like } from '../types'
import type { settings as en } from '../en/settings'

export const settings: Like<typeof en> = {
  title: '设置',
  preferences: '偏好',
  preferencesHint: '保存在此浏览器中，仅对您生效。',
  now: '现在是 {now}',
  server: '服务器',
  general: '通用',
  filter: '名称、值或说明',
  onlySet: '仅显示已设置的项',
  source: '来源',
  unset: '未设置',
  empty: '没有符合条件的设置项',
}
