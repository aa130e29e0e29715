"""What contracts show: a job with its schedules and its last run, and why a run is not running yet."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from ksana.domain.errors import NotFound
from ksana.domain.execution import Execution
from ksana.domain.instance import InstanceStatus
from ksana.domain.job import Job
from ksana.domain.ledger import Occurrence, Schedule
from ksana.domain.states import HOLDS_SLOT, ExecutionStatus, ScheduleStatus
from ksana.store.base import Store
from ksana.store.requests import JobFilter, Page, PageRequest


@dataclass(frozen=True, slots=True)
class JobView:
    job: Job
    schedules: Sequence[Schedule] = ()
    last_run: Execution | None = None
    """The newest that has ended, by the instant it was for."""
    last_occurrence: Occurrence | None = None
    """The newest row of the ledger of `schedule`."""

    @property
    def schedule(self) -> Schedule | None:
        """The one that documents 002 and 003 speak of: its first."""
        return self.schedules[0] if self.schedules else None


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a run stands where it stands. `code` is stable; `until` is when that will change by itself, if it is known."""

    execution: Execution
    code: str
    message: str
    until: datetime | None = None
    position: int | None = None
    """How many of its job's queued runs go before it."""
    running: int | None = None
    limit: int | None = None


class Queries:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def job(self, job_id: int) -> JobView:
        """NotFound."""
        return await self.of(await self._store.job(job_id))

    async def job_by_key(self, key: str) -> JobView:
        """NotFound."""
        return await self.of(await self._store.job_by_key(key))

    async def of(self, job: Job) -> JobView:
        return (await self.views([job]))[0]

    async def jobs(self, filters: JobFilter, page: PageRequest) -> Page[JobView]:
        found = await self._store.jobs(filters, page)
        return Page(await self.views(found.items), found.total, found.page, found.size)

    async def views(self, jobs: Sequence[Job]) -> list[JobView]:
        """Each with its schedules and what it did last: three questions, however many there are."""
        ids = [job.id for job in jobs]
        schedules = await self._store.schedules_of(ids)
        runs = await self._store.last_ended(ids)
        firsts = {job_id: of_job[0].id for job_id, of_job in schedules.items()}
        occurrences = await self._store.last_occurrences(list(firsts.values()))
        return [
            JobView(
                job,
                schedules.get(job.id, ()),
                runs.get(job.id),
                occurrences.get(firsts[job.id]) if job.id in firsts else None,
            )
            for job in jobs
        ]

    async def explain(self, execution_id: int, now: datetime) -> Explanation:
        """NotFound."""
        execution = await self._store.execution(execution_id)
        found = await self._explained(execution, now)
        paused = await self._paused(execution)
        return replace(found, message=f"{found.message}; {paused}") if paused else found

    async def _paused(self, execution: Execution) -> str | None:
        """Why no further run of its schedule comes, if that is so."""
        if execution.schedule_id is None:
            return None
        try:
            schedule = await self._store.schedule(execution.schedule_id)
        except NotFound:
            return "its schedule was deleted: no further runs come"
        told = {
            ScheduleStatus.PAUSED: "its schedule is paused: no further runs come until it is resumed",
            ScheduleStatus.PARKED: f"its schedule is parked ({schedule.error}): no further runs come until it is changed",
        }
        return told.get(schedule.status)

    async def _explained(self, execution: Execution, now: datetime) -> Explanation:
        match execution.status:
            case ExecutionStatus.QUEUED:
                return await self._queued(execution)
            case ExecutionStatus.SCHEDULED:
                return await self._scheduled(execution, now)
            case ExecutionStatus.RETRYING:
                told = f"attempt {execution.attempt} failed ({execution.error}); the next begins then"
                return Explanation(execution, "RETRY_WAITING", told, until=execution.ready_at)
            case ExecutionStatus.CALLBACK_PENDING:
                told = "the target accepted it; its callback is waited for"
                return Explanation(execution, "WAITING_FOR_CALLBACK", told, until=execution.deadline_at)
            case ExecutionStatus.PENDING:
                told = "it waits for the nodes that it depends on" if execution.node_id else "it waits for its turn"
                return Explanation(execution, "WAITING_FOR_NODES", told)
            case ExecutionStatus.DELEGATED:
                told = "its items, or a workflow run of its own, work for it"
                return Explanation(execution, "DELEGATED", told)
            case ExecutionStatus.RUNNING:
                return Explanation(execution, "RUNNING", f"attempt {execution.attempt} runs on {execution.owner}")
            case ExecutionStatus.SKIPPED:
                return Explanation(execution, "SKIPPED", f"it was not run: {execution.reason}")
            case _:
                return Explanation(execution, "ENDED", f"it ended {execution.status}")

    async def _unserved(self, execution: Execution) -> str | None:
        """The queue that it waits in, if nobody serves that."""
        if execution.job_id is None or execution.node_id is not None:
            return None
        queue = (await self._store.job(execution.job_id)).spec.worker_queue
        living = [each for each in await self._store.instances() if each.status is InstanceStatus.ALIVE]
        return None if any(queue in each.queues for each in living) else queue

    async def _queued(self, execution: Execution) -> Explanation:
        job = None if execution.job_id is None else await self._store.job(execution.job_id)
        counts = {} if job is None else await self._store.active_counts(job.id)
        position = await self._store.queue_position(execution.id)
        running = sum(counts.get(status, 0) for status in HOLDS_SLOT)
        limit = None if job is None else job.spec.max_concurrency
        told = f"its job runs {running} times, its limit is {limit}; {position} queued runs go before it"
        return Explanation(execution, "QUEUED", told, position=position, running=running, limit=limit)

    async def _scheduled(self, execution: Execution, now: datetime) -> Explanation:
        if execution.ready_at is not None and execution.ready_at > now:
            return Explanation(execution, "NOT_DUE", "its time has not come", until=execution.ready_at)
        queue = await self._unserved(execution)
        if queue is not None:
            return Explanation(execution, "NO_WORKER", f"no living instance serves the queue {queue}")
        told = "it is due and will be claimed as soon as a worker of its queue has capacity"
        return Explanation(execution, "NO_CAPACITY", told)
