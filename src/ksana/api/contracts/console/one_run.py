"""`GET /api/v1/activity/{runId}`: one run of either kind in the shape of the list, with all that is known of it."""

from collections.abc import Iterator
from typing import Any, Literal

from fastapi import Response
from pydantic import Field

from ksana.api.contracts.console.activity_showing import ActivityItem, AnyRun, shown_all
from ksana.api.contracts.console.again import AnyRunId
from ksana.api.contracts.console.paths import ACTIVITY
from ksana.api.contracts.jobchain.nodes_showing import attempt_shown
from ksana.api.contracts.jobchain.routes import Permission, Route
from ksana.api.contracts.jobchain.run_models import NodeAttempt, ParentNode
from ksana.api.contracts.jobchain.run_showing import parent_shown
from ksana.api.contracts.keys import found_run
from ksana.api.contracts.queries import NoQuery
from ksana.api.contracts.segments import segment
from ksana.api.contracts.shapes import Shown, answer
from ksana.api.services import Services
from ksana.api.times import rfc3339, rfc3339_or_none
from ksana.domain.errors import NotFound
from ksana.domain.execution import Execution
from ksana.domain.identity import trace_id
from ksana.domain.ids import LARGEST_INTEGER
from ksana.domain.workflow_run import WorkflowRun
from ksana.store.base import Store
from ksana.store.requests import ReceivedCallback

_DIGITS = len(str(LARGEST_INTEGER))


class Callback(Shown):
    """A report as it came in."""

    id: int
    received_at: str
    status: Literal["RECEIVED", "IGNORED"] = Field(description="IGNORED: the run had ended before.")
    headers: dict[str, str]
    body: str


class RunDetail(ActivityItem):
    """A run with what it was given and what came of it. Of a workflow's run, the nodes have attempts and callbacks."""

    error_text: str | None = Field(description="The whole error.")
    input: Any
    output: Any
    epoch: int | None = Field(description="Of a job's run: how often it was claimed.")
    owner: str | None = Field(description="The instance that works on it now.")
    ready_at: str | None = Field(description="When it goes on by itself.")
    deadline_at: str | None = Field(description="Until when its callback is waited for.")
    trace_id: str | None
    parent: ParentNode | None = Field(description="The node that it is, or that it works for.")
    attempts: list[NodeAttempt] = Field(description="Those that have ended, oldest first.")
    callbacks: list[Callback]


class OneRun:
    def __init__(self, services: Services) -> None:
        self._services = services

    def routes(self) -> Iterator[Route]:
        path = f"{ACTIVITY}/{segment('runId')}"
        yield Route("GET", path, self.show, "Show a run of either kind", Permission.RUN_READ, RunDetail, (400, 404))

    async def show(self, run_id: AnyRunId, _: NoQuery) -> Response:
        """The same for both kinds; of a workflow's run, `/runs/{runId}` has the nodes."""
        store = self._services.store
        run = await _found(store, run_id)
        [item] = await shown_all(store, [run])
        own = await _of_workflow(store, run) if isinstance(run, WorkflowRun) else await _of_job(store, run)
        return answer({**item, "errorText": run.error, **own})


async def _found(store: Store, run_id: str) -> AnyRun:
    """NotFound."""
    if not (run_id.isascii() and run_id.isdigit()):
        return await found_run(store, run_id)
    if len(run_id) > _DIGITS:
        raise NotFound("run", run_id[:40])
    return await store.execution(int(run_id))


async def _of_job(store: Store, run: Execution) -> dict[str, Any]:
    return {
        "input": dict(run.input),
        "output": run.output,
        "epoch": run.epoch,
        "owner": run.owner,
        "readyAt": rfc3339_or_none(run.ready_at),
        "deadlineAt": rfc3339_or_none(run.deadline_at),
        "traceId": trace_id(run),
        "parent": None if run.workflow_run_id is None else await parent_shown(store, run.id),
        "attempts": [attempt_shown(each) for each in await store.attempts(run.id)],
        "callbacks": [_callback(each) for each in await store.callbacks(run.id)],
    }


async def _of_workflow(store: Store, run: WorkflowRun) -> dict[str, Any]:
    nothing = dict.fromkeys(("output", "epoch", "owner", "readyAt", "deadlineAt", "traceId"))
    return {
        **nothing,
        "input": dict(run.params),
        "parent": await parent_shown(store, run.parent_execution_id),
        "attempts": [],
        "callbacks": [],
    }


def _callback(callback: ReceivedCallback) -> dict[str, Any]:
    return {
        "id": callback.id,
        "receivedAt": rfc3339(callback.received_at),
        "status": "RECEIVED" if callback.status == "RECEIVED" else "IGNORED",
        "headers": dict(callback.headers),
        "body": callback.body,
    }
