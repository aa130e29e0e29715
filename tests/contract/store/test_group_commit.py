"""The writer: what is asked for at once is one transaction, and each caller gets its own answer."""

import asyncio
from typing import Any

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import SQLAlchemyError

from ksana.domain.errors import NameTaken, StoreBusy, StoreError, StoreUnavailable
from ksana.store.requests import JobFilter, NewExecution, NewJob, PageRequest
from ksana.store.sql import open_store
from ksana.store.sql.store import SqlStore
from ksana.store.sql.tx import Tx
from ksana.store.sql.writer import Writer
from tests.clock import FakeClock
from tests.contract.store.conftest import OPTIONS
from tests.contract.store.counting import counting
from tests.contract.store.world import World, http_spec, run_sql
from tests.servers.proxy import proxied


async def test_what_is_asked_for_at_once_is_committed_together(world: World, store: SqlStore) -> None:
    job = await world.job()
    new = NewExecution(job_id=job.id, ready_at=world.clock.now())
    with counting(store) as count:
        answers = await asyncio.gather(*(store.enqueue(new) for _ in range(200)))
    assert len({answer.execution.id for answer in answers}) == 200
    assert 1 <= count.commits <= 3  # the first goes alone while the others gather


async def test_one_who_writes_alone_can_tell_whether_anything_has_changed(world: World, store: SqlStore) -> None:
    if store.shared:
        assert store.changes is None
        return
    before = store.changes
    job = await world.job()
    written = store.changes
    assert written != before
    await store.next_ready_at(("default",))
    await store.jobs(JobFilter(), PageRequest())
    assert store.changes == written
    with pytest.raises(NameTaken):
        await store.create_job(NewJob(key="other", spec=http_spec(job.spec.name)))
    await store.enqueue(NewExecution(job_id=job.id, ready_at=world.clock.now()))
    assert store.changes not in {before, written}


async def test_a_command_that_is_refused_fails_alone(world: World, store: SqlStore) -> None:
    new = [NewJob(key=f"k{n}", spec=http_spec("same" if n < 5 else f"other-{n}")) for n in range(10)]
    answers = await asyncio.gather(*(store.create_job(job) for job in new), return_exceptions=True)
    assert sum(isinstance(answer, NameTaken) for answer in answers) == 4
    assert (await store.jobs(JobFilter(), PageRequest())).total == 6


async def test_a_command_that_breaks_the_transaction_fails_alone(world: World, store: SqlStore) -> None:
    job = await world.job()

    def broken(tx: Tx, payloads: list[str]) -> list[Any]:
        tx.connection.execute(text("INSERT INTO no_such_table VALUES (1)"))
        return [1 for _ in payloads]

    def buggy(tx: Tx, payloads: list[str]) -> list[Any]:
        raise ZeroDivisionError

    new = NewExecution(job_id=job.id, ready_at=world.clock.now())
    answers = await asyncio.gather(
        *(store.enqueue(new) for _ in range(5)),
        store.writer.submit(broken, "x"),
        store.writer.submit(buggy, "x"),
        *(store.enqueue(new) for _ in range(5)),
        return_exceptions=True,
    )
    assert isinstance(answers[5], StoreError)
    assert isinstance(answers[6], ZeroDivisionError)
    assert sum(not isinstance(answer, BaseException) for answer in answers) == 10
    assert sum((await store.active_counts(job.id)).values()) == 10


async def test_whoever_stops_waiting_does_not_disturb_the_others(world: World, store: SqlStore) -> None:
    job = await world.job()
    new = NewExecution(job_id=job.id, ready_at=world.clock.now())
    waiting = [asyncio.ensure_future(store.enqueue(new)) for _ in range(10)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    answers = await asyncio.gather(*waiting, return_exceptions=True)
    assert sum(not isinstance(answer, BaseException) for answer in answers) == 9


async def test_closing_commits_what_was_asked_for_and_refuses_the_rest(url: str, world: World, store: SqlStore) -> None:
    job = await world.job()
    new = NewExecution(job_id=job.id, ready_at=world.clock.now())
    asked = [asyncio.ensure_future(store.enqueue(new)) for _ in range(20)]
    await asyncio.sleep(0)
    await store.close()
    await asyncio.gather(*asked)
    with pytest.raises(StoreUnavailable):
        await store.enqueue(new)
    with pytest.raises(StoreUnavailable):
        await store.job(job.id)
    again = open_store(url, options=OPTIONS, clock=world.clock)
    assert sum((await again.active_counts(job.id)).values()) == 20
    await again.close()


@pytest.mark.parametrize("back_end", ["postgresql", "mysql"], indirect=True)
async def test_a_writer_that_has_closed_leaves_no_number_behind(url: str, world: World, clock: FakeClock) -> None:
    await world.job()
    before = run_sql(url, "SELECT id FROM writers ORDER BY id")
    other = open_store(url, options=OPTIONS, clock=clock)
    await other.create_job(NewJob(key="other", spec=http_spec("other")))
    assert len(run_sql(url, "SELECT id FROM writers ORDER BY id")) == len(before) + 1
    await other.close()
    assert run_sql(url, "SELECT id FROM writers ORDER BY id") == before


# As each driver sends it: PostgreSQL's BEGIN speaks of READ COMMITTED, too.
COMMIT = {"postgresql": b"COMMIT\x00", "mysql": b"\x03COMMIT"}
INSERTED = "IN NO OTHER STATEMENT"
"""What is written: a statement that is prepared already goes without its words."""


@pytest.mark.parametrize("back_end", ["postgresql", "mysql"], indirect=True)
@pytest.mark.parametrize("what", ["the commit", "a statement before it"])
async def test_a_transaction_whose_answer_is_lost_is_applied_once(
    url: str, back_end: str, world: World, clock: FakeClock, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the commit went through it is found and not repeated; if it did not, the transaction is done again."""
    job = await world.job()
    new = NewExecution(job_id=job.id, ready_at=clock.now(), input={"told": INSERTED})
    looked: list[bool] = []
    ask = Writer._was_committed

    def noted(writer: Writer, error: SQLAlchemyError) -> bool:
        looked.append(ask(writer, error))
        return looked[-1]

    monkeypatch.setattr(Writer, "_was_committed", noted)
    with proxied(url) as (through, proxy):
        store = open_store(through, options=OPTIONS, clock=clock)
        for number in range(20):
            proxy.lose_answer_to(COMMIT[back_end] if what == "the commit" else INSERTED.encode())
            assert (await store.enqueue(new)).created
            assert proxy.lost == number + 1
        await store.close()
    assert sum((await world.store.active_counts(job.id)).values()) == 20
    assert looked == ([True] * 20 if what == "the commit" else [])


@pytest.mark.changes_tables
@pytest.mark.parametrize("back_end", ["postgresql"], indirect=True)
async def test_a_commit_that_the_server_is_still_working_on_is_waited_for(
    url: str, world: World, store: SqlStore, clock: FakeClock
) -> None:
    job = await world.job()
    with store._writing.begin() as connection:
        connection.execute(
            text(
                "CREATE FUNCTION linger() RETURNS trigger LANGUAGE plpgsql AS"
                " $$ BEGIN PERFORM pg_sleep(1); RETURN NULL; END $$"
            )
        )
        connection.execute(
            text(
                "CREATE CONSTRAINT TRIGGER linger AFTER INSERT ON executions DEFERRABLE INITIALLY DEFERRED"
                " FOR EACH ROW EXECUTE FUNCTION linger()"
            )
        )
    with proxied(url) as (through, proxy):
        other = open_store(through, options=OPTIONS, clock=clock)
        proxy.lose_answer_to(COMMIT["postgresql"])
        assert (await other.enqueue(NewExecution(job_id=job.id, ready_at=clock.now()))).created
        assert proxy.lost == 1
        await other.close()
    assert sum((await store.active_counts(job.id)).values()) == 1


@pytest.mark.parametrize("back_end", ["postgresql", "mysql"], indirect=True)
async def test_a_command_that_waits_for_a_lock_does_not_take_the_others_with_it(world: World, store: SqlStore) -> None:
    job = await world.job()
    held, free = await world.running(job), await world.running(job)
    # Not one of ours, whose transactions the server ends if they stand still for long.
    others = create_engine(store._reading.url)
    with others.begin() as rival:
        rival.execute(text(f"SELECT id FROM executions WHERE id = {held.execution.id} FOR UPDATE"))
        answers = await asyncio.gather(
            store.succeed(world.ending(held)), store.succeed(world.ending(free)), return_exceptions=True
        )
    others.dispose()
    assert isinstance(answers[0], StoreBusy)
    assert answers[1] is True
    assert await store.succeed(world.ending(held))
