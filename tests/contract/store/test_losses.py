"""Attempts that ended with their instance: they are counted, and what ends its instance each time is given up."""

from datetime import timedelta

from ksana.domain.execution import Claimed
from ksana.domain.instance import MOST_LOSSES
from ksana.domain.states import AttemptStatus, ExecutionStatus
from ksana.store.requests import Recovered
from tests.contract.store.world import World, claim_of, run_sql

NONE = timedelta(0)


async def lose(world: World, number: int) -> Recovered:
    """An instance takes what is ready, and is no more."""
    await world.join(f"dead-{number}", lease=NONE)
    await world.claim(instance=f"dead-{number}")
    return await world.store.recover(world.clock.now(), 100)


def losses(url: str, execution_id: int) -> int:
    [row] = run_sql(url, f"SELECT losses FROM executions WHERE id = {execution_id}")
    return int(row.losses)


async def test_what_ends_its_instance_each_time_is_given_up_and_says_why(world: World) -> None:
    made = await world.enqueue(await world.job())
    answers = [await lose(world, number) for number in range(MOST_LOSSES)]
    assert [each.requeued for each in answers] == [1] * (MOST_LOSSES - 1) + [0]
    assert answers[-1].failed == 1
    execution = await world.store.execution(made.id)
    assert execution.status is ExecutionStatus.FAILED
    assert f"{MOST_LOSSES} times" in (execution.error or "")
    attempts = await world.store.attempts(made.id)
    assert [each.status for each in attempts] == [AttemptStatus.LOST] * MOST_LOSSES
    assert await world.claim() == []


async def test_one_that_is_given_up_gives_its_slot_to_the_next(world: World) -> None:
    job = await world.job(limit=1)
    await world.enqueue(job)
    waiting = await world.enqueue(job)
    for number in range(MOST_LOSSES):
        await lose(world, number)
    [claimed] = await world.claim()
    assert claimed.execution.id == waiting.id


async def test_others_that_were_lost_with_it_less_often_are_run_again(world: World) -> None:
    bad = await world.enqueue(await world.job())
    for number in range(MOST_LOSSES - 1):
        await lose(world, number)
    bystander = await world.enqueue(await world.job())
    await lose(world, MOST_LOSSES)
    assert await world.status(bad.id) is ExecutionStatus.FAILED
    assert [each.execution.id for each in await world.claim()] == [bystander.id]


async def test_what_is_handed_back_or_retried_is_not_lost(world: World, url: str) -> None:
    made = await world.enqueue(await world.job())
    for _ in range(MOST_LOSSES):
        [claimed] = await world.claim()
        assert await world.store.hand_back(claim_of(claimed), world.clock.now())
    assert losses(url, made.id) == 0
    await _retried(world)
    assert losses(url, made.id) == 0
    await lose(world, 1)
    assert losses(url, made.id) == 1
    assert await world.status(made.id) is ExecutionStatus.SCHEDULED


async def _retried(world: World) -> Claimed:
    [claimed] = await world.claim()
    assert await world.store.retry(world.ending(claimed, error="x"), world.clock.now())
    return claimed


async def test_a_claim_says_how_often_it_was_lost(world: World) -> None:
    made = await world.enqueue(await world.job())
    await lose(world, 1)
    [claimed] = await world.claim()
    assert (claimed.execution.id, claimed.execution.attempt, claimed.execution.losses) == (made.id, 2, 1)
