"""One job of the file: its row, its schedules', and those of the runs that are kept with it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ksana.domain.clock import from_micros
from ksana.domain.errors import KsanaError
from ksana.domain.execution import Trigger
from ksana.domain.ids import new_key
from ksana.domain.job import JobSpec, RecoveryRule
from ksana.domain.states import TERMINAL, ExecutionStatus
from ksana.store.jsonfile import reading, reading_schedule
from ksana.store.jsonfile.reading import Fields, Ids, Unreadable
from ksana.store.jsonfile.reading_schedule import Moment
from ksana.store.jsonfile.text import instant_micros
from ksana.store.sql.rows import to_json
from ksana.store.sql.statements.jobs import _columns as job_columns
from ksana.store.sql.statements.recovery import LOST

_STATUSES = {
    "success": ExecutionStatus.SUCCESS,
    "failed": ExecutionStatus.FAILED,
    "timeout": ExecutionStatus.TIMEOUT,
    "skipped": ExecutionStatus.SKIPPED,
}
_NO_RUN = {"", "missed", "paused"}


@dataclass(slots=True)
class LoadedJob:
    """Rows, by table, in the order in which they are to be inserted."""

    id: int
    rows: dict[str, list[Fields]] = field(default_factory=dict)


def read_job(raw: object, place: str, ids: Ids, moment: Moment) -> LoadedJob:
    """Unreadable, naming the place, if it is not a job."""
    try:
        return _read(*reading.job_parts(raw), ids, moment)
    except (KsanaError, KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise Unreadable(f"{place}: {reading.why(error)}") from error


def _read(raw: Fields, rest: Fields, ids: Ids, moment: Moment) -> LoadedJob:
    spec, document = reading.read_spec(raw, rest)
    loaded = LoadedJob(reading.whole(rest["id"]) if rest else ids.next("jobs"))
    loaded.rows["jobs"] = [_job_row(loaded.id, raw, rest, spec, moment) | {"spec": document}]
    schedules, ledger = reading_schedule.read_schedules(loaded.id, raw, rest, ids, moment)
    loaded.rows["schedules"], loaded.rows["occurrences"] = schedules, ledger
    loaded.rows["executions"] = [
        *_last_run(loaded.id, raw, rest, spec, ids),
        *(_open_run(loaded.id, reading.table(run), spec, moment) for run in reading.rows(rest.get("open_runs", []))),
    ]
    return loaded


def _job_row(job_id: int, raw: Fields, rest: Fields, spec: JobSpec, moment: Moment) -> Fields:
    key = raw.get("id", "")
    return job_columns(spec) | {
        "id": job_id,
        "public_id": reading.key(key) if rest or key else new_key(from_micros(moment.now)),
        "version": reading.whole(rest["version"]) if rest else 1,
        "created_at": reading.instant(rest, "created_at") if rest else moment.now,
        "updated_at": reading.instant(rest, "updated_at") if rest else moment.now,
    }


def _last_run(job_id: int, raw: Fields, rest: Fields, spec: JobSpec, ids: Ids) -> list[Fields]:
    if rest:
        return [_kept_run(job_id, reading.table(rest["last_run"]), spec)] if "last_run" in rest else []
    status = reading.text(raw.get("last_status", ""))
    ran_at = instant_micros(raw.get("last_run_at"))
    error = reading.text(raw.get("last_error", ""))
    if status not in _STATUSES and status not in _NO_RUN:
        raise ValueError(f"last_status {status!r} is none of document 002's")
    if status in _NO_RUN or ran_at is None:
        return []
    return [
        _execution(job_id, spec, ids.next("executions"), ran_at)
        | {"status": _STATUSES[status], "started_at": ran_at, "ended_at": ran_at, "attempt": 1, "error": error or None}
    ]


def _kept_run(job_id: int, told: Fields, spec: JobSpec) -> Fields:
    status = ExecutionStatus(told["status"])
    if status not in TERMINAL:
        raise ValueError(f"last_run is {status}, which is no end")
    created_at = reading.instant(told, "created_at")
    return _execution(job_id, spec, reading.whole(told["id"]), created_at) | {
        **_origin(told),
        "status": status,
        "attempt": reading.whole(told["attempt"], least=0),
        "started_at": instant_micros(told["started_at"]),
        "ended_at": instant_micros(told["ended_at"]),
        "updated_at": instant_micros(told["ended_at"]) or created_at,
        "error": reading.optional_text(told["error"]),
        "reason": reading.optional_text(told["reason"]),
    }


def _open_run(job_id: int, told: Fields, spec: JobSpec, moment: Moment) -> Fields:
    """One that had not ended is to be run again; at most once means that it may have been, and is not."""
    created_at = reading.instant(told, "created_at")
    row = _execution(job_id, spec, reading.whole(told["id"]), created_at) | _origin(told)
    row |= {
        "trace_id": reading.optional_text(told["trace_id"]),
        "input": None if told["input"] is None else to_json(reading.table(told["input"])),
        "updated_at": moment.now,
    }
    if spec.recovery is RecoveryRule.FAIL:
        return row | {"status": ExecutionStatus.FAILED, "ended_at": moment.now, "error": LOST}
    return row | {"status": ExecutionStatus.SCHEDULED, "ready_at": row["planned_for"] or created_at}


def _origin(told: Mapping[str, Any]) -> Fields:
    schedule_id = told["schedule_id"]
    return {
        "triggered_by": Trigger(told["trigger"]),
        "schedule_id": None if schedule_id is None else reading.whole(schedule_id),
        "planned_for": instant_micros(told["planned_for"]),
    }


def _execution(job_id: int, spec: JobSpec, execution_id: int, created_at: int) -> Fields:
    """Every column, so that all rows can be inserted by one statement."""
    nothing = ("schedule_id", "ready_at", "input", "error", "reason", "trace_id", "started_at", "ended_at")
    return dict.fromkeys(nothing) | {
        "id": execution_id,
        "job_id": job_id,
        "planned_for": created_at,
        "triggered_by": Trigger.SCHEDULE,
        "worker_queue": spec.worker_queue,
        "epoch": 0,
        "attempt": 0,
        "open_dependencies": 0,
        "created_at": created_at,
        "updated_at": created_at,
    }


def note_ids(raw: object, ids: Ids) -> None:
    """The ids that a job says it has, before any new one is given out. What is no id is refused later."""
    rest = raw.get("ksana") if isinstance(raw, dict) else None
    if isinstance(rest, dict):
        _note(ids, "jobs", rest)
        schedules, runs = rest.get("more_schedules"), rest.get("open_runs")
        for told in (rest.get("schedule"), *(schedules if isinstance(schedules, list) else ())):
            _note(ids, "schedules", told)
        for told in (rest.get("last_run"), *(runs if isinstance(runs, list) else ())):
            _note(ids, "executions", told)


def _note(ids: Ids, table: str, told: object) -> None:
    found = told.get("id") if isinstance(told, dict) else None
    if isinstance(found, int) and not isinstance(found, bool):
        ids.seen(table, found)
