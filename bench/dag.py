"""What a node of a workflow costs, in graphs of 10, 100, 1,000 and 10,000 nodes: the engine and its store, without any target.

make bench ARGS="--only dag"

The same number of nodes is run at every size, in as many runs as it takes, all started before any is waited for. A node is a
function that returns at once, so that what is measured is Ksana: claim, advance, commit (SQLite, synchronous=FULL).
"""

import asyncio
import logging
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

import structlog
from prometheus_client import CollectorRegistry

from bench.report import Line
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

SIZES = (10, 100, 1_000, 10_000)
NODES = 10_000
WIDTH = 10
GROWTH = 1.5


class Nothing:
    """Does nothing, at once."""

    type: ClassVar[str] = "nothing"

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


def layers(size: int) -> dict[str, Any]:
    """Layers of ten; each node depends on two of the layer before."""
    nodes = []
    for number in range(size):
        layer, place = divmod(number, WIDTH)
        before = [(layer - 1) * WIDTH + place, (layer - 1) * WIDTH + (place + 1) % WIDTH]
        nodes.append(
            {"id": f"n{number}", "type": "nothing", "dependsOn": [f"n{each}" for each in before] if layer else []}
        )
    return {"nodes": nodes}


def measure() -> list[Line]:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    costs = {size: asyncio.run(_measure(size)) for size in SIZES}
    smallest = min(cost.cpu for cost in costs.values())
    return [
        Line(
            f"a node in a graph of {size:,}",
            f"{cost.wall:.2f} ms, {cost.cpu:.2f} ms of CPU, {1_000 / cost.wall:.0f} nodes/s",
            f"CPU ≤ {GROWTH} times the cheapest",
            cost.cpu <= GROWTH * smallest,
        )
        for size, cost in costs.items()
    ]


async def _measure(size: int) -> Cost:
    with tempfile.TemporaryDirectory(prefix="ksana-bench-") as folder:
        url, clock, signals = f"sqlite:///{Path(folder) / 'ksana.db'}", SystemClock(), Signals()
        migrate.upgrade(url, StoreOptions())
        store = open_store(url, options=StoreOptions(), clock=clock)
        executors = Executors([Nothing()], plugins=[])
        workflows = WorkflowCommands(store, clock, Resolver(store, executors, NodeDefaults()), signals)
        options = EngineOptions(callback=CallbackOptions("http://127.0.0.1"))
        measures = Measures(CollectorRegistry(), MeasureOptions())
        outside = Outside(MemoryRuntime(options.lifetimes, clock=clock))
        engine = Engine(store, clock, executors, options, Shared(signals, measures, outside), workflows)
        workflow = await workflows.create(WorkflowDraft("bench", layers(size)), SYSTEM)
        await engine.start()
        try:
            return await _run(workflows, store, workflow.key, NODES // size)
        finally:
            await engine.stop(timedelta(seconds=5))
            await store.close()


async def _run(workflows: WorkflowCommands, store: Any, key: str, runs: int) -> Cost:
    began, worked = time.perf_counter(), time.process_time()
    started = await asyncio.gather(*(workflows.start(key, StartRequest(), SYSTEM) for _ in range(runs)))
    for each in started:
        while (run := await store.workflow_run(each.run.id)).status is not RunStatus.SUCCESS:
            if run.ended_at is not None:
                raise AssertionError(f"a run ended {run.status}: {run.error}")
            await asyncio.sleep(0.01)
    wall, cpu = time.perf_counter() - began, time.process_time() - worked
    return Cost(1_000 * wall / NODES, 1_000 * cpu / NODES)
