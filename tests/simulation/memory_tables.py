"""The tables of the model, and the one way in which an execution's row changes.

A model of what the port promises, not a copy of how the SQL store keeps it: whole values in dictionaries, no locks, no
statements. Every verb is a plain function over these tables, so it is atomic by itself.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import count
from typing import Any, Protocol

from ksana.domain.execution import Attempt, Execution
from ksana.domain.instance import Instance, Lease
from ksana.domain.job import Job
from ksana.domain.ledger import Occurrence, Schedule
from ksana.domain.states import HOLDS_SLOT, TERMINAL, AttemptStatus, ExecutionStatus
from ksana.store.requests import ReceivedCallback

Now = Callable[[], datetime]


class Watcher(Protocol):
    """Told of every change as it happens, before whoever asked for it is."""

    def made(self, execution: Execution) -> None:
        """A new row."""

    def moved(self, before: Execution, after: Execution) -> None:
        """A row that changed."""

    def recorded(self, occurrence: Occurrence) -> None:
        """A new row of the ledger."""

    def attempted(self, attempt: Attempt) -> None:
        """An attempt that ended."""


class Nobody:
    """Watches nothing."""

    def made(self, execution: Execution) -> None:
        """Not looked at."""

    def moved(self, before: Execution, after: Execution) -> None:
        """Not looked at."""

    def recorded(self, occurrence: Occurrence) -> None:
        """Not looked at."""

    def attempted(self, attempt: Attempt) -> None:
        """Not looked at."""


@dataclass(frozen=True, slots=True)
class Token:
    """The right to report on one attempt."""

    execution_id: int
    epoch: int
    expires_at: datetime


class Tables:
    """What is stored. `now` is the database's clock, which leases follow; `shared` is whether several instances may be there
    at once: if not, a new one ends the others, and what a job has no room for is queued when it is fired."""

    def __init__(self, now: Now, *, shared: bool = True, watcher: Watcher | None = None) -> None:
        self.now = now
        self.shared = shared
        self.watcher: Watcher = watcher or Nobody()
        self.jobs: dict[int, Job] = {}
        self.schedules: dict[int, Schedule] = {}
        self.ledger: dict[int, dict[datetime, Occurrence]] = {}
        self.executions: dict[int, Execution] = {}
        self.active: dict[int, None] = {}
        """The ids of those that have not ended, so that no verb costs more as history grows."""
        self.began: dict[int, datetime] = {}
        """When the attempt under way began."""
        self.attempts: dict[int, dict[int, Attempt]] = {}
        """By execution and epoch."""
        self.losses: Counter[int] = Counter()
        self.keys: dict[tuple[int, str], int] = {}
        self.tokens: dict[str, Token] = {}
        self.callbacks: list[ReceivedCallback] = []
        self.instances: dict[str, Instance] = {}
        self.locks: dict[str, Lease] = {}
        self._ids = count(1)

    def unended(self, job_id: int | None = None) -> list[Execution]:
        """The executions that have not ended, by id."""
        rows = (self.executions[each] for each in self.active)
        return [row for row in rows if job_id is None or row.job_id == job_id]

    def add(self, execution: Execution) -> Execution:
        """A new row; its id is given here."""
        row = replace(execution, id=next(self._ids))
        self.executions[row.id] = row
        if row.status not in TERMINAL:
            self.active[row.id] = None
        self.watcher.made(row)
        return row

    def write(self, row: Execution) -> Execution:
        """The row in place of what it was."""
        before = self.executions[row.id]
        self.executions[row.id] = row
        if row.status in TERMINAL:
            self.active.pop(row.id, None)
        elif row.id not in self.active:
            self.active[row.id] = None
        self.watcher.moved(before, row)
        return row

    def queue_of(self, row: Execution) -> str:
        job = self.jobs.get(row.job_id or 0)
        return "default" if job is None else job.spec.worker_queue


@dataclass(frozen=True, slots=True)
class Move:
    """A row, as it is, and where it goes; what is not said is emptied."""

    row: Execution
    target: ExecutionStatus
    at: datetime
    attempt: int | None = None
    ready_at: datetime | None = None
    deadline_at: datetime | None = None
    error: str | None = None
    reason: str | None = None
    output: Any = None


def move(tables: Tables, moves: Iterable[Move]) -> None:
    """Writes where rows go; then each job's oldest queued runs are let in, as many as left their slots."""
    left: Counter[int] = Counter()
    at: datetime | None = None
    for each in sorted(moves, key=lambda each: each.row.id):
        tables.write(_moved(each))
        at = each.at if at is None else max(at, each.at)
        if each.target not in HOLDS_SLOT and each.row.job_id is not None:
            left[each.row.job_id] += 1
    if at is not None:
        let_in(tables, left, at)


def let_in(tables: Tables, places: Counter[int], at: datetime) -> None:
    """QUEUED → SCHEDULED. One too many does no harm, since the claim counts."""
    for job_id, free in sorted(places.items()):
        queued = [row for row in tables.unended(job_id) if row.status is ExecutionStatus.QUEUED]
        queued.sort(key=lambda row: (row.planned_for or row.created_at, row.id))
        for row in queued[:free]:
            ready_at = row.planned_for or row.created_at
            tables.write(replace(row, status=ExecutionStatus.SCHEDULED, ready_at=ready_at, reason=None, updated_at=at))


def _moved(wanted: Move) -> Execution:
    row = wanted.row
    return replace(
        row,
        status=wanted.target,
        owner=None,
        attempt=row.attempt if wanted.attempt is None else wanted.attempt,
        ready_at=wanted.ready_at,
        deadline_at=wanted.deadline_at,
        error=wanted.error,
        reason=wanted.reason,
        output=row.output if wanted.output is None else wanted.output,
        ended_at=wanted.at if wanted.target in TERMINAL else None,
        updated_at=wanted.at,
    )


def record_attempt(
    tables: Tables, row: Execution, status: AttemptStatus, at: datetime, error: str | None, **more: Any
) -> None:
    """The attempt that is under way has ended. A second row for one epoch is refused, as the primary key would."""
    known = tables.attempts.setdefault(row.id, {})
    if row.epoch in known:
        raise ValueError(f"attempt {row.id}/{row.epoch} is there already")
    began = tables.began.get(row.id, row.created_at)
    known[row.epoch] = Attempt(row.id, row.epoch, row.attempt, status, row.owner or "", began, at, error, **more)
    tables.watcher.attempted(known[row.epoch])


def end_attempt(tables: Tables, row: Execution, status: AttemptStatus, at: datetime, error: str | None) -> None:
    """Of one that runs, the attempt is written now; of one that waits for its callback, it is there already."""
    if row.status is ExecutionStatus.RUNNING:
        record_attempt(tables, row, status, at, error)
    elif row.status is ExecutionStatus.CALLBACK_PENDING:
        known = tables.attempts[row.id]
        known[row.epoch] = replace(known[row.epoch], status=status, ended_at=at, error=error)
