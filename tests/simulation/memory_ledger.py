"""Definitions, and the ledger: planned instants become rows, executions and a moved cursor, all at once."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from ksana.domain.admission import Limits, Skip, admit
from ksana.domain.errors import IdTaken, NameTaken, NotFound
from ksana.domain.execution import Execution, Trigger
from ksana.domain.job import ConcurrencyPolicy, Job
from ksana.domain.ledger import Fired, Firing, Occurrence, Schedule
from ksana.domain.schedule import SkippedRange, fire_time
from ksana.domain.states import ExecutionStatus, OccurrenceOutcome, ScheduleStatus
from ksana.store.requests import NewJob, NewSchedule
from tests.simulation.memory_tables import Tables

S = ExecutionStatus


class AlreadyRecorded(Exception):
    """The ledger has a row for that instant."""


# Definitions ----------------------------------------------------------------------------------------------------------


def create_job(tables: Tables, new: NewJob, at: datetime) -> Job:
    if any(job.key == new.key for job in tables.jobs.values()):
        raise IdTaken("job", new.key)
    if any(job.spec.name == new.spec.name for job in tables.jobs.values()):
        raise NameTaken("job", new.spec.name)
    job = Job(len(tables.jobs) + 1, new.key, new.spec, 1, at, at)
    tables.jobs[job.id] = job
    if new.schedule is not None:
        create_schedule(tables, job.id, new.schedule, at)
    return job


def create_schedule(tables: Tables, job_id: int, new: NewSchedule, at: datetime) -> Schedule:
    if job_id not in tables.jobs:
        raise NotFound("job", job_id)
    if any(schedule.key == new.key for schedule in tables.schedules.values()):
        raise IdTaken("schedule", new.key)
    number, cursor = len(tables.schedules) + 1, new.next_planned_for
    status = ScheduleStatus.FINISHED if cursor is None else ScheduleStatus.ACTIVE
    if new.paused:
        status = ScheduleStatus.PAUSED
    active = status is ScheduleStatus.ACTIVE and cursor is not None
    fire_at = fire_time(new.spec, number, cursor) if active and cursor is not None else None
    schedule = Schedule(number, new.key, job_id, new.spec, status, cursor, fire_at, 1, at, at, input=new.input)
    tables.schedules[number] = schedule
    tables.ledger[number] = {}
    if new.passed is not None:
        _record(tables, [_skipped(number, new.passed, at)])
    return schedule


def park_schedule(tables: Tables, schedule_id: int, version: int, error: str, at: datetime) -> bool:
    schedule = tables.schedules.get(schedule_id)
    if schedule is None or schedule.version != version or schedule.status is not ScheduleStatus.ACTIVE:
        return False
    tables.schedules[schedule_id] = replace(
        schedule,
        status=ScheduleStatus.PARKED,
        next_fire_at=None,
        error=error,
        version=version + 1,
        updated_at=at,
    )
    return True


def pause_schedule(tables: Tables, schedule_id: int, at: datetime) -> Schedule:
    schedule = schedule_of(tables, schedule_id)
    if schedule.status in {ScheduleStatus.ACTIVE, ScheduleStatus.PARKED}:
        schedule = replace(
            schedule, status=ScheduleStatus.PAUSED, next_fire_at=None, version=schedule.version + 1, updated_at=at
        )
        tables.schedules[schedule_id] = schedule
    return schedule


def schedule_of(tables: Tables, schedule_id: int) -> Schedule:
    if schedule_id not in tables.schedules:
        raise NotFound("schedule", schedule_id)
    return tables.schedules[schedule_id]


def job_of(tables: Tables, job_id: int) -> Job:
    if job_id not in tables.jobs:
        raise NotFound("job", job_id)
    return tables.jobs[job_id]


# What is due ----------------------------------------------------------------------------------------------------------


def due_schedules(tables: Tables, until: datetime, limit: int) -> list[Schedule]:
    due = [(at, each.id) for each in tables.schedules.values() if (at := each.next_fire_at) is not None and at <= until]
    return [tables.schedules[number] for _, number in sorted(due)[:limit]]


def next_fire_at(tables: Tables) -> datetime | None:
    return min((at for each in tables.schedules.values() if (at := each.next_fire_at) is not None), default=None)


def occurrences(
    tables: Tables, schedule_id: int, since: datetime, until: datetime, limit: int, *, newest: bool
) -> list[Occurrence]:
    rows = sorted(tables.ledger.get(schedule_id, {}).items())
    reaching = [row for planned, row in rows if planned < since][-1:]
    reaching = [row for row in reaching if row.last_planned_for is not None and row.last_planned_for >= since]
    found = [*reaching, *(row for planned, row in rows if since <= planned < until)]
    return (found[::-1] if newest else found)[:limit]


# Firing ---------------------------------------------------------------------------------------------------------------


def fire(tables: Tables, firings: Sequence[Firing], now: datetime) -> list[Fired]:
    return [_fire(tables, firing, now) for firing in firings]


def _fire(tables: Tables, firing: Firing, now: datetime) -> Fired:
    schedule = due(tables, firing)
    if schedule is None:
        return Fired(firing.schedule_id, lost=True)
    try:
        check_unrecorded(tables, firing)
    except AlreadyRecorded as error:
        return Fired(firing.schedule_id, lost=True, error=str(error))
    fired = write_rows(tables, schedule, firing, now)
    move_cursor(tables, firing, now)
    return fired


def due(tables: Tables, firing: Firing) -> Schedule | None:
    """The fence: one that was changed, paused or fired by somebody else since the decision is not found."""
    schedule = tables.schedules.get(firing.schedule_id)
    if schedule is None or schedule.status is not ScheduleStatus.ACTIVE:
        return None
    same = schedule.version == firing.version and schedule.next_planned_for == firing.cursor
    return schedule if same else None


def check_unrecorded(tables: Tables, firing: Firing) -> None:
    """The unique key: one row an instant."""
    planned = [*firing.decision.fires, *(part.first for part in firing.decision.skipped)]
    known = tables.ledger[firing.schedule_id]
    if len(set(planned)) < len(planned) or any(instant in known for instant in planned):
        raise AlreadyRecorded(f"schedule {firing.schedule_id} has a row for one of {len(planned)} instants")


def write_rows(tables: Tables, schedule: Schedule, firing: Firing, now: datetime) -> Fired:
    """The occurrences and the executions."""
    made: list[int] = []
    refused: list[str] = []
    for planned in firing.decision.fires:
        row, reason = _plan(tables, schedule, planned, now)
        outcome = OccurrenceOutcome.FIRED if reason is None else OccurrenceOutcome.SKIPPED
        _record(tables, [Occurrence(schedule.id, planned, outcome, now, reason, execution_id=row.id)])
        if reason is None:
            made.append(row.id)
        else:
            refused.append(reason)
    _record(tables, [_skipped(schedule.id, part, now) for part in firing.decision.skipped])
    skipped = len(refused) + sum(part.count for part in firing.decision.skipped)
    return Fired(schedule.id, execution_ids=tuple(made), skipped=skipped, refused=tuple(refused))


def move_cursor(tables: Tables, firing: Firing, now: datetime) -> None:
    decision = firing.decision
    tables.schedules[firing.schedule_id] = replace(
        tables.schedules[firing.schedule_id],
        status=ScheduleStatus.FINISHED if decision.next_cursor is None else ScheduleStatus.ACTIVE,
        next_planned_for=decision.next_cursor,
        next_fire_at=decision.next_fire_at,
        updated_at=now,
    )


def _plan(tables: Tables, schedule: Schedule, planned: datetime, now: datetime) -> tuple[Execution, str | None]:
    job = tables.jobs[schedule.job_id or 0]
    refused = refusal(tables, job, by_schedule=True)
    status, reason = S.SCHEDULED, None
    if refused is not None:
        status, reason = S.SKIPPED, refused.reason
    elif not tables.shared and _full(tables, job):
        status, reason = S.QUEUED, "concurrency_limit"
    row = Execution(
        0,
        status,
        Trigger.SCHEDULE,
        now,
        now,
        job_id=job.id,
        schedule_id=schedule.id,
        planned_for=planned,
        ready_at=planned if status is S.SCHEDULED else None,
        ended_at=now if status is S.SKIPPED else None,
        input=schedule.input,
        reason=reason,
    )
    return tables.add(row), None if refused is None else refused.reason


def refusal(tables: Tables, job: Job, *, by_schedule: bool) -> Skip | None:
    """Why the job takes no more; None: it does. A person may run a disabled one."""
    spec = job.spec
    if by_schedule and not spec.enabled:
        return Skip("job_disabled")
    active = len(tables.unended(job.id)) if spec.limited else 0
    return admit(Limits(spec.concurrency, spec.max_concurrency, spec.queue_limit), active)


def _full(tables: Tables, job: Job) -> bool:
    """Whether one more has to wait for another to end."""
    queues = job.spec.concurrency is ConcurrencyPolicy.QUEUE
    return queues and len(tables.unended(job.id)) + 1 > job.spec.max_concurrency


def _record(tables: Tables, rows: Sequence[Occurrence]) -> None:
    for row in rows:
        tables.ledger[row.schedule_id][row.planned_for] = row
        tables.watcher.recorded(row)


def _skipped(schedule_id: int, part: SkippedRange, at: datetime) -> Occurrence:
    last = part.last if part.count > 1 else None
    return Occurrence(schedule_id, part.first, part.outcome, at, part.reason, last, part.count)


def active_counts(tables: Tables, job_id: int) -> dict[ExecutionStatus, int]:
    return dict(Counter(row.status for row in tables.unended(job_id)))
