"""The questions. Each is bounded: by an index and a limit, or by a page."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import (
    ColumnElement,
    Row,
    Select,
    Subquery,
    Table,
    UnaryExpression,
    func,
    literal_column,
    or_,
    select,
    union_all,
)

from ksana.domain.clock import from_micros, to_micros
from ksana.domain.errors import NotFound
from ksana.domain.events import Event, EventType
from ksana.domain.execution import Attempt, Claim, Execution
from ksana.domain.instance import Instance
from ksana.domain.job import Job
from ksana.domain.ledger import Occurrence, Schedule
from ksana.domain.states import ACTIVE, RUN_ACTIVE, ExecutionStatus, RunStatus
from ksana.store.requests import (
    MAX_PAGED_ROWS,
    AuditedSchedule,
    AuditEntry,
    DueSchedules,
    ExecutionFilter,
    Figures,
    JobFilter,
    Page,
    PageRequest,
    ReceivedCallback,
    Unreadable,
)
from ksana.store.sql import codec, schema
from ksana.store.sql.rows import Statement, columns
from ksana.store.sql.tx import Tx

T = TypeVar("T")
Order = tuple[ColumnElement[Any], ...]
MOST = 1_000
"""What a list without pages gives at the most."""

_jobs, _schedules, _executions = schema.jobs.c, schema.schedules.c, schema.executions.c
_STILL_MINE = Statement(
    "SELECT t.id, r.epoch AS claimed_epoch FROM {rows} {join} executions t ON t.id = r.id"
    f" WHERE t.epoch = r.epoch AND t.status = '{ExecutionStatus.RUNNING}'",
    columns(id="int", epoch="int"),
)


_IDS = columns(id="int")
_SCHEDULES_OF = Statement(
    "SELECT t.* FROM {rows} {join} schedules t ON t.job_id = r.id WHERE t.deleted_at IS NULL ORDER BY t.id", _IDS
)
# One look at the end of an index for each, whatever its history.
_LAST_ENDED = Statement(
    "SELECT t.* FROM {rows} {join} executions t ON t.id = (SELECT e.id FROM executions e WHERE e.job_id = r.id"
    " AND e.ended_at IS NOT NULL ORDER BY e.planned_for DESC, e.id DESC LIMIT 1)",
    _IDS,
)
_LAST_OCCURRENCES = Statement(
    "SELECT t.* FROM {rows} {join} occurrences t ON t.schedule_id = r.id AND t.planned_for ="
    " (SELECT max(o.planned_for) FROM occurrences o WHERE o.schedule_id = r.id)",
    _IDS,
)
_DEFINITIONS = Statement(
    "SELECT t.subject, t.at, t.data FROM {rows} {join} events t ON t.subject = r.subject"
    f" WHERE t.type IN ('{EventType.SCHEDULE_CREATED}', '{EventType.SCHEDULE_CHANGED}') ORDER BY t.id",
    columns(subject="key"),
)
_HOLDINGS = Statement(
    "SELECT t.owner, count(*) AS number FROM executions t {by_owner} WHERE t.owner IS NOT NULL GROUP BY t.owner"
)
_NEXT_READY = Statement(
    "SELECT min(t.ready_at) FROM executions t {by_ready} WHERE t.worker_queue = :queue AND t.ready_at > 0"
)


def _id_rows(ids: Sequence[int]) -> list[tuple[int]]:
    return [(each,) for each in sorted(set(ids))]


def job(tx: Tx, job_id: int) -> Job:
    return _one_job(tx, _jobs.id == job_id, job_id)


def job_by_key(tx: Tx, key: str) -> Job:
    return _one_job(tx, _jobs.public_id == key, key)


def _one_job(tx: Tx, condition: ColumnElement[bool], key: object) -> Job:
    found = tx.core(select(schema.jobs).where(condition, _jobs.deleted_at.is_(None)))
    if not found:
        raise NotFound("job", key)
    return codec.job(found[0])


def jobs(tx: Tx, filters: JobFilter, page: PageRequest) -> Page[Job]:
    conditions: list[ColumnElement[bool]] = [_jobs.deleted_at.is_(None)]
    if filters.keyword:
        conditions.append(_jobs.name.contains(filters.keyword, autoescape=True))
    for column, value in (
        (_jobs.name, filters.name),
        (_jobs.enabled, filters.enabled),
        (_jobs.type, filters.type),
        (_jobs.contract, filters.contract),
    ):
        if value is not None:
            conditions.append(column == value)
    conditions += [] if page.before_id is None else [_jobs.id > page.before_id]
    return page_of(tx, schema.jobs, [conditions], (_jobs.id,), page, codec.job)


def schedule(tx: Tx, schedule_id: int) -> Schedule:
    found = tx.core(
        select(schema.schedules).where(_schedules.id == schedule_id, _schedules.deleted_at.is_(None)),
    )
    if not found:
        raise NotFound("schedule", schedule_id)
    return codec.schedule(found[0])


def schedule_by_key(tx: Tx, key: str) -> Schedule:
    found = tx.core(select(schema.schedules).where(_schedules.public_id == key, _schedules.deleted_at.is_(None)))
    if not found:
        raise NotFound("schedule", key)
    return codec.schedule(found[0])


def schedules_of(tx: Tx, job_ids: Sequence[int]) -> dict[int, list[Schedule]]:
    found: dict[int, list[Schedule]] = {}
    for row in tx.query(_SCHEDULES_OF, _id_rows(job_ids)):
        found.setdefault(row.job_id, []).append(codec.schedule(row))
    return found


def schedules(tx: Tx, page: PageRequest) -> Page[Schedule]:
    conditions: list[ColumnElement[bool]] = [_schedules.deleted_at.is_(None)]
    conditions += [] if page.before_id is None else [_schedules.id > page.before_id]
    return page_of(tx, schema.schedules, [conditions], (_schedules.id,), page, codec.schedule)


def due_schedules(tx: Tx, until: datetime, limit: int) -> DueSchedules:
    due = select(schema.schedules).where(_schedules.next_fire_at <= to_micros(until))
    rows = tx.core(due.order_by(_schedules.next_fire_at, _schedules.id).limit(limit))
    readable: list[Schedule] = []
    unreadable: list[Unreadable] = []
    for row in rows:
        _, error = codec.schedule_spec(row.spec)
        if error is None:
            readable.append(codec.schedule(row))
        else:
            unreadable.append(Unreadable(row.id, row.version, error))
    return DueSchedules(readable, unreadable)


def next_fire_at(tx: Tx) -> datetime | None:
    earliest = tx.core(select(func.min(_schedules.next_fire_at)).where(_schedules.next_fire_at.is_not(None)))[0][0]
    return None if earliest is None else from_micros(earliest)


def occurrences(tx: Tx, schedule_id: int, since: datetime, until: datetime, limit: int) -> list[Occurrence]:
    ledger = schema.occurrences.c
    wanted = select(schema.occurrences).where(
        ledger.schedule_id == schedule_id,
        ledger.planned_for >= to_micros(since),
        ledger.planned_for < to_micros(until),
    )
    # A range that begins before reaches into it, if it is the last before and long enough.
    before = select(schema.occurrences).where(ledger.schedule_id == schedule_id, ledger.planned_for < to_micros(since))
    last = tx.core(before.order_by(ledger.planned_for.desc()).limit(1))
    reaching = [row for row in last if (row.last_planned_for or 0) >= to_micros(since)]
    rows = [*reaching, *tx.core(wanted.order_by(ledger.planned_for).limit(limit))]
    return [codec.occurrence(row) for row in rows[:limit]]


def last_occurrences(tx: Tx, schedule_ids: Sequence[int]) -> dict[int, Occurrence]:
    return {row.schedule_id: codec.occurrence(row) for row in tx.query(_LAST_OCCURRENCES, _id_rows(schedule_ids))}


def last_ended(tx: Tx, job_ids: Sequence[int]) -> dict[int, Execution]:
    return {row.job_id: codec.execution(row) for row in tx.query(_LAST_ENDED, _id_rows(job_ids))}


def next_ready_at(tx: Tx, queues: Sequence[str]) -> datetime | None:
    earliest = [row[0] for queue in queues for row in tx.query(_NEXT_READY, queue=queue) if row[0] is not None]
    return from_micros(min(earliest)) if earliest else None


def next_deadline_at(tx: Tx) -> datetime | None:
    earliest = tx.core(select(func.min(_executions.deadline_at)).where(_executions.deadline_at.is_not(None)))[0][0]
    return None if earliest is None else from_micros(earliest)


def audited_schedules(tx: Tx, after_id: int, limit: int) -> list[AuditedSchedule]:
    page = select(schema.schedules).where(_schedules.id > after_id).order_by(_schedules.id).limit(limit)
    rows = tx.core(page)
    told = tx.query(_DEFINITIONS, [(f"schedule/{row.id}",) for row in rows])
    return [_audited(row, [each for each in told if each.subject == f"schedule/{row.id}"]) for row in rows]


def _audited(row: Row[Any], told: list[Row[Any]]) -> AuditedSchedule:
    schedule_ = codec.schedule(row)
    changes = [(from_micros(event.at), codec.from_json(event.data) or {}) for event in told]
    known = [(at, codec.schedule_spec(data["spec"])[0]) for at, data in changes if "spec" in data]
    return AuditedSchedule(schedule_, codec.instant(row.deleted_at), known or [(schedule_.created_at, schedule_.spec)])


def execution(tx: Tx, execution_id: int) -> Execution:
    found = tx.core(select(schema.executions).where(_executions.id == execution_id))
    if not found:
        raise NotFound("run", execution_id)
    return codec.execution(found[0])


def executions(tx: Tx, filters: ExecutionFilter, page: PageRequest) -> Page[Execution]:
    conditions: list[ColumnElement[bool]] = []
    if filters.planned_from is not None:
        conditions.append(_executions.planned_for >= to_micros(filters.planned_from))
    if filters.planned_to is not None:
        conditions.append(_executions.planned_for < to_micros(filters.planned_to))
    if not filters.nodes:
        # Both, so that an index has them in order.
        conditions += [_executions.workflow_run_id.is_(None), _executions.node_id.is_(None)]
    if filters.job_id is None:
        conditions += _older_by_id(_executions.id, page)
        order: Order = (_executions.id.desc(),)
    else:
        conditions += [_executions.job_id == filters.job_id, *_older_by_plan(tx, page)]
        order = (_executions.planned_for.desc(), _executions.id.desc())
    # One branch a state: each is a piece of an index, in order, where a list of states would be sorted or filtered.
    branches = [[*conditions, _executions.status == status] for status in sorted(filters.statuses)] or [conditions]
    return page_of(tx, schema.executions, branches, order, page, codec.execution)


def _older_by_id(column: ColumnElement[int], page: PageRequest) -> list[ColumnElement[bool]]:
    return [] if page.before_id is None else [column < page.before_id]


def _older_by_plan(tx: Tx, page: PageRequest) -> list[ColumnElement[bool]]:
    if page.before_id is None:
        return []
    planned = _executions.planned_for
    found = tx.core(select(planned).where(_executions.id == page.before_id))
    if not found or found[0].planned_for is None:
        return [_executions.id < page.before_id]
    pivot = found[0].planned_for
    return [planned <= pivot, or_(planned < pivot, _executions.id < page.before_id)]


def attempts(tx: Tx, execution_id: int) -> list[Attempt]:
    tries = schema.attempts.c
    wanted = select(schema.attempts).where(tries.execution_id == execution_id).order_by(tries.epoch).limit(MOST)
    return [codec.attempt(row) for row in tx.core(wanted)]


def callbacks(tx: Tx, execution_id: int) -> list[ReceivedCallback]:
    came = schema.callbacks.c
    wanted = select(schema.callbacks).where(came.execution_id == execution_id).order_by(came.id).limit(MOST)
    return [codec.received_callback(row) for row in tx.core(wanted)]


def still_mine(tx: Tx, claims: Sequence[Claim]) -> frozenset[Claim]:
    rows = tx.query(_STILL_MINE, [(claim.execution_id, claim.epoch) for claim in claims])
    return frozenset(Claim(row.id, row.claimed_epoch) for row in rows)


def claims_of(tx: Tx, instance_id: str, limit: int) -> list[Claim]:
    owned = select(_executions.id, _executions.epoch).where(_executions.owner == instance_id)
    return [Claim(row.id, row.epoch) for row in tx.core(owned.order_by(_executions.id).limit(limit))]


def queue_position(tx: Tx, execution_id: int) -> int:
    wanted = execution(tx, execution_id)
    if wanted.status is not ExecutionStatus.QUEUED:
        return 0
    planned, ours = _executions.planned_for, to_micros(wanted.planned_for or wanted.created_at)
    before = select(func.count()).where(
        _executions.job_id == wanted.job_id,
        _executions.status == ExecutionStatus.QUEUED,
        planned <= ours,
        or_(planned < ours, _executions.id < execution_id),
    )
    return int(tx.core(before)[0][0])


def active_counts(tx: Tx, job_id: int) -> dict[ExecutionStatus, int]:
    counted = (
        select(_executions.status.label("status"), func.count().label("number"))
        .where(_executions.job_id == job_id, _executions.status.in_(sorted(ACTIVE)))
        .group_by(_executions.status)
    )
    return {ExecutionStatus(row.status): row.number for row in tx.core(counted)}


def figures(tx: Tx) -> Figures:
    jobs_ = tx.core(
        select(_jobs.enabled.label("enabled"), func.count().label("number"))
        .where(_jobs.deleted_at.is_(None))
        .group_by(_jobs.enabled)
    )
    enabled = {bool(row.enabled): row.number for row in jobs_}
    active = (
        select(_executions.status.label("status"), func.count().label("number"))
        .where(_executions.status.in_(sorted(ACTIVE)))
        .group_by(_executions.status)
    )
    counts = {ExecutionStatus(row.status): row.number for row in tx.core(active)}
    runs = schema.workflow_runs.c
    flows = (
        select(runs.status.label("status"), func.count().label("number"))
        .where(runs.status.in_(sorted(RUN_ACTIVE)))
        .group_by(runs.status)
    )
    return Figures(
        jobs_enabled=enabled.get(True, 0),
        jobs_disabled=enabled.get(False, 0),
        active=counts,
        workflow_runs={RunStatus(row.status): row.number for row in tx.core(flows)},
    )


def instances(tx: Tx) -> list[Instance]:
    newest = select(schema.instances).order_by(schema.instances.c.started_at.desc(), schema.instances.c.id).limit(MOST)
    return [codec.instance(row) for row in tx.core(newest)]


def holdings(tx: Tx) -> dict[str, int]:
    return {row.owner: row.number for row in tx.query(_HOLDINGS)}


def events(tx: Tx, after_id: int, limit: int) -> list[Event]:
    later = select(schema.events).where(schema.events.c.id > after_id).order_by(schema.events.c.id).limit(limit)
    return [codec.event(row) for row in tx.core(later)]


def audit_entries(tx: Tx, page: PageRequest) -> Page[AuditEntry]:
    entries = schema.audit_entries.c
    return page_of(
        tx, schema.audit_entries, [_older_by_id(entries.id, page)], (entries.id.desc(),), page, codec.audit_entry
    )


def page_of(
    tx: Tx,
    table: Table,
    branches: Sequence[Sequence[ColumnElement[bool]]],
    order: Sequence[ColumnElement[Any]],
    page: PageRequest,
    read: Callable[[Row[Any]], T],
) -> Page[T]:
    """One page of the rows that fit any branch (each fits at most one). Pages by cursor are not counted."""
    by_number = page.before_id is None
    total = min(MAX_PAGED_ROWS, sum(_count(tx, table, conditions) for conditions in branches)) if by_number else None
    reach = page.offset + page.size if by_number else page.size
    parts = [select(table).where(*conditions).order_by(*order).limit(reach) for conditions in branches]
    wanted: Select[Any] = parts[0] if len(parts) == 1 else _together(parts, order)
    rows = tx.core(wanted.limit(page.size).offset(page.offset if by_number else 0))
    return Page([read(row) for row in rows], total, page.page, page.size)


def _together(parts: Sequence[Select[Any]], order: Sequence[ColumnElement[Any]]) -> Select[Any]:
    every = union_all(*(select(part.subquery()) for part in parts)).subquery()
    return select(every).order_by(*(_of(every, column) for column in order))


def _of(source: Subquery, column: ColumnElement[Any]) -> ColumnElement[Any]:
    """The same order, by the same column of another source."""
    descending = isinstance(column, UnaryExpression)
    name = column.element.key if isinstance(column, UnaryExpression) else column.key
    same = source.c[str(name)]
    return same.desc() if descending else same


def _count(tx: Tx, table: Table, conditions: Sequence[ColumnElement[bool]]) -> int:
    within: Select[Any] = select(literal_column("1")).select_from(table).where(*conditions).limit(MAX_PAGED_ROWS)
    return int(tx.core(select(func.count()).select_from(within.subquery()))[0][0])
