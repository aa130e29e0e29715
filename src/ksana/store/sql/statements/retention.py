"""Retention: what has been kept long enough goes, a portion at a time, so that nobody waits for it.

Only what has ended is ever touched. Runs go by age and, of each job, by number; the ledger, events and instances by age
alone, so that an audit of the last days finds every instant, however often a job runs.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, insert, select, update

from ksana.domain.clock import from_micros, to_micros
from ksana.domain.errors import KsanaError
from ksana.domain.instance import InstanceStatus
from ksana.domain.states import TERMINAL
from ksana.store.requests import Purged, PurgeRequest
from ksana.store.sql import latest, schema
from ksana.store.sql.rows import Statement
from ksana.store.sql.statements import acknowledging, runtime_state
from ksana.store.sql.statements.removing import remove, remove_told_of
from ksana.store.sql.statements.retention_plans import remove_plans
from ksana.store.sql.statements.retention_workflows import remove_workflow_runs
from ksana.store.sql.tx import Tx

LEDGER = "ledger_since"
JOBS_AT_A_TIME = 200
SCHEDULES_AT_A_TIME = 2_000
LAST_ID = 2**63 - 1

_executions, _jobs, _schedules = schema.executions.c, schema.jobs.c, schema.schedules.c

# Schedule by schedule, each by its key: most have nothing to remove, and all that they keep is not to be read.
_OLD_INSTANTS = Statement(
    "SELECT o.schedule_id, o.planned_for, o.last_planned_for, o.recorded_at"
    " FROM schedules s {join} occurrences o ON o.schedule_id = s.id"
    " WHERE s.id > :after AND s.id <= :last AND o.planned_for < :before ORDER BY s.id, o.planned_for LIMIT :limit"
)
# Two questions: for both at once, SQLite would read them all.
_SPAN_OF_RUNS = Statement("SELECT (SELECT max(id) FROM executions) - (SELECT min(id) FROM executions)")


@dataclass(frozen=True, slots=True)
class _Portion:
    """Ids after one, up to and with another; `rest`: after which the next portion begins, None if this is the last."""

    after: int
    last: int
    rest: int | None


@dataclass(frozen=True, slots=True)
class _ByAge:
    """What went for its age alone."""

    runs: int = 0
    events: int = 0
    instances: int = 0
    more: bool = False


def purge(tx: Tx, requests: list[PurgeRequest]) -> list[Purged | KsanaError]:
    return [_purge(tx, request) for request in requests]


def _purge(tx: Tx, request: PurgeRequest) -> Purged:
    before = to_micros(request.before)
    # What goes by age alone is not looked for with each portion again, of which there may be hundreds.
    first = request.after_job == 0 and request.after_schedule == 0
    aged = _remove_aged(tx, before, request.limit) if first else _ByAge()
    jobs = _portion(tx, _jobs.id, request.after_job if _some_job_may_have_more(tx, request.keep) else None)
    surplus = _surplus_runs(tx, jobs, request) if jobs else []
    _remove_runs(tx, surplus)
    schedules = _portion(tx, _schedules.id, request.after_schedule)
    instants = _remove_instants(tx, schedules, before, request.limit) if schedules else 0
    if instants:
        mark_ledger(tx, before)
    # A portion with more to remove is looked at again.
    again = aged.more or max(len(surplus), instants) >= request.limit
    after_job = request.after_job if again else _rest(jobs)
    after_schedule = request.after_schedule if again else _rest(schedules)
    return Purged(
        runs=aged.runs + len(surplus),
        instants=instants,
        events=aged.events,
        instances=aged.instances,
        after_job=after_job,
        after_schedule=after_schedule,
        done=not again and after_job is None and after_schedule is None,
    )


def _portion(tx: Tx, ids: ColumnElement[int], after: int | None) -> _Portion | None:
    """The next after that one; None if all have been looked at."""
    if after is None:
        return None
    size = JOBS_AT_A_TIME if ids is _jobs.id else SCHEDULES_AT_A_TIME
    found = tx.core(select(ids).where(ids > after).order_by(ids).offset(size - 1).limit(1))
    return _Portion(after, found[0][0], found[0][0]) if found else _Portion(after, LAST_ID, None)


def _rest(portion: _Portion | None) -> int | None:
    return None if portion is None else portion.rest


def _remove_aged(tx: Tx, before: int, limit: int) -> _ByAge:
    runs = _aged_runs(tx, before, limit)
    _remove_runs(tx, runs)
    plans_done = remove_plans(tx, before, limit)
    flows = remove_workflow_runs(tx, before, limit)
    runtime_state.purge(tx, limit)
    events = _remove_told(tx, before, limit)
    more = max(len(runs), events) >= limit or not flows.done or not plans_done
    if not more:  # else a failure that is still there would be shown again
        acknowledging.forget(tx, before)
    return _ByAge(len(runs) + flows.runs, events, _remove_instances(tx, before), more)


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


def _some_job_may_have_more(tx: Tx, keep: int) -> bool:
    """False if there are not even as many runs in all."""
    span: int | None = tx.query(_SPAN_OF_RUNS)[0][0]
    return span is not None and span >= keep


def _surplus_runs(tx: Tx, jobs: _Portion, request: PurgeRequest) -> list[int]:
    ids = _ids(tx, select(_jobs.id).where(_jobs.id > jobs.after, _jobs.id <= jobs.last).order_by(_jobs.id))
    found: list[int] = []
    for job_id in latest.jobs_with_more(tx, ids, request.keep):
        until = latest.beyond(tx, job_id, request.keep)
        if until is not None:
            found += latest.ended_by(tx, job_id, until, request.limit - len(found))
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


def _remove_instants(tx: Tx, schedules: _Portion, before: int, limit: int) -> int:
    """Of these schedules."""
    ledger = schema.occurrences.c
    gone: dict[int, list[int]] = {}
    for row in tx.query(_OLD_INSTANTS, after=schedules.after, last=schedules.last, before=before, limit=limit):
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
