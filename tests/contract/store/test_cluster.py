"""Instances come and go; what the dead were running is picked up; a lock has one holder.

Leases follow the database's clock where several instances share it, so that what must have run out is given no time at all.
"""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import event
from sqlalchemy.exc import OperationalError

from ksana.domain.events import EventType
from ksana.domain.execution import Claimed
from ksana.domain.instance import LEASE, InstanceStatus, Lease
from ksana.domain.job import RecoveryRule
from ksana.domain.states import AttemptStatus, ExecutionStatus
from ksana.store.requests import NewInstance, Recovered
from ksana.store.sql.store import SqlStore
from tests.contract.store.world import World, claim_of, rivals

NONE = timedelta(0)
HOUR = timedelta(hours=1)


async def statuses(world: World) -> dict[str, InstanceStatus]:
    return {instance.id: instance.status for instance in await world.store.instances()}


async def run_by(world: World, instance: str) -> Claimed:
    await world.enqueue(await world.job())
    [claimed] = await world.claim(1, instance)
    return claimed


async def recover(world: World, limit: int = 100) -> Recovered:
    return await world.store.recover(world.clock.now(), limit)


# Instances ------------------------------------------------------------------------------------------------------------


async def test_an_instance_joins_beats_and_leaves(world: World) -> None:
    new = NewInstance("one", "höst:1", "0.1.0", ("api", "worker"), LEASE)
    joined = await world.store.join(new)
    assert (joined.id, joined.name, joined.version, joined.roles) == ("one", "höst:1", "0.1.0", ("api", "worker"))
    assert joined.status is InstanceStatus.ALIVE
    assert joined.expires_at >= joined.heartbeat_at + LEASE
    assert await world.store.instances() == [joined]
    assert world.store.beat("one", HOUR)
    [beaten] = await world.store.instances()
    assert beaten.heartbeat_at >= joined.heartbeat_at
    assert beaten.expires_at >= beaten.heartbeat_at + HOUR
    assert beaten.started_at == joined.started_at
    assert await world.store.leave("one")
    assert await statuses(world) == {"one": InstanceStatus.LEFT}
    assert not await world.store.leave("one")
    assert await world.event_types() == [EventType.INSTANCE_JOINED, EventType.INSTANCE_LEFT]


async def test_a_heart_beats_on_though_no_connection_is_to_be_had(world: World, store: SqlStore) -> None:
    """The connection is there from the start, however many others come before the first beat."""

    def refuse(*_: object) -> None:
        raise OperationalError("CONNECT", None, Exception("too many connections"))

    await world.join("one")
    event.listen(store._writing, "do_connect", refuse, insert=True)
    assert world.store.beat("one", HOUR)
    event.remove(store._writing, "do_connect", refuse)


async def test_who_is_dead_or_left_or_unknown_cannot_beat(world: World) -> None:
    await world.join("left")
    await world.store.leave("left")
    await world.join("dead", lease=NONE)
    assert (await recover(world)).dead_instances == ("dead",)
    for instance in ("left", "dead", "unknown"):
        assert not world.store.beat(instance, HOUR)
        assert not await world.store.leave(instance)
    assert await statuses(world) == {"left": InstanceStatus.LEFT, "dead": InstanceStatus.DEAD}


async def test_joining_ends_the_others_where_one_process_has_the_database(world: World, back_end: str) -> None:
    await world.join("first", lease=HOUR)
    world.clock.advance(timedelta(seconds=1))
    await world.join("second", lease=HOUR)
    alone = back_end == "sqlite"
    assert await statuses(world) == {
        "first": InstanceStatus.DEAD if alone else InstanceStatus.ALIVE,
        "second": InstanceStatus.ALIVE,
    }
    assert [instance.id for instance in await world.store.instances()] == ["second", "first"]
    assert (world.store.beat("first", HOUR) is None) is alone
    assert world.store.beat("second", HOUR)


@pytest.mark.parametrize("by", [timedelta(days=365), timedelta(days=-365)], ids=["forward", "back"])
async def test_a_clock_that_is_set_ends_no_lease(world: World, by: timedelta) -> None:
    await world.join("one", lease=LEASE)
    running = await run_by(world, "one")
    lock = await world.store.acquire_lock("tenant", "one", LEASE)
    assert lock is not None
    world.clock.set_by(by)
    assert await recover(world) == Recovered()
    assert await world.store.still_mine([claim_of(running)]) == {claim_of(running)}
    assert await world.store.renew_lock(lock, LEASE)
    assert world.store.beat("one", LEASE)


# Recovery -------------------------------------------------------------------------------------------------------------


async def test_what_a_dead_instance_ran_is_run_again_under_a_new_epoch(world: World) -> None:
    await world.join("dead", lease=NONE)
    lost = await run_by(world, "dead")
    world.clock.advance(timedelta(seconds=20))
    assert await recover(world) == Recovered(("dead",), requeued=1)
    execution = await world.store.execution(lost.execution.id)
    assert (execution.status, execution.owner) == (ExecutionStatus.SCHEDULED, None)
    [attempt] = await world.store.attempts(execution.id)
    assert (attempt.status, attempt.owner, attempt.epoch) == (AttemptStatus.LOST, "dead", lost.execution.epoch)
    assert attempt.ended_at == world.clock.now()
    types = await world.event_types()
    assert types[-2:] == [EventType.INSTANCE_LOST, EventType.EXECUTION_RECOVERED]
    assert not await world.store.succeed(world.ending(lost))
    [again] = await world.claim(1, "new")
    assert (again.execution.id, again.execution.epoch) == (lost.execution.id, lost.execution.epoch + 1)
    assert await world.store.still_mine([claim_of(lost), claim_of(again)]) == {claim_of(again)}
    assert not await world.store.succeed(world.ending(lost))
    assert await world.store.succeed(world.ending(again))


async def test_what_an_instance_that_left_or_is_unknown_ran_is_recovered_at_once(world: World) -> None:
    await world.join("left", lease=HOUR)
    made = [await run_by(world, "left"), await run_by(world, "never joined")]
    await world.store.leave("left")
    await world.join("alive", lease=HOUR)
    mine = await run_by(world, "alive")
    assert await recover(world) == Recovered((), requeued=2)
    assert await recover(world) == Recovered()
    assert [await world.status(item.execution.id) for item in made] == [ExecutionStatus.SCHEDULED] * 2
    assert await world.store.execution(mine.execution.id) == mine.execution
    assert (await statuses(world))["alive"] is InstanceStatus.ALIVE


async def test_what_must_not_run_twice_fails_and_gives_its_slot_back(world: World) -> None:
    job = await world.job(limit=1, recovery=RecoveryRule.FAIL)
    await world.join("dead", lease=NONE)
    await world.enqueue(job)
    [lost] = await world.claim(1, "dead")
    waiting = await world.enqueue(job)
    assert await world.claim() == []
    again = await run_by(world, "dead")
    assert await recover(world) == Recovered(("dead",), requeued=1, failed=1)
    failed = await world.store.execution(lost.execution.id)
    assert (failed.status, failed.owner, failed.ended_at) == (ExecutionStatus.FAILED, None, world.clock.now())
    assert failed.error
    [attempt] = await world.store.attempts(lost.execution.id)
    assert attempt.status is AttemptStatus.LOST
    assert {item.execution.id for item in await world.claim()} == {waiting.id, again.execution.id}


async def test_what_nobody_runs_needs_no_recovery(world: World) -> None:
    await world.join("dead", lease=NONE)
    retrying, pending, ended = [await run_by(world, "dead") for _ in range(3)]
    await world.store.retry(world.ending(retrying), world.clock.now() + HOUR)
    await world.store.await_callback(world.ending(pending), world.clock.now() + HOUR)
    await world.store.fail(world.ending(ended))
    before = await world.executions()
    assert await recover(world) == Recovered(("dead",))
    assert await world.executions() == before


async def test_recovery_takes_portions_and_loses_nothing(world: World) -> None:
    job = await world.job(limit=2)
    await world.join("dead", lease=NONE)
    for _ in range(3):
        await world.enqueue(job)
    parallel = await world.job()
    for _ in range(3):
        await world.enqueue(parallel)
    lost = {item.execution.id for item in await world.claim(100, "dead")}
    assert len(lost) == 5
    portions = [await recover(world, 2) for _ in range(4)]
    assert [portion.requeued for portion in portions] == [2, 2, 1, 0]
    assert [portion.dead_instances for portion in portions] == [("dead",), (), (), ()]
    again = await world.claim(100, "new")
    assert {item.execution.id for item in again} == lost
    assert {item.execution.epoch for item in again} == {2}


async def test_of_many_recoveries_at_once_each_run_is_recovered_by_one(world: World, url: str) -> None:
    await world.join("dead", lease=NONE)
    job = await world.job()
    for _ in range(12):
        await world.enqueue(job)
    lost = await world.claim(12, "dead")
    async with rivals(world, url) as stores:
        answers = await asyncio.gather(*(stores[n % len(stores)].recover(world.clock.now(), 100) for n in range(8)))
    # Two at once may pass over what the other has just looked at; whoever looks next takes it.
    answers.append(await recover(world))
    assert sum(len(answer.dead_instances) for answer in answers) == 1
    assert sum(answer.requeued for answer in answers) == 12
    for item in lost:
        assert len(await world.store.attempts(item.execution.id)) == 1


# Locks ----------------------------------------------------------------------------------------------------------------


async def acquired(world: World, owner: str, ttl: timedelta = HOUR, name: str = "leader") -> Lease:
    lease = await world.store.acquire_lock(name, owner, ttl)
    assert lease is not None
    return lease


async def test_a_lock_has_one_holder_who_keeps_its_token(world: World) -> None:
    assert await world.store.lock("leader") is None
    lease = await acquired(world, "one")
    assert (lease.name, lease.owner) == ("leader", "one")
    assert await world.store.lock("leader") == lease
    assert await world.store.acquire_lock("leader", "two", HOUR) is None
    again = await acquired(world, "one", 2 * HOUR)
    assert again.token == lease.token
    assert again.expires_at > lease.expires_at
    assert await world.store.lock("leader") == again
    assert (await acquired(world, "two", name="another")).owner == "two"


async def test_a_lock_that_ran_out_or_was_released_goes_to_the_next_with_a_greater_token(world: World) -> None:
    tokens = [(await acquired(world, owner, NONE)).token for owner in ("one", "two", "two", "one")]
    ran_out = await acquired(world, "one", NONE)
    tokens.append(ran_out.token)
    assert await world.store.lock("leader") is None
    assert await world.store.renew_lock(ran_out, HOUR) is None
    assert not await world.store.release_lock(ran_out)
    held = await acquired(world, "three")
    tokens.append(held.token)
    assert await world.store.release_lock(held)
    assert await world.store.lock("leader") is None
    tokens.append((await acquired(world, "three")).token)
    assert tokens == sorted(set(tokens))


async def test_only_the_holder_with_the_right_token_renews_and_releases(world: World) -> None:
    old = await acquired(world, "one", NONE)
    lease = await acquired(world, "two")
    for wrong in (
        old,
        replace(lease, owner="one"),
        replace(lease, token=old.token),
        replace(lease, token=lease.token + 1),
        replace(lease, name="unknown"),
    ):
        assert await world.store.renew_lock(wrong, HOUR) is None
        assert not await world.store.release_lock(wrong)
    assert await world.store.lock("leader") == lease
    renewed = await world.store.renew_lock(lease, 2 * HOUR)
    assert renewed is not None
    assert (renewed.token, renewed.owner) == (lease.token, "two")
    assert renewed.expires_at > lease.expires_at
    assert await world.store.release_lock(lease)
    assert not await world.store.release_lock(lease)


async def test_of_many_who_acquire_at_once_one_gets_the_lock(world: World, url: str) -> None:
    async with rivals(world, url) as stores:
        for name in ("new", "new", "used"):
            if name == "used":
                await acquired(world, "before", NONE, name)
            answers = await asyncio.gather(
                *(stores[n % len(stores)].acquire_lock(name, f"owner-{n}", HOUR) for n in range(20))
            )
            [winner] = [lease for lease in answers if lease is not None]
            assert await world.store.lock(name) == winner
            assert await world.store.release_lock(winner)
