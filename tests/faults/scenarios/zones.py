"""Daylight saving begins and ends while Ksana runs, in three zones; and a zone that there is not any more."""

import json
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from math import ceil, floor
from zoneinfo import ZoneInfo

from sqlalchemy import create_engine, text

from tests.faults.arena import Arena
from tests.faults.clock import DAY, WallClock
from tests.faults.history import History, Schedule, Verdict
from tests.faults.ledger import faults_of, fired, rows_of
from tests.faults.operations import Wanted
from tests.faults.oracle import instants
from tests.faults.reports import forbid
from tests.faults.scenarios import scenario

ZONES = ("Europe/Zurich", "America/New_York", "Australia/Lord_Howe")
STEP = 1_800
"""Zones change on the half hour."""
BEFORE, AFTER = 5, 5
"""Seconds around a change that are lived through."""
PATIENCE = 20.0
GONE = "Mars/Olympus"


@dataclass(frozen=True)
class Change:
    """An instant at which a zone's clocks are set."""

    zone: str
    at: float
    by: int
    """Seconds; more than nothing: forward."""


@dataclass
class Visit:
    """The schedules of one change, and the span in which they lived by the clock that is moved."""

    change: Change
    schedules: list[Schedule]
    made: float
    end: float


@scenario(
    "F13",
    "daylight saving both ways in three zones, and a zone that is gone",
    stores=("sqlite",),
    gate=False,
    fresh=True,
)
def daylight_saving(arena: Arena) -> tuple[History, Verdict]:
    """Fixed times once, others by every instant that matches: all as the oracle has it."""
    changes = sorted((each for zone in ZONES for each in _changes(zone, time.time() + DAY)), key=lambda each: each.at)
    clock = WallClock(arena.folder, offset=floor(changes[0].at - 4_000 - time.time()))
    clock.start(arena.instances)
    visits = [_visit(arena, clock, number, change) for number, change in enumerate(changes)]
    history = arena.history()
    verdict = Verdict()
    for visit in visits:
        _judge(verdict, history, visit)
    verdict.figures |= {
        "n": sum(row.count for row in history.dump.occurrences),
        "missed": sum(row.count for row in history.dump.occurrences if row.outcome != "FIRED"),
        "lost": len(verdict.violations),
        "duplicated": 0,
        "fixed_fired": sum(len(fired(rows_of(history, each.name))) for each in _fixed(visits)),
        "changes": [(each.zone, datetime.fromtimestamp(each.at, UTC).isoformat(), each.by) for each in changes],
    }
    verdict.require(verdict.figures["fixed_fired"] >= len(visits), "hardly a fixed time was due: the scenario is void")
    _gone(verdict, arena, clock)
    return arena.history(), verdict


def _changes(zone: str, begin: float) -> list[Change]:
    """The next two: one each way."""
    found: list[Change] = []
    at = ceil(begin / STEP) * STEP
    while len(found) < 2:
        by = _offset(zone, at) - _offset(zone, at - 1)
        if by:
            found.append(Change(zone, float(at), by))
        at += STEP
    return found


def _offset(zone: str, at: float) -> int:
    offset = datetime.fromtimestamp(at, ZoneInfo(zone)).utcoffset()
    assert offset is not None
    return round(offset.total_seconds())


def _visit(arena: Arena, clock: WallClock, number: int, change: Change) -> Visit:
    """Lives through the change; and, where an hour comes twice, through the beginning of the first time as well."""
    end = change.at + AFTER
    first = change.at - abs(change.by) if change.by < 0 else change.at
    clock.set(first - BEFORE)
    wanted = _wanted(arena, number, change, end)
    arena.create(*wanted)
    visit = Visit(change, [schedule for schedule, _ in wanted], clock.now(), end)
    if change.by < 0:
        time.sleep(max(0.0, first + AFTER - clock.now()))
        clock.set(change.at - BEFORE)
    deadline = time.monotonic() + BEFORE + AFTER + PATIENCE
    while clock.now() < end + 2 or (arena.database.reader.under_way() and time.monotonic() < deadline):
        time.sleep(0.1)
    return visit


def _wanted(arena: Arena, number: int, change: Change, end: float) -> list[Wanted]:
    """Fixed times before, in and after what is skipped or comes twice; and some that are not fixed. Not all are due: in that,
    too, the oracle is right."""
    zone = ZoneInfo(change.zone)
    local = datetime.fromtimestamp(change.at, zone)
    earlier = datetime.fromtimestamp(change.at - abs(change.by) - 2, zone)
    middle = datetime.fromtimestamp(change.at - STEP / 2, UTC).astimezone(zone)
    skipped = (local.hour * 60 + local.minute) - 15
    crons = {
        "after": f"3 {local.minute} {local.hour} * * *",
        "skipped": f"0 {skipped % 60} {skipped // 60} * * *",
        "before": f"{earlier.second} {earlier.minute} {earlier.hour} * * *",
        "middle": f"7 {middle.minute} {middle.hour} * * *",
        "often": "*/2 * * * * *",
        "hour": f"*/3 {local.minute} {local.hour} * * *",
    }
    return [
        (Schedule(name, cron=cron, zone=change.zone, end_wall=end), {"url": arena.target.url(name)})
        for name, cron in ((f"z{number}-{kind}", cron) for kind, cron in crons.items())
    ]


def _judge(verdict: Verdict, history: History, visit: Visit) -> None:
    for schedule in visit.schedules:
        due = instants(schedule, visit.made, visit.end + 1)
        rows = rows_of(history, schedule.name)
        if rows and rows[0].first < visit.made:  # due while it was being made
            due = [rows[0].first, *due]
        told = f"{visit.change.zone} by {visit.change.by} s, {schedule.cron}"
        forbid(verdict, f"{told}: not what the oracle has", faults_of(history, schedule.name, due))
        if schedule.name.endswith("often"):
            verdict.require(len(fired(rows)) >= BEFORE, f"{told}: it hardly fired, the scenario is void")


def _fixed(visits: list[Visit]) -> list[Schedule]:
    return [each for visit in visits for each in visit.schedules if "*/" not in each.cron]


def _gone(verdict: Verdict, arena: Arena, clock: WallClock) -> None:
    """A zone that is in the database, and nowhere else, parks its schedule alone."""
    end = floor(clock.now() + 60)
    for name in ("parked", "other"):
        schedule = Schedule(name, cron="* * * * * *", zone=ZONES[0], end_wall=end)
        arena.create((schedule, {"url": arena.target.url(name)}))
    arena.instances.terminate(0)
    _rename_zone(arena, "parked")
    before = clock.now()
    arena.instances.restart(0)
    went_on = arena.target.wait(
        lambda hits: sum(hit.schedule == "other" and (hit.planned or 0) > before for hit in hits) > 2, PATIENCE
    )
    verdict.require(went_on, "the others did not go on beside a schedule whose zone is gone")
    rows = arena.database.reader.query(_STATUS)
    status = {row.name: (row.status, row.error) for row in rows if row.name in {"parked", "other"}}
    verdict.figures["gone"] = status["parked"]
    verdict.require(status["parked"][0] not in {"ACTIVE", "ENDED"} and status["parked"][1], f"it is {status['parked']}")
    verdict.require(status["other"] == ("ACTIVE", None), f"the other is {status['other']}")


def _rename_zone(arena: Arena, name: str) -> None:
    engine = create_engine(arena.database.url)
    with engine.begin() as connection:
        (row,) = connection.execute(text(_SPEC), {"name": name}).all()
        spec = json.loads(row.spec)
        assert spec.get("timezone") == ZONES[0], spec
        told = json.dumps({**spec, "timezone": GONE})
        connection.execute(text("UPDATE schedules SET spec = :spec WHERE id = :id"), {"spec": told, "id": row.id})
    engine.dispose()


_SPEC = "SELECT s.id, s.spec FROM schedules s JOIN jobs j ON j.id = s.job_id WHERE j.name = :name"
_STATUS = "SELECT j.name, s.status, s.error FROM schedules s JOIN jobs j ON j.id = s.job_id"
