"""`GET /api/v1/search`: where something is that one knows the name, or the id, of."""

from collections.abc import Awaitable, Iterable, Iterator
from typing import Annotated, TypeVar

from fastapi import Query, Response
from pydantic import Field

from ksana.api.contracts.console.activity_showing import ActivityItem, AnyRun, Target, shown_all
from ksana.api.contracts.console.targets import of_job, of_workflow
from ksana.api.contracts.jobchain.routes import Permission, Route
from ksana.api.contracts.keys import found_job, found_run, found_workflow, possible
from ksana.api.contracts.queries import StrictQuery
from ksana.api.contracts.shapes import Shown, answer
from ksana.api.contracts.values import printable
from ksana.api.services import Services
from ksana.domain.errors import InvalidInput, NotFound
from ksana.domain.ids import LARGEST_INTEGER
from ksana.domain.job import NAME_LENGTH, Job
from ksana.domain.plan import Plan
from ksana.domain.workflow import Workflow, WorkflowSummary
from ksana.store.plan_requests import PlanFilter
from ksana.store.requests import JobFilter, PageRequest
from ksana.store.workflow_requests import WorkflowFilter

SEARCH = "/api/v1/search"
MOST_FOUND = 50
_DIGITS = len(str(LARGEST_INTEGER))
T = TypeVar("T", Job, Workflow | WorkflowSummary, Plan)
V = TypeVar("V")


class PlanFound(Shown):
    plan_id: str
    name: str


class Found(Shown):
    """Of each kind, what has that id or name first."""

    jobs: list[Target]
    workflows: list[Target]
    plans: list[PlanFound]
    runs: list[ActivityItem]


class SearchQuery(StrictQuery):
    q: Annotated[str, Field(min_length=1, max_length=NAME_LENGTH, description="An id, or a part of a name.")]
    size: Annotated[int, Field(ge=1, le=MOST_FOUND, description="Of each kind, at the most.")] = 5


class Search:
    def __init__(self, services: Services) -> None:
        self._services = services

    def routes(self) -> Iterator[Route]:
        yield Route("GET", SEARCH, self.find, "Find by name or id", Permission.RUN_READ, Found, (400,))

    async def find(self, query: Annotated[SearchQuery, Query()]) -> Response:
        """Jobs, workflows and plans by id or by a part of their names, in the case that it has; runs by id."""
        wanted, size = printable(query.q, field="q").strip(), query.size
        if not wanted:
            raise InvalidInput("q", "must not be blank")
        return answer(
            {
                "jobs": [of_job(each) for each in await self._jobs(wanted, size)],
                "workflows": [of_workflow(each) for each in await self._workflows(wanted, size)],
                "plans": [{"planId": each.key, "name": each.spec.name} for each in await self._plans(wanted, size)],
                "runs": await shown_all(self._services.store, await self._runs(wanted)),
            }
        )

    async def _jobs(self, wanted: str, size: int) -> list[Job]:
        store, page = self._services.store, PageRequest(size=size, before_id=0)
        found = await _if_any(found_job(store, wanted))
        for filters in (JobFilter(name=wanted), JobFilter(keyword=wanted)):
            if len(found) < size:
                found += (await store.jobs(filters, page)).items
        return _first(found, size)

    async def _workflows(self, wanted: str, size: int) -> list[Workflow | WorkflowSummary]:
        store, page = self._services.store, PageRequest(size=size, before_id=0)
        found: list[Workflow | WorkflowSummary] = [*await _if_any(found_workflow(store, wanted))]
        found += (await store.workflows(WorkflowFilter(keyword=wanted), page)).items
        return _first(found, size)

    async def _plans(self, wanted: str, size: int) -> list[Plan]:
        store, page = self._services.store, PageRequest(size=size, before_id=LARGEST_INTEGER)
        found = await _if_any(self._plan(wanted))
        found += (await store.plans(PlanFilter(keyword=wanted), page)).items
        return _first(found, size)

    async def _plan(self, wanted: str) -> Plan:
        return await self._services.store.plan_by_key(possible("plan", wanted))

    async def _runs(self, wanted: str) -> list[AnyRun]:
        """The one with that id; a node's is none of a run."""
        store = self._services.store
        if not (wanted.isascii() and wanted.isdigit()):
            return list(await _if_any(found_run(store, wanted)))
        if len(wanted) > _DIGITS:
            return []
        return [run for run in await _if_any(store.execution(int(wanted))) if run.workflow_run_id is None]


async def _if_any(asked: Awaitable[V]) -> list[V]:
    """What was found; nothing if nothing has that id."""
    try:
        return [await asked]
    except NotFound:
        return []


def _first(found: Iterable[T], size: int) -> list[T]:
    """Each once."""
    known: dict[int, T] = {}
    for each in found:
        known.setdefault(each.id, each)
    return list(known.values())[:size]
