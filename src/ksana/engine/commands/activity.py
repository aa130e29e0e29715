"""Runs of jobs and of workflows ordered alike: one, or many at once, of which each is refused by itself."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from ksana.domain.errors import (
    Conflict,
    InvalidInput,
    KsanaError,
    NotFound,
    RunNotRunning,
    RunNotStopped,
    RunOfPlan,
    RunOfWorkflow,
    RunTerminal,
)
from ksana.domain.events import Actor
from ksana.domain.execution import Execution
from ksana.domain.ids import LARGEST_INTEGER
from ksana.domain.states import RUN_REOPENABLE, RUN_TERMINAL, TERMINAL, RunStatus
from ksana.domain.workflow_run import WorkflowRun
from ksana.engine.commands.jobs import JobCommands, RunRequest
from ksana.engine.commands.runs import RunCommands
from ksana.engine.commands.workflow_runs import WorkflowRunCommands
from ksana.store.activity_requests import ActivityFilter, ActivityRequest, LengthAfter, NewestAfter
from ksana.store.base import Store
from ksana.store.requests import MAX_PAGE_SIZE
from ksana.store.workflow_requests import Ordered

MOST_AT_ONCE = 1_000
"""How many runs one order is for."""
MOST_LOOKS = 100
"""How many pages are looked at for them: each may look at ten thousand rows and find none."""
_TOGETHER = 100
"""How many are read, and then ordered, at a time."""
_REFUSALS = (Conflict, NotFound, InvalidInput)
AnyRun = Execution | WorkflowRun


class Wish(StrEnum):
    RETRY = "retry"
    CANCEL = "cancel"


@dataclass(frozen=True, slots=True)
class Chosen:
    """The runs that an order is for, by id, and where those begin that there are beyond them."""

    ids: Sequence[str]
    next: NewestAfter | LengthAfter | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    id: str
    error: KsanaError


@dataclass(slots=True)
class Done:
    """What became of an order to many."""

    matched: int = 0
    """How many there are."""
    possible: int = 0
    """Of those, how many were in a state for it."""
    done: int = 0
    refused: list[Refused] = field(default_factory=list)


def refusal(wish: Wish, run: AnyRun) -> KsanaError | None:
    """Why it cannot be, as the run stands; None: it can."""
    if isinstance(run, WorkflowRun):
        return _of_workflow(wish, run)
    if run.workflow_run_id is not None:
        return RunOfWorkflow(run.id, run.node_id or "")
    if wish is Wish.RETRY:
        return None if run.status in TERMINAL else RunNotStopped(str(run.id), run.status)
    return RunNotRunning(str(run.id), run.status) if run.status in TERMINAL else None


def _of_workflow(wish: Wish, run: WorkflowRun) -> KsanaError | None:
    if run.plan_id is not None:
        return RunOfPlan(run.key, run.workflow_key, run.tenant_id or "")
    if wish is Wish.CANCEL:
        return RunNotRunning(run.key, run.status) if run.status in RUN_TERMINAL else None
    if run.status is RunStatus.CLOSED:
        return RunTerminal(run.key, run.status)
    return None if run.status in RUN_REOPENABLE else RunNotStopped(run.key, run.status)


class ActivityCommands:
    def __init__(self, store: Store, jobs: JobCommands, runs: RunCommands, workflow_runs: WorkflowRunCommands) -> None:
        self._store = store
        self._jobs = jobs
        self._runs = runs
        self._workflow_runs = workflow_runs

    async def retry_run(self, run_id: int, request: RunRequest, actor: Actor) -> Execution:
        """A new run of the job with what this one was given. NotFound (run, job), RunNotStopped, RunOfWorkflow,
        ConcurrencyLimit, InvalidInput."""
        return await self._again(await self._store.execution(run_id), request, actor)

    async def by_filter(self, filters: ActivityFilter, after: NewestAfter | LengthAfter | None = None) -> Chosen:
        """The newest that match, at most MOST_AT_ONCE; of those `after` the last ones, if some were chosen before. A run that an
        order makes is newer than all of them, and so is chosen by none that goes on from there."""
        ids: list[str] = []
        for _ in range(MOST_LOOKS):
            size = min(MAX_PAGE_SIZE, MOST_AT_ONCE - len(ids))
            page = await self._store.activity(filters, ActivityRequest(size, after=after))
            ids += [_name(run) for run in page.items]
            after = page.next
            if after is None or len(ids) == MOST_AT_ONCE:
                break
        return Chosen(ids, after)

    async def order(self, wish: Wish, chosen: Chosen, actor: Actor, *, dry: bool = False) -> Done:
        """Each by itself; `dry`: only what would become of it. Fails as a whole only with the store, and then some may have
        been done."""
        told = Done()
        for ids in _batches(list(dict.fromkeys(chosen.ids))):
            await self._order_some(wish, ids, actor, told, dry=dry)
        return told

    async def _order_some(self, wish: Wish, ids: Sequence[str], actor: Actor, told: Done, *, dry: bool) -> None:
        numbers = [number for each in ids if (number := _number(each))]
        runs = await self._store.runs_named(numbers, [each for each in ids if not _number(each)])
        found = {_name(run): run for run in runs}
        why = {key: refusal(wish, found[key]) if key in found else NotFound("run", key) for key in ids}
        told.refused += [Refused(key, error) for key, error in why.items() if error is not None]
        possible = [key for key, error in why.items() if error is None]
        told.matched += sum(key in found for key in ids)
        told.possible += len(possible)
        if dry:
            return
        does = self._retry if wish is Wish.RETRY else self._cancel
        answers = await asyncio.gather(*(does(found[key], actor) for key in possible), return_exceptions=True)
        for key, answer in zip(possible, answers, strict=True):
            if isinstance(answer, _REFUSALS):
                told.refused.append(Refused(key, answer))
            elif isinstance(answer, BaseException):
                raise answer
            else:
                told.done += 1

    async def _retry(self, run: AnyRun, actor: Actor) -> Execution | Ordered:
        if isinstance(run, WorkflowRun):
            return await self._workflow_runs.retry_failed(run.key, actor)
        return await self._again(run, RunRequest(), actor)

    async def _again(self, run: Execution, request: RunRequest, actor: Actor) -> Execution:
        refused = refusal(Wish.RETRY, run)
        if refused is not None:
            raise refused
        if run.job_id is None:
            raise NotFound("job", run.id)
        wanted = replace(request, input=run.input, retry_of=run.id)
        why = actor if actor.reason else replace(actor, reason=f"retry of run {run.id}")
        return (await self._jobs.run(run.job_id, wanted, why)).execution

    async def _cancel(self, run: AnyRun, actor: Actor) -> object:
        """A workflow's run is stopped, and what runs of it is broken off."""
        if isinstance(run, WorkflowRun):
            return await self._workflow_runs.stop(run.key, actor, force=True)
        canceled = await self._runs.cancel(run.id, actor)
        if not canceled.by_this:
            raise RunNotRunning(str(run.id), canceled.execution.status)
        return canceled


def _batches(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    for begin in range(0, len(ids), _TOGETHER):
        yield ids[begin : begin + _TOGETHER]


def _number(run_id: str) -> int:
    """The number that it is, of a job's run; 0: it is none that a run can have."""
    number = int(run_id) if run_id.isascii() and run_id.isdigit() and len(run_id) <= len(str(LARGEST_INTEGER)) else 0
    return number if number <= LARGEST_INTEGER else 0


def _name(run: AnyRun) -> str:
    return run.key if isinstance(run, WorkflowRun) else str(run.id)
