"""Schedules, their instants and their ledger, as `/api/v1/schedules` writes them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from pydantic.alias_generators import to_camel

from ksana.api.contracts.cron_words import in_languages, in_words
from ksana.api.contracts.schedules_spec import Defaults, Wording, parts_of
from ksana.api.times import rfc3339, rfc3339_or_none
from ksana.domain.clock_change import effect_of, instants_around, next_change
from ksana.domain.cron import load_zone
from ksana.domain.job import Job
from ksana.domain.ledger import Occurrence, Schedule
from ksana.domain.schedule import ScheduleKind, ScheduleSpec, fire_time, next_instants
from ksana.domain.schedule_instants import TICK
from ksana.domain.states import ScheduleStatus
from ksana.domain.workflow import Workflow, WorkflowSummary

_RENAMED = {"misfire": "misfirePolicy", "anchor": "startAt"}


def _defaults(_kind: ScheduleKind, _every: timedelta | None) -> Defaults:
    return Defaults()


SCHEDULES_WORDING = Wording(
    {name: to_camel(name) for name in ("run_at", "start_at", "end_at", "catchup_limit", "misfire_grace")} | _RENAMED,
    _defaults,
)


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose schedule it is: one of the two, if it is still there."""

    job: Job | None = None
    workflow: Workflow | WorkflowSummary | None = None


def schedule_shown(schedule: Schedule, owner: Owner) -> dict[str, Any]:
    """A schedule and whose it is."""
    job, workflow = owner.job, owner.workflow
    definition = {SCHEDULES_WORDING.names.get(name, name): value for name, value in parts_of(schedule.spec).items()}
    return {
        "id": schedule.key,
        "jobId": None if job is None else job.key,
        "jobName": None if job is None else job.spec.name,
        "workflowId": None if workflow is None else workflow.key,
        "workflowName": workflow.spec.name if isinstance(workflow, Workflow) else workflow and workflow.name,
        **definition,
        "status": schedule.status.value,
        "nextPlannedFor": rfc3339_or_none(schedule.next_planned_for),
        "nextFireAt": rfc3339_or_none(schedule.next_fire_at),
        "error": schedule.error,
        "input": dict(schedule.input),
        "version": schedule.version,
        "description": in_words(schedule.spec),
        "cronInWords": in_languages(schedule.spec),
        "createdAt": rfc3339(schedule.created_at),
        "updatedAt": rfc3339(schedule.updated_at),
    }


def next_shown(schedule: Schedule, now: datetime, count: int) -> dict[str, Any]:
    """The instants from its cursor on; of one that is paused, those that follow if it is resumed now."""
    cursor, active = schedule.next_planned_for, schedule.status is ScheduleStatus.ACTIVE
    after = cursor - TICK if active and cursor is not None else now
    return instants_shown(schedule.spec, after, count, schedule_id=schedule.id)


def instants_shown(
    spec: ScheduleSpec, after: datetime, count: int, *, schedule_id: int | None = None
) -> dict[str, Any]:
    """The next `count` instants later than `after`. For rare ones far ahead, a second's work: not for the event loop."""
    zone = load_zone(spec.timezone)
    return {
        "timezone": spec.timezone,
        "description": in_words(spec),
        "cronInWords": in_languages(spec),
        "instants": [_instant(spec, at, zone, schedule_id) for at in next_instants(spec, after, limit=count)],
        "clockChange": _clock_change(spec, after, zone, schedule_id),
    }


def _clock_change(
    spec: ScheduleSpec, after: datetime, zone: ZoneInfo, schedule_id: int | None
) -> dict[str, Any] | None:
    change = next_change(spec.timezone, after)
    if change is None:
        return None
    return {
        "at": rfc3339(change.after),
        "before": change.before.isoformat(),
        "after": change.after.isoformat(),
        "effect": effect_of(spec, change).value,
        "instants": [_instant(spec, at, zone, schedule_id) for at in instants_around(spec, change, after)],
    }


def _instant(spec: ScheduleSpec, planned: datetime, zone: ZoneInfo, schedule_id: int | None) -> dict[str, Any]:
    # Its jitter hangs on its id: without one it is not known yet, unless there is none.
    known = schedule_id is not None or not spec.jitter
    fires_at = fire_time(spec, schedule_id or 0, planned) if known else None
    return {
        "planned": rfc3339(planned),
        "local": planned.astimezone(zone).isoformat(),
        "firesAt": rfc3339_or_none(fires_at),
    }


def occurrences_shown(
    rows: Sequence[Occurrence], limit: int, runs: Mapping[int, str], *, newest: bool
) -> dict[str, Any]:
    """The first `limit` rows, and where the others begin, or end if the newest come first; `runs` has the keys of workflow
    runs."""
    edge = limit - 1 if newest else limit
    following = rows[edge].planned_for if len(rows) > limit else None
    return {"items": [occurrence_shown(row, runs) for row in rows[:limit]], "next": rfc3339_or_none(following)}


def occurrence_shown(row: Occurrence, runs: Mapping[int, str]) -> dict[str, Any]:
    run = None if row.execution_id is None else str(row.execution_id)
    return {
        "plannedFor": rfc3339(row.planned_for),
        "lastPlannedFor": rfc3339_or_none(row.last_planned_for),
        "count": row.count,
        "outcome": row.outcome.value,
        "reason": row.reason,
        "runId": run if row.workflow_run_id is None else runs.get(row.workflow_run_id),
        "recordedAt": rfc3339(row.recorded_at),
    }


def page_shown(items: Iterable[dict[str, Any]], *, page: int, size: int, total: int) -> dict[str, Any]:
    return {"page": page, "pageSize": size, "total": total, "items": list(items)}
