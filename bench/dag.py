"""What a node of a workflow costs: the engine and its store, without any target.

make bench ARGS="--only dag"

A node is a function that returns at once, so that what is measured is Ksana: claim, advance, commit (SQLite, synchronous=FULL).

Growth: graphs of 10, 100, 1,000 and 10,000 nodes, in layers of ten. The same number of nodes is run at every size, in as many
runs as it takes, all started before any is waited for; but in no fewer than fill all places, since otherwise a graph of 10,000
alone, of which ten nodes are ready at a time, would be compared with as many as there are places.

Shapes, as other programs are measured with: ten layers of ten, where each node waits for the whole layer before it; one chain;
short chains at once, each a run of its own: twenty, which is over in a moment, and two hundred. Each node of one chain is a
commit of its own: beside it is the bare loop that does no more than that. All have done
the same before, as often as it is measured, and so have their peers; what is over in a moment is done several times.
"""

import asyncio
import logging
import multiprocessing
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from statistics import fmean
from typing import Any, ClassVar

import structlog
import uvloop
from prometheus_client import CollectorRegistry

from bench import limits
from bench.databases import Databases
from bench.options import Options
from bench.peers.telling import often
from bench.report import Line, at_most
from bench.spread import Spread
from ksana.cli.process import collect_again
from ksana.domain.events import SYSTEM
from ksana.domain.outcome import Outcome, Succeeded
from ksana.domain.states import RunStatus
from ksana.engine.clock import SystemClock
from ksana.engine.commands import NodeDefaults, Resolver, StartRequest, WorkflowCommands, WorkflowDraft
from ksana.engine.engine import Engine, EngineOptions, Shared
from ksana.engine.measures import MeasureOptions, Measures
from ksana.engine.plans.outside import Outside
from ksana.engine.runner import CallbackOptions
from ksana.engine.signals import Signals
from ksana.executors.base import ExecutionContext
from ksana.executors.registry import Executors
from ksana.runtime.memory import MemoryRuntime
from ksana.store.requests import StoreOptions
from ksana.store.sql import migrate, open_store
from ksana.store.sql.store import SqlStore
from ksana.store.workflow_requests import EndedRun

WIDTH = 10
PLACES = 64
FILLING = -(-PLACES // WIDTH)
"""Runs that fill all places."""
GROWTH = 1.5


class Nothing:
    """Does nothing, at once."""

    type: ClassVar[str] = "nothing"
    keeps_deadline: ClassVar[bool] = True

    def check(self, config: Mapping[str, Any]) -> Mapping[str, Any]:
        return config

    async def execute(self, context: ExecutionContext) -> Outcome:  # noqa: ARG002
        return Succeeded({"done": True})

    async def close(self) -> None:
        """Holds nothing."""


@dataclass(frozen=True, slots=True)
class Cost:
    wall: float
    cpu: float
    """Milliseconds for each node."""


@dataclass(frozen=True, slots=True)
class Shape:
    name: str
    dag: dict[str, Any]
    runs: int = 1

    @property
    def nodes(self) -> int:
        return self.runs * len(self.dag["nodes"])


def layers(size: int, waits_for: int = 2) -> dict[str, Any]:
    """Layers of ten; each node depends on so many of the layer before."""
    nodes = []
    for number in range(size):
        layer, place = divmod(number, WIDTH)
        before = [(layer - 1) * WIDTH + (place + each) % WIDTH for each in range(waits_for)]
        nodes.append(
            {"id": f"n{number}", "type": "nothing", "dependsOn": [f"n{each}" for each in before] if layer else []}
        )
    return {"nodes": nodes}


def chain(size: int) -> dict[str, Any]:
    """One after the other."""
    return {
        "nodes": [
            {"id": f"n{number}", "type": "nothing", "dependsOn": [f"n{number - 1}"] if number else []}
            for number in range(size)
        ]
    }


def measure(options: Options) -> list[Line]:
    return _growth(options) + _shapes(options)


def _growth(options: Options) -> list[Line]:
    nodes = options.nodes
    shapes = {
        size: Shape(f"graphs of {size}", layers(size), max(nodes // size, FILLING))
        for size in (10, 100, 1_000, 10_000)
        if size <= nodes
    }
    costs = [{size: _cost(shape) for size, shape in shapes.items()} for _ in range(options.times)]
    cheapest = [min(cost.cpu for cost in each.values()) for each in costs]
    lines = []
    for size in shapes:
        cpu = Spread.of(each[size].cpu for each in costs)
        rate = Spread.of(1_000 / each[size].wall for each in costs)
        ratio = Spread.of(each[size].cpu / least for each, least in zip(costs, cheapest, strict=True))
        lines += [
            Line.of(f"nodes in graphs of {size:,}: rate", rate, "nodes/s"),
            Line.of(f"nodes in graphs of {size:,}: CPU", cpu, "ms/node"),
            Line.of(f"nodes in graphs of {size:,}: CPU by the cheapest size's", ratio, "x", at_most(GROWTH)),
        ]
    return lines


def shapes(options: Options) -> list[Shape]:
    """Those that other programs are measured with."""
    return [
        Shape("10 layers of 10", layers(100, WIDTH)),
        Shape(f"a chain of {options.chain:,}", chain(options.chain)),
        Shape("20 chains of 10", chain(10), 20),
        Shape(f"{options.chains} chains of 10", chain(10), options.chains),
    ]


SQLITE = Databases("sqlite")


def rate_of(shape: Shape, place: Databases = SQLITE) -> float:
    """Nodes in a second, with a new engine and a new store that have done the same before. What is over in a moment is done
    several times, one after the other."""
    times = often(shape.nodes)
    return 1_000 / _cost(shape, place, before=times, times=times).wall


def _shapes(options: Options) -> list[Line]:
    rates: dict[str, list[float]] = {}
    for _ in range(options.times):
        for shape in shapes(options):
            rates.setdefault(shape.name, []).append(rate_of(shape))
    lines = [Line.of(f"nodes, {name}: Ksana", Spread.of(values), "nodes/s") for name, values in rates.items()]
    return [*lines, *_beside_the_limit(options)]


def _beside_the_limit(options: Options) -> list[Line]:
    """A chain, and the loop that commits as often."""
    shape = Shape(f"a chain of {options.chain:,}", chain(options.chain))
    pairs = [(limits.chain_once(options.chain), rate_of(shape)) for _ in range(options.times)]
    limit, own = Spread.of(each for each, _ in pairs), Spread.of(each for _, each in pairs)
    return [
        Line.of(f"nodes, {shape.name}: limit, a commit each", limit, "nodes/s"),
        Line.of(f"nodes, {shape.name}: rate by the limit's", own.over(limit), "x"),
    ]


def _cost(shape: Shape, place: Databases = SQLITE, before: int = 0, times: int = 1) -> Cost:
    """What it costs on average of so many times, after so many before that do not count; in a process of its own, as each peer
    is: in one that has measured other things before, the same takes some per cent longer."""
    with tempfile.TemporaryDirectory(prefix="ksana-bench-") as folder:
        url = place.fresh(Path(folder))
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            return pool.submit(_cost_here, shape, url, before, times).result()


def _cost_here(shape: Shape, url: str, before: int, times: int) -> Cost:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    return uvloop.run(_measure(shape, url, before, times))


async def _measure(shape: Shape, url: str, before: int, times: int) -> Cost:
    async with running(url) as (store, workflows):
        await _run(store, workflows, Shape("warm-up", layers(10)))
        collect_again()  # as `ksana serve` does once it answers
        each = [replace(shape, name=f"{shape.name}, {number}") for number in range(before + times)]
        costs = [await _run(store, workflows, one) for one in each][before:]
        return Cost(fmean(cost.wall for cost in costs), fmean(cost.cpu for cost in costs))


@asynccontextmanager
async def running(url: str) -> AsyncIterator[tuple[SqlStore, WorkflowCommands]]:
    """An engine with nodes that do nothing, on a new database."""
    clock, signals = SystemClock(), Signals()
    migrate.upgrade(url, StoreOptions())
    store = open_store(url, options=StoreOptions(), clock=clock)
    executors = Executors([Nothing()], plugins=[])
    workflows = WorkflowCommands(store, clock, Resolver(store, executors, NodeDefaults()), signals)
    options = EngineOptions(callback=CallbackOptions("http://127.0.0.1"), workers=PLACES)
    measures = Measures(CollectorRegistry(), MeasureOptions())
    outside = Outside(MemoryRuntime(options.lifetimes, clock=clock))
    engine = Engine(store, clock, executors, options, Shared(signals, measures, outside), workflows)
    await engine.start()
    try:
        yield store, workflows
    finally:
        await engine.stop(timedelta(seconds=5))
        await store.close()


async def _run(store: SqlStore, workflows: WorkflowCommands, shape: Shape) -> Cost:
    workflow = await workflows.create(WorkflowDraft(shape.name, shape.dag), SYSTEM)
    began, worked = time.perf_counter(), time.process_time()
    await complete(store, workflows, workflow.key, shape.runs)
    wall, cpu = time.perf_counter() - began, time.process_time() - worked
    return Cost(1_000 * wall / shape.nodes, 1_000 * cpu / shape.nodes)


async def complete(store: SqlStore, workflows: WorkflowCommands, key: str, runs: int = 1) -> None:
    """Starts so many runs, and waits until all have ended. AssertionError if one did not succeed."""
    loop, ended = asyncio.get_running_loop(), asyncio.Queue[EndedRun]()

    def tell(run: EndedRun) -> None:
        loop.call_soon_threadsafe(ended.put_nowait, run)

    store.on_run_ended(tell)
    await asyncio.gather(*(workflows.start(key, StartRequest(), SYSTEM) for _ in range(runs)))
    for _ in range(runs):
        run = await ended.get()
        if run.status is not RunStatus.SUCCESS:
            raise AssertionError(f"a run ended {run.status}")
