"""`/api/v1/runs`: the runs of tasks and of workflows, one resource of two documents.

A task's run has a number and is written as document 003 has it; a workflow's run has a text for an id and is written as document
001 has it. The list has both, newest first, unless the question is about one kind only.
"""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Response
from pydantic import WithJsonSchema

from ksana.api.contracts.cronjob import writing
from ksana.api.contracts.cronjob.answers import OneRun, RunsListed
from ksana.api.contracts.cronjob.documented import errors
from ksana.api.contracts.cronjob.run_queries import RunQuery, Wanted, WhichPage, Whose, WhoseRuns
from ksana.api.contracts.jobchain.paths import RUNS
from ksana.api.contracts.jobchain.routes import Permission, needing
from ksana.api.contracts.jobchain.run_showing import run_detail, run_summary
from ksana.api.contracts.shapes import answer
from ksana.api.contracts.values import ID_SCHEMA, InvalidId, whole_id
from ksana.api.services import Services
from ksana.domain.errors import InvalidInput, NotFound
from ksana.domain.execution import Execution
from ksana.domain.ids import checked_key
from ksana.domain.states import JOBCHAIN_RUN_NAMES, ExecutionStatus
from ksana.domain.workflow_run import WorkflowRun
from ksana.store.requests import Page, PageRequest
from ksana.store.workflow_requests import RunFilter

AnyRunId = Annotated[
    str,
    Path(alias="run_id", description="A number is the run of a task, anything else the run of a workflow."),
    WithJsonSchema({"anyOf": [ID_SCHEMA, {"type": "string"}]}),
]


class AllRuns:
    def __init__(self, services: Services) -> None:
        self._services = services

    def add_to(self, router: APIRouter) -> None:
        add, may = router.add_api_route, needing(Permission.RUN_READ)
        add(
            RUNS,
            self.find,
            methods=["GET"],
            summary="List runs",
            response_model=RunsListed,
            responses=errors(400),
            openapi_extra=may,
        )
        add(
            f"{RUNS}/{{run_id:id}}",
            self.show,
            methods=["GET"],
            summary="Show a run",
            response_model=OneRun,
            responses=errors(400, 404),
            openapi_extra=may,
        )

    async def show(self, run_id: AnyRunId) -> Response:
        """Of a task: with what every attempt sent and got, and the callbacks that came in. Of a workflow: with its nodes."""
        if run_id.isascii() and run_id.isdigit():
            return await self._task_run(whole_id("run_id")(run_id))
        try:
            key = checked_key(run_id)
        except InvalidInput:
            raise InvalidId("run_id", "must be a number, or the id of a workflow's run") from None
        store = self._services.store
        return answer(await run_detail(store, await store.workflow_run_by_key(key)))

    async def _task_run(self, run_id: int) -> Response:
        store = self._services.store
        run = await store.execution(run_id)
        queued = run.status is ExecutionStatus.QUEUED
        position = await store.queue_position(run_id) if queued else None
        return answer(writing.run_detail(run, await store.attempts(run_id), await store.callbacks(run_id), position))

    async def find(self, wanted: Wanted, whose: WhoseRuns, paging: WhichPage) -> Response:
        """Of every task and workflow, newest first. `from` and `to` need a job to be named, and `before_id` asks for runs of
        tasks only."""
        page = paging.request()
        if whose.task_id is not None or whose.job_id or page.before_id is not None:
            return _page(await self._of_tasks(wanted, whose, page))
        if whose.workflow_id:
            return _page(await self._of_workflow(wanted, whose.workflow_id, page))
        return _page(await self._of_both(wanted, page))

    async def _of_tasks(self, wanted: RunQuery, whose: Whose, page: PageRequest) -> Page[Execution]:
        named = {each for each in (whose.task_id, await self._id_of(whose.job_id)) if each is not None}
        filters = wanted.filter(min(named, default=None))
        if len(named) > 1 or 0 in named or whose.workflow_id:  # no run is of two, nor of one that is not there
            return Page([], 0, page.page, page.size)
        return await self._services.store.executions(filters, page)

    async def _of_workflow(self, wanted: RunQuery, workflow_id: str, page: PageRequest) -> Page[WorkflowRun]:
        statuses = wanted.workflow_statuses()
        if statuses is None:
            raise InvalidInput("status", f"must be one of {', '.join(dict.fromkeys(JOBCHAIN_RUN_NAMES.values()))}")
        filters = RunFilter(checked_key(workflow_id, field="workflowId"), statuses)
        return await self._services.store.workflow_runs(filters, page)

    async def _of_both(self, wanted: RunQuery, page: PageRequest) -> Page[Execution | WorkflowRun]:
        tasks, statuses = wanted.of_both(None), wanted.workflow_statuses()
        workflows = None if statuses is None else RunFilter(None, statuses)
        return await self._services.store.all_runs(tasks, workflows, page)

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


def _shown(run: Execution | WorkflowRun) -> dict[str, Any]:
    if isinstance(run, WorkflowRun):
        return run_summary(run)
    return {**writing.run_fields(run), "kind": "task"}


def _page(found: Page[Execution] | Page[WorkflowRun] | Page[Execution | WorkflowRun]) -> Response:
    items = [_shown(run) for run in found.items]
    return answer(
        {"page": found.page, "page_size": found.size, "size": found.size, "total": found.total, "items": items}
    )
