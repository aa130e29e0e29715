"""A store on a file, a clock that the test moves, and an instance between them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest_asyncio
from tests.clock import FakeClock
from tests.contract.store.conftest import OPTIONS
from tests.prepared import prepare
from tests.unit.engine.simulation import Simulation

from ksana.store.sql import open_store


@asynccontextmanager
async def simulated(directory: Path, *, workers: int = 16) -> AsyncIterator[Simulation]:
    url, clock = f"sqlite:///{directory / 'ksana.db'}", FakeClock()
    prepare(url)
    store = open_store(url, options=OPTIONS, clock=clock)
    simulation = Simulation(store, clock, workers=workers)
    await simulation.join()
    try:
        yield simulation
    finally:
        await simulation.engine.workers.drain(timedelta(0))
        await store.close()


@pytest_asyncio.fixture
async def sim(tmp_path: Path) -> AsyncIterator[Simulation]:
    async with simulated(tmp_path) as simulation:
        yield simulation
