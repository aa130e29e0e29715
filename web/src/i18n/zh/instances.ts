import type { Like } from '../types'
import type { instances as en } from '../en/instances'

export const instances: Like<typeof en> = {
  title: '实例',
  one: '实例',
  id: '编号',
  roles: '角色',
  queues: '队列',
  places: '占用的并发位',
  placesUsed: '已占用 {n} / {places} 个并发位',
  noPlaces: '该实例没有工作线程',
  heartbeat: '心跳',
  expires: '视为失联',
  started: '启动时间',
  address: '地址',
  version: '版本',
  leader: '主节点',
  leaderHint: '负责同一时间只能由一个实例做的事',
  work: '正在运行',
  noWork: '目前没有运行任何内容。',
  moreWork: '另有 {n} 项',
  empty: '没有符合条件的实例',
  emptyHint: '实例自启动起即列出，结束后由保留策略清除。',
}
