"""`/api/v1/runs` and `/api/v1/tasks/{id}/runs`: what became of tasks."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request

from ksana.api.contracts.cronjob import reading, writing
from ksana.api.contracts.cronjob.answers import Listed, Run, RunCanceled, RunExplained, RunSummary
from ksana.api.contracts.cronjob.documented import errors
from ksana.api.contracts.cronjob.values import Cursor, PageNumber, PageSize, RunId, TaskId, queried_instant
from ksana.api.services import Services, actor_of
from ksana.domain.errors import InvalidInput, NotFound
from ksana.domain.ids import LARGEST_INTEGER, checked_key
from ksana.domain.states import ExecutionStatus
from ksana.store.requests import ExecutionFilter, Page, PageRequest

RUNS = "/api/v1/runs"


@dataclass(frozen=True, slots=True)
class RunQuery:
    """Which runs, as the query string says it."""

    status: Annotated[str | None, Query(description="A run status, as runs show it.")] = None
    since: Annotated[str | None, Query(alias="from", description="Planned at or after this instant (RFC 3339).")] = None
    to: Annotated[str | None, Query(description="Planned before this instant (RFC 3339).")] = None

    def filter(self, task_id: int | None) -> ExecutionFilter:
        """InvalidInput."""
        begin = queried_instant(self.since, field="from") if self.since else None
        end = queried_instant(self.to, field="to") if self.to else None
        if begin is not None and end is not None and begin > end:
            raise InvalidInput("from", "is later than to")
        return ExecutionFilter(task_id, reading.statuses_of(self.status), begin, end)


Wanted = Annotated[RunQuery, Depends()]


class Runs:
    def __init__(self, services: Services) -> None:
        self._services = services

    def add_to(self, router: APIRouter) -> None:
        add, one = router.add_api_route, f"{RUNS}/{{run_id}}"
        of_task = "/api/v1/tasks/{id}/runs"
        add(of_task, self.of_task, methods=["GET"], summary="List a task's runs", responses=errors(400, 404))
        add(RUNS, self.find, methods=["GET"], summary="List runs", responses=errors(400))
        add(one, self.show, methods=["GET"], summary="Show a run", responses=errors(400, 404))
        add(f"{one}/cancel", self.cancel, methods=["POST"], summary="Cancel a run", responses=errors(400, 404))
        add(
            f"{one}/explain",
            self.explain,
            methods=["GET"],
            summary="Why a run is not running yet",
            responses=errors(400, 404),
        )

    async def of_task(
        self,
        task_id: TaskId,
        wanted: Wanted,
        page: PageNumber = 1,
        page_size: PageSize = 20,
        before_id: Cursor = None,
    ) -> Listed[RunSummary]:
        """Newest first, by the instant that they are for."""
        await self._services.store.job(task_id)  # one that is not there, or deleted, is NOT_FOUND
        return await self._page(wanted.filter(task_id), PageRequest(page, page_size, before_id))

    async def find(
        self,
        wanted: Wanted,
        task_id: Annotated[int | None, Query(ge=1, le=LARGEST_INTEGER)] = None,
        job_id: Annotated[str | None, Query(alias="jobId", description="A job's key, or a task's id.")] = None,
        page: PageNumber = 1,
        page_size: PageSize = 20,
        before_id: Cursor = None,
    ) -> Listed[RunSummary]:
        """Of every job, newest first. `from` and `to` need a job to be named."""
        asked = PageRequest(page, page_size, before_id)
        named = {each for each in (task_id, await self._id_of(job_id)) if each is not None}
        filters = wanted.filter(min(named, default=None))
        if len(named) > 1 or 0 in named:  # two jobs, or one that is not there: no run is of both
            return Listed[RunSummary](**writing.listed(Page([], 0, page, page_size), writing.run_summary))
        return await self._page(filters, asked)

    async def show(self, run_id: RunId) -> Run:
        """With what every attempt sent and got, and the callbacks that came in."""
        store = self._services.store
        run = await store.execution(run_id)
        queued = run.status is ExecutionStatus.QUEUED
        position = await store.queue_position(run_id) if queued else None
        return writing.run_detail(run, await store.attempts(run_id), await store.callbacks(run_id), position)

    async def cancel(self, run_id: RunId, request: Request) -> RunCanceled:
        """Whatever has not ended: a request that is under way is broken off. What has ended stays as it is."""
        done = await self._services.runs.cancel(run_id, actor_of(request))
        return writing.canceled(done.execution, by_this=done.by_this)

    async def explain(self, run_id: RunId) -> RunExplained:
        """Queued behind others, waiting for its next attempt, for a callback, for a worker; or ended."""
        return writing.explanation(await self._services.queries.explain(run_id, self._services.clock.now()))

    async def _page(self, filters: ExecutionFilter, page: PageRequest) -> Listed[RunSummary]:
        found = await self._services.store.executions(filters, page)
        return Listed[RunSummary](**writing.listed(found, writing.run_summary))

    async def _id_of(self, job_id: str | None) -> int | None:
        """The integer of a job's key; 0, which none has, if there is no such job."""
        if not job_id:
            return None
        if job_id.isascii() and job_id.isdigit():
            return int(job_id) if len(job_id) <= 15 else 0
        try:
            return (await self._services.store.job_by_key(checked_key(job_id, field="jobId"))).id
        except NotFound:
            return 0
