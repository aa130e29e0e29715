"""From rows to document 002's shape. What it has no word for goes under `"ksana"`, so that what is read back is the same.

The plain fields are what counts when the file is read: a person may edit them while Ksana is stopped.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import orjson
from sqlalchemy import Row

from ksana.domain.schedule import ScheduleKind
from ksana.domain.states import (
    KSANA_LAST_STATUS_NAMES,
    KSANA_OCCURRENCE_NAMES,
    KSANA_SCHEDULE_NAMES,
    SUCCEEDED,
    ExecutionStatus,
    OccurrenceOutcome,
    ScheduleStatus,
)
from ksana.store.jsonfile.text import duration_text, instant_text
from ksana.store.sql.codec import from_json

HTTP = "http"
HTTP_DEFAULTS: dict[str, Any] = {"method": "GET", "url": "", "headers": {}, "body": ""}
"""What the shape always shows of an HTTP job, and what stands there if its config does not say it."""

JOB_PLAIN = frozenset({"name", "enabled", "type", "config", "timeout", "retry"})
"""Parts of a spec that the plain fields say."""
SCHEDULE_PLAIN = frozenset({"kind", "run_at", "every", "cron", "timezone", "start_at", "end_at", "jitter"})

RUN_INSTANTS = ("planned_for", "created_at", "started_at", "ended_at")
RUN_VALUES = ("id", "schedule_id", "status", "attempt", "error", "reason")
LEDGER_INSTANTS = ("planned_for", "last_planned_for", "recorded_at")
LEDGER_VALUES = ("outcome", "reason", "instants", "execution_id")


@dataclass(slots=True)
class JobRows:
    """All that the file tells of one job."""

    job: Row[Any]
    schedules: list[Row[Any]] = field(default_factory=list)
    ledger: dict[int, Row[Any]] = field(default_factory=dict)
    """The newest row of each of its schedules."""
    last_run: Row[Any] | None = None
    """The newest that ended."""
    open_runs: list[Row[Any]] = field(default_factory=list)


def job_document(rows: JobRows) -> dict[str, Any]:
    """One entry of `"jobs"`."""
    spec: dict[str, Any] = orjson.loads(rows.job.spec)
    main = rows.schedules[0] if rows.schedules else None
    document: dict[str, Any] = {
        "id": rows.job.public_id,
        "name": spec["name"],
        "enabled": spec["enabled"],
        "type": spec["type"],
        **({"http": _http(spec["config"])} if spec["type"] == HTTP else {}),
        "schedule": None if main is None else plain_schedule(orjson.loads(main.spec)),
        "timeout": duration_text(spec["timeout"]),
        "max_retries": spec["retry"]["max_attempts"] - 1,
        "retry_backoff": duration_text(spec["retry"]["delay"]),
        **_bookkeeping(rows, main, enabled=spec["enabled"]),
    }
    return document | {"ksana": _rest(rows, spec)}


def _rest(rows: JobRows, spec: dict[str, Any]) -> dict[str, Any]:
    job = rows.job
    rest: dict[str, Any] = {
        "id": job.id,
        "version": job.version,
        "created_at": instant_text(job.created_at),
        "updated_at": instant_text(job.updated_at),
        "spec": {name: value for name, value in spec.items() if name not in JOB_PLAIN},
        "retry": {name: value for name, value in spec["retry"].items() if name not in {"max_attempts", "delay"}},
        **_config_rest(spec),
    }
    known = [_schedule_rest(row, rows.ledger.get(row.id), enabled=spec["enabled"]) for row in rows.schedules]
    if known:
        rest["schedule"] = known[0]
    if known[1:]:
        plain = [plain_schedule(orjson.loads(row.spec)) for row in rows.schedules[1:]]
        rest["more_schedules"] = [{**one, "schedule": said} for one, said in zip(known[1:], plain, strict=True)]
    if rows.last_run is not None:
        rest["last_run"] = _run(rows.last_run)
    if rows.open_runs:
        rest["open_runs"] = [_open_run(row) for row in rows.open_runs]
    return rest


# The config of an HTTP job ------------------------------------------------------------------------------------------


def _http(config: Mapping[str, Any]) -> dict[str, Any]:
    return {name: config[name] if _sayable(config, name) else default for name, default in HTTP_DEFAULTS.items()}


def _sayable(config: Mapping[str, Any], name: str) -> bool:
    value = config.get(name)
    if name == "headers":
        return isinstance(value, dict) and all(isinstance(said, str) for said in value.values())
    return isinstance(value, str)


def _config_rest(spec: Mapping[str, Any]) -> dict[str, Any]:
    """`config`: what the plain fields do not say; `unsaid`: which of them are shown, but are not in the config."""
    config: dict[str, Any] = spec["config"]
    if spec["type"] != HTTP:
        return {"config": config}
    others = {name: value for name, value in config.items() if name not in HTTP_DEFAULTS or not _sayable(config, name)}
    unsaid = [name for name in HTTP_DEFAULTS if name not in config]
    return {**({"config": others} if others else {}), **({"unsaid": unsaid} if unsaid else {})}


# Schedules ----------------------------------------------------------------------------------------------------------


def plain_schedule(spec: Mapping[str, Any]) -> dict[str, Any]:
    """What document 002 says of a schedule, and `cron`, `timezone`, `end_at` in the same manner."""
    kind = spec["kind"]
    said: dict[str, Any] = {"kind": kind}
    if kind == ScheduleKind.ONCE:
        said["run_at"] = instant_text(spec["run_at"])
    elif kind == ScheduleKind.EVERY:
        said["every"] = duration_text(spec["every"])
    else:
        said["cron"] = spec["cron"]
    if kind == ScheduleKind.CRON or spec["timezone"] != "UTC":
        said["timezone"] = spec["timezone"]
    if kind != ScheduleKind.ONCE or spec["start_at"] is not None:
        said["start_at"] = instant_text(spec["start_at"])
    if spec["end_at"] is not None:
        said["end_at"] = instant_text(spec["end_at"])
    if kind != ScheduleKind.ONCE or spec["jitter"]:
        said["jitter"] = duration_text(spec["jitter"])
    return said


def digest(said: object, *, enabled: bool) -> str:
    """By which it is seen, when the file is read, that somebody has edited a schedule."""
    return blake2b(orjson.dumps([said, enabled], option=orjson.OPT_SORT_KEYS), digest_size=8).hexdigest()


def _schedule_rest(row: Row[Any], newest: Row[Any] | None, *, enabled: bool) -> dict[str, Any]:
    spec = orjson.loads(row.spec)
    rest = {
        "id": row.id,
        "key": row.public_id,
        "version": row.version,
        "status": row.status,
        "next_planned_for": instant_text(row.next_planned_for),
        "next_fire_at": instant_text(row.next_fire_at),
        "created_at": instant_text(row.created_at),
        "updated_at": instant_text(row.updated_at),
        "error": row.error,
        "input": from_json(row.input),
        "spec": {name: value for name, value in spec.items() if name not in SCHEDULE_PLAIN},
        "digest": digest(plain_schedule(spec), enabled=enabled),
    }
    return rest if newest is None else rest | {"ledger": _told(newest, LEDGER_VALUES, LEDGER_INSTANTS)}


# Runs ---------------------------------------------------------------------------------------------------------------


def _run(row: Row[Any]) -> dict[str, Any]:
    return {"trigger": row.triggered_by, **_told(row, RUN_VALUES, RUN_INSTANTS)}


def _open_run(row: Row[Any]) -> dict[str, Any]:
    """Nothing that a claim or a retry changes."""
    told = _told(row, ("id", "schedule_id", "trace_id"), ("planned_for", "created_at"))
    return {"trigger": row.triggered_by, **told, "input": from_json(row.input)}


def _told(row: Row[Any], values: Sequence[str], instants: Sequence[str]) -> dict[str, Any]:
    told = {name: getattr(row, name) for name in values}
    return told | {name: instant_text(getattr(row, name)) for name in instants}


# Bookkeeping: what the contract of document 002 shows for the same job (api/contracts/ksana_showing.py) ----------------------


def _bookkeeping(rows: JobRows, main: Row[Any] | None, *, enabled: bool) -> dict[str, Any]:
    run = rows.last_run
    paused = not enabled or (main is not None and main.status == ScheduleStatus.PAUSED)
    status, error = _last(run, main, rows.ledger.get(main.id) if main is not None else None)
    return {
        "last_run_at": instant_text(None if run is None else run.started_at or run.ended_at),
        "next_run_at": instant_text(None if main is None or paused else main.next_planned_for),
        "last_status": KSANA_SCHEDULE_NAMES[ScheduleStatus.PAUSED] if paused else status,
        "last_error": error,
    }


def _last(run: Row[Any] | None, main: Row[Any] | None, unrun: Row[Any] | None) -> tuple[str, str]:
    """Of the last run, or of a later instant that was not run."""
    if main is not None and unrun is not None and unrun.outcome in KSANA_OCCURRENCE_NAMES:
        planned = unrun.last_planned_for or unrun.planned_for
        if run is None or run.planned_for is None or planned > run.planned_for:
            missed = main.kind == ScheduleKind.ONCE and unrun.execution_id is None
            outcome = OccurrenceOutcome.MISSED if missed else OccurrenceOutcome(unrun.outcome)
            return KSANA_OCCURRENCE_NAMES[outcome], unrun.reason or ""
    if run is None:
        return "", ""
    error = "" if run.status in SUCCEEDED else run.error or run.reason or ""
    return KSANA_LAST_STATUS_NAMES[ExecutionStatus(run.status)], error
