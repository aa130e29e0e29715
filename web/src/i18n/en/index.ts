/** English: the catalogue that others are measured by. A page's words are in the file with its name. */
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

export const en = { app, audit, home, instances, jobs, plans, runs, schedules, settings, states, workflows } as const
