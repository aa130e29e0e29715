"""Workflow runs as a transaction sees them: locked first, before any of their nodes, so that what happens to one run happens
in turn; changed in memory; written once."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple

from sqlalchemy import Row

from ksana.domain.events import EventType
from ksana.domain.states import ACTIVE, FAILURES, RUN_ADMITTED, RUN_TERMINAL, STOPS, ExecutionStatus, RunMove, RunStatus
from ksana.domain.workflow import Snapshot
from ksana.domain.workflow_run import ended_status
from ksana.store.sql.live import Live
from ksana.store.sql.rows import Statement, brief, columns, keeping, update_by_id
from ksana.store.sql.statements import snapshots, tenant_tasks
from ksana.store.sql.statements.journal import Happening, fitting, record_events
from ksana.store.sql.tx import Tx
from ksana.store.workflow_requests import EndedRun

_STATUSES = {status.value: status for status in RunStatus}
_ID = attrgetter("id")
_IDS = columns(id="int")
# Without the parameters, which may be large.
_LOCK = Statement(
    "SELECT t.id, t.public_id, t.workflow_id, t.status, t.reason, t.error, t.snapshot, t.open_nodes, t.failed_nodes,"
    " t.stopped_nodes, t.parent_execution_id, t.deadline_at, t.started_at, t.ended_at, t.plan_id, t.task_id, t.tenant_id,"
    " t.fence, t.updated_at"
    " FROM {rows} {join} workflow_runs t {by_id} ON t.id = r.id ORDER BY t.id {for_update}",
    _IDS,
)
_NODES = Statement(
    "SELECT t.workflow_run_id, t.status, count(*) AS number FROM {rows} {join} executions t {by_node}"
    " ON t.workflow_run_id = r.id WHERE t.parent_id IS NULL GROUP BY t.workflow_run_id, t.status",
    _IDS,
)
UNTOLD = -1
"""In place of how many nodes of a run are open: its row does not say so, they are to be counted."""
SOON_COUNTED = 100
"""Nodes of a run up to which who knows their counts need not write them: should they be forgotten, they are soon counted."""
MICROS_BETWEEN = 1_000_000
"""That such a run has changed is written after so long at the latest."""
_RUN = columns(
    id="int",
    status="text",
    reason="text",
    error="text",
    open_nodes="int",
    failed_nodes="int",
    stopped_nodes="int",
    deadline_at="int",
    started_at="int",
    ended_at="int",
    updated_at="int",
)
_WRITE = keeping(update_by_id("workflow_runs", _RUN, **{name: f"r.{name}" for name, _ in _RUN if name != "id"}))
_COUNTS = columns(id="int", open_nodes="int", failed_nodes="int", stopped_nodes="int", updated_at="int")
# Of one that goes on as before: to leave its state and its deadline alone leaves their indexes alone.
_WRITE_COUNTS = keeping(
    update_by_id("workflow_runs", _COUNTS, **{name: f"r.{name}" for name, _ in _COUNTS if name != "id"})
)


class Counts(NamedTuple):
    """Of the nodes of a run."""

    open: int = 0
    failed: int = 0
    stopped: int = 0


@dataclass(slots=True)
class RunNow:
    """A run that the transaction has locked, as it stands by now."""

    id: int
    row: Row[Any]
    snapshot: Snapshot
    status: RunStatus
    reason: str | None
    error: str | None
    open: int
    failed: int
    stopped: int
    deadline_at: int | None
    started_at: int | None
    ended_at: int | None
    told_at: int
    """When its row was written,"""
    counted: bool
    """and whether that says how many nodes are open, failed and stopped."""
    changed: bool = False

    @property
    def going_on(self) -> bool:
        """Whether nodes of it may still start."""
        return self.status is RunStatus.RUNNING or self.status is RunStatus.PENDING

    @property
    def goes_on_as_before(self) -> bool:
        """Whether no more than its counts can have changed."""
        row = self.row
        return bool(
            self.status == row.status
            and self.reason == row.reason
            and self.error == row.error
            and self.deadline_at == row.deadline_at
            and self.started_at == row.started_at
            and self.ended_at == row.ended_at
        )

    def count(self, counts: "Counts") -> None:
        self.open, self.failed, self.stopped = counts

    def move(self, target: RunStatus) -> None:
        """IllegalTransition if there is no such way."""
        if self.status is not target:
            RunMove(frozenset({self.status}), target)
            self.status = target
            self.changed = True

    def end_if_done(self, at: int) -> bool:
        """Whether its last node has ended, and so it has."""
        if self.open or self.status not in RUN_ADMITTED:
            return False
        target = ended_status(self.status, self.reason, self.failed, self.stopped)
        if self.status is RunStatus.PENDING:
            self.move(RunStatus.RUNNING)  # it ended without anything having been run
        self.move(target)
        self.finish(at)
        return True

    def finish(self, at: int) -> None:
        self.ended_at, self.deadline_at, self.changed = at, None, True
        if self.status is RunStatus.SUCCESS:
            self.error = None


def lock(tx: Tx, run_ids: Iterable[int | None]) -> dict[int, RunNow]:
    """These runs, locked until the end of the transaction, in the order of their ids."""
    wanted = sorted({each for each in run_ids if each is not None})
    if not wanted:
        return {}
    found: dict[int, RunNow] = {}
    if tx.live is not None:
        found = {each: run for each in wanted if (run := tx.live.take_run(each)) is not None}
    if len(found) < len(wanted):
        found |= _read(tx, [each for each in wanted if each not in found])
        found = {each: found[each] for each in wanted if each in found}
    tx.fresh.begun.update([each for each, run in found.items() if run.status is RunStatus.RUNNING])
    return found


def _read(tx: Tx, run_ids: list[int]) -> dict[int, RunNow]:
    rows = tx.query(_LOCK, [(each,) for each in run_ids])
    started_with = snapshots.read(tx, (row.snapshot for row in rows))
    found = {row.id: _as_read(row, started_with[row.snapshot]) for row in rows}
    for run_id, counts in _counts_of(tx, [run.id for run in found.values() if not run.counted]).items():
        found[run_id].count(counts)
    return found


def recount(tx: Tx, run: RunNow) -> None:
    """From its nodes as they are now."""
    run.count(_counts_of(tx, [run.id])[run.id])
    run.changed = True


def _counts_of(tx: Tx, run_ids: list[int]) -> dict[int, Counts]:
    if not run_ids:
        return {}
    states: dict[int, dict[ExecutionStatus, int]] = {each: {} for each in run_ids}
    for row in tx.query(_NODES, [(each,) for each in run_ids]):
        states[row.workflow_run_id][ExecutionStatus(row.status)] = row.number
    return {each: _counts_by(found) for each, found in states.items()}


def _counts_by(states: Mapping[ExecutionStatus, int]) -> Counts:
    return Counts(*(sum(states.get(each, 0) for each in kind) for kind in (ACTIVE, FAILURES, STOPS)))


def _as_read(row: Row[Any], snapshot: Snapshot) -> RunNow:
    return RunNow(
        row.id,
        row,
        snapshot,
        _STATUSES[row.status],
        row.reason,
        row.error,
        row.open_nodes,
        row.failed_nodes,
        row.stopped_nodes,
        row.deadline_at,
        row.started_at,
        row.ended_at,
        row.updated_at,
        row.open_nodes != UNTOLD,
    )


def leave(tx: Tx, runs: Iterable[RunNow]) -> None:
    """Those of them that nobody has changed are known as before."""
    if tx.live is not None:
        _go_on(tx.live, [run for run in runs if not run.changed and run.goes_on_as_before])


def write(tx: Tx, runs: Iterable[RunNow], at: int) -> None:
    """What has changed of them, and that it has."""
    changed = sorted([run for run in runs if run.changed], key=_ID)
    if not changed:
        return
    as_before: list[RunNow] = []
    turned: list[RunNow] = []
    for run in changed:
        (as_before if run.goes_on_as_before else turned).append(run)
    _write_as_before(tx, as_before, at)
    if turned:
        tx.run(_WRITE, [_row(run, at) for run in turned])
    record_events(tx, at, [told for run in turned if (told := _told(run)) is not None])
    tenant_tasks.follow(tx, changed, at)
    tx.ended_runs += [
        EndedRun(run.status, max(0, at - (run.started_at or at)) / 1_000_000, of_plan=run.row.plan_id is not None)
        for run in turned
        if run.status in RUN_TERMINAL and run.row.status not in RUN_TERMINAL
    ]
    for run in changed:
        run.changed = False
    if tx.live is not None:
        _go_on(tx.live, as_before)
        tx.live.turned(run.id for run in turned)


def _write_as_before(tx: Tx, runs: Iterable[RunNow], at: int) -> None:
    """Of runs that go on. Of small ones the only writer knows the counts, and writes no more than now and then that they change."""
    rows: list[tuple[int, ...]] = []
    for run in runs:
        keeps = tx.live is None or len(run.snapshot.nodes) > SOON_COUNTED
        if keeps or run.counted or not 0 <= at - run.told_at < MICROS_BETWEEN:
            rows.append((run.id, run.open if keeps else UNTOLD, run.failed, run.stopped, at))
            run.told_at, run.counted = at, keeps
    if rows:
        tx.run(_WRITE_COUNTS, rows)


def _go_on(live: Live[RunNow], as_before: Iterable[RunNow]) -> None:
    for run in as_before:
        live.goes_on(run.id, run)


def _row(run: RunNow, at: int) -> tuple[Any, ...]:
    reason = fitting(run.reason, 255) if run.reason else None
    error = None if run.error is None else brief(run.error)
    counts = (run.open, run.failed, run.stopped)
    return (run.id, run.status._value_, reason, error, *counts, run.deadline_at, run.started_at, run.ended_at, at)


def _told(run: RunNow) -> Happening | None:
    if run.status == run.row.status or run.status not in RUN_TERMINAL or run.status is RunStatus.CLOSED:
        return None
    data = {"status": run.status, "failed_nodes": run.failed, "reason": run.reason}
    return (EventType.RUN_ENDED, f"run/{run.id}", data)
