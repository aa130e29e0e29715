/** Where the navigation leads. */
import { IconActivity, IconAdjustments, IconCalendarTime, IconFileDescription, IconHome, IconListDetails, IconRocket, IconServer, IconSitemap, type Icon } from '@tabler/icons-react'
import type { Key } from '@/i18n'

export const PLACES = [
  { to: '/', text: 'app.home', icon: IconHome },
  { to: '/runs', text: 'app.runs', icon: IconActivity },
  { to: '/jobs', text: 'app.jobs', icon: IconListDetails },
  { to: '/schedules', text: 'app.schedules', icon: IconCalendarTime },
  { to: '/workflows', text: 'app.workflows', icon: IconSitemap },
  { to: '/plans', text: 'app.plans', icon: IconRocket },
  { to: '/instances', text: 'app.instances', icon: IconServer },
  { to: '/audit', text: 'app.audit', icon: IconFileDescription },
  { to: '/settings', text: 'app.settings', icon: IconAdjustments },
] as const satisfies readonly { to: string; text: Key; icon: Icon }[]
