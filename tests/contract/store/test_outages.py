"""The server goes away and comes back: nobody hangs, nothing is lost that was answered, and the store goes on by itself."""

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from sqlalchemy import create_engine, text

from ksana.bootstrap import store_options
from ksana.domain.errors import KsanaError, StoreError, StoreUnavailable
from ksana.domain.instance import LEASE
from ksana.settings.table import DatabaseSettings, Settings
from ksana.store.requests import NewExecution, StoreOptions
from ksana.store.sql import migrate, open_store
from ksana.store.sql.dialects import base
from ksana.store.sql.store import SqlStore
from ksana.store.sql.tx import Tx
from tests.clock import FakeClock
from tests.conftest import StartPrivate
from tests.contract.store.world import World
from tests.servers.base import Server
from tests.servers.mysql import MySqlServer
from tests.servers.postgresql import PostgresServer
from tests.servers.proxy import proxied

OPTIONS = StoreOptions(readers=2)
BOTH = [
    pytest.param("private_postgres", marks=pytest.mark.postgresql, id="postgresql"),
    pytest.param("private_mysql", marks=pytest.mark.mysql, id="mysql"),
]


@pytest.fixture(params=BOTH)
def server(request: pytest.FixtureRequest) -> Server:
    start: StartPrivate[PostgresServer | MySqlServer] = request.getfixturevalue(request.param)
    return start(durable=True)


@pytest.fixture
async def store(server: Server, clock: FakeClock) -> AsyncIterator[SqlStore]:
    url = server.create_database()
    migrate.upgrade(url, OPTIONS)
    opened = open_store(url, options=OPTIONS, clock=clock)
    yield opened
    await opened.close()


async def test_a_server_that_is_killed_is_an_answer_and_not_a_wait(server: Server, world: World) -> None:
    job = await world.job()
    server.kill()
    with pytest.raises(StoreUnavailable):
        await world.enqueue(job)
    with pytest.raises(StoreUnavailable):
        await world.store.job(job.id)
    with pytest.raises(StoreUnavailable):
        await asyncio.to_thread(world.store.beat, "one", OPTIONS.connect_timeout)
    health = await world.store.ping()
    assert not health.reachable
    assert health.message


async def test_the_store_goes_on_when_the_server_is_back(server: Server, world: World) -> None:
    job = await world.job()
    before = [await world.enqueue(job) for _ in range(20)]
    server.kill()
    with pytest.raises(StoreUnavailable):
        await world.enqueue(job)
    server.start()
    after = await world.enqueue(job)
    claimed = await world.claim(100)
    assert [item.execution.id for item in claimed] == [execution.id for execution in (*before, after)]
    assert (await world.store.ping()).reachable


async def test_a_restart_between_two_commands_goes_unnoticed(server: Server, world: World) -> None:
    job = await world.job()
    await world.store.job(job.id)
    server.restart()
    await world.enqueue(job)
    assert (await world.store.job(job.id)).id == job.id


async def test_what_was_answered_while_the_server_dies_is_there_afterwards(server: Server, world: World) -> None:
    job = await world.job()
    new = NewExecution(job_id=job.id, ready_at=world.clock.now())

    async def ask() -> int | None:
        try:
            return (await world.store.enqueue(new)).execution.id
        except StoreUnavailable:
            return None

    asked = [asyncio.ensure_future(ask()) for _ in range(200)]
    await asyncio.wait(asked[:1])
    await asyncio.to_thread(server.kill)
    answers = {execution_id for execution_id in await asyncio.gather(*asked) if execution_id is not None}
    server.start()
    claimed = await world.claim(1_000)
    assert answers <= {item.execution.id for item in claimed}
    assert answers


async def test_who_stands_still_in_a_transaction_soon_has_no_locks(
    server: Server, store: SqlStore, world: World
) -> None:
    """As an instance does that is frozen, or whose machine is gone without a word: others can take its work over."""
    if isinstance(server, MySqlServer) and not server.programs.is_mariadb:
        pytest.skip("MySQL has no limit for transactions that stand still")
    job = await world.job()
    lock = text("SELECT id FROM jobs WHERE id = :id FOR UPDATE")
    patient = create_engine(store._writing.url)  # waits for as long as it takes
    with store._writing.connect() as frozen, patient.connect() as other:
        frozen.execute(lock, {"id": job.id})
        began = time.monotonic()
        await asyncio.to_thread(other.execute, lock, {"id": job.id})
        assert time.monotonic() - began < LEASE.total_seconds()
        frozen.invalidate()
    patient.dispose()


async def test_a_slow_statement_ends_on_the_server_before_it_is_given_up_and_is_not_run_again(
    server: Server, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    if isinstance(server, MySqlServer) and not server.programs.is_mariadb:
        pytest.skip("MySQL has no limit for statements that write")
    patience = 4
    monkeypatch.setattr(base, "WRITING_SECONDS", patience)
    url = server.create_database()
    migrate.upgrade(url, OPTIONS)
    store = open_store(url, options=OPTIONS, clock=clock)
    slow = text("SELECT SLEEP(60)" if isinstance(server, MySqlServer) else "SELECT pg_sleep(60)")
    ran: list[int] = []

    def run(tx: Tx, payloads: list[int]) -> list[int | KsanaError]:
        ran.append(len(payloads))
        tx.connection.execute(slow)
        return [*payloads]

    try:
        with pytest.raises(StoreError) as refused:
            await store.writer.submit(run, 1)
        assert not isinstance(refused.value, StoreUnavailable)
        assert ran == [1]
        await store.acquire_lock("next", "somebody", LEASE)  # the connection is as good as before
    finally:
        await store.close()


async def test_an_instance_beats_while_an_old_heartbeat_hangs(store: SqlStore) -> None:
    await store.acquire_lock("any", "somebody", LEASE)  # the writer has its connection
    with store._writing.connect():
        assert await asyncio.to_thread(store.beat, "nobody", LEASE) is None


async def test_an_attempt_to_connect_to_a_silent_server_is_short(server: Server) -> None:
    """One that began while the server was away may never be answered, and is all that keeps a store from going on."""
    options = store_options(Settings(database=DatabaseSettings(connect_timeout=timedelta(minutes=5))))
    with proxied(server.create_database()) as (url, proxy):
        proxy.blackhole()
        began = time.monotonic()
        with pytest.raises(StoreUnavailable):
            await asyncio.to_thread(migrate.status, url, options)
        assert time.monotonic() - began < 5


def test_a_connection_that_is_asked_for_at_start_takes_no_longer_than_all_of_it() -> None:
    quick = Settings(database=DatabaseSettings(connect_timeout=timedelta(seconds=1)))
    assert store_options(quick).connect_timeout == timedelta(seconds=1)
