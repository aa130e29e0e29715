"""Runtime state in the database: instances that share it, values that somebody damaged, and what has expired."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from ksana.domain.errors import KsanaError, RuntimeUnavailable, UnreadableState
from ksana.runtime.base import Kind, Lifetimes
from ksana.runtime.sql import SqlRuntime
from ksana.store.requests import StoreOptions
from ksana.store.runtime_requests import Rule, RuntimeWrite
from ksana.store.sql import open_store
from ksana.store.sql.statements import runtime_state
from ksana.store.sql.store import SqlStore
from ksana.store.sql.tx import Tx
from tests.clock import FakeClock
from tests.contract.runtime.world import HOUR, checkpoint, emptied_store, task

LONG_AGO = -timedelta(hours=1)
SHARED = [
    pytest.param("postgresql", id="postgresql", marks=pytest.mark.postgresql),
    pytest.param("mysql", id="mysql", marks=pytest.mark.mysql),
]
shared = pytest.mark.parametrize("back_end", SHARED, indirect=True)
in_sql = pytest.mark.parametrize("back_end", [pytest.param("sqlite", id="sqlite"), *SHARED], indirect=True)


@pytest.fixture
async def store(url: str, clock: FakeClock) -> AsyncIterator[SqlStore]:
    async with emptied_store(url, clock) as opened:
        yield opened


def purged(tx: Tx, limits: list[int]) -> list[int | KsanaError]:
    return [runtime_state.purge(tx, limit) for limit in limits]


@pytest.fixture
async def rival(store: SqlStore, url: str, clock: FakeClock) -> AsyncIterator[SqlStore]:
    """The store of another instance, which shares the database."""
    other = open_store(url, options=StoreOptions(readers=2), clock=clock)
    yield other
    await other.close()


@shared
async def test_instances_that_share_a_database_agree(store: SqlStore, rival: SqlStore) -> None:
    one, two = SqlRuntime(store, Lifetimes()), SqlRuntime(rival, Lifetimes())
    wanted = [each.locks.try_acquire("shared", f"task-{n}", HOUR) for n, each in enumerate([one, two] * 25)]
    puts = [each.checkpoints.put("shared", checkpoint("a", version=n)) for n in range(1, 11) for each in (one, two)]
    answers = (await asyncio.gather(*wanted, *puts))[: len(wanted)]
    assert answers.count(True) == 1
    holder = {"shared": f"task-{answers.index(True)}"}
    assert await one.locks.holders(["shared"]) == await two.locks.holders(["shared"]) == holder
    assert await one.checkpoints.get("shared") == checkpoint("a", version=10)


@shared
async def test_of_two_instances_that_follow_the_same_version_one_does(store: SqlStore, rival: SqlStore) -> None:
    for version in range(1, 41):
        rule = Rule.NEXT if version > 1 else Rule.NEWER
        written = await asyncio.gather(
            *(
                each.write_runtime([RuntimeWrite("ckpt", "t", name, HOUR, rule, version)])
                for name, each in {"one": store, "two": rival}.items()
            )
        )
        assert sorted(map(list, written)) == [[False], [True]]
        winner = "one" if written[0][0] else "two"
        assert await store.read_runtime("ckpt", ["t"]) == {"t": (winner, version)}


@in_sql
async def test_what_has_expired_is_removed_a_portion_at_a_time(store: SqlStore) -> None:
    old = [RuntimeWrite("ckpt", f"old-{n}", "{}", LONG_AGO, Rule.ALWAYS) for n in range(5)]
    await store.write_runtime([*old, RuntimeWrite("ckpt", "new", "{}", HOUR, Rule.ALWAYS)])
    assert set(await store.all_runtime("ckpt", 10)) == {"new"}
    assert await store.writer.submit(purged, 3) == 3
    assert await store.writer.submit(purged, 3) == 2
    assert await store.writer.submit(purged, 3) == 0
    assert set(await store.read_runtime("ckpt", ["new", "old-1"])) == {"new"}
    await store.remove_runtime([])
    assert list(await store.write_runtime([])) == []


@in_sql
async def test_of_one_batch_each_write_sees_those_before_it(store: SqlStore) -> None:
    def lock(task_id: str, rule: Rule) -> RuntimeWrite:
        return RuntimeWrite("lock:tenant", "batch", task_id, HOUR, rule)

    rules = [("a", Rule.HELD), ("a", Rule.FREE), ("b", Rule.FREE), ("b", Rule.HELD), ("a", Rule.HELD)]
    answers = await store.write_runtime([lock(task_id, rule) for task_id, rule in rules])
    assert list(answers) == [False, True, False, False, True]
    versions = [(Rule.NEWER, 2), (Rule.NEWER, 2), (Rule.NEXT, 3), (Rule.NEXT, 5), (Rule.NEWER, 1)]
    writes = [RuntimeWrite("ckpt", "batch", f"v{version}", HOUR, rule, version) for rule, version in versions]
    assert list(await store.write_runtime(writes)) == [True, False, True, False, False]
    assert await store.read_runtime("ckpt", ["batch"]) == {"batch": ("v3", 3)}


@pytest.mark.parametrize("back_end", ["sqlite"], indirect=True)
async def test_a_damaged_value_is_told_and_replaced(store: SqlStore) -> None:
    runtime = SqlRuntime(store, Lifetimes())
    damaged = [RuntimeWrite(kind, "x", "{", HOUR, Rule.ALWAYS, 50) for kind in (Kind.CHECKPOINT, Kind.TASK)]
    await store.write_runtime(damaged)
    with pytest.raises(UnreadableState):
        await runtime.checkpoints.get("x")
    with pytest.raises(UnreadableState):
        await runtime.tasks.get(["x"])
    assert not await runtime.checkpoints.append("x", "a", checkpoint("a", version=51))
    assert await runtime.checkpoints.put("x", checkpoint("a"))
    assert await runtime.checkpoints.get("x") == checkpoint("a")
    await runtime.tasks.save([task("x")])
    assert await runtime.tasks.get(["x"]) == {"x": task("x")}
    assert await runtime.repaired() == 1


@pytest.mark.parametrize("back_end", ["sqlite"], indirect=True)
async def test_a_store_that_is_closed_is_unavailable(store: SqlStore) -> None:
    runtime = SqlRuntime(store, Lifetimes())
    await store.close()
    with pytest.raises(RuntimeUnavailable):
        await runtime.ping()
    with pytest.raises(RuntimeUnavailable):
        await runtime.index.put({"a": "task-1"})
