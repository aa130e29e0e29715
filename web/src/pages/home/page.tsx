/** What failed, what runs now, what comes next, and how it went. */
import { SimpleGrid } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import { request } from '@/api/client'
import { useAnswer } from '@/api/queries'
import { useT } from '@/i18n'
import { ErrorBox, Loading, PageTitle } from '@/parts/page'
import { FailuresPanel } from './failures'
import { HistoryPanel } from './history'
import { QueuesPanel } from './queues'
import { RunningPanel } from './running'
import { Start } from './start'
import { Tiles } from './tiles'
import { UpcomingPanel } from './upcoming'

const route = getRouteApi('/')

export function HomePage() {
  const t = useT()
  const { hours = '6' } = route.useSearch()
  const overview = useAnswer('overview', request('GET', '/api/v1/overview', { query: { hours: Number(hours) } }))
  const failures = useAnswer('failures', request('GET', '/api/v1/failures', { query: { size: 50 } }))
  const isNew = useIsNew()
  const failed = failures.data?.total ?? 0
  const error = overview.error ?? failures.error
  const known = overview.data !== undefined && failures.data !== undefined && isNew !== undefined
  return (
    <>
      <PageTitle title={t('home.title')} windowTitle={failed > 0 ? `(${failed}) ${t('home.title')}` : undefined} />
      {known && isNew && <Start />}
      {known && !isNew && (
        <>
          <Tiles overview={overview.data} />
          <FailuresPanel failures={failures.data} />
          <SimpleGrid cols={{ base: 1, sm: 2, lg: 3 }} spacing="lg" verticalSpacing={0}>
            <RunningPanel />
            <UpcomingPanel />
            <QueuesPanel overview={overview.data} />
          </SimpleGrid>
          <HistoryPanel history={overview.data.history} hours={hours} />
        </>
      )}
      {!known && (error ? <ErrorBox error={error} retry={() => void Promise.all([overview.refetch(), failures.refetch()])} /> : <Loading />)}
    </>
  )
}

/** Whether nothing has been made here yet, and nothing has run; undefined until that is known. */
function useIsNew(): boolean | undefined {
  const jobs = useAnswer('jobs', request('GET', '/api/v1/jobs', { query: { size: 1 } })).data
  const workflows = useAnswer('workflows', request('GET', '/api/v1/workflows', { query: { size: 1 } })).data
  const plans = useAnswer('plans', request('GET', '/api/v1/plans', { query: { size: 1 } })).data
  const runs = useAnswer('activity', request('GET', '/api/v1/activity', { query: { size: 1 } })).data
  const totals = [jobs?.total, workflows?.total, plans?.total, runs?.total]
  if (totals.some((total) => total != null && total > 0)) return false
  return totals.some((total) => total === undefined) ? undefined : true
}
