"""Which runs, as query strings say it."""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Query

from ksana.api.contracts.cronjob.reading import statuses_of
from ksana.api.contracts.cronjob.values import Cursor, PageNumber, queried_instant
from ksana.domain.errors import InvalidInput
from ksana.domain.ids import LARGEST_INTEGER
from ksana.domain.states import CRONJOB_NAMES, JOBCHAIN_RUN_NAMES, ExecutionStatus, RunStatus
from ksana.store.requests import MAX_PAGE_SIZE, ExecutionFilter, PageRequest

S = TypeVar("S", bound=StrEnum)
Q = TypeVar("Q")
DEFAULT_SIZE = 20


@dataclass(frozen=True, slots=True)
class RunQuery:
    """Which of them."""

    status: Annotated[str | None, Query(description="A run status, as runs show it.")] = None
    since: Annotated[str | None, Query(alias="from", description="Planned at or after this instant (RFC 3339).")] = None
    to: Annotated[str | None, Query(description="Planned before this instant (RFC 3339).")] = None

    def filter(self, task_id: int | None) -> ExecutionFilter:
        """Those of a task. InvalidInput."""
        return self._filter(task_id, statuses_of(self.status))

    def of_both(self, task_id: int | None) -> ExecutionFilter | None:
        """Runs of tasks where those of workflows are asked for, too; None if no task's run has that status. InvalidInput."""
        statuses = named(self.status, CRONJOB_NAMES)
        if statuses is None and named(self.status, JOBCHAIN_RUN_NAMES) is None:
            names = sorted({*CRONJOB_NAMES.values(), *JOBCHAIN_RUN_NAMES.values()})
            raise InvalidInput("status", f"must be one of {', '.join(names)}")
        filters = self._filter(task_id, statuses or frozenset())
        return None if statuses is None else filters

    def workflow_statuses(self) -> frozenset[RunStatus] | None:
        """None if no workflow's run has that status. InvalidInput."""
        if self.since or self.to:
            raise InvalidInput("from" if self.since else "to", "a span of time can be asked of one job only")
        return named(self.status, JOBCHAIN_RUN_NAMES)

    def _filter(self, task_id: int | None, statuses: frozenset[ExecutionStatus]) -> ExecutionFilter:
        begin = queried_instant(self.since, field="from") if self.since else None
        end = queried_instant(self.to, field="to") if self.to else None
        if begin is not None and end is not None and begin > end:
            raise InvalidInput("from", "is later than to")
        # Of all jobs, only what was asked for by itself: the nodes of a workflow's run are shown with it.
        return ExecutionFilter(task_id, statuses, begin, end, nodes=task_id is not None, documents=False)


def named(name: str | None, names: Mapping[S, str]) -> frozenset[S] | None:
    """The states that are shown under this name; none for none asked for, None if there are none."""
    if not name:
        return frozenset()
    return frozenset(status for status, shown in names.items() if shown == name) or None


@dataclass(frozen=True, slots=True)
class Whose:
    """Whose runs; of whomever, if nothing is given."""

    task_id: Annotated[int | None, Query(ge=1, le=LARGEST_INTEGER)] = None
    job_id: Annotated[str | None, Query(alias="jobId", description="A job's key, or a task's id.")] = None
    workflow_id: Annotated[str | None, Query(alias="workflowId", description="A workflow's id.")] = None


Size = Annotated[int | None, Query(ge=1, le=MAX_PAGE_SIZE, description="20 if left out.")]


@dataclass(frozen=True, slots=True)
class Paging:
    """Which page."""

    page: PageNumber = 1
    page_size: Size = None
    size: Annotated[Size, Query(description="The same by document 001's name.")] = None
    before_id: Cursor = None

    def request(self) -> PageRequest:
        """InvalidInput."""
        given = {each for each in (self.page_size, self.size) if each is not None}
        if len(given) > 1:
            raise InvalidInput("size", "is another than page_size")
        return PageRequest(self.page, next(iter(given), DEFAULT_SIZE), self.before_id)


def at_once(made: type[Q]) -> Callable[..., Awaitable[Q]]:
    """As a dependency that is made where it is needed: what is no coroutine is made in another thread, which takes longer
    than all else that is done with it."""

    async def make(**given: Any) -> Q:
        return made(**given)

    make.__signature__ = inspect.signature(made)  # type: ignore[attr-defined]
    return make


Wanted = Annotated[RunQuery, Depends(at_once(RunQuery))]
WhoseRuns = Annotated[Whose, Depends(at_once(Whose))]
WhichPage = Annotated[Paging, Depends(at_once(Paging))]
