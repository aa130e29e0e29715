"""What every back end of runtime state does, line by line of `ksana.runtime.base`."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from types import MappingProxyType
from typing import Any

import pytest

from ksana.domain.errors import InvalidInput
from ksana.runtime.base import Kind, Lifetimes, RuntimeState
from ksana.runtime.memory import SWEPT_FROM, MemoryRuntime, MemoryTable
from ksana.store.runtime_requests import Rule, RuntimeWrite
from tests.clock import FakeClock
from tests.contract.runtime.world import HOUR, NOON, World, checkpoint, everywhere, plan, task

BRIEF = timedelta(milliseconds=150)
MICROSECOND = timedelta(microseconds=1)
brief = pytest.mark.parametrize("lifetimes", [Lifetimes(BRIEF, BRIEF, BRIEF)], ids=[""])
CONTEXT = {
    "empty": {},
    "none": [],
    "nested": {"list": [1, [2, {"deep": []}]], "null": None, "yes": True},
    "big": 123456789012345678901234567890,
    "float": 0.1,
    "whole": 1.0,
    "small": 1e-300,
    "text": '阶段 "quoted" \\ / \x7f\x01\t\n é 😀',
    "version": 99,
}


# Checkpoints --------------------------------------------------------------------------------------------------------


async def test_a_checkpoint_comes_back_as_it_was_put(runtime: RuntimeState) -> None:
    saved = replace(checkpoint("a", "b"), context_data=CONTEXT, saved_at=NOON + MICROSECOND)
    assert await runtime.checkpoints.put("t", saved)
    assert await runtime.checkpoints.get("t") == saved
    assert await runtime.checkpoints.get("t") == saved
    assert await runtime.checkpoints.get("other") is None


async def test_a_checkpoint_before_any_stage_is_one(runtime: RuntimeState) -> None:
    assert await runtime.checkpoints.put("t", checkpoint())
    assert await runtime.checkpoints.get("t") == checkpoint()


@everywhere
async def test_a_checkpoint_follows_only_one_with_a_smaller_version(runtime: RuntimeState) -> None:
    assert await runtime.checkpoints.put("t", checkpoint("a", version=5))
    assert not await runtime.checkpoints.put("t", checkpoint("b", version=5))
    assert not await runtime.checkpoints.put("t", checkpoint("b", version=4))
    assert await runtime.checkpoints.get("t") == checkpoint("a", version=5)
    assert await runtime.checkpoints.put("t", checkpoint("c", version=7))
    assert await runtime.checkpoints.get("t") == checkpoint("c", version=7)


@everywhere
async def test_of_many_who_put_at_once_the_greatest_version_stays(runtime: RuntimeState) -> None:
    await asyncio.gather(*(runtime.checkpoints.put("t", checkpoint("a", version=n)) for n in range(1, 31)))
    found = await runtime.checkpoints.get("t")
    assert found is not None
    assert found.version == 30


@everywhere
async def test_a_stage_is_appended_to_what_is_just_before_it(runtime: RuntimeState) -> None:
    await runtime.checkpoints.put("t", checkpoint("a"))
    later = replace(checkpoint("a", "b", version=2, key="value"), saved_at=NOON + HOUR)
    assert await runtime.checkpoints.append("t", "b", later)
    assert await runtime.checkpoints.get("t") == later


async def test_the_first_stage_is_appended_to_none(runtime: RuntimeState) -> None:
    await runtime.checkpoints.put("t", checkpoint())
    assert await runtime.checkpoints.append("t", "a", checkpoint("a", version=2))
    assert await runtime.checkpoints.get("t") == checkpoint("a", version=2)


@everywhere
async def test_a_stage_is_not_appended_to_anything_else(runtime: RuntimeState) -> None:
    assert not await runtime.checkpoints.append("t", "a", checkpoint("a"))
    await runtime.checkpoints.put("t", checkpoint("a", version=3))
    assert not await runtime.checkpoints.append("t", "b", checkpoint("a", "b", version=3))
    assert not await runtime.checkpoints.append("t", "b", checkpoint("a", "b", version=5))
    assert not await runtime.checkpoints.append("t", "c", checkpoint("a", "b", "c", version=4))
    assert await runtime.checkpoints.get("t") == checkpoint("a", version=3)


@everywhere
async def test_of_many_who_append_the_same_stage_one_does(runtime: RuntimeState) -> None:
    await runtime.checkpoints.put("t", checkpoint("a"))
    second = checkpoint("a", "b", version=2)
    answers = await asyncio.gather(*(runtime.checkpoints.append("t", "b", second) for _ in range(20)))
    assert answers.count(True) == 1
    assert await runtime.checkpoints.get("t") == second


async def test_a_removed_checkpoint_is_gone_and_may_come_again(runtime: RuntimeState) -> None:
    await runtime.checkpoints.put("t", checkpoint("a", version=5))
    assert await runtime.checkpoints.get("t") is not None
    assert await runtime.checkpoints.remove("t")
    assert await runtime.checkpoints.get("t") is None
    assert not await runtime.checkpoints.remove("t")
    assert await runtime.checkpoints.put("t", checkpoint("a", version=1))


@brief
async def test_a_checkpoint_expires_and_whatever_follows_it_is_new(world: World) -> None:
    checkpoints = world.runtime.checkpoints
    await checkpoints.put("t", checkpoint("a", version=5))
    await world.outlive(BRIEF, Kind.CHECKPOINT, "t")
    assert await checkpoints.get("t") is None
    assert not await checkpoints.remove("t")
    assert not await checkpoints.append("t", "b", checkpoint("a", "b", version=6))
    assert await checkpoints.put("t", checkpoint("b", version=1))


async def test_a_context_may_be_any_kind_of_mapping(runtime: RuntimeState) -> None:
    context: Mapping[str, Any] = MappingProxyType({"a": MappingProxyType({"b": MappingProxyType({})})})
    await runtime.checkpoints.put("t", replace(checkpoint(), context_data=context))
    assert await runtime.checkpoints.append("t", "a", replace(checkpoint("a", version=2), context_data=context))
    assert await runtime.checkpoints.get("t") == checkpoint("a", version=2, a={"b": {}})


async def test_what_is_no_json_is_not_kept(runtime: RuntimeState) -> None:
    with pytest.raises(InvalidInput):
        await runtime.checkpoints.put("t", checkpoint("a", bad=float("nan")))
    with pytest.raises(InvalidInput):
        await runtime.checkpoints.put("t", checkpoint("a", bad=object()))


async def test_who_changes_the_context_that_it_gave_changes_nothing_that_was_put(runtime: RuntimeState) -> None:
    context = {"a": [1]}
    await runtime.checkpoints.put("t", replace(checkpoint("a"), context_data=context))
    context["a"].append(2)
    found = await runtime.checkpoints.get("t")
    assert found is not None
    assert found.context_data == {"a": [1]}


# Projections --------------------------------------------------------------------------------------------------------


async def test_projections_come_back_as_they_were_saved(runtime: RuntimeState) -> None:
    odd = task("task-2", pause_requested=True, stage_names=('阶 "段"', ""), updated_at=NOON + MICROSECOND)
    await runtime.tasks.save([task(), odd])
    await runtime.plans.save([plan(), plan("plan-2", progress=1 / 3, task_ids=())])
    assert await runtime.tasks.get(["task-1", "task-2", "task-3"]) == {"task-1": task(), "task-2": odd}
    assert await runtime.plans.get(["plan-2"]) == {"plan-2": plan("plan-2", progress=1 / 3, task_ids=())}
    assert await runtime.tasks.get([]) == {}


async def test_saving_nothing_is_nothing(runtime: RuntimeState) -> None:
    await runtime.tasks.save([])
    await runtime.index.put({})
    await runtime.index.remove({})
    assert await runtime.index.get([]) == {}
    assert await runtime.locks.holders([]) == {}
    assert set((await runtime.counts()).values()) == {0}


@everywhere
@pytest.mark.parametrize("earlier", [MICROSECOND, timedelta(milliseconds=500), timedelta(seconds=1)])
async def test_a_projection_does_not_follow_one_that_was_updated_later(
    runtime: RuntimeState, earlier: timedelta
) -> None:
    for later in (NOON, NOON + earlier, NOON + timedelta(seconds=2)):
        await runtime.tasks.save([task(status="COMPLETED", updated_at=later)])
        await runtime.tasks.save([task(status="RUNNING", updated_at=later - earlier)])
        await runtime.plans.save([plan(status="COMPLETED", updated_at=later)])
        await runtime.plans.save([plan(status="RUNNING", updated_at=later - earlier)])
        assert (await runtime.tasks.get(["task-1"]))["task-1"].status == "COMPLETED"
        assert (await runtime.plans.get(["plan-1"]))["plan-1"].status == "COMPLETED"


@everywhere
async def test_of_two_of_one_instant_the_last_stays(runtime: RuntimeState) -> None:
    for status in ("RUNNING", "PAUSED", "PAUSED", "RUNNING", "FAILED"):
        await runtime.tasks.save([task(status=status)])
        assert (await runtime.tasks.get(["task-1"]))["task-1"].status == status
    await runtime.tasks.save([task(status="PENDING"), task(status="RUNNING")])
    assert (await runtime.tasks.get(["task-1"]))["task-1"].status == "RUNNING"
    await runtime.tasks.save([task(status="COMPLETED", updated_at=NOON + MICROSECOND)])
    await runtime.tasks.save([task(status="FAILED")])
    assert (await runtime.tasks.get(["task-1"]))["task-1"].status == "COMPLETED"


@everywhere
async def test_of_many_saved_at_once_the_one_that_was_updated_last_stays(runtime: RuntimeState) -> None:
    saves = [task(status=str(n), updated_at=NOON + n * MICROSECOND) for n in range(30)]
    await asyncio.gather(*(runtime.tasks.save([each, task("task-2")]) for each in saves))
    assert (await runtime.tasks.get(["task-1"]))["task-1"] == saves[-1]


@everywhere
async def test_of_many_of_one_instant_saved_at_once_one_stays_whole(runtime: RuntimeState) -> None:
    saves = [task(status=str(n), stage_names=(str(n),)) for n in range(10)]
    await asyncio.gather(*(runtime.tasks.save([each]) for each in saves))
    assert (await runtime.tasks.get(["task-1"]))["task-1"] in saves


async def test_thousands_of_projections_are_saved_at_once(runtime: RuntimeState) -> None:
    many = {f"task-{n}": task(f"task-{n}", tenant_id=f"tenant-{n}") for n in range(1_200)}
    await runtime.tasks.save(list(many.values()))
    assert await runtime.tasks.get(list(many)) == many
    assert (await runtime.counts())[Kind.TASK] == 1_200


async def test_the_newest_task_of_a_tenant_is_found_without_the_index(runtime: RuntimeState) -> None:
    old = task("task-a", status="COMPLETED", created_at=NOON - HOUR, updated_at=NOON + HOUR)
    new = task("task-b", created_at=NOON)
    await runtime.tasks.save([new, old, task("task-c", tenant_id="tenant-10", created_at=NOON + HOUR)])
    assert await runtime.tasks.of_tenant("tenant-1") == new
    assert await runtime.tasks.of_tenant("tenant") is None


@brief
async def test_projections_and_index_expire(world: World) -> None:
    await world.runtime.tasks.save([task(status="COMPLETED", updated_at=NOON)])
    await world.runtime.plans.save([plan()])
    await world.runtime.index.put({"tenant-1": "task-1"})
    await world.outlive(BRIEF, Kind.INDEX, "tenant-1")
    assert await world.runtime.tasks.get(["task-1"]) == {}
    assert await world.runtime.plans.get(["plan-1"]) == {}
    assert await world.runtime.tasks.of_tenant("tenant-1") is None
    assert await world.runtime.index.get(["tenant-1"]) == {}
    older = task(updated_at=NOON - HOUR)
    await world.runtime.tasks.save([older])
    assert await world.runtime.tasks.get(["task-1"]) == {"task-1": older}


# The tenants' index -------------------------------------------------------------------------------------------------


@everywhere
async def test_the_index_tells_the_task_that_was_put_last(runtime: RuntimeState) -> None:
    await runtime.index.put({"a": "task-1", "b": "task-2"})
    await runtime.index.put({"a": "task-3"})
    assert await runtime.index.get(["a", "b", "c"]) == {"a": "task-3", "b": "task-2"}


@everywhere
async def test_an_index_entry_is_removed_only_if_it_is_still_that_task(runtime: RuntimeState) -> None:
    await runtime.index.put({"a": "task-1", "b": "task-2"})
    await runtime.index.remove({"a": "task-1", "b": "task-1", "c": "task-1"})
    assert await runtime.index.get(["a", "b", "c"]) == {"b": "task-2"}


# The tenants' locks -------------------------------------------------------------------------------------------------


@everywhere
async def test_a_lock_has_one_holder(runtime: RuntimeState) -> None:
    assert await runtime.locks.try_acquire("a", "task-1", HOUR)
    assert await runtime.locks.try_acquire("a", "task-1", HOUR)
    assert not await runtime.locks.try_acquire("a", "task-2", HOUR)
    assert await runtime.locks.try_acquire("b", "task-2", HOUR)
    assert await runtime.locks.exists("a")
    assert not await runtime.locks.exists("c")
    assert await runtime.locks.holders(["a", "c"]) == {"a": "task-1"}
    assert await runtime.locks.all() == {"a": "task-1", "b": "task-2"}


@everywhere
async def test_of_fifty_who_want_a_lock_one_gets_it(runtime: RuntimeState) -> None:
    answers = await asyncio.gather(*(runtime.locks.try_acquire("a", f"task-{n}", HOUR) for n in range(50)))
    assert answers.count(True) == 1
    assert await runtime.locks.holders(["a"]) == {"a": f"task-{answers.index(True)}"}


@everywhere
async def test_only_its_holder_releases_a_lock(runtime: RuntimeState) -> None:
    await runtime.locks.try_acquire("a", "task-1", HOUR)
    assert not await runtime.locks.release("a", "task-2")
    assert await runtime.locks.exists("a")
    assert await runtime.locks.release("a", "task-1")
    assert not await runtime.locks.release("a", "task-1")
    assert await runtime.locks.try_acquire("a", "task-2", HOUR)


@everywhere
async def test_only_its_holder_renews_a_lock(runtime: RuntimeState) -> None:
    assert not await runtime.locks.renew("a", "task-1", HOUR)
    await runtime.locks.try_acquire("a", "task-1", HOUR)
    assert await runtime.locks.renew("a", "task-1", HOUR)
    assert not await runtime.locks.renew("a", "task-2", HOUR)
    assert await runtime.locks.holders(["a"]) == {"a": "task-1"}


async def test_a_lock_that_ran_out_is_free(world: World) -> None:
    locks = world.runtime.locks
    await locks.try_acquire("a", "task-1", BRIEF)
    await world.outlive(BRIEF, Kind.LOCK, "a")
    assert not await locks.exists("a")
    assert await locks.all() == {}
    assert not await locks.renew("a", "task-1", HOUR)
    assert not await locks.release("a", "task-1")
    assert await locks.try_acquire("a", "task-2", HOUR)


@pytest.mark.parametrize("verb", ["try_acquire", "renew"])
async def test_who_has_a_lock_gets_more_time_and_less_if_it_says_so(world: World, verb: str) -> None:
    locks = world.runtime.locks
    await locks.try_acquire("a", "task-1", BRIEF)
    assert await getattr(locks, verb)("a", "task-1", HOUR)
    await locks.try_acquire("b", "task-1", BRIEF)
    await world.outlive(BRIEF, Kind.LOCK, "b")
    assert await locks.exists("a")
    assert await getattr(locks, verb)("a", "task-1", BRIEF)
    await world.outlive(BRIEF, Kind.LOCK, "a")
    assert not await locks.exists("a")


# All of it ----------------------------------------------------------------------------------------------------------


@everywhere
async def test_it_counts_what_it_has(runtime: RuntimeState) -> None:
    await runtime.ping()
    await runtime.checkpoints.put("t", checkpoint("a"))
    await runtime.tasks.save([task(), task("task-2")])
    await runtime.plans.save([plan()])
    await runtime.index.put({"a": "task-1", "b": "task-2", "c": "task-3"})
    await runtime.locks.try_acquire("a", "task-1", HOUR)
    counts = {Kind.CHECKPOINT: 1, Kind.TASK: 2, Kind.PLAN: 1, Kind.INDEX: 3, Kind.LOCK: 1}
    assert await runtime.counts() == counts
    assert await runtime.repaired() == 0


async def test_the_memory_holds_little_more_than_what_lives(clock: FakeClock) -> None:
    table = MemoryTable(clock)
    for n in range(5 * SWEPT_FROM):
        await table.write_runtime([RuntimeWrite("ckpt", str(n), "{}", timedelta(seconds=10), Rule.ALWAYS)])
        clock.advance(timedelta(seconds=1))
    assert len(table) <= SWEPT_FROM


async def test_each_memory_is_its_own(clock: FakeClock) -> None:
    one, other = MemoryRuntime(Lifetimes(), clock=clock), MemoryRuntime(Lifetimes(), clock=clock)
    await one.index.put({"a": "task-1"})
    assert await other.index.get(["a"]) == {}
