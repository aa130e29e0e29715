"""The questions behind overviews: whose events are, what is planned, a job's ledger by days, the nodes of several runs."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Row, func, select

from ksana.domain.clock import from_micros, to_micros
from ksana.domain.events import Event
from ksana.domain.job import Contract
from ksana.domain.states import UNSUCCESSFUL, ExecutionStatus, OccurrenceOutcome
from ksana.store.sql import codec, schema
from ksana.store.sql.rows import Statement, columns, id_rows
from ksana.store.sql.tx import Tx
from ksana.store.view_requests import (
    JobLedger,
    LedgerCount,
    LedgerRange,
    NodeCell,
    Origin,
    PlannedSchedule,
    TargetKind,
)

_IDS = columns(id="int")
DELETED = "~"
"""How the key of what was deleted begins, which no other can."""
_BADLY = ", ".join(
    f"'{status}'" for status in sorted(UNSUCCESSFUL - {ExecutionStatus.CANCELED, ExecutionStatus.STOPPED})
)
"""How what ran can have failed: what somebody stopped has not."""

# Events ---------------------------------------------------------------------------------------------------------------

_EVENTS = Statement("SELECT t.* FROM {rows} {join} events t ON t.id = r.id ORDER BY t.id", _IDS)


def newest_event_id(tx: Tx) -> int:
    return int(tx.core(select(func.max(schema.events.c.id)))[0][0] or 0)


def events_by_ids(tx: Tx, ids: Sequence[int]) -> list[Event]:
    return [codec.event(row) for row in tx.query(_EVENTS, id_rows(ids))]


def _of(table: str, what: str, joins: str = "") -> Statement:
    return Statement(f"SELECT t.id, {what} FROM {{rows}} {{join}} {table} t ON t.id = r.id {joins}", _IDS)


def _target(run: str | None, kind: TargetKind, key: str | None) -> Origin:
    """Of one that was deleted, nobody knows the key any more: another may have it."""
    known = key is not None and not key.startswith(DELETED)
    return Origin(run, kind if known else None, key if known else None)


def _run(row: Row[Any]) -> Origin:
    return _target(row.run, TargetKind.WORKFLOW if row.plan_id is None else TargetKind.PLAN, row.workflow_key)


def _execution(row: Row[Any]) -> Origin:
    """A node's is its run's."""
    if row.run is not None:
        return _run(row)
    return _target(str(row.id), TargetKind.JOB, row.job)


def _schedule(row: Row[Any]) -> Origin:
    return _target(None, TargetKind.WORKFLOW if row.job is None else TargetKind.JOB, row.job or row.workflow)


def _itself(kind: TargetKind) -> Callable[[Row[Any]], Origin]:
    return lambda row: _target(None, kind, row.public_id)


_KINDS: dict[str, tuple[Statement, Callable[[Row[Any]], Origin]]] = {
    "execution": (
        _of(
            "executions",
            "j.public_id AS job, w.public_id AS run, w.workflow_key, w.plan_id",
            "LEFT JOIN jobs j ON j.id = t.job_id LEFT JOIN workflow_runs w ON w.id = t.workflow_run_id",
        ),
        _execution,
    ),
    "run": (_of("workflow_runs", "t.public_id AS run, t.workflow_key, t.plan_id"), _run),
    "job": (_of("jobs", "t.public_id"), _itself(TargetKind.JOB)),
    "workflow": (_of("workflows", "t.public_id"), _itself(TargetKind.WORKFLOW)),
    "schedule": (
        _of(
            "schedules",
            "j.public_id AS job, w.public_id AS workflow",
            "LEFT JOIN jobs j ON j.id = t.job_id LEFT JOIN workflows w ON w.id = t.workflow_id",
        ),
        _schedule,
    ),
    "plan": (_of("plans", "t.public_id"), _itself(TargetKind.PLAN)),
    "task": (
        _of(
            "tenant_tasks",
            "p.public_id, w.public_id AS run",
            "LEFT JOIN plans p ON p.id = t.plan_id LEFT JOIN workflow_runs w ON w.id = t.run_id",
        ),
        lambda row: _target(row.run, TargetKind.PLAN, row.public_id),
    ),
}


def origins(tx: Tx, subjects: Iterable[str]) -> dict[str, Origin]:
    ids: dict[str, set[int]] = defaultdict(set)
    for subject in subjects:
        kind, _, number = subject.partition("/")
        if kind in _KINDS:
            ids[kind].add(int(number))
    found: dict[str, Origin] = {}
    for kind, numbers in ids.items():
        statement, read = _KINDS[kind]
        found |= {f"{kind}/{row.id}": read(row) for row in tx.query(statement, id_rows(numbers))}
    return found


# Schedules ------------------------------------------------------------------------------------------------------------

_PLANNED = Statement(
    "SELECT t.*, j.public_id AS job_key, j.name AS job_name, j.contract AS job_contract,"
    " w.public_id AS workflow_key, w.name AS workflow_name"
    " FROM schedules t LEFT JOIN jobs j ON j.id = t.job_id LEFT JOIN workflows w ON w.id = t.workflow_id"
    " WHERE t.next_fire_at <= :until AND (j.enabled = :enabled OR w.enabled = :enabled)"
    " ORDER BY t.next_fire_at, t.id LIMIT :most"
)


def planned_schedules(tx: Tx, until: datetime, limit: int) -> list[PlannedSchedule]:
    rows = tx.query(_PLANNED, until=to_micros(until), enabled=True, most=limit)
    return [_planned(row) for row in rows if codec.schedule_spec(row.spec)[1] is None]


def _planned(row: Row[Any]) -> PlannedSchedule:
    schedule = codec.schedule(row)
    if row.job_key is None:
        return PlannedSchedule(schedule, TargetKind.WORKFLOW, row.workflow_key, row.workflow_name)
    return PlannedSchedule(schedule, TargetKind.JOB, row.job_key, row.job_name, Contract(row.job_contract))


# A job's ledger by days -----------------------------------------------------------------------------------------------

_OF_JOB = "FROM schedules s JOIN occurrences o ON o.schedule_id = s.id"
# The limit is on rows that are looked at: what is counted is bounded, too.
_DAY = Statement(
    "SELECT x.outcome, x.range_of, x.begins, x.ends, count(*) AS number, sum(x.instants) AS instants, sum(x.bad) AS bad"
    " FROM (SELECT o.outcome, o.instants, o.last_planned_for AS ends,"
    " CASE WHEN o.last_planned_for IS NULL THEN NULL ELSE o.schedule_id END AS range_of,"
    " CASE WHEN o.last_planned_for IS NULL THEN NULL ELSE o.planned_for END AS begins,"
    f" CASE WHEN e.status IN ({_BADLY}) THEN 1 ELSE 0 END AS bad"
    f" {_OF_JOB} LEFT JOIN executions e ON e.id = o.execution_id"
    " WHERE s.job_id = :job_id AND o.planned_for >= :since AND o.planned_for < :until LIMIT :most) x"
    " GROUP BY x.outcome, x.range_of, x.begins, x.ends"
)
_REACHING = Statement(
    "SELECT o.outcome, o.schedule_id AS range_of, o.planned_for AS begins, o.last_planned_for AS ends, o.instants"
    f" {_OF_JOB} AND o.planned_for = (SELECT max(b.planned_for) FROM occurrences b"
    " WHERE b.schedule_id = s.id AND b.planned_for < :since) WHERE s.job_id = :job_id AND o.last_planned_for >= :since"
)


def job_ledger(tx: Tx, job_id: int, edges: Sequence[datetime], most: int) -> JobLedger:
    micros, left = [to_micros(edge) for edge in edges], most
    counts: list[LedgerCount] = []
    ranges: list[LedgerRange] = []
    for day in range(len(edges) - 2, -1, -1):
        rows = tx.query(_DAY, job_id=job_id, since=micros[day], until=micros[day + 1], most=left)
        ranges += [_range(row) for row in rows if row.range_of is not None]
        counts += [_count(row, day) for row in rows if row.range_of is None]
        left -= sum(row.number for row in rows)
        if left <= 0:
            return JobLedger(counts, ranges, day + 1)
    reaching = tx.query(_REACHING, job_id=job_id, since=micros[0])
    return JobLedger(counts, [*ranges, *(_range(row) for row in reaching)], 0)


def _count(row: Row[Any], day: int) -> LedgerCount:
    return LedgerCount(day, OccurrenceOutcome(row.outcome), int(row.instants), int(row.bad))


def _range(row: Row[Any]) -> LedgerRange:
    first, last = from_micros(row.begins), from_micros(row.ends)
    return LedgerRange(row.range_of, first, last, int(row.instants), OccurrenceOutcome(row.outcome))


# The nodes of several runs -----------------------------------------------------------------------------------------------

_CELLS = Statement(
    "SELECT t.node_id, t.status, t.attempt, t.started_at, t.ended_at FROM executions t"
    " WHERE t.workflow_run_id = :run_id AND t.parent_id IS NULL ORDER BY t.id LIMIT :most"
)


def node_cells(tx: Tx, run_ids: Sequence[int], most: int) -> dict[int, list[NodeCell]]:
    found: dict[int, list[NodeCell]] = {}
    left = most
    for run_id in run_ids:
        rows = tx.query(_CELLS, run_id=run_id, most=left + 1)
        if len(rows) > left and found:
            break
        found[run_id] = [_cell(row) for row in rows[:left]]
        left -= len(found[run_id])
    return found


def _cell(row: Row[Any]) -> NodeCell:
    started, ended = codec.instant(row.started_at), codec.instant(row.ended_at)
    return NodeCell(row.node_id, ExecutionStatus(row.status), row.attempt, started, ended)
