"""The questions. Each is bounded: by an index and a limit, or by a page."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import (
    ColumnElement,
    Row,
    func,
    or_,
    select,
)

from ksana.domain.clock import from_micros, to_micros
from ksana.domain.errors import NotFound
from ksana.domain.events import Event, EventType
from ksana.domain.execution import Attempt, Claim, Execution
from ksana.domain.instance import Instance
from ksana.domain.job import Job
from ksana.domain.ledger import Occurrence, Schedule
from ksana.domain.states import ACTIVE, RUN_ACTIVE, ExecutionStatus, RunStatus
from ksana.store.console_requests import AuditFilter
from ksana.store.requests import (
    AuditedSchedule,
    AuditEntry,
    DueSchedules,
    Figures,
    JobFilter,
    Page,
    PageRequest,
    ReceivedCallback,
    ScheduleFilter,
    Unreadable,
)
from ksana.store.sql import codec, latest, schema
from ksana.store.sql.paging import Listing, containing, page_of
from ksana.store.sql.rows import Statement, columns, id_rows
from ksana.store.sql.tx import Tx

T = TypeVar("T")
Order = tuple[ColumnElement[Any], ...]
MOST = 1_000
"""What a list without pages gives at the most."""

FEW = 100
_jobs, _schedules, _executions = schema.jobs.c, schema.schedules.c, schema.executions.c
_STILL_MINE = Statement(
    "SELECT t.id, r.epoch AS claimed_epoch FROM {rows} {join} executions t ON t.id = r.id"
    f" WHERE t.epoch = r.epoch AND t.status = '{ExecutionStatus.RUNNING}'",
    columns(id="int", epoch="int"),
)


_JOB = Statement("SELECT t.* FROM jobs t WHERE t.id = :id AND t.deleted_at IS NULL")
_JOB_BY_KEY = Statement("SELECT t.* FROM jobs t WHERE t.public_id = :key AND t.deleted_at IS NULL")
_SCHEDULE = Statement("SELECT t.* FROM schedules t WHERE t.id = :id AND t.deleted_at IS NULL")
_SCHEDULE_BY_KEY = Statement("SELECT t.* FROM schedules t WHERE t.public_id = :key AND t.deleted_at IS NULL")
_EXECUTION = Statement("SELECT t.* FROM executions t WHERE t.id = :id")
_ATTEMPTS = Statement("SELECT t.* FROM attempts t WHERE t.execution_id = :id ORDER BY t.epoch LIMIT :most")
_CALLBACKS = Statement("SELECT t.* FROM callbacks t WHERE t.execution_id = :id ORDER BY t.id LIMIT :most")
_IDS = columns(id="int")
_JOBS_BY_IDS = Statement(
    "SELECT t.* FROM {rows} {join} jobs t ON t.id = r.id WHERE t.deleted_at IS NULL",
    _IDS,
)
_SCHEDULES_OF = Statement(
    "SELECT t.* FROM {rows} {join} schedules t ON t.job_id = r.id WHERE t.deleted_at IS NULL ORDER BY t.id", _IDS
)
# One look at the end of an index for each, whatever its history.
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
_DUE = Statement(
    "SELECT t.* FROM schedules t WHERE t.next_fire_at <= :until ORDER BY t.next_fire_at, t.id LIMIT :limit", many=True
)
_NEXT_READY = Statement(
    "SELECT min(t.ready_at) FROM executions t {by_ready} WHERE t.worker_queue = :queue AND t.ready_at > 0"
)


def job(tx: Tx, job_id: int) -> Job:
    return codec.job(_one(tx.query(_JOB, id=job_id), "job", job_id))


def job_by_key(tx: Tx, key: str) -> Job:
    return codec.job(_one(tx.query(_JOB_BY_KEY, key=key), "job", key))


def _one(found: Sequence[Row[Any]], kind: str, key: object) -> Row[Any]:
    if not found:
        raise NotFound(kind, key)
    return found[0]


def jobs_by_ids(tx: Tx, job_ids: Sequence[int]) -> dict[int, Job]:
    return {row.id: codec.job(row) for row in tx.query(_JOBS_BY_IDS, id_rows(job_ids))}


def jobs(tx: Tx, filters: JobFilter, page: PageRequest) -> Page[Job]:
    asked: dict[str, tuple[str, Any]] = {
        "keyword": ("t.name LIKE :keyword ESCAPE '/'", containing(filters.keyword) if filters.keyword else None),
        "name": ("t.name = :name", filters.name),
        "enabled": ("t.enabled = :enabled", filters.enabled),
        "type": ("t.type = :type", filters.type),
        "contract": ("t.contract = :contract", filters.contract),
        "after": ("t.id > :after", page.before_id),
    }
    return _matching(tx, "jobs", asked, page, codec.job)


def schedule(tx: Tx, schedule_id: int) -> Schedule:
    return codec.schedule(_one(tx.query(_SCHEDULE, id=schedule_id), "schedule", schedule_id))


def schedule_by_key(tx: Tx, key: str) -> Schedule:
    return codec.schedule(_one(tx.query(_SCHEDULE_BY_KEY, key=key), "schedule", key))


def schedules_of(tx: Tx, job_ids: Sequence[int]) -> dict[int, list[Schedule]]:
    found: dict[int, list[Schedule]] = {}
    for row in tx.query(_SCHEDULES_OF, id_rows(job_ids)):
        found.setdefault(row.job_id, []).append(codec.schedule(row))
    return found


_OF_NAMED = (
    "(t.job_id IN (SELECT j.id FROM jobs j WHERE j.name LIKE :keyword ESCAPE '/')"
    " OR t.workflow_id IN (SELECT w.id FROM workflows w WHERE w.name LIKE :keyword ESCAPE '/'))"
)


def schedules(tx: Tx, page: PageRequest, filters: ScheduleFilter) -> Page[Schedule]:
    asked: dict[str, tuple[str, Any]] = {
        "keyword": (_OF_NAMED, containing(filters.keyword) if filters.keyword else None),
        "status": ("t.status = :status", filters.status and filters.status.value),
        "kind": ("t.kind = :kind", filters.kind and filters.kind.value),
        "after": ("t.id > :after", page.before_id),
    }
    return _matching(tx, "schedules", asked, page, codec.schedule)


def _matching(
    tx: Tx, table: str, asked: Mapping[str, tuple[str, Any]], page: PageRequest, read: Callable[[Row[Any]], T]
) -> Page[T]:
    """What is not deleted and fulfils each condition whose value is given, by id."""
    given = {name: each for name, each in asked.items() if each[1] is not None}
    conditions = ("t.deleted_at IS NULL", *(condition for condition, _ in given.values()))
    values = {name: value for name, (_, value) in given.items()}
    return page_of(tx, Listing(table, ("id",), conditions), page, read, values)


def due_schedules(tx: Tx, until: datetime, limit: int) -> DueSchedules:
    rows = tx.query(_DUE, until=to_micros(until), limit=limit)
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


def occurrences(
    tx: Tx, schedule_id: int, since: datetime, until: datetime, limit: int, *, newest: bool
) -> list[Occurrence]:
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
    order = ledger.planned_for.desc() if newest else ledger.planned_for
    within = tx.core(wanted.order_by(order).limit(limit))
    rows = [*within, *reaching] if newest else [*reaching, *within]
    return [codec.occurrence(row) for row in rows[:limit]]


def last_occurrences(tx: Tx, schedule_ids: Sequence[int]) -> dict[int, Occurrence]:
    return {row.schedule_id: codec.occurrence(row) for row in tx.query(_LAST_OCCURRENCES, id_rows(schedule_ids))}


def last_ended(tx: Tx, job_ids: Sequence[int], *, nodes: bool = True) -> dict[int, Execution]:
    found = latest.last_ended(tx, job_ids)
    if not nodes:
        found |= {
            job_id: alone
            for job_id, row in found.items()
            if row.workflow_run_id is not None and (alone := latest.last_alone(tx, job_id, FEW)) is not None
        }
        found = {job_id: row for job_id, row in found.items() if row.workflow_run_id is None}
    return {job_id: codec.execution(row) for job_id, row in found.items()}


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
    return codec.execution(_one(tx.query(_EXECUTION, id=execution_id), "run", execution_id))


def attempts(tx: Tx, execution_id: int) -> list[Attempt]:
    return [codec.attempt(row) for row in tx.query(_ATTEMPTS, id=execution_id, most=MOST)]


def callbacks(tx: Tx, execution_id: int) -> list[ReceivedCallback]:
    return [codec.received_callback(row) for row in tx.query(_CALLBACKS, id=execution_id, most=MOST)]


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


def events(tx: Tx, after_id: int, limit: int, subject: str | None = None) -> list[Event]:
    later = select(schema.events).where(schema.events.c.id > after_id)
    wanted = later if subject is None else later.where(schema.events.c.subject == subject)
    return [codec.event(row) for row in tx.core(wanted.order_by(schema.events.c.id).limit(limit))]


def audit_entries(tx: Tx, page: PageRequest, filters: AuditFilter) -> Page[AuditEntry]:
    asked: dict[str, tuple[str, Any]] = {
        "subject": ("t.subject = :subject", filters.subject),
        "actor": ("t.actor = :actor", filters.actor),
        "before": ("t.id < :before", page.before_id),
    }
    given = {name: each for name, each in asked.items() if each[1] is not None}
    index = next((f"ix_audit_entries_{name}" for name in ("subject", "actor") if name in given), "")
    listing = Listing("audit_entries", ("id DESC",), tuple(condition for condition, _ in given.values()), index=index)
    return page_of(tx, listing, page, codec.audit_entry, {name: value for name, (_, value) in given.items()})
