"""Schedules: created, changed, paused, resumed, parked, deleted. (Firing them is in firing.py.)"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row, func, insert, select, update

from ksana.domain.clock import from_micros, to_micros
from ksana.domain.errors import IdTaken, KsanaError, NotFound, VersionMismatch
from ksana.domain.events import SYSTEM, Actor, EventType
from ksana.domain.ledger import Schedule
from ksana.domain.schedule import ScheduleSpec, SkippedRange, fire_time, next_instant
from ksana.domain.states import ScheduleStatus
from ksana.store.requests import Basis, NewSchedule, Pausing, Resumption, ScheduleChange, ScheduleStep
from ksana.store.sql import codec, schema
from ksana.store.sql.rows import brief, to_json
from ksana.store.sql.statements.journal import Happening, record_change
from ksana.store.sql.statements.ledger import record_skipped
from ksana.store.sql.tx import Tx

_schedules = schema.schedules.c


@dataclass(frozen=True, slots=True)
class Owner:
    """What a schedule belongs to: a job, or a workflow."""

    job_id: int | None = None
    workflow_id: int | None = None


@dataclass(frozen=True, slots=True)
class Creation:
    owner: Owner
    new: NewSchedule
    actor: Actor


@dataclass(frozen=True, slots=True)
class Pause:
    schedule_id: int
    actor: Actor


@dataclass(frozen=True, slots=True)
class Parking:
    schedule_id: int
    version: int
    error: str


@dataclass(frozen=True, slots=True)
class Deletion:
    schedule_id: int
    actor: Actor


def create(tx: Tx, creations: list[Creation]) -> list[Schedule | KsanaError]:
    return [_create(tx, creation) for creation in creations]


def _create(tx: Tx, creation: Creation) -> Schedule | KsanaError:
    table = schema.jobs if creation.owner.job_id is not None else schema.workflows
    owner_id = creation.owner.job_id if creation.owner.job_id is not None else creation.owner.workflow_id
    found = select(table.c.id).where(table.c.id == owner_id, table.c.deleted_at.is_(None)).with_for_update(read=True)
    if not tx.core(found):
        return NotFound(table.name.removesuffix("s"), owner_id)
    if key_is_taken(tx, creation.new.key):
        return IdTaken("schedule", creation.new.key)
    return insert_one(tx, creation.owner, creation.new, creation.actor)


def key_is_taken(tx: Tx, key: str) -> bool:
    return bool(tx.core(select(_schedules.id).where(_schedules.public_id == key)))


def insert_one(tx: Tx, owner: Owner, new: NewSchedule, actor: Actor) -> Schedule:
    values = {
        "public_id": new.key,
        "job_id": owner.job_id,
        "workflow_id": owner.workflow_id,
        "kind": new.spec.kind.value,
        "spec": codec.schedule_spec_json(new.spec),
        "input": to_json(new.input) if new.input else None,
        "status": ScheduleStatus.PAUSED.value,
        "version": 1,
        "created_at": tx.clock,
        "updated_at": tx.clock,
    }
    primary_key = tx.connection.execute(insert(schema.schedules).values(values)).inserted_primary_key
    schedule_id = int(primary_key[0]) if primary_key else 0
    # Its jitter hangs on its id, so its first time to fire is known only now.
    status = ScheduleStatus.PAUSED if new.paused else _status(new.next_planned_for)
    _set(tx, schedule_id, _position(new.spec, schedule_id, new.next_planned_for, status))
    if new.passed is not None:
        record_skipped(tx, [(schedule_id, new.passed)], tx.clock)
    data = {"job_id": owner.job_id, "key": new.key, "paused": new.paused, "spec": values["spec"]}
    if owner.workflow_id is not None:
        data["workflow_id"] = owner.workflow_id
    return _told(tx, schedule_id, actor, EventType.SCHEDULE_CREATED, data, at=new.at)


def take(tx: Tx, job_id: int, step: ScheduleStep, actor: Actor) -> None:
    """One step of a change of its job. Raises what makes it impossible, so that nothing of that change is written."""
    match step:
        case NewSchedule():
            answer: Schedule | KsanaError = _create(tx, Creation(Owner(job_id), step, actor))
        case ScheduleChange():
            answer = _change(tx, step)
        case Pausing():
            answer = _pause(tx, Pause(step.schedule_id, actor))
        case Resumption():
            answer = _resume(tx, step)
    if isinstance(answer, KsanaError):
        raise answer


def change(tx: Tx, changes: list[ScheduleChange]) -> list[Schedule | KsanaError]:
    return [_change(tx, change) for change in changes]


def _change(tx: Tx, wanted: ScheduleChange) -> Schedule | KsanaError:
    row = _locked(tx, wanted.schedule_id)
    if row is None:
        return NotFound("schedule", wanted.schedule_id)
    if wanted.expected_version not in {None, row.version}:
        return _mismatch(row, wanted.expected_version or 0)
    if _moved_since(row, wanted.basis):
        return _mismatch(row, row.version)
    record_skipped(tx, [(row.id, part) for part in _unrecorded_parts(tx, row.id, wanted.passed)], tx.clock)
    paused = row.status == ScheduleStatus.PAUSED
    cursor = _unrecorded(tx, wanted.spec, row.id, wanted.next_planned_for)
    status = ScheduleStatus.PAUSED if paused else _status(cursor)
    values = _position(wanted.spec, row.id, cursor, status)
    values |= {"kind": wanted.spec.kind.value, "spec": codec.schedule_spec_json(wanted.spec), "error": None}
    if wanted.input is not None:
        values["input"] = to_json(wanted.input) if wanted.input else None
    _set(tx, row.id, values | {"version": row.version + 1})
    # The whole definition, and from when on: what was planned when can be worked out again from these.
    basis_at = None if wanted.basis is None else wanted.basis.at
    data = {"version": row.version + 1, "paused": paused, "spec": values["spec"]}
    return _told(tx, row.id, wanted.actor, EventType.SCHEDULE_CHANGED, data, at=basis_at)


def pause(tx: Tx, pauses: list[Pause]) -> list[Schedule | KsanaError]:
    return [_pause(tx, wanted) for wanted in pauses]


def _pause(tx: Tx, wanted: Pause) -> Schedule | KsanaError:
    row = _locked(tx, wanted.schedule_id)
    if row is None:
        return NotFound("schedule", wanted.schedule_id)
    if row.status not in {ScheduleStatus.ACTIVE, ScheduleStatus.PARKED}:
        return codec.schedule(row)
    # The cursor stays where it is: what passes from there on is recorded when it is resumed.
    _set(tx, row.id, {"status": ScheduleStatus.PAUSED.value, "next_fire_at": None, "version": row.version + 1})
    return _told(tx, row.id, wanted.actor, EventType.SCHEDULE_PAUSED, {"version": row.version + 1})


def resume(tx: Tx, resumptions: list[Resumption]) -> list[Schedule | KsanaError]:
    return [_resume(tx, wanted) for wanted in resumptions]


def _resume(tx: Tx, wanted: Resumption) -> Schedule | KsanaError:
    row = _locked(tx, wanted.schedule_id)
    if row is None:
        return NotFound("schedule", wanted.schedule_id)
    if wanted.expected_version != row.version:
        return _mismatch(row, wanted.expected_version)
    if _moved_since(row, wanted.basis):
        return _mismatch(row, row.version)
    if row.status not in {ScheduleStatus.PAUSED, ScheduleStatus.PARKED}:
        return codec.schedule(row)
    if wanted.passed is not None:
        record_skipped(tx, [(row.id, wanted.passed)], tx.clock)
    spec, _ = codec.schedule_spec(row.spec)
    cursor = _unrecorded(tx, spec, row.id, wanted.next_planned_for)
    values = _position(spec, row.id, cursor, _status(cursor))
    _set(tx, row.id, values | {"error": None, "version": row.version + 1})
    return _told(tx, row.id, wanted.actor, EventType.SCHEDULE_RESUMED, {"version": row.version + 1})


def park(tx: Tx, parkings: list[Parking]) -> list[bool | KsanaError]:
    return [_park(tx, wanted) for wanted in parkings]


def _park(tx: Tx, wanted: Parking) -> bool:
    row = _locked(tx, wanted.schedule_id)
    if row is None or row.version != wanted.version or row.status != ScheduleStatus.ACTIVE:
        return False
    error = brief(wanted.error)
    values = {"status": ScheduleStatus.PARKED.value, "next_fire_at": None, "error": error, "version": row.version + 1}
    _set(tx, row.id, values)
    _told(tx, row.id, SYSTEM, EventType.SCHEDULE_PARKED, {"error": error})
    return True


def delete(tx: Tx, deletions: list[Deletion]) -> list[bool | KsanaError]:
    return [_delete(tx, wanted) for wanted in deletions]


def _delete(tx: Tx, wanted: Deletion) -> bool:
    row = _locked(tx, wanted.schedule_id)
    if row is None:
        return False
    _remove(tx, row)
    happening: Happening = (EventType.SCHEDULE_DELETED, f"schedule/{row.id}", {"key": row.public_id})
    record_change(tx, tx.clock, wanted.actor, happening)
    return True


def lock_of_job(tx: Tx, job_id: int) -> list[Row[Any]]:
    of_job = select(schema.schedules).where(_schedules.job_id == job_id, _schedules.deleted_at.is_(None))
    return tx.core(of_job.order_by(_schedules.id).with_for_update())


def lock_of_workflow(tx: Tx, workflow_id: int) -> list[Row[Any]]:
    of_workflow = select(schema.schedules).where(_schedules.workflow_id == workflow_id, _schedules.deleted_at.is_(None))
    return tx.core(of_workflow.order_by(_schedules.id).with_for_update())


def delete_all(tx: Tx, rows: list[Row[Any]]) -> None:
    """The schedules of a job that is being deleted; the job's own event tells of it."""
    for row in rows:
        _remove(tx, row)


def _remove(tx: Tx, row: Row[Any]) -> None:
    values = {
        "deleted_at": tx.clock,
        "next_fire_at": None,
        "status": ScheduleStatus.FINISHED.value,
        "public_id": f"~{row.id}",
        "version": row.version + 1,
    }
    _set(tx, row.id, values)


def _locked(tx: Tx, schedule_id: int) -> Row[Any] | None:
    wanted = select(schema.schedules).where(_schedules.id == schedule_id, _schedules.deleted_at.is_(None))
    found = tx.core(wanted.with_for_update())
    return found[0] if found else None


def _set(tx: Tx, schedule_id: int, values: dict[str, Any]) -> None:
    change = values | {"updated_at": tx.clock}
    tx.core_run(update(schema.schedules).where(_schedules.id == schedule_id).values(change))


def _moved_since(row: Row[Any], basis: Basis | None) -> bool:
    return basis is not None and row.next_planned_for != codec.micros(basis.next_planned_for)


def _told(
    tx: Tx, schedule_id: int, actor: Actor, kind: EventType, data: dict[str, Any], *, at: datetime | None = None
) -> Schedule:
    moment = tx.clock if at is None else to_micros(at)
    record_change(tx, moment, actor, (kind, f"schedule/{schedule_id}", data))
    return codec.schedule(tx.core(select(schema.schedules).where(_schedules.id == schedule_id))[0])


def _unrecorded(tx: Tx, spec: ScheduleSpec, schedule_id: int, cursor: datetime | None) -> datetime | None:
    """The cursor, or the first instant after all that the ledger has: a second row for one would break every fire it is in."""
    ledger = schema.occurrences.c
    newest = select(func.coalesce(ledger.last_planned_for, ledger.planned_for)).where(ledger.schedule_id == schedule_id)
    found = tx.core(newest.order_by(ledger.planned_for.desc()).limit(1))
    last = from_micros(found[0][0]) if found else None
    return cursor if cursor is None or last is None or cursor > last else next_instant(spec, last)


def _unrecorded_parts(tx: Tx, schedule_id: int, parts: tuple[SkippedRange, ...]) -> list[SkippedRange]:
    """Without those that begin where the ledger has a row: of two definitions, both may have had the same instant."""
    ledger = schema.occurrences.c
    kept: dict[datetime, SkippedRange] = {}
    for part in parts:
        there = select(ledger.planned_for).where(
            ledger.schedule_id == schedule_id, ledger.planned_for == to_micros(part.first)
        )
        if not tx.core(there):
            kept.setdefault(part.first, part)
    return list(kept.values())


def _status(next_planned_for: datetime | None) -> ScheduleStatus:
    return ScheduleStatus.FINISHED if next_planned_for is None else ScheduleStatus.ACTIVE


def _position(
    spec: ScheduleSpec, schedule_id: int, next_planned_for: datetime | None, status: ScheduleStatus
) -> dict[str, Any]:
    fires = status is ScheduleStatus.ACTIVE and next_planned_for is not None
    fire_at = fire_time(spec, schedule_id, next_planned_for) if fires and next_planned_for is not None else None
    return {
        "status": status.value,
        "next_planned_for": codec.micros(next_planned_for),
        "next_fire_at": codec.micros(fire_at),
    }


def _mismatch(row: Row[Any], expected: int) -> VersionMismatch:
    return VersionMismatch("schedule", row.id, expected=expected, actual=row.version)
