"""Durable HTTP runs per second: planned → running → success, each on the disk, on a real `ksana serve` with a real target.

make bench ARGS="--only runs"

There are a hundred jobs and for each run a `once` schedule of one of them, all for the same instant. From then on there is a
backlog until the last one is done, so that the whole path is measured at its fullest: the due schedules are read and decided,
occurrences and executions written, claimed, called, settled. The rate is the number of runs by the time from the planned
instant to the last `ended_at`; the CPU is that of all `ksana serve` processes meanwhile (and, apart, the server's).
Afterwards the rows and the target's count must say that each ran exactly once.

On SQLite every measurement has two of the limit (`bench.limits`) just before it, and what is told is their ratio: to the loop
that the budget was made for, which commits every 5 ms, and to one that never pauses. On database servers, one and two
instances take turns in the same way.
"""

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.servers.base import MissingError

from bench import limits
from bench.databases import NAMES, Databases, databases, rows
from bench.filling import Planned, fill_schedules
from bench.options import Options
from bench.processes import cpu_seconds
from bench.report import Line, at_least, at_most, missing
from bench.serving import Called, Served, serving, target, wait_until
from bench.spread import Spread
from ksana.domain.job import ConcurrencyPolicy
from ksana.domain.schedule import ScheduleKind, ScheduleSpec

WARM_UP_AT = timedelta(seconds=3)
"""How long before the instant that counts as many runs as there are places are planned, as the limit makes as many calls before
it is measured: connections are made, code is loaded."""
JOBS = 100
PAUSE = 0.005
"""Of the loop that the budget was made for, in seconds."""
LEADS = (12, 30, 90)
"""Seconds from the beginning to the planned instant, for filling, starting and warming up; the next if they were too few."""
FILLED_A_SECOND = 2_000
PATIENCE = 600.0
ENOUGH_CORES = 6
"""For two instances, a database server and a target to have room beside each other."""
DONE = "SELECT count(*) FROM executions WHERE status = 'SUCCESS' AND planned_for = :at"
TOLD = """
SELECT count(*), count(DISTINCT schedule_id), sum(attempt), max(ended_at)
FROM executions WHERE status = 'SUCCESS' AND planned_for = :at
"""


@dataclass(frozen=True, slots=True)
class Case:
    runs: int
    in_flight: int
    instances: int = 1


@dataclass(frozen=True, slots=True)
class Pace:
    per_second: float
    cpu: float
    """Seconds of Ksana for 1,000 runs."""
    database_cpu: float
    """The same of the database's server."""


def measure(options: Options) -> list[Line]:
    lines: list[Line] = []
    with target() as called:
        for store in options.stores:
            if store == "sqlite":
                lines += [line for each in options.in_flight for line in _beside_the_limit(options, each, called)]
            else:
                lines += _on_a_server(options, store, called)
    return lines


def _beside_the_limit(options: Options, in_flight: int, called: Called) -> list[Line]:
    case, paused, bare, ours = Case(options.runs, in_flight), [], [], []
    for _ in range(options.times):
        paused.append(limits.measure_once(case.runs, in_flight, f"{called.url}/run", PAUSE))
        bare.append(limits.measure_once(case.runs, in_flight, f"{called.url}/run"))
        ours.append(measure_once(case, Databases("sqlite"), called))
    every_5_ms = Spread.of(each.per_second for each in paused)
    limit, limit_cpu = Spread.of(each.per_second for each in bare), Spread.of(each.cpu for each in bare)
    rate, cpu = Spread.of(each.per_second for each in ours), Spread.of(each.cpu for each in ours)
    name = f"{in_flight} in flight"
    return [
        Line.of(f"runs, {name}: limit that commits every 5 ms", every_5_ms, "runs/s"),
        Line.of(f"runs, {name}: limit", limit, "runs/s"),
        Line.of(f"runs, {name}: SQLite", rate, "runs/s"),
        Line.of(f"runs, {name}: rate by that of a commit every 5 ms", rate.over(every_5_ms), "x", at_least(0.7)),
        Line.of(f"runs, {name}: rate by the limit's", rate.over(limit), "x", at_least(0.7)),
        Line.of(f"CPU, {name}: limit", limit_cpu, "s/1,000 runs"),
        Line.of(f"CPU, {name}: SQLite", cpu, "s/1,000 runs"),
        Line.of(f"CPU, {name}: cost by the limit's", cpu.over(limit_cpu), "x", at_most(2.0)),
    ]


def _on_a_server(options: Options, store: str, called: Called) -> list[Line]:
    name, in_flight = NAMES[store], options.in_flight[0]
    paces: dict[int, list[Pace]] = {each: [] for each in options.instances}
    try:
        with databases(store) as place:
            for _ in range(options.times):
                for instances, found in paces.items():
                    found.append(measure_once(Case(options.runs, in_flight, instances), place, called))
    except MissingError as error:
        return [missing(f"runs, {in_flight} in flight: {name}", error)]
    rates = {each: Spread.of(pace.per_second for pace in found) for each, found in paces.items()}
    lines = [
        line for each, found in paces.items() for line in _told(f"{name}, {each} x {in_flight}", rates[each], found)
    ]
    if {1, 2} <= rates.keys():
        budget = at_least(1.6) if (os.cpu_count() or 1) >= ENOUGH_CORES else None
        lines.append(Line.of(f"runs: {name}, two instances by one", rates[2].over(rates[1]), "x", budget))
    return lines


def _told(name: str, rate: Spread, paces: list[Pace]) -> Iterator[Line]:
    yield Line.of(f"runs: {name} in flight", rate, "runs/s")
    yield Line.of(f"CPU: {name} in flight", Spread.of(each.cpu for each in paces), "s/1,000 runs")
    yield Line.of(f"CPU: {name} in flight, the server", Spread.of(each.database_cpu for each in paces), "s/1,000 runs")


def measure_once(case: Case, place: Databases, called: Called) -> Pace:
    """With a new database and new processes. RuntimeError if the runs took too long, or were not each made exactly once."""
    for lead in LEADS:
        pace = _measured(case, round(time.time() + lead + case.runs / FILLED_A_SECOND), place, called)
        if pace is not None:
            return pace
    raise RuntimeError("nothing was ready in time: the machine is too busy")


def _measured(case: Case, at: int, place: Databases, called: Called) -> Pace | None:
    """None if the instant had come before everything was ready for it."""
    with ExitStack() as ending:
        folder = Path(ending.enter_context(tempfile.TemporaryDirectory(prefix="ksana-bench-")))
        url, instant = place.fresh(folder), datetime.fromtimestamp(at, UTC)
        warm_up = [_once(instant - WARM_UP_AT)] * case.in_flight * case.instances
        planned = warm_up + [_once(instant)] * case.runs
        fill_schedules(url, f"{called.url}/run", planned, ConcurrencyPolicy.PARALLEL, JOBS)
        called.times()
        served = [ending.enter_context(_serving(folder, url, case)) for _ in range(case.instances)]
        called.wait_for(len(warm_up), PATIENCE)
        called.times()
        return _watch(case, at, url, served, place, called) if time.time() < at - 1 else None


def _once(instant: datetime) -> Planned:
    return Planned(ScheduleSpec(kind=ScheduleKind.ONCE, run_at=instant, misfire_grace=timedelta(hours=1)), instant)


def _serving(folder: Path, url: str, case: Case) -> AbstractContextManager[Served]:
    wide = {"WORKERS": str(case.in_flight), "KSANA_EXECUTOR_PER_HOST": str(case.in_flight)}
    return serving(folder, "--database-url", url, settings=wide)


def _watch(case: Case, at: int, url: str, served: list[Served], place: Databases, called: Called) -> Pace:
    ksana, micros = [each.pid for each in served], at * 1_000_000
    time.sleep(at - time.time() - 0.2)
    before = cpu_seconds(ksana), cpu_seconds(place.pids)
    called.wait_for(case.runs, PATIENCE)
    wait_until(lambda: rows(url, DONE, at=micros)[0][0] >= case.runs, "all runs recorded", PATIENCE)
    after = cpu_seconds(ksana), cpu_seconds(place.pids)
    done, schedules, attempts, ended = rows(url, TOLD, at=micros)[0]
    if not case.runs == done == schedules == attempts == called.count():
        raise AssertionError(f"{case.runs:,} runs: {done} done of {schedules} schedules in {attempts} attempts")
    ksana_cpu, database_cpu = (1_000 * (two - one) / case.runs for one, two in zip(before, after, strict=True))
    return Pace(case.runs / (ended / 1_000_000 - at), ksana_cpu, database_cpu)
