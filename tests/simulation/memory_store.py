"""The part of the store's port that job runs need, in memory: each verb is handed to a wire, which says when it is applied.

One of these stands for one process's connection to the database: it has that process's clock, as the SQL store has. Verbs of
workflows and plans are not there: whoever calls one fails loudly.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, cast

from ksana.domain.clock import Clock
from ksana.domain.events import Actor
from ksana.domain.execution import Attempt, Claim, Claimed, Execution
from ksana.domain.instance import MOST_LOSSES, Instance, Lease, Pulse
from ksana.domain.job import Job
from ksana.domain.ledger import Fired, Firing, Occurrence, Schedule
from ksana.domain.states import AttemptStatus, ExecutionStatus
from ksana.store import requests as r
from ksana.store.base import Store
from tests.simulation import memory_callbacks as callbacks
from tests.simulation import memory_cluster as cluster
from tests.simulation import memory_ledger as ledger
from tests.simulation import memory_queue as queue
from tests.simulation.memory_tables import Tables

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
P = ParamSpec("P")
S = ExecutionStatus


@dataclass(frozen=True, slots=True)
class Call(Generic[T_co]):
    """One verb with its arguments; `apply` is its whole transaction."""

    name: str
    args: tuple[Any, ...]
    apply: Callable[[], T_co]


class Wire(Protocol):
    """The way to the database and back."""

    async def ask(self, call: Call[T]) -> T:
        """The answer; StoreUnavailable if there is none."""

    def ask_blocking(self, call: Call[T]) -> T:
        """The same, for a thread."""

    def tell_others(self, hint: str) -> None:
        """To whoever listens at the other ends."""

    def listen(self, listener: Callable[[str], None]) -> bool:
        """False: nothing is ever heard here."""


class Direct:
    """Applies a verb when its turn in the event loop comes, and never fails."""

    async def ask(self, call: Call[T]) -> T:
        await asyncio.sleep(0)
        return call.apply()

    def ask_blocking(self, call: Call[T]) -> T:
        return call.apply()

    def tell_others(self, hint: str) -> None:
        """Nobody is there."""

    def listen(self, _: Callable[[str], None]) -> bool:
        return False


class MemoryStore:
    def __init__(self, tables: Tables, clock: Clock, wire: Wire | None = None) -> None:
        self._tables = tables
        self._clock = clock
        self._wire: Wire = wire or Direct()

    def as_store(self) -> Store:
        """For whoever wants the port: of what it lacks, nobody here makes use."""
        return cast("Store", self)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """A verb of the port that is not there may be named, as services do when they are made, but not called."""
        if name.startswith("_") or not hasattr(Store, name):
            raise AttributeError(name)

        async def missing(*_args: object, **_named: object) -> None:
            raise NotImplementedError(f"{name} is not simulated")

        return missing

    def _call(self, verb: Callable[Concatenate[Tables, P], T], *args: P.args, **kwargs: P.kwargs) -> Call[T]:
        return Call(verb.__name__, args, partial(verb, self._tables, *args, **kwargs))

    async def _ask(self, verb: Callable[Concatenate[Tables, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._wire.ask(self._call(verb, *args, **kwargs))

    # Definitions ------------------------------------------------------------------------------------------------------

    async def create_job(self, new: r.NewJob) -> Job:
        return await self._ask(ledger.create_job, new, self._clock.now())

    async def create_schedule(self, job_id: int, new: r.NewSchedule, _: Actor) -> Schedule:
        return await self._ask(ledger.create_schedule, job_id, new, self._clock.now())

    async def pause_schedule(self, schedule_id: int, _: Actor) -> Schedule:
        return await self._ask(ledger.pause_schedule, schedule_id, self._clock.now())

    async def park_schedule(self, schedule_id: int, version: int, error: str) -> bool:
        return await self._ask(ledger.park_schedule, schedule_id, version, error, self._clock.now())

    async def job(self, job_id: int) -> Job:
        return await self._ask(ledger.job_of, job_id)

    async def schedule(self, schedule_id: int) -> Schedule:
        return await self._ask(ledger.schedule_of, schedule_id)

    async def schedules(self, page: r.PageRequest) -> r.Page[Schedule]:
        return _page(sorted(self._tables.schedules.values(), key=lambda each: each.id), page)

    async def schedules_of(self, job_ids: Sequence[int]) -> Mapping[int, Sequence[Schedule]]:
        found: dict[int, list[Schedule]] = {}
        for schedule in self._tables.schedules.values():
            if schedule.job_id is not None and schedule.job_id in job_ids:
                found.setdefault(schedule.job_id, []).append(schedule)
        return found

    # Ledger -----------------------------------------------------------------------------------------------------------

    async def due_schedules(self, until: datetime, limit: int) -> r.DueSchedules:
        return r.DueSchedules(await self._ask(ledger.due_schedules, until, limit), [])

    async def next_fire_at(self) -> datetime | None:
        return await self._ask(ledger.next_fire_at)

    async def fire(self, firings: Sequence[Firing], now: datetime, _: object = None) -> Sequence[Fired]:
        return await self._ask(ledger.fire, tuple(firings), now) if firings else []

    async def occurrences(
        self, schedule_id: int, since: datetime, until: datetime, limit: int, *, newest: bool = False
    ) -> Sequence[Occurrence]:
        return await self._ask(ledger.occurrences, schedule_id, since, until, limit, newest=newest)

    # Queue ------------------------------------------------------------------------------------------------------------

    async def enqueue(self, new: r.NewExecution) -> r.Enqueued:
        return await self._ask(queue.enqueue, new, self._clock.now())

    async def claim(self, request: r.ClaimRequest, now: datetime) -> Sequence[Claimed]:
        def claim(tables: Tables) -> list[Claimed]:
            """At the time when its turn has come."""
            return queue.claim(tables, request, max(now, self._clock.now()))

        claiming = asyncio.ensure_future(self._ask(claim))
        try:
            return await asyncio.shield(claiming)
        except asyncio.CancelledError:
            for claimed in await claiming:
                await self.hand_back(Claim(claimed.execution.id, claimed.execution.epoch), now)
            raise

    async def succeed(self, ending: r.Ending) -> bool:
        return await self._settle(queue.Settlement(ending, S.SUCCESS, AttemptStatus.SUCCEEDED))

    async def fail(self, ending: r.Ending) -> bool:
        return await self._settle(queue.Settlement(ending, S.FAILED, AttemptStatus.FAILED))

    async def time_out(self, ending: r.Ending) -> bool:
        return await self._settle(queue.Settlement(ending, S.TIMEOUT, AttemptStatus.TIMED_OUT))

    async def retry(self, ending: r.Ending, retry_at: datetime, *, timed_out: bool = False) -> bool:
        status = AttemptStatus.TIMED_OUT if timed_out else AttemptStatus.FAILED
        return await self._settle(queue.Settlement(ending, S.RETRYING, status, ready_at=retry_at))

    async def await_callback(self, ending: r.Ending, deadline: datetime | None) -> bool:
        status = AttemptStatus.AWAITING_CALLBACK
        return await self._settle(queue.Settlement(ending, S.CALLBACK_PENDING, status, deadline_at=deadline))

    async def hand_back(self, claim: Claim, now: datetime) -> bool:
        ending = r.Ending(claim, now, error="its instance stopped")
        return await self._settle(queue.Settlement(ending, S.SCHEDULED, AttemptStatus.HANDED_BACK))

    async def _settle(self, settlement: queue.Settlement) -> bool:
        return await self._ask(queue.settle, settlement)

    async def cancel(self, execution_id: int, actor: Actor, now: datetime) -> Execution:
        return await self._ask(queue.cancel, execution_id, actor, now)

    async def still_mine(self, claims: Sequence[Claim]) -> frozenset[Claim]:
        return await self._ask(queue.still_mine, tuple(claims))

    async def claims_of(self, instance_id: str, limit: int) -> Sequence[Claim]:
        return await self._ask(queue.claims_of, instance_id, limit)

    async def open_callback(self, callback: r.NewCallback) -> bool:
        return await self._ask(callbacks.open_callback, callback)

    async def report_callback(self, report: r.CallbackReport) -> r.CallbackAnswer:
        return await self._ask(callbacks.report_callback, report)

    async def next_deadline_at(self) -> datetime | None:
        return await self._ask(callbacks.next_deadline_at)

    async def expire_callbacks(self, now: datetime, limit: int) -> Sequence[int]:
        return await self._ask(callbacks.expire_callbacks, now, limit)

    async def execution(self, execution_id: int) -> Execution:
        return await self._ask(queue.execution_of, execution_id)

    async def executions(self, filters: r.ExecutionFilter, page: r.PageRequest) -> r.Page[Execution]:
        rows = [row for row in self._tables.executions.values() if filters.job_id in {None, row.job_id}]
        if filters.job_id is not None:
            rows.sort(key=lambda row: (row.planned_for or row.created_at, row.id))
        rows.reverse()
        if page.before_id is not None:
            rows = rows[[row.id for row in rows].index(page.before_id) + 1 :]
        return _page(rows, page)

    async def next_ready_at(self, queues: Sequence[str]) -> datetime | None:
        return await self._ask(queue.next_ready_at, tuple(queues))

    async def attempts(self, execution_id: int) -> Sequence[Attempt]:
        return [attempt for _, attempt in sorted(self._tables.attempts.get(execution_id, {}).items())]

    async def callbacks(self, execution_id: int) -> Sequence[r.ReceivedCallback]:
        return [each for each in self._tables.callbacks if each.execution_id == execution_id]

    async def queue_position(self, execution_id: int) -> int:
        return await self._ask(queue.queue_position, execution_id)

    async def active_counts(self, job_id: int) -> dict[ExecutionStatus, int]:
        return await self._ask(ledger.active_counts, job_id)

    # Cluster ----------------------------------------------------------------------------------------------------------

    async def join(self, new: r.NewInstance) -> Instance:
        return await self._ask(cluster.join, new)

    def beat(
        self, instance_id: str, lease: timedelta, *, leading: Lease | None = None, resigning: Lease | None = None
    ) -> Pulse | None:
        before = self._clock.monotonic()
        found = self._wire.ask_blocking(self._call(cluster.beat, instance_id, lease, leading, resigning))
        after = self._clock.monotonic()
        return None if found is None else Pulse(found.leads, found.now, (before + after) / 2, after - before)

    async def leave(self, instance_id: str) -> bool:
        return await self._ask(cluster.leave, instance_id)

    async def instances(self) -> Sequence[Instance]:
        return await self._ask(cluster.instances)

    async def holdings(self) -> Mapping[str, int]:
        return await self._ask(cluster.holdings)

    async def next_recovery_at(self) -> datetime | None:
        return await self._ask(cluster.next_recovery_at)

    async def recover(self, now: datetime, limit: int, most_losses: int = MOST_LOSSES) -> r.Recovered:
        return await self._ask(cluster.recover, now, limit, most_losses)

    def tell_others(self, hint: str) -> None:
        self._wire.tell_others(hint)

    def listen(self, listener: Callable[[str], None]) -> bool:
        return self._wire.listen(listener)

    @property
    def shared(self) -> bool:
        return self._tables.shared

    @property
    def changes(self) -> int | None:
        return None  # so that every look asks, and meets whatever the wire does to it

    async def acquire_lock(self, name: str, owner: str, ttl: timedelta) -> Lease | None:
        return await self._ask(cluster.acquire_lock, name, owner, ttl)

    async def renew_lock(self, lease: Lease, ttl: timedelta) -> Lease | None:
        return await self._ask(cluster.renew_lock, lease, ttl)

    async def release_lock(self, lease: Lease) -> bool:
        return await self._ask(cluster.release_lock, lease)

    async def lock(self, name: str) -> Lease | None:
        return await self._ask(cluster.lock, name)

    # What nothing here makes use of -----------------------------------------------------------------------------------

    def on_run_ended(self, listener: object) -> None:
        """There are no workflow runs."""

    async def tasks_to_show(self, _: Sequence[int]) -> Sequence[object]:
        """There are no plans."""
        return []


def _page(rows: Sequence[T], page: r.PageRequest) -> r.Page[T]:
    return r.Page(rows[page.offset : page.offset + page.size], len(rows), page.page, page.size)
