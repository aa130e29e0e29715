/** Every page and its URL. A page's code is loaded with the first visit; what its URL may hold is known before (`search.ts`). */
import { createRootRoute, createRoute, createRouter, lazyRouteComponent } from '@tanstack/react-router'
import { auditSearch } from '@/pages/audit/search'
import { homeSearch } from '@/pages/home/search'
import { instancesSearch } from '@/pages/instances/search'
import { jobFormSearch, jobSearch, jobsSearch } from '@/pages/jobs/search'
import { planSearch, plansSearch } from '@/pages/plans/search'
import { runSearch, runsSearch } from '@/pages/runs/search'
import { newScheduleSearch, schedulesSearch } from '@/pages/schedules/search'
import { settingsSearch } from '@/pages/settings/search'
import { workflowSearch, workflowsSearch } from '@/pages/workflows/search'
import { ErrorBox, Loading } from '@/parts/page'
import { parseSearch, stringifySearch } from './search'
import { NotFound, Shell } from './shell'

const root = createRootRoute({ component: Shell, notFoundComponent: NotFound })
const at = <P extends string>(path: P) => ({ getParentRoute: () => root, path }) as const

const routes = [
  createRoute({ ...at('/'), validateSearch: homeSearch, component: lazyRouteComponent(() => import('@/pages/home/page'), 'HomePage') }),
  createRoute({ ...at('/runs'), validateSearch: runsSearch, component: lazyRouteComponent(() => import('@/pages/runs/page'), 'RunsPage') }),
  createRoute({ ...at('/runs/$runId'), validateSearch: runSearch, component: lazyRouteComponent(() => import('@/pages/runs/run'), 'RunPage') }),
  createRoute({ ...at('/jobs'), validateSearch: jobsSearch, component: lazyRouteComponent(() => import('@/pages/jobs/page'), 'JobsPage') }),
  createRoute({ ...at('/jobs/new'), validateSearch: jobFormSearch, component: lazyRouteComponent(() => import('@/pages/jobs/form'), 'NewJobPage') }),
  createRoute({ ...at('/jobs/$jobId'), validateSearch: jobSearch, component: lazyRouteComponent(() => import('@/pages/jobs/job'), 'JobPage') }),
  createRoute({ ...at('/jobs/$jobId/edit'), component: lazyRouteComponent(() => import('@/pages/jobs/form'), 'EditJobPage') }),
  createRoute({ ...at('/schedules'), validateSearch: schedulesSearch, component: lazyRouteComponent(() => import('@/pages/schedules/page'), 'SchedulesPage') }),
  createRoute({ ...at('/schedules/new'), validateSearch: newScheduleSearch, component: lazyRouteComponent(() => import('@/pages/schedules/form'), 'NewSchedulePage') }),
  createRoute({ ...at('/schedules/$scheduleId'), component: lazyRouteComponent(() => import('@/pages/schedules/schedule'), 'SchedulePage') }),
  createRoute({ ...at('/schedules/$scheduleId/edit'), component: lazyRouteComponent(() => import('@/pages/schedules/form'), 'EditSchedulePage') }),
  createRoute({ ...at('/workflows'), validateSearch: workflowsSearch, component: lazyRouteComponent(() => import('@/pages/workflows/page'), 'WorkflowsPage') }),
  createRoute({ ...at('/workflows/new'), component: lazyRouteComponent(() => import('@/pages/workflows/form'), 'NewWorkflowPage') }),
  createRoute({ ...at('/workflows/$workflowId'), validateSearch: workflowSearch, component: lazyRouteComponent(() => import('@/pages/workflows/workflow'), 'WorkflowPage') }),
  createRoute({ ...at('/workflows/$workflowId/edit'), component: lazyRouteComponent(() => import('@/pages/workflows/form'), 'EditWorkflowPage') }),
  createRoute({ ...at('/plans'), validateSearch: plansSearch, component: lazyRouteComponent(() => import('@/pages/plans/page'), 'PlansPage') }),
  createRoute({ ...at('/plans/new'), component: lazyRouteComponent(() => import('@/pages/plans/form'), 'NewPlanPage') }),
  createRoute({ ...at('/plans/$planId'), validateSearch: planSearch, component: lazyRouteComponent(() => import('@/pages/plans/plan'), 'PlanPage') }),
  createRoute({ ...at('/instances'), validateSearch: instancesSearch, component: lazyRouteComponent(() => import('@/pages/instances/page'), 'InstancesPage') }),
  createRoute({ ...at('/audit'), validateSearch: auditSearch, component: lazyRouteComponent(() => import('@/pages/audit/page'), 'AuditPage') }),
  createRoute({ ...at('/settings'), validateSearch: settingsSearch, component: lazyRouteComponent(() => import('@/pages/settings/page'), 'SettingsPage') }),
] as const

export const router = createRouter({
  routeTree: root.addChildren(routes),
  basepath: '/ui',
  parseSearch,
  stringifySearch,
  defaultPreload: 'intent',
  defaultPendingComponent: Loading,
  defaultErrorComponent: ({ error, reset }) => <ErrorBox error={error instanceof Error ? error : new Error(String(error))} retry={reset} />,
  scrollRestoration: true,
})

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router
  }
}
