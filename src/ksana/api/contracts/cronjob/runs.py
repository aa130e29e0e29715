"""`/api/v1/tasks/{id}/runs`, and what is asked of a task's run; the list of runs and one run: `all_runs`."""

from fastapi import APIRouter, Request, Response

from ksana.api.contracts.cronjob import writing
from ksana.api.contracts.cronjob.answers import Listed, RunCanceled, RunExplained, RunSummary
from ksana.api.contracts.cronjob.documented import errors
from ksana.api.contracts.cronjob.run_queries import Wanted
from ksana.api.contracts.cronjob.values import Cursor, PageNumber, PageSize, TaskId
from ksana.api.contracts.jobchain.paths import RUNS
from ksana.api.contracts.shapes import answer
from ksana.api.contracts.values import IntegerRunId
from ksana.api.services import Services, actor_of
from ksana.store.requests import PageRequest


class Runs:
    def __init__(self, services: Services) -> None:
        self._services = services

    def add_to(self, router: APIRouter) -> None:
        add, one = router.add_api_route, f"{RUNS}/{{run_id}}"
        of_task = "/api/v1/tasks/{id}/runs"
        add(
            of_task,
            self.of_task,
            methods=["GET"],
            summary="List a task's runs",
            response_model=Listed[RunSummary],
            responses=errors(400, 404),
        )
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
    ) -> Response:
        """Newest first, by the instant that they are for."""
        store = self._services.store
        await store.job(task_id)  # one that is not there, or deleted, is NOT_FOUND
        found = await store.executions(wanted.filter(task_id), PageRequest(page, page_size, before_id))
        return answer(writing.listed(found, writing.run_fields))

    async def cancel(self, run_id: IntegerRunId, request: Request) -> RunCanceled:
        """Whatever has not ended: a request that is under way is broken off. What has ended stays as it is."""
        done = await self._services.runs.cancel(run_id, actor_of(request))
        return writing.canceled(done.execution, by_this=done.by_this)

    async def explain(self, run_id: IntegerRunId) -> RunExplained:
        """Queued behind others, waiting for its next attempt, for a callback, for a worker; or ended."""
        return writing.explanation(await self._services.queries.explain(run_id, self._services.clock.now()))
