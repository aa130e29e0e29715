"""The schedules of one job of the file, and the newest ledger row of each."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from ksana.domain.clock import EPOCH, from_micros, to_micros
from ksana.domain.ids import new_key
from ksana.domain.schedule import (
    MisfirePolicy,
    ScheduleKind,
    ScheduleSpec,
    document_002_misfire,
    fire_time,
    next_instant,
)
from ksana.domain.states import OccurrenceOutcome, ScheduleStatus
from ksana.store.jsonfile import reading
from ksana.store.jsonfile.reading import Fields, Ids
from ksana.store.jsonfile.shape import SCHEDULE_PLAIN, digest
from ksana.store.jsonfile.text import duration_micros, instant_micros
from ksana.store.sql import codec
from ksana.store.sql.rows import to_json

# Document 002 makes up for nothing that was missed.
_DEFAULT = ScheduleSpec(kind=ScheduleKind.ONCE, run_at=EPOCH, misfire=MisfirePolicy.SKIP)
_DEFAULTS: Fields = orjson.loads(codec.schedule_spec_json(_DEFAULT)) | {"run_at": None}


_REST_KEYS = frozenset(
    {"id", "key", "version", "status", "next_planned_for", "next_fire_at", "created_at", "updated_at", "error", "input"}
    | {"spec", "digest", "ledger", "schedule"}
)


@dataclass(frozen=True, slots=True)
class Moment:
    """When the file is read, and when it says that it was written."""

    now: int
    written: int | None


def read_schedules(
    job_id: int, raw: Fields, rest: Fields, ids: Ids, moment: Moment
) -> tuple[list[Fields], list[Fields]]:
    """Rows of schedules, and of the ledger."""
    enabled = reading.boolean(raw.get("enabled", True))
    known = [rest.get("schedule"), *reading.rows(rest.get("more_schedules", []))]
    said = [raw.get("schedule"), *(reading.table(one)["schedule"] for one in known[1:])]
    schedules: list[Fields] = []
    ledger: list[Fields] = []
    for plain, told in zip(said, known, strict=True):
        if plain is None:
            continue
        fields = reading.table(plain)
        if told is None:
            row = _new(fields, raw, moment) | {"id": ids.next("schedules")}
        else:
            row = _kept(fields, reading.table(told), moment, enabled=enabled)
            ledger += _ledger(row["id"], told)
        if not enabled and told is None and row["status"] == ScheduleStatus.ACTIVE:
            row |= {"status": ScheduleStatus.PAUSED}
        schedules.append(_placed(row) | {"job_id": job_id})
    return schedules, ledger


def _kept(plain: Fields, told: Fields, moment: Moment, *, enabled: bool) -> Fields:
    reading.known(told, _REST_KEYS)
    row: Fields = {
        "id": reading.whole(told["id"]),
        "public_id": reading.key(told["key"]),
        "version": reading.whole(told["version"]),
        "status": ScheduleStatus(told["status"]),
        "next_planned_for": instant_micros(told["next_planned_for"]),
        "next_fire_at": instant_micros(told["next_fire_at"]),
        "created_at": reading.instant(told, "created_at"),
        "updated_at": reading.instant(told, "updated_at"),
        "error": reading.optional_text(told["error"]),
        "input": None if told["input"] is None else to_json(reading.table(told["input"])),
    }
    spec = _DEFAULTS | reading.table(told["spec"]) | _said(plain)
    if told["digest"] == digest(plain, enabled=enabled):
        return row | _spec(spec)
    return row | _edited(row, spec, told, moment, enabled=enabled)


def _edited(row: Fields, spec: Fields, told: Fields, moment: Moment, *, enabled: bool) -> Fields:
    """Somebody changed it in the file: it goes on from now, but not before what its ledger has."""
    if spec["kind"] == ScheduleKind.EVERY:
        spec |= {"anchor": spec["start_at"] or spec["anchor"] or moment.now}
    after = max([moment.now, *(row["last_planned_for"] or row["planned_for"] for row in _ledger(row["id"], told))])
    changed = _spec(spec) | {"version": row["version"] + 1, "error": None, "updated_at": moment.now}
    return changed | _course(_parsed(spec), from_micros(after), enabled=enabled)


def _new(plain: Fields, raw: Fields, moment: Moment) -> Fields:
    """One that document 002 speaks of and Ksana has not seen yet."""
    spec = _DEFAULTS | _said(plain)
    every = None if spec["every"] is None else from_micros(spec["every"]) - EPOCH
    policy, grace = document_002_misfire(spec["kind"], every)
    spec |= {"misfire": policy, "misfire_grace": to_micros(EPOCH + grace)}
    if spec["kind"] == ScheduleKind.EVERY and spec["start_at"] is None:
        spec |= {"anchor": instant_micros(raw.get("next_run_at")) or moment.written or moment.now}
    now = from_micros(moment.now)
    parsed = _parsed(spec)
    row = _spec(spec) | {
        "public_id": new_key(now),
        "version": 1,
        "created_at": moment.now,
        "updated_at": moment.now,
        "error": None,
        "input": None,
    }
    if parsed.run_at is not None and not raw.get("last_run_at") and not raw.get("last_status"):
        # It has not run yet: if its time has passed, the ledger will say that it was missed.
        return row | {"status": ScheduleStatus.ACTIVE, "next_planned_for": to_micros(parsed.run_at)}
    return row | _course(parsed, now, enabled=True)


def _course(spec: ScheduleSpec, after: datetime, *, enabled: bool) -> Fields:
    """Where it goes on from a moment."""
    cursor = next_instant(spec, after)
    status = ScheduleStatus.FINISHED if cursor is None else ScheduleStatus.ACTIVE
    return {
        "status": status if enabled else ScheduleStatus.PAUSED,
        "next_planned_for": codec.micros(cursor),
        "next_fire_at": None,
    }


def _placed(row: Fields) -> Fields:
    """With the time at which it fires: only what is ACTIVE does, and its jitter hangs on its id."""
    cursor = row["next_planned_for"]
    if row["status"] != ScheduleStatus.ACTIVE:
        return row | {"next_fire_at": None}
    if cursor is None:
        raise ValueError("the schedule is ACTIVE, but has no next_planned_for")
    if row.get("next_fire_at") is not None:
        return row
    spec, _ = codec.schedule_spec(row["spec"])
    return row | {"next_fire_at": to_micros(fire_time(spec, row["id"], from_micros(cursor)))}


def _said(plain: Fields) -> Fields:
    """The plain fields as parts of a spec. A kind that is not known is found out when the spec is made."""
    reading.known(plain, SCHEDULE_PLAIN)
    said: Fields = {"kind": ScheduleKind(plain["kind"])}
    for name in ("run_at", "start_at", "end_at"):
        said[name] = instant_micros(plain.get(name))
    said["every"] = duration_micros(plain["every"], "every", "0s") if "every" in plain else None
    said["cron"] = reading.text(plain["cron"]) if "cron" in plain else None
    said["timezone"] = reading.text(plain.get("timezone", "UTC"))
    said["jitter"] = duration_micros(plain.get("jitter"), "jitter", "0s")
    return said


def _spec(spec: Fields) -> Fields:
    """A zone that is gone from tzdata is no reason to refuse it: the scheduler will park it."""
    for name in ("catchup_limit", "misfire_grace"):
        reading.whole(spec[name], least=0)
    if spec["anchor"] is not None:
        reading.whole(spec["anchor"], least=-(2**53))
    document = to_json(spec) or ""
    parsed, error = codec.schedule_spec(document)
    return {"kind": spec["kind"], "spec": codec.schedule_spec_json(parsed) if error is None else document}


def _parsed(spec: Fields) -> ScheduleSpec:
    return codec.schedule_spec(to_json(spec) or "")[0]


def _ledger(schedule_id: int, told: Fields) -> list[Fields]:
    if "ledger" not in told:
        return []
    newest: dict[str, Any] = reading.table(told["ledger"])
    execution_id = newest["execution_id"]
    return [
        {
            "schedule_id": schedule_id,
            "planned_for": reading.instant(newest, "planned_for"),
            "last_planned_for": instant_micros(newest["last_planned_for"]),
            "recorded_at": reading.instant(newest, "recorded_at"),
            "outcome": OccurrenceOutcome(newest["outcome"]),
            "reason": reading.optional_text(newest["reason"]),
            "instants": reading.whole(newest["instants"]),
            "execution_id": None if execution_id is None else reading.whole(execution_id),
        }
    ]
