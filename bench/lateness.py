"""How late schedules fire, and the calls after them: 1,000 each second, and 10,000 each ten seconds, on a real `ksana serve`.

make bench ARGS="--only lateness"

Fired late is the time from the planned instant to the moment at which the run was decided (`created_at`); called late is the
time to the arrival of the call at the target, which has the two commits between them. Every planned instant must have its row in
the ledger, and no call may be missing: nothing is dropped. Of the 10,000, those with the budget are spread evenly over the ten
seconds, a thousand in each; all at one instant is told beside it, as a burst. One more time, the process is killed half-way.
"""

import json
import math
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bench.databases import FILE, rows
from bench.filling import Planned, fill_schedules
from bench.options import Options
from bench.report import Budget, Line, at_most
from bench.serving import Called, Served, serve, target
from bench.spread import Spread, percentile
from ksana.domain.schedule import ScheduleKind, ScheduleSpec

LATENESS_MS = 50.0
SETTLING_SECONDS = 2.0
"""After the last instant, for what is under way."""
LEADS = (8.0, 30.0, 90.0)
"""Seconds from the beginning to the first instant, for filling and starting; the next if they were too few."""
FILLED_A_SECOND = 2_000
IN_FLIGHT = {"WORKERS": "64", "KSANA_EXECUTOR_PER_HOST": "64"}
LATE = "SELECT created_at - planned_for FROM executions WHERE planned_for >= :since AND planned_for < :until"
LEDGER = "SELECT count(*) FROM occurrences WHERE planned_for >= :since AND planned_for < :until"
DOUBLED = """
SELECT count(*) FROM (SELECT 1 FROM executions GROUP BY schedule_id, planned_for HAVING count(*) > 1) AS doubled
"""


@dataclass(frozen=True, slots=True)
class Case:
    schedules: int
    period: int
    """Seconds."""
    seconds: int
    spread: bool
    """Whether they are spread over the period, or all due at once."""
    killed: bool = False

    @property
    def name(self) -> str:
        how = ", spread" if self.spread else ", at once"
        return f"{self.schedules:,} each {self.period} s{how}{', kill -9 half-way' if self.killed else ''}"

    @property
    def planned(self) -> int:
        return self.schedules * self.seconds // self.period


@dataclass(frozen=True, slots=True)
class Seen:
    ledger: int
    lost: int
    doubled: int
    fired: list[float]
    """How late, in milliseconds."""
    called: list[float]


def measure(options: Options) -> list[Line]:
    few, many = options.each_second, options.each_ten_seconds
    cases = [
        Case(few, 1, options.seconds_of_each_second, spread=False),
        Case(many, 10, options.seconds_of_each_ten, spread=True),
        Case(many, 10, options.seconds_of_each_ten, spread=False),
    ]
    lines = [line for case in cases for line in _told(case, [_measured(case) for _ in range(options.times)])]
    killed = Case(few, 1, options.seconds_of_each_second, spread=False, killed=True)
    return lines + _counted(killed, [_measured(killed)])


def _told(case: Case, seen: list[Seen]) -> list[Line]:
    burst = not case.spread and case.period > 1
    budget = None if burst else at_most(LATENESS_MS)
    return [
        *_counted(case, seen),
        *_late(f"{case.name}: fired late", [each.fired for each in seen], budget),
        *_late(f"{case.name}: called late", [each.called for each in seen], None),
    ]


def _counted(case: Case, seen: list[Seen]) -> list[Line]:
    least = min(each.ledger for each in seen)
    lost, doubled = sum(each.lost for each in seen), sum(each.doubled for each in seen)
    return [
        Line(f"{case.name}: rows of planned", f"{least:,} of {case.planned:,}", "all", least == case.planned),
        Line(f"{case.name}: lost, doubled", f"{lost}, {doubled}", "0, 0", lost == doubled == 0),
    ]


def _late(what: str, times: list[list[float]], budget: Budget | None) -> list[Line]:
    halves, most = (Spread.of(percentile(each, part) for each in times) for part in (0.5, 0.99))
    return [Line.of(f"{what}, p50", halves, "ms"), Line.of(f"{what}, p99", most, "ms", budget)]


def _measured(case: Case) -> Seen:
    for lead in LEADS:
        seen = _watched(case, lead + case.schedules / FILLED_A_SECOND)
        if seen is not None:
            return seen
    raise RuntimeError("nothing was ready in time: the machine is too busy")


def _watched(case: Case, lead: float) -> Seen | None:
    """None if the first instant had come before everything was ready for it."""
    with target() as called, tempfile.TemporaryDirectory(prefix="ksana-bench-") as name:
        folder = Path(name)
        url = f"sqlite:///{folder / FILE}"
        first = math.ceil((time.time() + lead) / case.period) * case.period
        fill_schedules(url, f"{called.url}/run", [_planned(case, number, first) for number in range(case.schedules)])
        return _seen(case, folder, url, first, called) if _lived_through(case, folder, first) else None


def _planned(case: Case, number: int, first: int) -> Planned:
    shift = timedelta(seconds=case.period * number / case.schedules) if case.spread else timedelta(0)
    anchor = datetime.fromtimestamp(first, UTC) + shift
    return Planned(ScheduleSpec(kind=ScheduleKind.EVERY, every=timedelta(seconds=case.period), anchor=anchor), anchor)


def _lived_through(case: Case, folder: Path, first: int) -> bool:
    served = serve(folder, settings=IN_FLIGHT)
    try:
        if time.time() > first - 1:
            return False
        if case.killed:
            _sleep_until(first + case.seconds / 2 + 0.3)
            served = _again(served, folder)
        _sleep_until(first + case.seconds + SETTLING_SECONDS)
        return True
    finally:
        served.end(signal.SIGTERM)


def _again(served: Served, folder: Path) -> Served:
    served.end(signal.SIGKILL)
    return serve(folder, settings=IN_FLIGHT)


def _seen(case: Case, folder: Path, url: str, first: int, called: Called) -> Seen:
    since, until = first * 1_000_000, (first + case.seconds) * 1_000_000
    fired = [micros / 1_000 for (micros,) in rows(url, LATE, since=since, until=until)]
    late = _after_their_instants(case, first, called.times())
    ledger, doubled = rows(url, LEDGER, since=since, until=until)[0][0], rows(url, DOUBLED)[0][0]
    return Seen(ledger, _audited(folder)["lost"], doubled, fired, late)


def _after_their_instants(case: Case, first: int, calls: list[float]) -> list[float]:
    """Of each call, in milliseconds. The calls are told in order, and so are the instants: the n-th belongs to the n-th."""
    if case.spread:
        instants = [first + number * case.period / case.schedules for number in range(case.planned)]
    else:
        instants = [first + number // case.schedules * case.period for number in range(case.planned)]
    return [1_000 * (call - instant) for call, instant in zip(sorted(calls), instants, strict=False)]


def _sleep_until(at: float) -> None:
    time.sleep(max(0.0, at - time.time()))


def _audited(folder: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "ksana.cli.main", "audit", "--json", "--data-dir", str(folder)]
    told: dict[str, Any] = json.loads(subprocess.run(command, capture_output=True, text=True, check=False).stdout)
    return told
