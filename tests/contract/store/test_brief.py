"""What takes a moment only: where the database is a file of ours, the event loop applies it itself if nothing is in the way."""

import asyncio
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

from ksana.store.requests import NewExecution, StoreOptions
from ksana.store.sql import writer as writing
from ksana.store.sql.rows import Statement
from ksana.store.sql.store import SqlStore
from ksana.store.sql.tx import Tx
from tests.contract.store.world import World

embedded = pytest.mark.parametrize("back_end", ["sqlite"], indirect=True)
IDS = Statement("SELECT r.id FROM {rows}", (("id", "int"),))


@pytest.fixture(autouse=True)
def fast_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow it is."""
    monkeypatch.setattr(writing, "SLOW_COMMIT_SECONDS", float("inf"))


def where(tx: Tx, payloads: list[Any]) -> list[Any]:
    """Which thread it was applied by."""
    return [threading.get_ident() for _ in payloads]


def where_with_rows(tx: Tx, payloads: list[int]) -> list[Any]:
    """The same, with so many rows to look at."""
    for each in payloads:
        tx.query(IDS, [(number,) for number in range(each)])
    return where(tx, payloads)


async def test_a_brief_command_is_applied_by_the_event_loop_where_no_server_is_asked(
    store: SqlStore, back_end: str, json_file: Path | None
) -> None:
    here = await store.writer.submit(where, None, brief=True) == threading.get_ident()
    assert here == (back_end == "sqlite" and json_file is None)
    assert await store.writer.submit(where, None) != threading.get_ident()


@embedded
async def test_one_that_is_not_brief_takes_the_others_with_it_to_the_thread(store: SqlStore) -> None:
    both = await asyncio.gather(
        store.writer.submit(where, None, brief=True), store.writer.submit(where_with_rows, 1), return_exceptions=True
    )
    assert threading.get_ident() not in both
    assert await store.writer.submit(where, None, brief=True) == threading.get_ident()


@embedded
async def test_what_turns_out_to_be_much_is_done_by_the_thread_once(world: World, store: SqlStore) -> None:
    job = await world.job()
    new = NewExecution(job_id=job.id, ready_at=world.clock.now())
    few, many = writing.MOST_BRIEF_ROWS, writing.MOST_BRIEF_ROWS + 1
    assert await store.writer.submit(where_with_rows, few, brief=True) == threading.get_ident()
    answers = await asyncio.gather(store.enqueue(new), store.writer.submit(where_with_rows, many, brief=True))
    assert answers[1] != threading.get_ident()
    assert sum((await store.active_counts(job.id)).values()) == 1


@embedded
async def test_very_many_commands_are_left_to_the_thread(store: SqlStore) -> None:
    asked = [store.writer.submit(where, None, brief=True) for _ in range(writing.MOST_BRIEF + 1)]
    assert threading.get_ident() not in await asyncio.gather(*asked)


@embedded
async def test_what_does_not_fit_into_one_batch_goes_with_the_next_though_nobody_asks_again(store: SqlStore) -> None:
    asked = [store.writer.submit(where, None, brief=True) for _ in range(2 * StoreOptions().max_batch + 1)]
    async with asyncio.timeout(30):
        assert threading.get_ident() not in await asyncio.gather(*asked)


@embedded
async def test_what_each_turn_of_the_event_loop_adds_goes_with_it_but_not_for_ever(store: SqlStore) -> None:
    applied: list[list[int]] = []

    def noted(tx: Tx, payloads: list[int]) -> list[Any]:
        applied.append(payloads)
        return payloads

    asked = []
    for number in range(4 * writing.MOST_TURNS):
        asked.append(store.writer.submit(noted, number, brief=True))
        await asyncio.sleep(0)
    assert await asyncio.gather(*asked) == list(range(len(asked)))
    assert len(applied) > 1
    assert len(applied[0]) >= writing.MOST_TURNS


@embedded
async def test_while_somebody_waits_for_an_answer_only_a_little_is_applied_by_the_event_loop(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "ATTENTIVE_SECONDS", 3600.0)
    store.attend()
    little = [store.writer.submit(where, None, brief=True) for _ in range(writing.FEW_BRIEF)]
    assert set(await asyncio.gather(*little)) == {threading.get_ident()}
    much = [store.writer.submit(where, None, brief=True) for _ in range(writing.FEW_BRIEF + 1)]
    assert threading.get_ident() not in await asyncio.gather(*much)
    # After a crowd, a few may be the first of the next one: they wait for the others, in the thread.
    assert await store.writer.submit(where, None, brief=True) != threading.get_ident()
    rows = writing.FEW_BRIEF_ROWS
    assert await store.writer.submit(where_with_rows, rows, brief=True) == threading.get_ident()
    assert await store.writer.submit(where_with_rows, rows + 1, brief=True) != threading.get_ident()
    monkeypatch.setattr(writing, "ATTENTIVE_SECONDS", -1.0)
    store.attend()
    assert await store.writer.submit(where_with_rows, rows + 1, brief=True) == threading.get_ident()


@embedded
async def test_a_brief_command_that_breaks_fails_alone(world: World, store: SqlStore) -> None:
    job = await world.job()
    new = NewExecution(job_id=job.id, ready_at=world.clock.now())

    def buggy(tx: Tx, payloads: list[str]) -> list[Any]:
        raise ZeroDivisionError

    answers = await asyncio.gather(
        store.enqueue(new), store.writer.submit(buggy, "x", brief=True), store.enqueue(new), return_exceptions=True
    )
    assert isinstance(answers[1], ZeroDivisionError)
    assert sum((await store.active_counts(job.id)).values()) == 2


@embedded
async def test_a_loop_that_is_told_to_end_in_the_middle_leaves_the_store_in_order(store: SqlStore) -> None:
    def interrupted(tx: Tx, payloads: list[str]) -> list[Any]:
        raise KeyboardInterrupt

    async def ask() -> None:
        await store.writer.submit(interrupted, "x", brief=True)

    def run() -> None:
        with pytest.raises(KeyboardInterrupt):
            asyncio.run(ask())

    await asyncio.to_thread(run)
    assert await store.writer.submit(where, None) != threading.get_ident()
    assert await store.writer.submit(where, None, brief=True) == threading.get_ident()


@embedded
async def test_a_lock_that_somebody_has_does_not_hold_up_the_event_loop(
    url: str, world: World, store: SqlStore
) -> None:
    job = await world.job()
    other = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    asked = asyncio.ensure_future(store.enqueue(NewExecution(job_id=job.id, ready_at=world.clock.now())))
    for _ in range(10):
        await asyncio.sleep(0)  # would not come back before the lock is given free, which is below
    assert not asked.done()
    other.execute("ROLLBACK")
    other.close()
    await asked
    assert await store.writer.submit(where, None, brief=True) == threading.get_ident()


@embedded
async def test_what_comes_while_the_thread_is_at_work_waits_for_it(store: SqlStore) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def long(tx: Tx, payloads: list[None]) -> list[Any]:
        begun.set()
        assert go_on.wait(30)
        return where(tx, payloads)

    first = store.writer.submit(long, None)
    assert await asyncio.to_thread(begun.wait, 30)
    second = store.writer.submit(where, None, brief=True)
    for _ in range(10):
        await asyncio.sleep(0)
    assert not second.done()
    go_on.set()
    assert await first != threading.get_ident()
    assert await second == threading.get_ident()


@embedded
async def test_where_commits_are_slow_the_thread_waits_for_them(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.writer.submit(where, None, brief=True)
    monkeypatch.setattr(writing, "SLOW_COMMIT_SECONDS", 0.0)
    assert await store.writer.submit(where, None, brief=True) != threading.get_ident()
    monkeypatch.setattr(writing, "SLOW_COMMIT_SECONDS", float("inf"))
    assert await store.writer.submit(where, None, brief=True) == threading.get_ident()


@embedded
async def test_closing_commits_what_an_event_loop_has_not_handed_over(store: SqlStore) -> None:
    asked = [store.writer.submit(where, None, brief=True) for _ in range(5)]
    await store.close()
    assert threading.get_ident() not in await asyncio.gather(*asked)


@embedded
async def test_event_loops_of_several_threads_get_their_answers(store: SqlStore) -> None:
    async def ask() -> set[int]:
        return {await store.writer.submit(where, None, brief=True) for _ in range(50)}

    threads = [asyncio.to_thread(lambda: asyncio.run(ask())) for _ in range(4)]
    found, *others = await asyncio.gather(ask(), *threads)
    assert found
    assert all(others)
