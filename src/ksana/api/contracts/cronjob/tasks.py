"""`/api/v1/tasks`: a task is a job with one schedule."""

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response
from pydantic import BeforeValidator

from ksana.api.contracts.bodies import body_of, optional_body
from ksana.api.contracts.cronjob import reading, writing
from ksana.api.contracts.cronjob.answers import Listed, Task, TaskDeleted, TaskStatus, TaskUpdated, Triggered
from ksana.api.contracts.cronjob.documented import errors
from ksana.api.contracts.cronjob.shapes import NewTask, TaskChanges, TriggerRequest, WholeTask
from ksana.api.contracts.cronjob.values import PageNumber, PageSize, TaskId
from ksana.api.contracts.shapes import answer
from ksana.api.contracts.values import empty_as_none, printable, trace_of
from ksana.api.services import Services, actor_of
from ksana.domain.states import CRONJOB_NAMES
from ksana.engine.commands import RunRequest
from ksana.engine.queries import JobView
from ksana.store.requests import JobFilter, PageRequest

TASKS = "/api/v1/tasks"
"""How often a partial change is worked out again because somebody else's came first."""


class Tasks:
    def __init__(self, services: Services) -> None:
        self._services = services
        self._reader = reading.Reader(services.settings)

    def add_to(self, router: APIRouter) -> None:
        def add(
            method: str,
            path: str,
            order: Callable[..., Any],
            summary: str,
            shows: Any,
            fails: tuple[int, ...],
            **more: Any,
        ) -> None:
            router.add_api_route(
                path, order, methods=[method], summary=summary, response_model=shows, responses=errors(*fails), **more
            )

        one = f"{TASKS}/{{id}}"
        add("POST", TASKS, self.create, "Create a task", Task, (400, 409), status_code=201)
        add("GET", TASKS, self.find, "List tasks", Listed[Task], (400,))
        add("GET", one, self.show, "Show a task", Task, (400, 404))
        add("PUT", one, self.put, "Replace a task", TaskUpdated, (400, 404, 409))
        add("PATCH", one, self.patch, "Change a task", TaskUpdated, (400, 404, 409))
        add("DELETE", one, self.delete, "Delete a task", TaskDeleted, (400, 404))
        add("PATCH", f"{one}/enable", self.enable, "Enable a task", Task, (400, 404))
        add("PATCH", f"{one}/disable", self.disable, "Disable a task", Task, (400, 404))
        body = body_of(TriggerRequest, required=False)
        trigger = f"{one}/trigger"
        add("POST", trigger, self.trigger, "Run a task now", Triggered, (400, 404, 409), openapi_extra=body)

    async def create(self, task: NewTask, request: Request) -> Response:
        """Name, cron expression and URL are required; the rest has defaults. The cron expression is kept with six fields."""
        made = await self._services.jobs.create(self._reader.draft(task), actor_of(request))
        return answer(writing.task(made), status=201)

    async def find(
        self,
        status: Annotated[TaskStatus | None, BeforeValidator(empty_as_none)] = None,
        name: Annotated[str | None, Query(max_length=128, description="Part of the name.")] = None,
        page: PageNumber = 1,
        page_size: PageSize = 20,
    ) -> Response:
        """Enabled and disabled, by id; also the jobs that other contracts made."""
        keyword = None if name is None else printable(name, field="name")
        filters = JobFilter(keyword=keyword, enabled=None if status is None else status == "ENABLED")
        found = await self._services.queries.jobs(filters, PageRequest(page, page_size))
        return answer(writing.listed(found, writing.task))

    async def show(self, task_id: TaskId) -> Response:
        """With its next instant and its last run."""
        return answer(writing.task(await self._services.queries.job(task_id)))

    async def put(self, task_id: TaskId, task: WholeTask, request: Request) -> Response:
        """The whole task: what is not given gets its default. With `version`, only if it is still at that one."""
        view = await self._services.queries.job(task_id)
        edit = self._reader.replacement(view, task, task.version)
        return _updated(await self._services.jobs.change(task_id, edit, actor_of(request)))

    async def patch(self, task_id: TaskId, changes: TaskChanges, request: Request) -> Response:
        """Any of the fields; the others stay. With `version`, only if it is still at that one."""
        amended = await self._services.jobs.amend(
            task_id, lambda view: self._reader.amendment(view, changes), actor_of(request)
        )
        return _updated(amended)

    async def enable(self, task_id: TaskId, request: Request) -> Response:
        """It goes on with the first instant from now; what passed meanwhile is recorded as skipped."""
        return await self._switched(task_id, request, enabled=True)

    async def disable(self, task_id: TaskId, request: Request) -> Response:
        """It is not scheduled any more; what runs may end, and it can still be triggered."""
        return await self._switched(task_id, request, enabled=False)

    async def delete(self, task_id: TaskId, request: Request) -> Response:
        """It is gone from every list; its waiting runs are canceled, and its history stays."""
        await self._services.jobs.delete(task_id, actor_of(request))
        return answer({"deleted": True, "id": task_id})

    async def trigger(
        self,
        task_id: TaskId,
        request: Request,
        idempotency_key: Annotated[str | None, Header(description="The same key gives the same run.")] = None,
        traceparent: Annotated[str | None, Header(description="W3C trace context to go on with.")] = None,
    ) -> Response:
        """One run, subject to the task's concurrency policy: it queues, is refused (CONCURRENCY_LIMIT), or runs beside."""
        asked = await optional_body(request, TriggerRequest)
        wanted = RunRequest(reading.run_input(asked), idempotency_key, trace_of(traceparent))
        enqueued = await self._services.jobs.run(task_id, wanted, actor_of(request))
        run = enqueued.execution
        return answer({"run_id": run.id, "task_id": task_id, "status": CRONJOB_NAMES[run.status]})

    async def _switched(self, task_id: int, request: Request, *, enabled: bool) -> Response:
        return answer(writing.task(await self._services.jobs.switch(task_id, actor_of(request), enabled=enabled)))


def _updated(view: JobView) -> Response:
    return answer({**writing.task(view), "updated": True})
