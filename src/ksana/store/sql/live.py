"""What the only one who writes a database knows of it, and so need not ask for: the executions that run here, as they were claimed,
the workflow runs that go on, and the nodes of new runs that wait for others.

It is exact, or it is not there. Whoever changes such rows in a way of its own makes everything be forgotten (see `Tx`), and so does
a transaction that is taken back, a new connection, and somebody else's write to the file, whoever that may be: SQLite tells.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from ksana.domain.execution import Claim
from ksana.domain.states import ExecutionStatus

MOST = 20_000
"""Of each kind: beyond it, all are forgotten."""
SMALL = 4_000
"""Characters of what an execution was given, up to which it is kept."""


class Running(NamedTuple):
    """An execution that runs, with what its end has to know. None of it changes while it runs under this epoch."""

    id: int
    job_id: int | None
    epoch: int
    attempt: int
    owner: str
    attempt_started_at: int
    planned_for: int | None
    share: str
    created_at: int
    trace_id: str | None
    workflow_run_id: int | None
    node_id: str | None
    parent_id: int | None
    input: str | None
    status: str


_RUNNING = ExecutionStatus.RUNNING.value
_running = partial(tuple.__new__, Running)
"""As its _make, of which nothing is written in Python."""


class Waiting(NamedTuple):
    """A node that waits for others of its run, with what a claim wants to know of it once it is ready. Only its counts change."""

    id: int
    status: str
    """What it will have then."""
    triggered_by: str
    job_id: int | None
    schedule_id: int | None
    planned_for: int | None
    attempt: int
    epoch: int
    created_at: int
    started_at: int | None
    input: str | None
    output: str | None
    error: str | None
    trace_id: str | None
    workflow_run_id: int
    node_id: str
    parent_id: int | None
    checkpoint: str | None
    share: str
    losses: int
    worker_queue: str
    open_dependencies: int
    failed_dependencies: int
    skipped_dependencies: int


_PENDING = ExecutionStatus.PENDING.value
waiting_of = partial(tuple.__new__, Waiting)
"""As its _make, of which nothing is written in Python."""


class GoingOn(Protocol):
    """A workflow run of which no more has changed since it was read than how many of its nodes are open, failed and stopped."""

    row: Any
    """As it was read; those counts of it are old."""
    open: int
    failed: int
    stopped: int


R = TypeVar("R", bound=GoingOn)


class Live(Generic[R]):
    """Used by whoever writes, one at a time."""

    def __init__(self, version: str) -> None:
        self._version = version
        """The question that is answered differently if others have written."""
        self._seen: Any = None
        self._running: dict[int, Running] = {}
        self._runs: dict[int, R] = {}
        self._waiting: dict[tuple[int, str], Waiting] = {}

    def begin(self, connection: Any) -> None:
        """A transaction has begun on the driver's connection: what others may have changed since the last one is forgotten."""
        seen = connection.execute(self._version).fetchone()
        if seen != self._seen:
            self.forget()
            self._seen = seen

    def forget(self) -> None:
        self._running.clear()
        self._runs.clear()
        self._waiting.clear()

    def claimed(self, rows: Iterable[Any], owner: str, now: int) -> None:
        """These were just claimed; the rows are those from before."""
        if len(self._running) > MOST:
            self._running.clear()
        for row in rows:
            if row.input is None or len(row.input) <= SMALL:
                self._running[row.id] = _running(
                    (
                        row.id,
                        row.job_id,
                        row.epoch + 1,
                        row.attempt + 1,
                        owner,
                        now,
                        row.planned_for,
                        row.share,
                        row.created_at,
                        row.trace_id,
                        row.workflow_run_id,
                        row.node_id,
                        row.parent_id,
                        row.input,
                        _RUNNING,
                    )
                )

    def moved(self, rows: Iterable[Any]) -> None:
        """These executions no longer run as they did, or wait."""
        for row in rows:
            self._running.pop(row.id, None)
            if row.status == _PENDING:
                self._waiting.pop((row.workflow_run_id, row.node_id), None)

    def running(self, claim: Claim) -> Running | None:
        """The execution, if it is known to run under this claim."""
        found = self._running.get(claim.execution_id)
        return found if found is not None and found.epoch == claim.epoch else None

    def goes_on(self, run_id: int, run: R) -> None:
        """It is written as it stands here, and whoever did so will not change it any more."""
        if len(self._runs) > MOST:
            self._runs.clear()
        self._runs[run_id] = run

    def turned(self, run_ids: Iterable[int]) -> None:
        """More than their counts has changed."""
        for each in run_ids:
            self._runs.pop(each, None)

    def take_run(self, run_id: int) -> R | None:
        """The run, to be changed by whoever asks; it is not known any more until it is written."""
        return self._runs.pop(run_id, None)

    def has_room_for(self, number: int) -> bool:
        """Whether so many at once would be kept."""
        return number <= MOST

    def waits(self, rows: Sequence["Waiting"]) -> None:
        """So are these nodes stored: new ones, or as they stand since one that they wait for has ended."""
        if len(self._waiting) + len(rows) > MOST:
            self._waiting.clear()
        if self.has_room_for(len(rows)):
            for row in rows:
                self._waiting[row.workflow_run_id, row.node_id] = row

    def take_waiting(self, run_id: int, node_id: str) -> Waiting | None:
        """The node, if it is known to wait, to be written by whoever asks; it is not known any more until then."""
        return self._waiting.pop((run_id, node_id), None)
