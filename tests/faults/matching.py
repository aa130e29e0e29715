"""Instants that were due beside what the target saw: once by their keys, and once blindly, by their times alone.

The second is for a product that lies in its headers: a run that claims to be for an instant, but came before it, or long after.
"""

import heapq
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tests.faults.history import Band, Execution, History, Operation, Schedule
from tests.faults.hits import Hit
from tests.faults.oracle import instants

Fire = tuple[str, float]
"""A schedule's name and a planned instant."""
EARLY = 0.05
"""Seconds that the clocks of two processes may be apart."""


SKEW = 0.5
"""Seconds that the product's idea of now (it follows the database's clock, over a network) may be off as a schedule begins: an
instant so near to that need not be, and may be."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What is promised, in seconds."""

    idle: float = 2.0
    """How late a run may be."""
    fault: float = 20.0
    """How long after a fault everything is again as it should be."""
    takeover: float = 20.0
    forgiven: float = 1.0


@dataclass(frozen=True, slots=True)
class Due:
    """All fires that an acknowledged schedule promises, and those that may but need not be."""

    required: dict[Fire, Schedule]
    allowed: set[Fire]


def due(history: History, limits: Limits) -> Due:
    """By the oracle."""
    required: dict[Fire, Schedule] = {}
    allowed: set[Fire] = set()
    stops = {each.schedule.name: each for each in history.operations if each.kind == "stop"}
    for made in (each for each in history.operations if each.kind == "create" and each.schedule.judged):
        schedule = made.schedule
        possible = instants(schedule, made.sent_wall - SKEW, history.read_wall + 1) if made.outcome != "fail" else []
        allowed.update((schedule.name, at) for at in possible)
        begin, end = _judged_span(made, stops.get(schedule.name), history, limits)
        if made.outcome == "ok":
            required.update({(schedule.name, at): schedule for at in possible if begin < at < end})
    return Due(required, allowed)


def _judged_span(made: Operation, stop: Operation | None, history: History, limits: Limits) -> tuple[float, float]:
    in_time = 0 if history.settled else limits.idle + made.schedule.duration
    end = history.read_wall - limits.forgiven - in_time
    return made.answered_wall + SKEW, end if stop is None else min(end, stop.sent_wall)


@dataclass(frozen=True, slots=True)
class Exact:
    """By keys."""

    executed: set[Fire]
    missed: set[Fire]
    lost: set[Fire]
    phantoms: list[Hit]


def match_exactly(history: History, targets: Due) -> Exact:
    hits = by_fire(history.hits)
    rows = {(row.schedule, row.planned): row for row in history.dump.executions if row.planned is not None}
    skipped = _skipped(history)
    executed, missed, lost = set[Fire](), set[Fire](), set[Fire]()
    for fire, schedule in targets.required.items():
        if _was_executed(hits.get(fire, ()), rows.get(fire), schedule):
            executed.add(fire)
        elif _was_recorded(fire, rows.get(fire), schedule, skipped):
            missed.add(fire)
        else:
            lost.add(fire)
    return Exact(executed, missed, lost, _phantoms(history, targets))


def by_fire(hits: Iterable[Hit]) -> dict[Fire, list[Hit]]:
    found: dict[Fire, list[Hit]] = defaultdict(list)
    for hit in hits:
        if hit.planned is not None:
            found[hit.schedule, hit.planned].append(hit)
    return found


def _was_executed(hits: Sequence[Hit], row: Execution | None, schedule: Schedule) -> bool:
    """The target has done it, or the row says that it could not be done; a row alone proves nothing."""
    if any(hit.how == "answered" for hit in hits) or (hits and schedule.at_most_once):
        return True
    return bool(hits) and row is not None and row.ended_wall is not None and not row.status.endswith("SUCCESS")


def _was_recorded(
    fire: Fire, row: Execution | None, schedule: Schedule, skipped: dict[str, list[tuple[float, float]]]
) -> bool:
    if schedule.at_most_once and row is not None and row.status == "FAILED":
        return True  # whoever had it died before it was sent
    return schedule.may_miss and any(first <= fire[1] <= last for first, last in skipped.get(fire[0], ()))


def _skipped(history: History) -> dict[str, list[tuple[float, float]]]:
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for row in history.dump.occurrences:
        if row.outcome != "FIRED":
            found[row.schedule].append((row.first, row.last))
    return found


def _phantoms(history: History, targets: Due) -> list[Hit]:
    """Runs that nobody asked for: neither a schedule nor a person."""
    manual = {str(row.id) for row in history.dump.executions if row.triggered_by != "schedule"}
    unjudged = {each.schedule.name for each in history.operations if not each.schedule.judged}
    return [
        hit
        for hit in history.hits
        if hit.run not in manual and hit.schedule not in unjudged and hit.fire not in targets.allowed
    ]


def match_blindly(history: History, fires: Iterable[Fire], limits: Limits) -> set[Fire]:
    """Those that no run can be found for in their time, whatever the runs say of themselves."""
    schedules = {each.schedule.name: each.schedule for each in history.operations}
    windows: dict[str, list[tuple[float, float, Fire]]] = defaultdict(list)
    deadlines: dict[tuple[float, float], float] = {}
    for name, at in fires:
        known = (at, schedules[name].duration)
        if known not in deadlines:
            deadlines[known] = deadline(history, at, limits) + schedules[name].duration
        windows[name].append((history.mono(at) - EARLY, deadlines[known], (name, at)))
    runs: dict[str, list[float]] = defaultdict(list)
    for hit in history.hits:
        runs[hit.schedule].append(hit.began)
    return {fire for name, each in windows.items() for fire in _unmatched(each, runs[name])}


def deadline(history: History, at_wall: float, limits: Limits) -> float:
    """By when a run for that instant must have begun: a fault in between gives it until some time after the fault."""
    idle = limits.idle * history.slowness + limits.forgiven + 3 * history.stall
    until = history.mono(at_wall) + idle
    for band in sorted(history.bands, key=lambda band: band.began):
        if (
            band.began <= until
            and _end(band) + limits.fault + idle > until
            and _end(band) >= until - idle - limits.fault
        ):
            until = _end(band) + limits.fault + idle
    return until


def _end(band: Band) -> float:
    """A process that stays dead is taken over all the same: the fault is its death."""
    return band.began if band.kind in {"kill", "term"} else band.ended if band.ended is not None else float("inf")


def _unmatched(windows: list[tuple[float, float, Fire]], runs: list[float]) -> list[Fire]:
    """Earliest deadline first, which leaves as few as can be."""
    waiting = sorted(windows, reverse=True)
    open_now: list[tuple[float, Fire]] = []
    missed: list[Fire] = []
    for run in sorted(runs):
        while waiting and waiting[-1][0] <= run:
            _, until, fire = waiting.pop()
            heapq.heappush(open_now, (until, fire))
        while open_now and open_now[0][0] < run:
            missed.append(heapq.heappop(open_now)[1])
        if open_now:
            heapq.heappop(open_now)
    return missed + [fire for _, fire in open_now] + [fire for *_, fire in waiting]
