"""What history costs: claims, fires and lists with 1,000 ended runs in the database, and with 1,000,000.

make bench ARGS="--only growth"

The store alone, by its own verbs, on each database. There are a thousand jobs, each with a schedule and its part of the history.
In each round a hundred schedules fire, always others, their runs are claimed and succeed, and lists are read. The two databases
take turns, so that whatever else the machine does meets both alike.
"""

import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TypeVar

from tests.servers.base import MissingError

from bench.databases import NAMES, Databases, databases
from bench.filling import Planned, fill_history
from bench.options import Options
from bench.report import Line, at_most, missing
from bench.spread import Spread
from ksana.domain.execution import Claim
from ksana.domain.ledger import Firing
from ksana.domain.schedule import ScheduleKind, ScheduleSpec, decide_fire
from ksana.domain.states import ExecutionStatus
from ksana.engine.clock import SystemClock
from ksana.store.requests import ClaimRequest, Ending, ExecutionFilter, PageRequest, StoreOptions
from ksana.store.sql import open_store
from ksana.store.sql.store import SqlStore

FEW = 1_000
JOBS = 1_000
"""Each with a schedule: what is by job, or by schedule, is in a thousand places."""
AT_ONCE = 100
"""Schedules that fire together, and runs that are claimed together."""
EVERY = timedelta(seconds=JOBS // AT_ONCE)
ROUNDS = 15
"""Of which the median is one measurement."""
WARM_UP = 3
GROWTH = 1.5
T = TypeVar("T")
Question = Callable[[SqlStore], Awaitable[object]]
# Asked as the HTTP interface asks: nodes of workflows are in the lists of jobs only.
LISTS: Mapping[str, Question] = {
    "list of all": lambda store: store.executions(ExecutionFilter(nodes=False), PageRequest()),
    "list of a job": lambda store: store.executions(ExecutionFilter(job_id=1), PageRequest()),
    "list of failures": lambda store: store.executions(
        ExecutionFilter(statuses=frozenset({ExecutionStatus.FAILED}), nodes=False), PageRequest()
    ),
}


@dataclass
class Side:
    """One of the two databases, and what things took there: milliseconds, by name."""

    store: SqlStore
    took: dict[str, list[float]]
    at: datetime


def measure(options: Options) -> list[Line]:
    lines: list[Line] = []
    for store in options.stores:
        try:
            with databases(store) as place:
                lines += asyncio.run(_measure(place, options))
        except MissingError as error:
            lines.append(missing(f"growth: {NAMES[store]}", error))
    return lines


async def _measure(place: Databases, options: Options) -> list[Line]:
    with ExitStack() as ending:
        folders = [Path(ending.enter_context(tempfile.TemporaryDirectory(prefix="ksana-bench-"))) for _ in range(2)]
        sizes = (FEW, options.history)
        sides = [_side(place.fresh(folder), size) for folder, size in zip(folders, sizes, strict=True)]
        for each in range(WARM_UP + options.times * ROUNDS):
            for side in sides:
                await _round(side, counted=each >= WARM_UP)
        for side in sides:
            await side.store.close()
    return _lines(NAMES[place.kind], options.history, *(side.took for side in sides))


def _side(url: str, history: int) -> Side:
    at = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=30)
    anchors = [at + timedelta(seconds=number // AT_ONCE) for number in range(JOBS)]
    specs = [ScheduleSpec(kind=ScheduleKind.EVERY, every=EVERY, anchor=each) for each in anchors]
    fill_history(url, history, JOBS, [Planned(*each) for each in zip(specs, anchors, strict=True)])
    return Side(open_store(url, options=StoreOptions(), clock=SystemClock()), {}, at)


async def _round(side: Side, *, counted: bool) -> None:
    store, at = side.store, side.at
    found = await _timed(side, "look", lambda: store.due_schedules(at, AT_ONCE), counted=counted)
    firings = [Firing(each.id, each.version, at, decide_fire(each.spec, each.id, at, at)) for each in found.schedules]
    fired = await _timed(side, f"fire {AT_ONCE}", lambda: store.fire(firings, at), counted=counted)
    assert sum(len(each.execution_ids) for each in fired) == AT_ONCE
    request = ClaimRequest("bench", AT_ONCE)
    claimed = await _timed(side, f"claim {AT_ONCE}", lambda: store.claim(request, at), counted=counted)
    claims = [Claim(each.execution.id, each.execution.epoch) for each in claimed]
    assert len(claims) == AT_ONCE
    await _timed(side, f"settle {AT_ONCE}", lambda: _succeed(store, claims, at), counted=counted)
    for name, question in LISTS.items():
        await _timed(side, name, partial(question, store), counted=counted)
    side.at += timedelta(seconds=1)


async def _succeed(store: SqlStore, claims: list[Claim], at: datetime) -> None:
    assert all(await asyncio.gather(*(store.succeed(Ending(claim, at)) for claim in claims)))


async def _timed(side: Side, name: str, work: Callable[[], Awaitable[T]], *, counted: bool) -> T:
    began = time.perf_counter()
    answer = await work()
    if counted:
        side.took.setdefault(name, []).append(1_000 * (time.perf_counter() - began))
    return answer


def _lines(place: str, history: int, few: Mapping[str, list[float]], many: Mapping[str, list[float]]) -> list[Line]:
    lines: list[Line] = []
    for name in few:
        small, large = _medians(few[name]), _medians(many[name])
        lines += [
            Line.of(f"{place}, {name}: with {FEW:,} runs", small, "ms"),
            Line.of(f"{place}, {name}: with {history:,} runs", large, "ms"),
            Line.of(f"{place}, {name}: ratio of the two", large.over(small), "x", at_most(GROWTH)),
        ]
    return lines


def _medians(millis: list[float]) -> Spread:
    return Spread.of(statistics.median(millis[each : each + ROUNDS]) for each in range(0, len(millis), ROUNDS))
