"""An orderly end: no new work, running work may end, answers that have begun are finished, the store is closed last."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import cast

import httpx2
import pytest
from fastapi import APIRouter

from ksana import bootstrap
from ksana.api.app import Contract
from ksana.api.system import Health
from ksana.bootstrap import Instance, open_outside
from ksana.cli import process
from ksana.domain.errors import StoreUnavailable
from ksana.engine.clock import SystemClock
from ksana.engine.commands import NodeDefaults, PlanCommands, PlanOptions, Resolver, WorkflowCommands
from ksana.engine.engine import Engine
from ksana.engine.measures import MeasureOptions, Measures
from ksana.engine.signals import Signals
from ksana.executors.registry import Executors
from ksana.settings import load
from ksana.store.base import Store
from ksana.store.requests import StoreHealth
from ksana.telemetry import Metrics

PATIENCE = 20.0


class Diary:
    """What happened, in order."""

    def __init__(self) -> None:
        self.entries: list[str] = []


class QuietStore:
    """A store that answers as the test says."""

    def __init__(self, diary: Diary) -> None:
        self.diary = diary
        self.reachable = True
        self.error: Exception | None = None

    async def ping(self) -> StoreHealth:
        if self.error is not None:
            raise self.error
        return StoreHealth(self.reachable, 0.0)

    def attend(self) -> None:
        """Nothing holds up the event loop."""

    async def close(self) -> None:
        self.diary.entries.append("store closed")


class Work:
    """A service whose running work ends when the test lets it, or when its grace is used up."""

    def __init__(self, diary: Diary, *, broken: bool = False) -> None:
        self.diary = diary
        self.broken = broken
        self.stopping = asyncio.Event()
        self.ended = asyncio.Event()

    async def start(self) -> None:
        self.diary.entries.append("started")
        if self.broken:
            raise RuntimeError("cannot begin")

    async def stop(self, grace: timedelta) -> None:
        self.stopping.set()
        if grace == timedelta(0):
            self.ended.set()
        await asyncio.wait_for(self.ended.wait(), grace.total_seconds() or None)
        self.diary.entries.append("stopped")


def instance_of(store: QuietStore, work: Work) -> Instance:
    """An instance whose engine is `work`."""
    metrics, settings = Metrics(), load().settings
    measures = Measures(metrics.registry, MeasureOptions())
    executors, clock, signals = Executors([], plugins=[]), SystemClock(), Signals()
    engine, kept = cast("Engine", work), cast("Store", store)
    resolver = Resolver(kept, executors, NodeDefaults())
    workflows = WorkflowCommands(kept, clock, resolver, signals)
    plans = PlanCommands(kept, clock, resolver, signals, PlanOptions())
    outside = open_outside(settings, kept, clock)
    return Instance(settings, kept, clock, metrics, executors, signals, measures, workflows, plans, outside, engine)


class Running:
    """An instance that serves in this process."""

    def __init__(self, work: Work, diary: Diary) -> None:
        self.work = work
        self.loaded = load(flags={"--port": "0"})
        self.instance = instance_of(QuietStore(diary), work)
        self.stop = process.Stop()
        self.listener = process.bind(self.loaded)
        self.base = process.base_url(self.listener.getsockname())

    async def serve(self) -> None:
        try:
            process.listen(self.listener, self.loaded)
            await process._answer(self.instance, self.listener, self.stop, SystemClock())
        finally:
            await self.instance.close()
            self.listener.close()


@pytest.fixture
def diary() -> Diary:
    return Diary()


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """What `/slow` waits for before it answers."""
    opened = asyncio.Event()
    router = APIRouter()

    @router.get("/slow")
    async def slow() -> str:
        await opened.wait()
        return "done"

    monkeypatch.setattr(bootstrap, "_contracts", lambda _instance: [Contract(router)])
    return opened


@pytest.fixture
async def running(diary: Diary, gate: asyncio.Event) -> AsyncIterator[tuple[Running, "asyncio.Task[None]"]]:
    one = Running(Work(diary), diary)
    serving = asyncio.create_task(one.serve())
    yield one, serving
    one.stop.asked.set()
    one.stop.urged.set()
    gate.set()
    await asyncio.wait_for(asyncio.gather(serving, return_exceptions=True), PATIENCE)


async def test_work_ends_first_then_answers_then_the_store(
    running: tuple[Running, "asyncio.Task[None]"], gate: asyncio.Event, diary: Diary
) -> None:
    one, serving = running
    async with httpx2.AsyncClient(base_url=one.base, timeout=PATIENCE) as client:
        assert (await client.get("/health")).json() == {"status": "ok"}
        slow = asyncio.create_task(client.get("/slow"))
        one.stop.asked.set()
        await asyncio.wait_for(one.work.stopping.wait(), PATIENCE)
        answer = await client.get("/health")
        assert (answer.status_code, answer.json()) == (503, {"status": "stopping"})
        one.work.ended.set()
        gate.set()
        assert (await slow).json() == "done"
    await asyncio.wait_for(serving, PATIENCE)
    assert diary.entries == ["started", "stopped", "store closed"]


async def test_a_second_signal_ends_the_grace(
    running: tuple[Running, "asyncio.Task[None]"], gate: asyncio.Event, diary: Diary
) -> None:
    one, serving = running
    one.stop.asked.set()
    await asyncio.wait_for(one.work.stopping.wait(), PATIENCE)
    one.stop.urged.set()
    await asyncio.wait_for(serving, PATIENCE)
    assert diary.entries == ["started", "stopped", "stopped", "store closed"]


async def test_an_engine_that_cannot_begin_is_stopped_again(diary: Diary) -> None:
    instance = instance_of(QuietStore(diary), Work(diary, broken=True))
    with pytest.raises(RuntimeError, match="cannot begin"):
        await instance.start()
    assert diary.entries == ["started", "stopped"]


async def test_the_health_is_degraded_while_the_store_does_not_answer(diary: Diary) -> None:
    store = QuietStore(diary)
    instance = instance_of(store, Work(diary))
    assert await instance.health() is Health.OK
    store.reachable = False
    assert await instance.health() is Health.DEGRADED
    store.error = StoreUnavailable("gone")
    assert await instance.health() is Health.DEGRADED
