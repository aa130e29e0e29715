"""A rollout whose Redis is flushed, tampered with, taken or away: the store has everything, and what is shown comes back."""

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from redis.asyncio import Redis

from ksana.domain.plan import TaskStatus
from ksana.engine.plans.outside import Outside
from ksana.engine.plans.showing import Shelf, show_tasks
from ksana.runtime.base import Kind, Lifetimes
from ksana.runtime.redis import RedisRuntime
from ksana.runtime.sql import SqlRuntime
from tests.conftest import StartPrivate
from tests.contract.store.world import ANNA
from tests.servers.redis import RedisServer
from tests.unit.engine.conftest import simulated
from tests.unit.engine.plan_world import Rollout
from tests.unit.engine.simulation import Simulation

LATER = timedelta(seconds=5)


class Shown:
    """A rollout, and what a client of Redis sees of it."""

    def __init__(self, rollout: Rollout, outside: Outside, redis: "Redis") -> None:
        self.rollout = rollout
        self.outside = outside
        self.redis = redis

    async def look(self) -> None:
        """The keeper, some seconds later; then whatever follows."""
        self.rollout.simulation.clock.advance(LATER)
        await self.rollout.simulation.engine.keeper.run_once(self.rollout.simulation.clock.now())
        await self.rollout.settle()

    def is_degraded(self) -> bool:
        return self.outside.trouble is not None

    async def keys(self) -> dict[str, str]:
        names = sorted([str(name) async for name in self.redis.scan_iter()])
        return {name: str(await self.redis.type(name)) for name in names}

    async def held(self, tenant: str) -> str | None:
        value = await self.redis.get(f"executor:lock:tenant:{tenant}")
        return None if value is None else str(value)


def use(simulation: Simulation, url: str) -> Outside:
    """Redis instead of memory, with the store to stand in for it."""
    lifetimes = Lifetimes()
    outside = simulation.outside
    outside.chosen = RedisRuntime.connect(url, "executor", lifetimes, timeout=timedelta(milliseconds=300))
    outside._standby = SqlRuntime(simulation.store, lifetimes)
    return outside


@pytest.fixture
async def shown(tmp_path: Path, redis_url: str) -> AsyncIterator[Shown]:
    async with simulated(tmp_path) as simulation:
        outside, redis = use(simulation, redis_url), Redis.from_url(redis_url, decode_responses=True)
        yield Shown(Rollout(simulation), outside, redis)
        await outside.close()
        await redis.aclose()


@pytest.fixture
def server(private_redis: StartPrivate[RedisServer]) -> RedisServer:
    return private_redis()


@pytest.fixture
async def fragile(tmp_path: Path, server: RedisServer) -> AsyncIterator[Shown]:
    """On a Redis that the test may stop."""
    async with simulated(tmp_path) as simulation:
        outside, redis = use(simulation, server.url), Redis.from_url(server.url, decode_responses=True)
        yield Shown(Rollout(simulation), outside, redis)
        await outside.close()
        await redis.aclose()


async def test_what_was_flushed_comes_back(shown: Shown) -> None:
    shown.rollout.hold("a/migrate")
    shown.rollout.fails("b/migrate")
    await shown.rollout.run("a", "b")
    await shown.look()
    before = await shown.keys()
    assert {name.partition(":")[2].rpartition(":")[0] for name in before} == {
        "ckpt",
        "index:tenant",
        "lock:tenant",
        "plan",
        "task",
    }
    await shown.redis.flushdb()
    await shown.look()
    assert await shown.keys() == before
    assert shown.rollout.simulation.engine.keeper.findings.repaired > 0


@pytest.mark.parametrize("kind", list(Kind))
async def test_a_key_of_a_wrong_type_is_put_right(shown: Shown, kind: Kind) -> None:
    shown.rollout.hold("a/migrate")
    await shown.rollout.run("a")
    before = await shown.keys()
    (name,) = [name for name in before if name.startswith(f"executor:{kind}:")]
    await shown.redis.delete(name)
    await shown.redis.rpush(name, "nonsense")
    await shown.look()
    assert await shown.keys() == before
    await shown.rollout.let_go("a/migrate")
    assert (await shown.rollout.task("a")).status is TaskStatus.COMPLETED


async def test_a_lock_that_somebody_else_takes_by_force_stops_the_task_until_it_is_free(shown: Shown) -> None:
    shown.rollout.hold("a/migrate")
    key = await shown.rollout.run("a")
    await shown.redis.set("executor:lock:tenant:a", "somebody-else")
    await shown.look()
    assert await shown.rollout.tasks(key) == {"a": "WAITING_FOR_LOCK"}
    assert await shown.held("a") == "somebody-else"
    await shown.redis.delete("executor:lock:tenant:a")
    shown.rollout.release("a/migrate")
    await shown.look()
    assert await shown.rollout.status(key) == "COMPLETED"
    assert shown.rollout.order.count("a/prepare") == 1
    assert await shown.held("a") is None


async def test_a_stage_whose_lock_is_taken_while_it_works_does_not_count(shown: Shown) -> None:
    shown.rollout.hold("a/migrate")
    key = await shown.rollout.run("a")
    await shown.redis.set("executor:lock:tenant:a", "somebody-else")
    await shown.rollout.let_go("a/migrate")
    task = await shown.rollout.task("a")
    assert (task.status, task.last_completed) == (TaskStatus.WAITING_FOR_LOCK, 0)
    await shown.redis.delete("executor:lock:tenant:a")
    await shown.look()
    assert await shown.rollout.status(key) == "COMPLETED"
    assert shown.rollout.order.count("a/migrate") == 2


async def test_a_task_waits_for_a_lock_that_somebody_else_has(shown: Shown) -> None:
    await shown.redis.set("executor:lock:tenant:a", "somebody-else")
    key = await shown.rollout.run("a", "b")
    assert await shown.rollout.tasks(key) == {"a": "WAITING_FOR_LOCK", "b": "COMPLETED"}
    await shown.redis.delete("executor:lock:tenant:a")
    await shown.look()
    assert await shown.rollout.status(key) == "COMPLETED"


async def test_a_lock_that_was_left_behind_is_taken_over_or_goes(shown: Shown) -> None:
    await shown.rollout.run("a", "b")
    await shown.look()
    old = {tenant: (await shown.rollout.task(tenant)).key for tenant in "ab"}
    for tenant, task in old.items():
        await shown.redis.set(f"executor:lock:tenant:{tenant}", task)
    shown.rollout.hold("a/prepare")
    await shown.rollout.run("a")
    assert await shown.held("a") == (await shown.rollout.task("a")).key
    keeper = shown.rollout.simulation.engine.keeper
    for _ in range(2):
        shown.rollout.simulation.clock.advance(timedelta(minutes=1))
        await keeper.run_once(shown.rollout.simulation.clock.now())
    assert await shown.held("b") is None
    assert (keeper.findings.leaked_now, keeper.findings.leaked) == (1, 1)
    assert await shown.held("a") == (await shown.rollout.task("a")).key


async def test_a_lock_is_renewed_for_as_long_as_its_task_runs(shown: Shown) -> None:
    shown.rollout.hold("a/migrate")
    await shown.rollout.run("a")
    await shown.look()
    await shown.redis.expire("executor:lock:tenant:a", 60)
    shown.rollout.simulation.clock.advance(timedelta(hours=1))
    await shown.look()
    assert await shown.redis.ttl("executor:lock:tenant:a") > 8_900


async def test_while_redis_is_away_work_goes_on_and_then_it_is_brought_up_to_date(
    fragile: Shown, server: RedisServer
) -> None:
    fragile.rollout.hold("a/migrate", "b/migrate")
    key = await fragile.rollout.run("a", "b")
    server.kill()
    await fragile.rollout.let_go("a/migrate")
    assert fragile.is_degraded()
    assert fragile.outside.now.name == "sql"
    assert (await fragile.rollout.task("a")).status is TaskStatus.COMPLETED
    server.start()
    await fragile.redis.flushall()
    await fragile.look()
    assert not fragile.is_degraded()
    task = await fragile.rollout.task("b")
    assert await fragile.held("b") == task.key
    assert await fragile.redis.hget(f"executor:plan:{key}", "progress") == "0.5"
    assert await fragile.redis.exists(f"executor:ckpt:{task.key}")
    await fragile.rollout.let_go("b/migrate")
    assert await fragile.rollout.status(key) == "COMPLETED"
    left = [f"executor:task:{(await fragile.rollout.task(tenant)).key}" for tenant in "ab"]
    assert sorted(await fragile.keys()) == sorted([f"executor:plan:{key}", *left])


async def test_a_redis_that_is_frozen_holds_nothing_up(fragile: Shown, server: RedisServer) -> None:
    fragile.rollout.hold("a/migrate")
    key = await fragile.rollout.run("a")
    server.pause()
    try:
        await fragile.rollout.let_go("a/migrate")
        assert await fragile.rollout.status(key) == "COMPLETED"
        assert fragile.is_degraded()
    finally:
        server.resume()
    await fragile.look()
    assert not fragile.is_degraded()
    assert await fragile.held("a") is None
    assert await fragile.redis.hget(f"executor:plan:{key}", "status") == "COMPLETED"


async def test_one_that_begins_to_evict_is_not_trusted(fragile: Shown) -> None:
    await fragile.rollout.run("a")
    await fragile.redis.config_set("maxmemory-policy", "allkeys-lru")
    await fragile.look()
    assert "maxmemory-policy" in (fragile.outside.trouble or "")
    await fragile.redis.config_set("maxmemory-policy", "noeviction")
    await fragile.look()
    assert not fragile.is_degraded()


async def test_a_rollout_begins_although_redis_never_came_up(fragile: Shown, server: RedisServer) -> None:
    server.kill()
    key = await fragile.rollout.run("a", "b")
    assert await fragile.rollout.status(key) == "COMPLETED"
    await fragile.look()
    assert fragile.is_degraded()
    server.start()
    await fragile.look()
    assert await fragile.redis.hget(f"executor:plan:{key}", "status") == "COMPLETED"


async def test_pausing_gives_the_lock_back_and_resuming_takes_it_again(shown: Shown) -> None:
    shown.rollout.hold("a/migrate", "a/verify")
    await shown.rollout.run("a")
    await shown.rollout.plans.pause_task("a", None, ANNA)
    await shown.rollout.let_go("a/migrate")
    task = await shown.rollout.task("a")
    assert task.status is TaskStatus.PAUSED
    assert await shown.held("a") is None
    assert await shown.redis.get("executor:index:tenant:a") == task.key
    await shown.rollout.plans.resume_task("a", None, ANNA)
    await shown.rollout.settle()
    assert await shown.held("a") == task.key


async def test_one_that_takes_no_writes_is_noticed_although_nothing_is_written(fragile: Shown) -> None:
    await fragile.rollout.run("a")
    await fragile.look()
    before = await fragile.keys()
    await fragile.redis.config_set("maxmemory", "1")
    await fragile.look()
    assert fragile.is_degraded()
    await fragile.redis.config_set("maxmemory", "0")
    await fragile.look()
    assert not fragile.is_degraded()
    assert await fragile.keys() == before


async def test_a_lock_of_a_task_that_nobody_knows_is_counted_and_left_alone(shown: Shown) -> None:
    await shown.redis.set("executor:lock:tenant:ghost", "nobody")
    await shown.look()
    assert shown.rollout.simulation.engine.keeper.findings.strangers == 1
    assert await shown.held("ghost") == "nobody"


async def test_a_plan_that_is_shown_wrong_is_put_right(shown: Shown) -> None:
    key = await shown.rollout.run("a")
    await shown.look()
    await shown.redis.hset(f"executor:plan:{key}", mapping={"progress": "0.1", "taskIds": "[]"})
    await shown.look()
    assert await shown.redis.hget(f"executor:plan:{key}", "progress") == "1.0"


async def test_a_checkpoint_that_somebody_forged_is_put_right(shown: Shown) -> None:
    shown.rollout.hold("a/verify")
    await shown.rollout.run("a")
    task = await shown.rollout.task("a")
    await shown.look()
    name = f"executor:ckpt:{task.key}"
    mine = await shown.redis.get(name)
    forged = {
        "lastCompletedStageIndex": 7,
        "completedStages": ["x"],
        "contextData": {},
        "savedAt": "2026-01-01T00:00:00",
    }
    await shown.redis.set(name, json.dumps({**forged, "version": 999}))
    await shown.look()
    assert await shown.redis.get(name) == mine


async def test_what_a_task_has_that_goes_on_is_not_taken_from_it_by_an_older_view(shown: Shown) -> None:
    rollout = shown.rollout
    rollout.hold("a/migrate", "a/verify")
    await rollout.run("a")
    await rollout.plans.pause_task("a", None, ANNA)
    rollout.release("a/migrate")
    await rollout._idle()
    (older,) = await rollout.simulation.store.tasks_to_show([(await rollout.task("a")).id])
    assert older.status is TaskStatus.PAUSED
    await rollout.plans.resume_task("a", None, ANNA)
    await rollout.settle()
    simulation = rollout.simulation
    shelf = Shelf(Lifetimes().checkpoint, Lifetimes().projection, simulation.store.tasks_to_show)
    await show_tasks(shown.outside.now, [older], shelf, simulation.clock.now())
    assert await shown.held("a") == older.key
    assert await shown.redis.get("executor:index:tenant:a") == older.key


async def test_what_is_shown_of_a_task_that_is_paused_for_long_does_not_run_out(shown: Shown) -> None:
    shown.rollout.hold("a/migrate")
    await shown.rollout.run("a")
    await shown.rollout.plans.pause_task("a", None, ANNA)
    await shown.rollout.let_go("a/migrate")
    await shown.look()
    name = f"executor:ckpt:{(await shown.rollout.task('a')).key}"
    await shown.redis.expire(name, 60)
    shown.rollout.simulation.clock.advance(timedelta(hours=13))
    await shown.look()
    assert await shown.redis.ttl(name) > 600_000
    assert shown.rollout.simulation.engine.keeper.findings.repaired == 0
