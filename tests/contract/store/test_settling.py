"""Attempts end, and only whoever holds the current epoch can end them."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from ksana.domain.execution import Claim
from ksana.domain.outcome import Evidence
from ksana.domain.states import AttemptStatus, ExecutionStatus
from ksana.store.base import Store
from ksana.store.requests import Ending
from tests.contract.store.world import ANNA, World, claim_of

Verb = Callable[[Store, Ending], Awaitable[bool]]
VERBS: dict[str, tuple[Verb, ExecutionStatus, AttemptStatus]] = {
    "succeed": (lambda store, ending: store.succeed(ending), ExecutionStatus.SUCCESS, AttemptStatus.SUCCEEDED),
    "fail": (lambda store, ending: store.fail(ending), ExecutionStatus.FAILED, AttemptStatus.FAILED),
    "time_out": (lambda store, ending: store.time_out(ending), ExecutionStatus.TIMEOUT, AttemptStatus.TIMED_OUT),
    "retry": (lambda store, ending: store.retry(ending, ending.at), ExecutionStatus.RETRYING, AttemptStatus.FAILED),
    "await_callback": (
        lambda store, ending: store.await_callback(ending, ending.at),
        ExecutionStatus.CALLBACK_PENDING,
        AttemptStatus.AWAITING_CALLBACK,
    ),
    "hand_back": (
        lambda store, ending: store.hand_back(ending.claim, ending.at),
        ExecutionStatus.SCHEDULED,
        AttemptStatus.HANDED_BACK,
    ),
}
each_verb = pytest.mark.parametrize("name", VERBS)


@each_verb
async def test_the_holder_of_the_epoch_ends_its_attempt(world: World, name: str) -> None:
    verb, status, attempt_status = VERBS[name]
    claimed = await world.running()
    assert await verb(world.store, world.ending(claimed))
    execution = await world.store.execution(claimed.execution.id)
    assert execution.status is status
    assert execution.owner is None
    [attempt] = await world.store.attempts(execution.id)
    assert (attempt.status, attempt.owner, attempt.epoch) == (attempt_status, "one", claimed.execution.epoch)


@each_verb
async def test_a_lower_epoch_changes_nothing(world: World, name: str) -> None:
    verb, _, _ = VERBS[name]
    first = await world.running()
    await world.store.hand_back(claim_of(first), world.clock.now())
    [second] = await world.claim(1, "two")
    assert not await verb(world.store, world.ending(first, output={"stale": True}))
    execution = await world.store.execution(first.execution.id)
    assert execution == second.execution
    assert len(await world.store.attempts(execution.id)) == 1


@each_verb
async def test_what_has_ended_stays_as_it_is(world: World, name: str) -> None:
    verb, _, _ = VERBS[name]
    claimed = await world.running()
    await world.store.succeed(world.ending(claimed, output=1))
    before = await world.store.execution(claimed.execution.id)
    assert not await verb(world.store, world.ending(claimed, error="late"))
    assert await world.store.execution(claimed.execution.id) == before


@each_verb
async def test_a_higher_epoch_than_the_stored_one_is_refused_too(world: World, name: str) -> None:
    verb, _, _ = VERBS[name]
    claimed = await world.running()
    forged = Claim(claimed.execution.id, claimed.execution.epoch + 1)
    assert not await verb(world.store, world.ending(forged))
    assert (await world.store.execution(claimed.execution.id)).status is ExecutionStatus.RUNNING


async def test_of_two_ends_at_once_exactly_one_counts(world: World) -> None:
    claimed = await world.running()
    answers = await asyncio.gather(
        world.store.succeed(world.ending(claimed)), world.store.fail(world.ending(claimed, error="no"))
    )
    assert sorted(answers) == [False, True]
    assert len(await world.store.attempts(claimed.execution.id)) == 1


async def test_many_ends_in_one_batch_each_get_their_own_answer(world: World) -> None:
    job = await world.job()
    for _ in range(30):
        await world.enqueue(job)
    claimed = await world.claim(30)
    stale = [Claim(item.execution.id, item.execution.epoch - 1) for item in claimed[:10]]
    good = [world.ending(item, output={"id": item.execution.id}) for item in claimed[10:]]
    answers = await asyncio.gather(
        *(world.store.succeed(world.ending(claim)) for claim in stale), *(world.store.succeed(end) for end in good)
    )
    assert answers == [False] * 10 + [True] * 20
    for ending in good:
        assert (await world.store.execution(ending.claim.execution_id)).output == {"id": ending.claim.execution_id}


async def test_an_attempt_keeps_what_was_sent_and_what_came_back(world: World) -> None:
    claimed = await world.running()
    evidence = Evidence(
        request={"method": "POST", "url": "http://x/"},
        request_body='{"a": "ü 刹那 \U0001f600"}',
        response_code=503,
        response_headers={"Retry-After": "3"},
        response_body="x" * 100_000,
    )
    await world.store.fail(world.ending(claimed, error="503", evidence=evidence))
    [attempt] = await world.store.attempts(claimed.execution.id)
    assert attempt.evidence == evidence
    assert attempt.error == "503"


async def test_bodies_that_no_database_can_hold_are_kept_as_far_as_they_can_be(world: World) -> None:
    claimed = await world.running()
    evidence = Evidence(response_body="a\0b\ud800c")
    assert await world.store.succeed(world.ending(claimed, output={"k": "n\0l"}, evidence=evidence))
    [attempt] = await world.store.attempts(claimed.execution.id)
    assert attempt.evidence.response_body == "a\ufffdb?c"
    assert (await world.store.execution(claimed.execution.id)).status is ExecutionStatus.SUCCESS


async def test_a_retry_is_claimable_from_its_time_on_and_keeps_its_number(world: World) -> None:
    claimed = await world.running()
    await world.store.retry(world.ending(claimed, error="first"), world.clock.now() + timedelta(seconds=5))
    assert await world.claim() == []
    world.clock.advance(timedelta(seconds=5))
    [again] = await world.claim()
    assert (again.execution.attempt, again.execution.epoch) == (2, 2)
    assert again.execution.started_at == claimed.execution.started_at


async def test_what_is_handed_back_is_ready_at_once_and_its_attempt_does_not_count(world: World) -> None:
    claimed = await world.running()
    await world.store.hand_back(claim_of(claimed), world.clock.now())
    [again] = await world.claim(1, "two")
    assert (again.execution.attempt, again.execution.epoch) == (1, 2)


async def test_still_mine_tells_the_zombies(world: World) -> None:
    job = await world.job()
    for _ in range(3):
        await world.enqueue(job)
    kept, ended, canceled = [claim_of(claimed) for claimed in await world.claim(3)]
    stale = Claim(kept.execution_id, kept.epoch - 1)
    await world.store.succeed(world.ending(ended))
    await world.store.cancel(canceled.execution_id, ANNA, world.clock.now())
    assert await world.store.still_mine([kept, ended, canceled, stale]) == {kept}
