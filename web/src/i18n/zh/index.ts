/** 中文。键与英文相同，由 TypeScript 检查。 */
import type { Catalogue } from '../types'
import { app } from './app'
import { audit } from './audit'
import { home } from './home'
import { instances } from './instances'
import { jobs } from './jobs'
import { plans } from './plans'
import { runs } from './runs'
import { schedules } from './schedules'
import { settings } from './settings'
import { states } from './states'
import { workflows } from './workflows'

export const zh: Catalogue = { app, audit, home, instances, jobs, plans, runs, schedules, settings, states, workflows }
