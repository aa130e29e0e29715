"""One suite, every back end: `runtime` is the memory, Redis and SQLite in turn; what is about compare-and-set and locks is
asked of PostgreSQL and MySQL, too (`everywhere`)."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from redis.asyncio import Redis

from ksana.runtime.base import Lifetimes, RuntimeState
from ksana.runtime.memory import MemoryRuntime
from ksana.runtime.redis import RedisRuntime
from ksana.runtime.sql import SqlRuntime
from tests.clock import FakeClock
from tests.contract.runtime.world import NAMESPACE, World, emptied_store
from tests.prepared import prepare
from tests.servers.base import Address

MEMORY = pytest.param("memory", id="memory")
REDIS = pytest.param("redis", id="redis", marks=pytest.mark.redis)
SQLITE = pytest.param("sqlite", id="sqlite")
SERVERS = {"postgresql": "postgres_server", "mysql": "mysql_server"}


@pytest.fixture(params=[MEMORY, REDIS, SQLITE])
def back_end(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def lifetimes() -> Lifetimes:
    return Lifetimes()


@pytest.fixture(scope="package")
def server_url(request: pytest.FixtureRequest) -> Iterator[Callable[[str], str]]:
    """The address of a database on a server, made once: its tables take longer than all that is done with them."""
    made: dict[str, tuple[Address, str]] = {}

    def url_of(back_end: str) -> str:
        if back_end not in made:
            server: Address = request.getfixturevalue(SERVERS[back_end])
            made[back_end] = (server, server.create_database())
            prepare(made[back_end][1])
        return made[back_end][1]

    yield url_of
    for server, url in made.values():
        server.drop_database(url)


@pytest.fixture
def url(back_end: str, request: pytest.FixtureRequest, server_url: Callable[[str], str], tmp_path: Path) -> str:
    """The address of a database with tables, where it needs any; the memory has none."""
    if back_end == "memory":
        return ""
    if back_end == "redis":
        return str(request.getfixturevalue("redis_url"))
    if back_end in SERVERS:
        return server_url(back_end)
    address = f"sqlite:///{tmp_path / 'ksana.db'}"
    prepare(address)
    return address


@pytest.fixture
async def world(back_end: str, url: str, clock: FakeClock, lifetimes: Lifetimes) -> AsyncIterator[World]:
    async with _opened(back_end, url, clock, lifetimes) as opened:
        yield opened


@pytest.fixture
def runtime(world: World) -> RuntimeState:
    return world.runtime


@asynccontextmanager
async def _opened(back_end: str, url: str, clock: FakeClock, lifetimes: Lifetimes) -> AsyncIterator[World]:
    if back_end == "memory":
        yield World(MemoryRuntime(lifetimes, clock=clock), clock)
    elif back_end == "redis":
        runtime = RedisRuntime.connect(url, NAMESPACE, lifetimes, timeout=timedelta(seconds=10))
        async with Redis.from_url(url) as raw:
            yield World(runtime, clock, raw)
        await runtime.close()
    else:
        async with emptied_store(url, clock) as store:
            yield World(SqlRuntime(store, lifetimes), clock)
