"""Claims: the earliest first, nobody twice, never more of a job than its limit."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import text

from ksana.domain.execution import Claimed
from ksana.domain.job import ConcurrencyPolicy
from ksana.domain.states import ExecutionStatus
from ksana.store.requests import ClaimRequest, JobChange
from ksana.store.sql import codec
from ksana.store.sql.store import SqlStore
from tests.contract.store.world import ANNA, World, http_spec, run_sql


def ids(claimed: list[Claimed]) -> list[int]:
    return [item.execution.id for item in claimed]


async def test_a_claim_takes_the_earliest_that_are_ready_and_no_more_than_it_has_room_for(world: World) -> None:
    job = await world.job()
    made = [await world.enqueue(job) for _ in range(5)]
    first = await world.claim(2)
    assert ids(first) == [execution.id for execution in made[:2]]
    assert [item.execution.epoch for item in first] == [1, 1]
    assert {item.execution.status for item in first} == {ExecutionStatus.RUNNING}
    assert first[0].job == job
    assert ids(await world.claim(10)) == [execution.id for execution in made[2:]]


async def test_what_is_not_ready_yet_is_left(world: World) -> None:
    job = await world.job()
    await world.enqueue(job)
    world.clock.advance(timedelta(seconds=-1))
    assert await world.claim() == []


async def test_what_is_ready_when_a_claim_has_its_turn_is_taken_though_it_was_asked_for_before(world: World) -> None:
    job, asked_at = await world.job(), world.clock.now()
    world.clock.advance(timedelta(milliseconds=2))
    await world.enqueue(job)
    (claimed,) = await world.store.claim(ClaimRequest("one", 1), asked_at)
    assert claimed.execution.started_at == world.clock.now()
    assert await world.store.execution(claimed.execution.id) == claimed.execution


async def test_a_claim_is_stored_with_its_owner_before_it_is_answered(world: World) -> None:
    claimed = await world.running()
    assert await world.store.execution(claimed.execution.id) == claimed.execution
    assert claimed.execution.owner == "one"


async def test_a_worker_takes_only_from_its_own_queues(world: World) -> None:
    ordinary = await world.job()
    special = await world.job(worker_queue="gpu")
    await world.enqueue(ordinary)
    wanted = await world.enqueue(special)
    claimed = await world.store.claim(ClaimRequest("one", 10, ("gpu",)), world.clock.now())
    assert [item.execution.id for item in claimed] == [wanted.id]
    both = await world.store.claim(ClaimRequest("one", 10, ("gpu", "default")), world.clock.now())
    assert len(both) == 1


async def test_concurrent_claims_share_without_overlap(world: World) -> None:
    job = await world.job()
    for _ in range(40):
        await world.enqueue(job)
    shares = await asyncio.gather(*(world.claim(10, f"instance-{n}") for n in range(6)))
    taken = [execution_id for share in shares for execution_id in ids(share)]
    assert len(taken) == len(set(taken)) == 40


async def test_a_job_never_runs_more_often_than_its_limit(world: World) -> None:
    job = await world.job(limit=2)
    made = [await world.enqueue(job) for _ in range(5)]
    assert ids(await world.claim()) == [made[0].id, made[1].id]
    assert await world.claim() == []
    queued = [await world.store.execution(execution.id) for execution in made[2:]]
    assert {execution.status for execution in queued} == {ExecutionStatus.QUEUED}
    assert [await world.store.queue_position(execution.id) for execution in queued] == [0, 1, 2]


async def test_the_end_of_a_run_lets_the_oldest_queued_one_start(world: World) -> None:
    job = await world.job(limit=1)
    made = [await world.enqueue(job) for _ in range(3)]
    order = []
    for _ in made:
        [claimed] = await world.claim()
        order.append(claimed.execution.id)
        newcomer = await world.enqueue(job)
        await world.store.succeed(world.ending(claimed))
    assert order == [execution.id for execution in made]
    assert (await world.store.execution(newcomer.id)).status is not ExecutionStatus.RUNNING


async def test_a_run_that_waits_for_its_retry_keeps_its_slot(world: World) -> None:
    job = await world.job(limit=1)
    first = await world.running(job)
    second = await world.enqueue(job)
    await world.store.retry(world.ending(first), world.clock.now() + timedelta(seconds=10))
    assert await world.claim() == []
    world.clock.advance(timedelta(seconds=10))
    assert ids(await world.claim()) == [first.execution.id]
    assert (await world.store.execution(second.id)).status is ExecutionStatus.QUEUED


async def test_a_run_that_waits_for_its_callback_keeps_its_slot(world: World) -> None:
    job = await world.job(limit=1)
    first = await world.running(job)
    await world.enqueue(job)
    await world.store.await_callback(world.ending(first), world.clock.now() + timedelta(seconds=10))
    assert await world.claim() == []


async def test_a_full_job_does_not_hide_the_others(world: World) -> None:
    full = await world.job(limit=1)
    for _ in range(30):
        await world.enqueue(full)
    other = await world.enqueue(await world.job())
    first, second = await world.claim(2)
    assert first.job.id == full.id
    assert second.execution.id == other.id


async def test_a_raised_limit_counts_at_once(world: World) -> None:
    job = await world.job(limit=1)
    for _ in range(4):
        await world.enqueue(job)
    assert len(await world.claim()) == 1
    raised = http_spec(job.spec.name, concurrency=ConcurrencyPolicy.QUEUE, max_concurrency=3)
    await world.store.change_job(JobChange(job.id, raised, actor=ANNA))
    assert len(await world.claim()) == 2


async def test_a_lowered_limit_counts_at_once(world: World) -> None:
    job = await world.job(limit=3)
    for _ in range(3):
        await world.enqueue(job)
    lowered = http_spec(job.spec.name, concurrency=ConcurrencyPolicy.QUEUE, max_concurrency=1)
    await world.store.change_job(JobChange(job.id, lowered, actor=ANNA))
    assert len(await world.claim()) == 1


async def test_each_claim_brings_its_job_as_it_is_by_then(world: World, url: str, back_end: str) -> None:
    job = await world.job()
    first, second = await world.running(job), await world.running(job)
    assert first.job == second.job == job
    changed = await world.store.change_job(
        JobChange(job.id, replace(job.spec, timeout=timedelta(seconds=7)), actor=ANNA)
    )
    assert (await world.running(job)).job == changed
    if back_end != "json":  # as if that change had been rolled back, and another made in its place
        other = codec.job_spec_json(replace(job.spec, timeout=timedelta(seconds=9)))
        run_sql(url, "UPDATE jobs SET spec = :spec, updated_at = updated_at + 1 WHERE id = :id", spec=other, id=job.id)
        again = (await world.running(job)).job
        assert (again.version, again.spec.timeout) == (changed.version, timedelta(seconds=9))


async def test_a_claim_that_is_cancelled_hands_back_what_it_took(world: World) -> None:
    await world.enqueue(await world.job())
    claiming = asyncio.ensure_future(world.claim())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    claiming.cancel()
    with pytest.raises(asyncio.CancelledError):
        await claiming
    [claimed] = await world.claim(1, "two")
    assert (claimed.execution.owner, claimed.execution.attempt) == ("two", 1)


async def test_what_was_asked_for_while_its_job_was_deleted_does_not_run(world: World, url: str) -> None:
    job = await world.job()
    await world.store.delete_job(job.id, ANNA)
    made = await world.enqueue(await world.job())
    # As if it had been asked for in the instant of the deletion.
    run_sql(url, f"UPDATE executions SET job_id = {job.id} WHERE id = {made.id}")
    assert await world.claim() == []
    execution = await world.store.execution(made.id)
    assert (execution.status, execution.reason) == (ExecutionStatus.CANCELED, "job_deleted")


async def test_a_parallel_job_ignores_its_limit(world: World) -> None:
    job = await world.job(max_concurrency=1, concurrency=ConcurrencyPolicy.PARALLEL)
    for _ in range(3):
        await world.enqueue(job)
    assert len(await world.claim()) == 3


async def test_claims_and_ends_of_a_limited_job_at_once_lose_nothing(world: World) -> None:
    job = await world.job(limit=2)
    for _ in range(20):
        await world.enqueue(job)
    done: list[int] = []
    running: list[Claimed] = await world.claim()
    for _ in range(100):
        if len(done) == 20:
            break
        ends = [asyncio.ensure_future(world.store.succeed(world.ending(item))) for item in running]
        claims = await asyncio.gather(world.claim(5, "one"), world.claim(5, "two"))
        assert all(await asyncio.gather(*ends))
        done += ids(running)
        running = [item for claimed in claims for item in claimed]
        assert len(running) <= 2
        if not running:
            running = await world.claim()
    assert len(done) == len(set(done)) == 20


BLOCKED = {
    "postgresql": "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()",
    "mysql": "SELECT count(*) FROM information_schema.innodb_trx x JOIN information_schema.processlist p"
    " ON p.id = x.trx_mysql_thread_id WHERE x.trx_state = 'LOCK WAIT' AND p.db = database()",
}


async def until_a_lock_is_waited_for(url: str, back_end: str) -> None:
    async with asyncio.timeout(10):
        while run_sql(url, BLOCKED[back_end])[0][0] == 0:  # noqa: ASYNC110 - a server's view has no event
            # InnoDB makes its view anew only for who has not asked for 0.1 s.
            await asyncio.sleep(0.25)


@pytest.mark.parametrize("back_end", ["postgresql", "mysql"], indirect=True)
@pytest.mark.parametrize(
    ("before", "after"), [("RUNNING", "RETRYING"), ("RETRYING", "RUNNING"), ("RUNNING", "CALLBACK_PENDING")]
)
async def test_a_run_that_changes_its_state_while_it_is_counted_keeps_its_slot(
    world: World, store: SqlStore, url: str, back_end: str, before: str, after: str
) -> None:
    job = await world.job(limit=1)
    held = await world.running(job)
    run_sql(url, f"UPDATE executions SET status = '{before}' WHERE id = {held.execution.id}")
    await world.enqueue(job)
    with store._reading.begin() as rival:
        rival.execute(text(f"UPDATE executions SET status = '{after}' WHERE id = {held.execution.id}"))
        claiming = asyncio.create_task(world.claim())
        await until_a_lock_is_waited_for(url, back_end)
    assert await claiming == []
