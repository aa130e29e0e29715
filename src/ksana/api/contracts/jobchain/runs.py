"""`/api/v1/runs/{runId}`: workflow runs looked at and ordered about (document 001 §6, document 000 §B2).

The list of runs and one run belong to document 003 as well: `contracts/cronjob/all_runs.py`.
"""

from collections.abc import Iterator
from typing import Annotated

from fastapi import Query, Request, Response

from ksana.api.contracts.bodies import optional_body
from ksana.api.contracts.jobchain.graph_models import RunGraph
from ksana.api.contracts.jobchain.graphs import jobs_of_run, run_graph
from ksana.api.contracts.jobchain.paths import RUN, RunId
from ksana.api.contracts.jobchain.routes import Permission, Route
from ksana.api.contracts.jobchain.run_models import EventsShown, OrderBody, RunOrdered, RunReopened, StopBody
from ksana.api.contracts.jobchain.run_showing import events_shown, run_ordered
from ksana.api.contracts.keys import found_run, possible
from ksana.api.contracts.shapes import answer
from ksana.api.services import Services, actor_of
from ksana.domain.events import Actor
from ksana.domain.ids import LARGEST_INTEGER
from ksana.domain.states import RunStatus
from ksana.store.workflow_requests import Ordered

MOST_EVENTS = 1_000
After = Annotated[int, Query(ge=0, le=LARGEST_INTEGER, description="Those that follow the event with this id.")]
Limit = Annotated[int, Query(ge=1, le=MOST_EVENTS)]


class Runs:
    def __init__(self, services: Services) -> None:
        self._services = services

    def routes(self) -> Iterator[Route]:
        read, control = Permission.RUN_READ, Permission.RUN_CONTROL
        yield Route("GET", f"{RUN}/graph", self.graph, "Draw a run", read, RunGraph, (404,))
        yield Route("GET", f"{RUN}/events", self.events, "What happened to a run", read, EventsShown, (400, 404))
        orders = (
            (":stop", self.stop, "Stop a run", RunOrdered, StopBody),
            (":close", self.close, "Close a run", RunOrdered, OrderBody),
            (":resume", self.resume, "Go on with a run", RunReopened, OrderBody),
            (":retry-failed", self.retry_failed, "Retry all failed nodes", RunReopened, OrderBody),
        )
        for suffix, handler, summary, shows, body in orders:
            yield Route("POST", f"{RUN}{suffix}", handler, summary, control, shows, (400, 404, 409), body=body)

    async def graph(self, run_id: RunId) -> Response:
        """Nodes with their jobs and where they stand, and edges (§3.5)."""
        run = await found_run(self._services.store, run_id)
        found = await self._services.store.run_nodes(run.id)
        return answer(run_graph(found, await jobs_of_run(self._services.store, found.snapshot)))

    async def events(self, run_id: RunId, after: After = 0, limit: Limit = 100) -> Response:
        """Of the run and by order, oldest first."""
        run = await found_run(self._services.store, run_id)
        return answer(events_shown(await self._services.store.run_events(run.id, after, limit)))

    async def stop(self, run_id: RunId, request: Request) -> Response:
        """Nothing new starts, and when what runs has ended the run is STOPPED; with `force`, what runs is broken off."""
        body = await optional_body(request, StopBody)
        key = possible("run", run_id)
        run = await self._services.workflow_runs.stop(key, _by(request, body), force=body.force)
        return answer(run_ordered(run, RunStatus.STOPPING))

    async def close(self, run_id: RunId, request: Request) -> Response:
        """It has ended, for good: what runs is broken off, and nothing moves any more."""
        body = await optional_body(request, OrderBody)
        run = await self._services.workflow_runs.close(possible("run", run_id), _by(request, body))
        return answer(run_ordered(run, RunStatus.CLOSED))

    async def resume(self, run_id: RunId, request: Request) -> Response:
        """A run that was stopped or failed goes on with what is not done."""
        body = await optional_body(request, OrderBody)
        return _reopened(await self._services.workflow_runs.resume(possible("run", run_id), _by(request, body)))

    async def retry_failed(self, run_id: RunId, request: Request) -> Response:
        """All nodes that failed, again."""
        body = await optional_body(request, OrderBody)
        return _reopened(await self._services.workflow_runs.retry_failed(possible("run", run_id), _by(request, body)))


def _by(request: Request, body: OrderBody) -> Actor:
    return actor_of(request, body.reason or "")


def _reopened(ordered: Ordered) -> Response:
    return answer({**run_ordered(ordered.run, ordered.run.status), "reopened": ordered.reopened})
