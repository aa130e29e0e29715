"""A job as document 002 writes it (§4), whichever contract made it."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import orjson

from ksana.api.contracts.schedules_spec import Defaults, Wording, own_parts_of, parts_of
from ksana.api.times import rfc3339
from ksana.domain.durations import format_duration
from ksana.domain.execution import Execution
from ksana.domain.ledger import Occurrence
from ksana.domain.schedule import ScheduleKind, ScheduleSpec, document_002_misfire
from ksana.domain.states import (
    KSANA_LAST_STATUS_NAMES,
    KSANA_OCCURRENCE_NAMES,
    KSANA_SCHEDULE_NAMES,
    SUCCEEDED,
    ScheduleStatus,
)
from ksana.engine.queries import JobView

_PARTS = (
    "kind",
    "run_at",
    "every",
    "cron",
    "timezone",
    "start_at",
    "end_at",
    "jitter",
    "catchup_limit",
    "misfire_grace",
)
_ALWAYS = {
    ScheduleKind.ONCE: ("kind", "run_at"),
    ScheduleKind.EVERY: ("kind", "every", "start_at", "jitter"),
    ScheduleKind.CRON: ("kind", "cron", "timezone"),
}
"""What §4 writes, also if it is empty. The rest are extensions, written where they are not the default."""


def _defaults(kind: ScheduleKind, every: timedelta | None) -> Defaults:
    return Defaults(*document_002_misfire(kind, every))


KSANA_WORDING = Wording(
    {
        **{name: f"schedule.{name}" for name in _PARTS},
        "misfire": "schedule.misfire_policy",
        "anchor": "schedule.start_at",
    },
    _defaults,
)


def job_shown(view: JobView) -> dict[str, Any]:
    """The whole job."""
    job, spec = view.job, view.job.spec
    status, error = _last(view)
    is_http = spec.type == "http"
    shown = {
        "id": job.key,
        "name": spec.name,
        "enabled": spec.enabled,
        "type": spec.type,
        "http": _call_shown(spec.config) if is_http else None,
        "schedule": None if view.schedule is None else schedule_shown(view.schedule.spec),
        "timeout": format_duration(spec.timeout),
        "max_retries": spec.retry.max_attempts - 1,
        "retry_backoff": format_duration(spec.retry.delay),
        "last_run_at": _told(_ran_at(view.last_run)),
        "next_run_at": _told(_next(view)),
        "last_status": KSANA_SCHEDULE_NAMES[ScheduleStatus.PAUSED] if _paused(view) else status,
        "last_error": error,
    }
    return shown if is_http else {**shown, "config": dict(spec.config)}


def schedule_shown(spec: ScheduleSpec) -> dict[str, Any]:
    """The parts that its kind always has, and those that are not the default."""
    parts, own = parts_of(spec), own_parts_of(spec, KSANA_WORDING)
    names = _ALWAYS[spec.kind]
    shown = {name: "" if parts[name] is None else parts[name] for name in names}
    rest = {"misfire_policy" if name == "misfire" else name: own[name] for name in own if name not in names}
    return shown | rest


def body_text(config: Mapping[str, Any]) -> str:
    """The body of a call as text: §4 knows no other."""
    body = config.get("body")
    if body is None:
        return ""
    return body if isinstance(body, str) else orjson.dumps(body).decode()


def _call_shown(config: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "method": config.get("method") or "GET",
        "url": config.get("url") or "",
        "headers": dict(config.get("headers") or {}),
        "body": body_text(config),
    }


def _paused(view: JobView) -> bool:
    return not view.job.spec.enabled or (view.schedule is not None and view.schedule.status is ScheduleStatus.PAUSED)


def _next(view: JobView) -> datetime | None:
    return None if view.schedule is None or _paused(view) else view.schedule.next_planned_for


def _ran_at(run: Execution | None) -> datetime | None:
    return None if run is None else run.started_at or run.ended_at


def _last(view: JobView) -> tuple[str, str]:
    """`last_status` and `last_error`: of the last run, or of a later instant that was not run."""
    run, unrun = view.last_run, _unrun(view)
    if unrun is not None and (run is None or run.planned_for is None or _planned(unrun) > run.planned_for):
        return _unrun_name(view, unrun), unrun.reason or ""
    if run is None:
        return "", ""
    error = "" if run.status in SUCCEEDED else run.error or run.reason or ""
    return KSANA_LAST_STATUS_NAMES.get(run.status, ""), error


def _unrun(view: JobView) -> Occurrence | None:
    last = view.last_occurrence
    return last if last is not None and last.outcome in KSANA_OCCURRENCE_NAMES else None


def _unrun_name(view: JobView, unrun: Occurrence) -> str:
    # An instant of a `once` that passed, paused or not, is missed (§5): there is no next one. One that was turned away
    # because its job was full has an execution.
    if view.schedule is not None and view.schedule.spec.kind is ScheduleKind.ONCE and unrun.execution_id is None:
        return "missed"
    return KSANA_OCCURRENCE_NAMES[unrun.outcome]


def _planned(occurrence: Occurrence) -> datetime:
    return occurrence.last_planned_for or occurrence.planned_for


def _told(instant: datetime | None) -> str:
    return "" if instant is None else rfc3339(instant)
