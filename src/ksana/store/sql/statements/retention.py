"""Retention: what has been kept long enough goes, a portion at a time, so that nobody waits for it.

Only what has ended is ever touched. Runs go by age and, of each job, by number; the ledger, events and instances by age
alone, so that an audit of the last days finds every instant, however often a job runs.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import Select, insert, select, update

from ksana.domain.clock import from_micros, to_micros
from ksana.domain.errors import KsanaError
from ksana.domain.instance import InstanceStatus
from ksana.domain.states import TERMINAL
from ksana.store.requests import Purged, PurgeRequest
from ksana.store.sql import schema
from ksana.store.sql.statements import runtime_state
from ksana.store.sql.statements.removing import remove, remove_told_of
from ksana.store.sql.statements.retention_plans import remove_plans
from ksana.store.sql.statements.retention_workflows import remove_workflow_runs
from ksana.store.sql.tx import Tx

LEDGER = "ledger_since"
JOBS_AT_A_TIME = 20
SCHEDULES_AT_A_TIME = 200

_executions, _jobs, _schedules = schema.executions.c, schema.jobs.c, schema.schedules.c


def purge(tx: Tx, requests: list[PurgeRequest]) -> list[Purged | KsanaError]:
    return [_purge(tx, request) for request in requests]


def _purge(tx: Tx, request: PurgeRequest) -> Purged:
    before = to_micros(request.before)
    jobs = _ids(tx, select(_jobs.id).where(_jobs.id > request.after_job).order_by(_jobs.id).limit(JOBS_AT_A_TIME))
    schedules = _ids(
        tx,
        select(_schedules.id)
        .where(_schedules.id > request.after_schedule)
        .order_by(_schedules.id)
        .limit(SCHEDULES_AT_A_TIME),
    )
    aged = _aged_runs(tx, before, request.limit)
    surplus = _surplus_runs(tx, jobs, request)
    _remove_runs(tx, sorted({*aged, *surplus}))
    plans_done = remove_plans(tx, before, request.limit)
    flows = remove_workflow_runs(tx, before, request.limit)
    runtime_state.purge(tx, request.limit)
    instants = _remove_instants(tx, schedules, before, request.limit) if schedules else 0
    if instants:
        mark_ledger(tx, before)
    events = _remove_told(tx, before, request.limit)
    instances = _remove_instances(tx, before)
    full = max(len(aged), len(surplus), instants, events) >= request.limit or not flows.done or not plans_done
    return Purged(
        runs=len({*aged, *surplus}) + flows.runs,
        instants=instants,
        events=events,
        instances=instances,
        # A portion with more to remove is looked at again.
        after_job=request.after_job if full else (jobs[-1] if len(jobs) == JOBS_AT_A_TIME else 0),
        after_schedule=request.after_schedule
        if full
        else (schedules[-1] if len(schedules) == SCHEDULES_AT_A_TIME else 0),
        done=not full and len(jobs) < JOBS_AT_A_TIME and len(schedules) < SCHEDULES_AT_A_TIME,
    )


def _aged_runs(tx: Tx, before: int, limit: int) -> list[int]:
    """The oldest of each final state, as far as they ended before then."""
    found: list[int] = []
    for status in sorted(TERMINAL):
        # Nodes go with the workflow run that they belong to.
        oldest = select(_executions.id, _executions.ended_at).where(
            _executions.status == status, _executions.workflow_run_id.is_(None)
        )
        rows = tx.core(oldest.order_by(_executions.id).limit(limit - len(found)))
        found += [row.id for row in rows if row.ended_at is not None and row.ended_at < before]
        if len(found) >= limit:
            break
    return found


def _surplus_runs(tx: Tx, job_ids: list[int], request: PurgeRequest) -> list[int]:
    found: list[int] = []
    for job_id in job_ids:
        mine = select(_executions.planned_for).where(_executions.job_id == job_id)
        edge = tx.core(mine.order_by(_executions.planned_for.desc()).offset(request.keep).limit(1))
        if edge:
            older = (_executions.job_id == job_id, _executions.planned_for <= edge[0].planned_for)
            ended = select(_executions.id).where(
                *older, _executions.ended_at.is_not(None), _executions.workflow_run_id.is_(None)
            )
            found += _ids(tx, ended.order_by(_executions.planned_for).limit(request.limit - len(found)))
        if len(found) >= request.limit:
            break
    return found


def _remove_runs(tx: Tx, ids: list[int]) -> None:
    if not ids:
        return
    remove_told_of(tx, ids)
    keys = schema.idempotency_keys.c
    remove(tx, schema.idempotency_keys, keys.resource_id.in_(ids), keys.scope.like("job/%"))
    remove(tx, schema.executions, _executions.id.in_(ids), _executions.ended_at.is_not(None))


def _remove_instants(tx: Tx, schedule_ids: list[int], before: int, limit: int) -> int:
    """Of these schedules: one question for all of them, since most have nothing to remove."""
    ledger = schema.occurrences.c
    old = select(schema.occurrences).where(ledger.schedule_id.in_(schedule_ids), ledger.planned_for < before)
    gone: dict[int, list[int]] = {}
    for row in tx.core(old.order_by(ledger.schedule_id, ledger.planned_for).limit(limit)):
        # Also written long ago: what is told of an old instant just now is still news. And a range that reaches into the
        # time that is kept, is kept.
        if row.recorded_at < before and (row.last_planned_for or row.planned_for) < before:
            gone.setdefault(row.schedule_id, []).append(row.planned_for)
    for schedule_id, planned in gone.items():
        remove(tx, schema.occurrences, ledger.schedule_id == schedule_id, ledger.planned_for.in_(planned))
    return sum(len(planned) for planned in gone.values())


def mark_ledger(tx: Tx, since: int) -> None:
    """From now on nobody expects rows before then."""
    marks = schema.marks.c
    known = tx.core(select(marks.at).where(marks.name == LEDGER).with_for_update())
    if not known:
        tx.core_run(insert(schema.marks).values(name=LEDGER, at=since))
    elif known[0].at < since:
        tx.core_run(update(schema.marks).where(marks.name == LEDGER).values(at=since))


def ledger_since(tx: Tx) -> datetime | None:
    marks = schema.marks.c
    known = tx.core(select(marks.at).where(marks.name == LEDGER))
    return from_micros(known[0].at) if known else None


def _remove_told(tx: Tx, before: int, limit: int) -> int:
    """Events. What people asked for (the audit entries) is kept."""
    events = schema.events.c
    oldest = tx.core(select(events.id, events.at).order_by(events.id).limit(limit))
    ids = [row.id for row in oldest if row.at < before]
    return remove(tx, schema.events, events.id.in_(ids)) if ids else 0


def _remove_instances(tx: Tx, before: int) -> int:
    instances = schema.instances.c
    return remove(tx, schema.instances, instances.status != InstanceStatus.ALIVE, instances.heartbeat_at < before)


def _ids(tx: Tx, wanted: Select[Any]) -> list[int]:
    return [row[0] for row in tx.core(wanted)]
