"""Firing: planned instants become occurrences and executions, and the cursor moves, in one transaction.

However many schedules are due, it is the same handful of statements: lock those that have not moved, look at their jobs,
insert the executions, insert the occurrences, move the cursors.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Row

from ksana.domain.clock import from_micros, to_micros
from ksana.domain.errors import ConcurrencyLimit, KsanaError, WorkflowDisabled
from ksana.domain.events import EventType
from ksana.domain.execution import Trigger
from ksana.domain.ids import new_key
from ksana.domain.ledger import Fired, Firing
from ksana.domain.states import ExecutionStatus, OccurrenceOutcome, ScheduleStatus
from ksana.store.sql import codec
from ksana.store.sql.rows import Statement, columns, update_by_id
from ksana.store.sql.statements import admission, starting
from ksana.store.sql.statements.enqueuing import Targets, insert_executions, job_share, targets
from ksana.store.sql.statements.journal import Happening, record_events
from ksana.store.sql.statements.ledger import OccurrenceRow, record_occurrences, skipped_row
from ksana.store.sql.tx import Tx
from ksana.store.workflow_requests import NewRun

# The fence: a schedule that was changed, paused or fired by somebody else since the decision was made is not found; nor one
# that somebody is just changing or firing, whom a writer must not wait for.
_BY_SCHEDULE = Trigger.SCHEDULE.value
_LOCK_DUE = Statement(
    "SELECT t.id, r.version, r.planned_for, t.job_id, t.workflow_id, t.input FROM {rows} {join} schedules t {by_id} ON t.id = r.id"
    " WHERE t.version = r.version AND t.next_planned_for = r.planned_for"
    f" AND t.status = '{ScheduleStatus.ACTIVE}' ORDER BY t.id {{skip_locked}}",
    columns(id="int", version="int", planned_for="int"),
    many=True,
)
_MOVE_CURSORS = update_by_id(
    "schedules",
    columns(id="int", status="text", next_planned_for="int", next_fire_at="int"),
    status="r.status",
    next_planned_for="r.next_planned_for",
    next_fire_at="r.next_fire_at",
    updated_at=":at",
)


@dataclass(frozen=True, slots=True)
class Round:
    """What one call of `fire` brings."""

    firings: tuple[Firing, ...]
    now: datetime
    starts: Mapping[int, NewRun | str] = field(default_factory=dict)
    """For each of a workflow's schedules among them: what its runs begin with, or why they cannot."""


@dataclass(slots=True)
class _Writing:
    """The rows of one transaction, gathered over all its firings."""

    now: int
    alone: bool
    """Nobody else writes to this database: what a job has no room for can be queued at once, and not only by the claim that
    meets it, because no run can end between our count and our commit."""
    executions: list[tuple[Any, ...]] = field(default_factory=list)
    planned: list[tuple[int, int, str | None]] = field(default_factory=list)
    """For each of `executions`: its schedule, its instant, and why it is skipped if it is."""
    skipped: list[OccurrenceRow] = field(default_factory=list)
    events: list[Happening] = field(default_factory=list)
    runs: list[tuple[int, int, str | None, int | None]] = field(default_factory=list)
    """Of workflows: schedule, instant, why it is skipped if it is, and the run if there is one."""

    def plan(self, schedule: Row[Any], planned_for: int, wanted: Targets) -> None:
        refused = wanted.admit(schedule.job_id)
        reason = None if refused is None else refused.reason
        job = wanted.jobs.get(schedule.job_id)
        status = ExecutionStatus.SCHEDULED if reason is None else ExecutionStatus.SKIPPED
        if reason is None and self.alone and wanted.full(schedule.job_id):
            status = ExecutionStatus.QUEUED
        self.planned.append((schedule.id, planned_for, reason))
        self.executions.append(
            (
                schedule.job_id,
                schedule.id,
                planned_for,
                _BY_SCHEDULE,
                job.worker_queue if job is not None else "default",
                status._value_,
                planned_for if status is ExecutionStatus.SCHEDULED else None,
                0,
                0,
                0,
                schedule.input,
                "concurrency_limit" if status is ExecutionStatus.QUEUED else reason,
                None,
                self.now,
                None if reason is None else self.now,
                self.now,
                job_share(schedule.job_id),
            )
        )
        if reason is not None:
            self.tell_skipped(schedule.id, planned_for, reason)

    def tell_skipped(self, schedule_id: int, planned_for: int, reason: str) -> None:
        data = {"planned_for": planned_for, "reason": reason}
        self.events.append((EventType.OCCURRENCE_SKIPPED, f"schedule/{schedule_id}", data))


def fire(tx: Tx, rounds: list[Round]) -> list[list[Fired] | KsanaError]:
    due = _lock_due(tx, rounds)
    wanted = targets(tx, {row.job_id for row in due.values() if row.job_id is not None})
    flows = admission.workflows(tx, {row.workflow_id for row in due.values() if row.workflow_id is not None})
    starts = {schedule_id: start for round_ in rounds for schedule_id, start in round_.starts.items()}
    writing = _Writing(max(to_micros(round_.now) for round_ in rounds), alone=not tx.dialect.shared)
    # Taken out, so that a second firing of the same schedule, in this round or another at once, comes too late.
    found = [[(firing, due.pop(_fence(firing), None)) for firing in round_.firings] for round_ in rounds]
    mine = {firing.schedule_id: (firing, row) for pairs in found for firing, row in pairs if row is not None}
    for firing, schedule in mine.values():
        _plan(firing, schedule, wanted, writing)
        if schedule.workflow_id is not None:
            _begin_runs(tx, firing, schedule, starts.get(schedule.id, "workflow_unreadable"), flows, writing)
    made = _write(tx, writing)
    tx.run(_MOVE_CURSORS, [_cursor(firing) for _, (firing, _) in sorted(mine.items())], at=writing.now)
    return [[_fired(firing, made, lost=row is None) for firing, row in pairs] for pairs in found]


def _lock_due(tx: Tx, rounds: list[Round]) -> dict[tuple[int, int, int], Row[Any]]:
    """The schedules that have not moved, by the fence of the firing that may have them."""
    rows = {_fence(firing) for round_ in rounds for firing in round_.firings}
    return {(row.id, row.version, row.planned_for): row for row in tx.query(_LOCK_DUE, sorted(rows))}


def _fence(firing: Firing) -> tuple[int, int, int]:
    return (firing.schedule_id, firing.version, to_micros(firing.cursor))


def _plan(firing: Firing, schedule: Row[Any], wanted: Targets, writing: _Writing) -> None:
    for planned_for in firing.decision.fires if schedule.workflow_id is None else ():
        writing.plan(schedule, to_micros(planned_for), wanted)
    for part in firing.decision.skipped:
        writing.skipped.append(skipped_row(schedule.id, part, writing.now))
        data = {"planned_for": to_micros(part.first), "reason": part.reason, "count": part.count}
        writing.events.append((EventType.OCCURRENCE_SKIPPED, f"schedule/{schedule.id}", data))


def _begin_runs(
    tx: Tx, firing: Firing, schedule: Row[Any], start: NewRun | str, flows: admission.Workflows, writing: _Writing
) -> None:
    """A workflow's instants: each begins a run, or says why it does not."""
    for planned in firing.decision.fires:
        planned_for = to_micros(planned)
        reason = start if isinstance(start, str) else _refusal(start, flows)
        if reason is not None or isinstance(start, str):
            writing.tell_skipped(schedule.id, planned_for, reason or "")
            writing.runs.append((schedule.id, planned_for, reason, None))
            continue
        now = from_micros(writing.now)
        new = replace(start, key=new_key(now), at=now)
        queued = starting.make_room(tx, new, flows)
        (run_id,) = starting.create(tx, [starting.Beginning(new, queued, schedule.id, planned_for)])
        writing.runs.append((schedule.id, planned_for, None, run_id))


def _refusal(start: NewRun, flows: admission.Workflows) -> str | None:
    match starting.refusal(start, flows):
        case None:
            return None
        case ConcurrencyLimit():
            return "concurrency_limit"
        case WorkflowDisabled():
            return "workflow_disabled"
        case _:
            return "workflow_deleted"


def _write(tx: Tx, writing: _Writing) -> dict[int, list[tuple[int, str | None]]]:
    """For each schedule, its new executions and why they do not run, if so."""
    ids = insert_executions(tx, writing.executions)
    occurrences: list[OccurrenceRow] = []
    made: dict[int, list[tuple[int, str | None]]] = {}
    for execution_id, (schedule_id, planned_for, reason) in zip(ids, writing.planned, strict=True):
        outcome = OccurrenceOutcome.FIRED if reason is None else OccurrenceOutcome.SKIPPED
        occurrences.append(
            (schedule_id, planned_for, outcome._value_, reason, None, 1, execution_id, None, writing.now)
        )
        made.setdefault(schedule_id, []).append((execution_id, reason))
    for schedule_id, planned_for, reason, run_id in writing.runs:
        outcome = OccurrenceOutcome.FIRED if reason is None else OccurrenceOutcome.SKIPPED
        occurrences.append((schedule_id, planned_for, outcome._value_, reason, None, 1, None, run_id, writing.now))
        made.setdefault(schedule_id, []).append((run_id or 0, reason))
    record_occurrences(tx, occurrences + writing.skipped)
    record_events(tx, writing.now, writing.events)
    return made


def _cursor(firing: Firing) -> tuple[int, str, int | None, int | None]:
    decision = firing.decision
    status = ScheduleStatus.FINISHED if decision.next_cursor is None else ScheduleStatus.ACTIVE
    return (firing.schedule_id, status.value, codec.micros(decision.next_cursor), codec.micros(decision.next_fire_at))


def _fired(firing: Firing, made: dict[int, list[tuple[int, str | None]]], *, lost: bool) -> Fired:
    if lost:
        return Fired(firing.schedule_id, lost=True)
    executions = made.get(firing.schedule_id, [])
    if len(executions) == 1 and executions[0][1] is None and not firing.decision.skipped:
        return Fired(firing.schedule_id, execution_ids=(executions[0][0],))  # nearly every one
    refused = tuple(reason for _, reason in executions if reason is not None)
    return Fired(
        firing.schedule_id,
        execution_ids=tuple(execution_id for execution_id, reason in executions if reason is None),
        skipped=len(refused) + sum(part.count for part in firing.decision.skipped),
        refused=refused,
    )
