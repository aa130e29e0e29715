"""Ends that do not come from the runner: a person cancels, a target reports, a deadline passes."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from ksana.domain.errors import NotFound
from ksana.domain.events import EventType
from ksana.domain.execution import Claim, Claimed
from ksana.domain.job import Job
from ksana.domain.outcome import Evidence
from ksana.domain.states import AttemptStatus, ExecutionStatus
from ksana.store.requests import CallbackReport, NewCallback
from tests.contract.store.world import ANNA, World, claim_of, run_sql

MINUTE = timedelta(minutes=1)
S = ExecutionStatus


async def open_callback(world: World, claimed: Claimed | Claim, token: str = "token") -> bool:
    claim = claimed if isinstance(claimed, Claim) else claim_of(claimed)
    return await world.store.open_callback(NewCallback(claim, token, world.clock.now() + MINUTE))


async def pending(world: World, job: Job | None = None, token: str = "token") -> Claimed:
    """An execution whose target accepted it and will report under that token within a minute."""
    claimed = await world.running(job)
    assert await open_callback(world, claimed, token)
    assert await world.store.await_callback(world.ending(claimed), world.clock.now() + MINUTE)
    return claimed


def report(world: World, target: S = S.CALLBACK_SUCCESS, **changes: Any) -> CallbackReport:
    if "execution_id" not in changes:
        changes = {"token_hash": "token", **changes}
    return CallbackReport(target, world.clock.now(), **changes)


def kept(url: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in run_sql(url, "SELECT status, body FROM callbacks ORDER BY id")]


# Cancel ---------------------------------------------------------------------------------------------------------------


async def _scheduled(world: World, job: Job) -> int:
    return (await world.enqueue(job)).id


async def _promoted(world: World, job: Job) -> int:
    """One that was queued and may start now."""
    first = await world.running(job)
    second = await world.enqueue(job)
    await world.claim()
    await world.store.succeed(world.ending(first))
    return second.id


async def _running(world: World, job: Job) -> int:
    return (await world.running(job)).execution.id


async def _retrying(world: World, job: Job) -> int:
    claimed = await world.running(job)
    await world.store.retry(world.ending(claimed, error="first"), world.clock.now() + MINUTE)
    return claimed.execution.id


async def _pending(world: World, job: Job) -> int:
    return (await pending(world, job)).execution.id


Situation = Callable[[World, Job], Awaitable[int]]
SITUATIONS: dict[str, tuple[Situation, ExecutionStatus, list[AttemptStatus]]] = {
    "scheduled": (_scheduled, S.SCHEDULED, []),
    "promoted": (_promoted, S.SCHEDULED, []),
    "running": (_running, S.RUNNING, [AttemptStatus.CANCELED]),
    "retrying": (_retrying, S.RETRYING, [AttemptStatus.FAILED]),
    "awaiting its callback": (_pending, S.CALLBACK_PENDING, [AttemptStatus.CANCELED]),
}


@pytest.mark.parametrize("situation", SITUATIONS)
async def test_a_canceled_run_ends_and_gives_its_slot_to_the_next(world: World, situation: str) -> None:
    make, status, attempts = SITUATIONS[situation]
    job = await world.job(limit=1)
    execution_id = await make(world, job)
    waiting = await world.enqueue(job)
    if status is not S.SCHEDULED:
        assert await world.claim() == []
        assert await world.status(waiting.id) is S.QUEUED
    assert await world.status(execution_id) is status
    canceled = await world.store.cancel(execution_id, ANNA, world.clock.now())
    assert (canceled.status, canceled.ended_at) == (S.CANCELED, world.clock.now())
    assert (canceled.owner, canceled.ready_at, canceled.deadline_at) == (None, None, None)
    assert canceled.reason == ANNA.reason
    assert await world.store.execution(execution_id) == canceled
    assert [attempt.status for attempt in await world.store.attempts(execution_id)] == attempts
    assert [item.execution.id for item in await world.claim()] == [waiting.id]


async def test_a_queued_run_is_canceled_and_those_behind_it_move_up(world: World) -> None:
    job = await world.job(limit=1)
    first = await world.running(job)
    made = [await world.enqueue(job) for _ in range(2)]
    await world.claim()
    assert [await world.store.queue_position(execution.id) for execution in made] == [0, 1]
    canceled = await world.store.cancel(made[0].id, ANNA, world.clock.now())
    assert (canceled.status, canceled.reason) == (S.CANCELED, ANNA.reason)
    assert await world.store.queue_position(made[1].id) == 0
    assert await world.claim() == []
    await world.store.succeed(world.ending(first))
    assert [item.execution.id for item in await world.claim()] == [made[1].id]


async def test_canceling_what_has_ended_changes_nothing(world: World) -> None:
    claimed = await world.running()
    await world.store.succeed(world.ending(claimed, output={"kept": True}))
    other = await world.running()
    await world.store.cancel(other.execution.id, ANNA, world.clock.now())
    before = await world.everything()
    world.clock.advance(MINUTE)
    assert (await world.store.cancel(claimed.execution.id, ANNA, world.clock.now())).output == {"kept": True}
    assert (await world.store.cancel(other.execution.id, ANNA, world.clock.now())).status is S.CANCELED
    assert await world.everything() == before
    with pytest.raises(NotFound):
        await world.store.cancel(4_711, ANNA, world.clock.now())


async def test_of_a_cancel_and_an_end_at_once_one_counts(world: World) -> None:
    claimed = await world.running()
    succeeded, canceled = await asyncio.gather(
        world.store.succeed(world.ending(claimed)), world.store.cancel(claimed.execution.id, ANNA, world.clock.now())
    )
    status = await world.status(claimed.execution.id)
    assert status is (S.SUCCESS if succeeded else S.CANCELED)
    assert canceled.status is status
    assert len(await world.store.attempts(claimed.execution.id)) == 1


# Callbacks ------------------------------------------------------------------------------------------------------------


async def test_a_token_is_opened_only_by_the_holder_of_the_epoch(world: World) -> None:
    claimed = await world.running()
    stale = Claim(claimed.execution.id, claimed.execution.epoch - 1)
    assert not await open_callback(world, stale, "stale")
    assert await open_callback(world, claimed, "good")
    await world.store.succeed(world.ending(claimed))
    assert not await open_callback(world, claimed, "late")
    for token in ("stale", "late", "never opened"):
        with pytest.raises(NotFound):
            await world.store.report_callback(report(world, token_hash=token))


@pytest.mark.parametrize("by_token", [True, False], ids=["by token", "by ids"])
async def test_a_report_ends_what_waits_for_it(world: World, url: str, by_token: bool) -> None:
    job = await world.job(limit=1)
    claimed = await pending(world, job)
    waiting = await world.enqueue(job)
    world.clock.advance(timedelta(seconds=7))
    ids: dict[str, Any] = {"execution_id": claimed.execution.id, "job_id": job.id}
    said = report(
        world, output={"rows": 3, "text": "刹那"}, headers={"X-Y": "ü"}, body="b\U0001f600", **({} if by_token else ids)
    )
    answer = await world.store.report_callback(said)
    assert answer.accepted
    assert (answer.execution.status, answer.execution.output) == (S.CALLBACK_SUCCESS, {"rows": 3, "text": "刹那"})
    assert (answer.execution.ended_at, answer.execution.deadline_at) == (world.clock.now(), None)
    assert await world.store.execution(claimed.execution.id) == answer.execution
    [attempt] = await world.store.attempts(claimed.execution.id)
    assert (attempt.status, attempt.ended_at) == (AttemptStatus.SUCCEEDED, world.clock.now())
    assert kept(url) == [("RECEIVED", "b\U0001f600")]
    assert EventType.CALLBACK_RECEIVED in await world.event_types()
    assert [item.execution.id for item in await world.claim()] == [waiting.id]


async def test_a_report_by_ids_needs_the_right_job(world: World) -> None:
    claimed = await pending(world)
    other = await world.job()
    before = await world.everything()
    for execution_id, job_id in ((claimed.execution.id, other.id), (claimed.execution.id, None), (4_711, other.id)):
        with pytest.raises(NotFound):
            await world.store.report_callback(report(world, execution_id=execution_id, job_id=job_id))
    assert await world.everything() == before


async def test_a_report_by_ids_on_a_run_that_opened_no_callback_is_for_nobody(world: World) -> None:
    claimed = await world.running()
    with pytest.raises(NotFound):
        await world.store.report_callback(report(world, execution_id=claimed.execution.id, job_id=claimed.job.id))
    assert await world.status(claimed.execution.id) is S.RUNNING


async def test_a_token_that_ran_out_is_kept_and_changes_nothing(world: World, url: str) -> None:
    claimed = await world.running()
    await open_callback(world, claimed)
    world.clock.advance(2 * MINUTE)
    assert not (await world.store.report_callback(report(world))).accepted
    assert await world.status(claimed.execution.id) is S.RUNNING
    assert [status for status, _ in kept(url)] == ["IGNORED"]


async def test_a_report_may_come_before_the_target_has_answered(world: World) -> None:
    claimed = await world.running()
    await open_callback(world, claimed)
    assert (await world.store.report_callback(report(world, output=1))).accepted
    before = await world.store.execution(claimed.execution.id)
    assert (before.status, before.owner) == (S.CALLBACK_SUCCESS, None)
    evidence = Evidence(request={"method": "POST"}, request_body="b", response_code=202, response_body="accepted")
    late = world.ending(claimed, evidence=evidence)
    assert not await world.store.await_callback(late, world.clock.now() + MINUTE)
    assert await world.store.execution(claimed.execution.id) == before
    [attempt] = await world.store.attempts(claimed.execution.id)
    assert attempt.status is AttemptStatus.SUCCEEDED
    assert attempt.evidence == evidence


async def test_a_second_report_is_kept_and_changes_nothing(world: World, url: str) -> None:
    claimed = await pending(world)
    first = await world.store.report_callback(report(world, output="first", body="1"))
    world.clock.advance(timedelta(seconds=1))
    second = await world.store.report_callback(report(world, S.FAILED, error="second", body="2"))
    assert (first.accepted, second.accepted) == (True, False)
    assert second.execution == first.execution == await world.store.execution(claimed.execution.id)
    assert kept(url) == [("RECEIVED", "1"), ("IGNORED", "2")]
    assert len(await world.store.attempts(claimed.execution.id)) == 1


async def test_of_many_reports_at_once_one_is_accepted(world: World, url: str) -> None:
    claimed = await pending(world)
    answers = await asyncio.gather(*(world.store.report_callback(report(world, output=n)) for n in range(10)))
    [accepted] = [n for n, answer in enumerate(answers) if answer.accepted]
    assert (await world.store.execution(claimed.execution.id)).output == accepted
    assert sorted(status for status, _ in kept(url)) == ["IGNORED"] * 9 + ["RECEIVED"]


@pytest.mark.parametrize("waits", [True, False], ids=["awaiting its callback", "running"])
@pytest.mark.parametrize(
    ("target", "delay"), [(S.FAILED, None), (S.RETRYING, timedelta(seconds=30))], ids=["failed", "retrying"]
)
async def test_a_report_of_failure_fails_it_or_lets_it_be_tried_again(
    world: World, waits: bool, target: S, delay: timedelta | None
) -> None:
    claimed = await world.running()
    await open_callback(world, claimed)
    if waits:
        await world.store.await_callback(world.ending(claimed), world.clock.now() + MINUTE)
    retry_at: datetime | None = None if delay is None else world.clock.now() + delay
    answer = await world.store.report_callback(report(world, target, error="target said no", retry_at=retry_at))
    assert answer.accepted
    assert (answer.execution.status, answer.execution.error) == (target, "target said no")
    assert answer.execution.ready_at == retry_at
    [attempt] = await world.store.attempts(claimed.execution.id)
    assert (attempt.status, attempt.error) == (AttemptStatus.FAILED, "target said no")
    assert await world.claim() == []
    world.clock.advance(MINUTE)
    again = [(item.execution.attempt, item.execution.epoch) for item in await world.claim()]
    assert again == ([] if delay is None else [(2, 2)])


async def test_the_token_of_an_earlier_attempt_does_not_close_a_later_one(world: World) -> None:
    claimed = await pending(world, token="first")
    again = report(world, S.RETRYING, token_hash="first", retry_at=world.clock.now())
    assert (await world.store.report_callback(again)).accepted
    [second] = await world.claim()
    assert second.execution.id == claimed.execution.id
    await open_callback(world, second, "second")
    assert not (await world.store.report_callback(report(world, token_hash="first"))).accepted
    assert await world.status(claimed.execution.id) is S.RUNNING
    await world.store.await_callback(world.ending(second), world.clock.now() + MINUTE)
    assert not (await world.store.report_callback(report(world, token_hash="first"))).accepted
    assert await world.status(claimed.execution.id) is S.CALLBACK_PENDING
    assert (await world.store.report_callback(report(world, token_hash="second"))).accepted
    assert [attempt.status for attempt in await world.store.attempts(claimed.execution.id)] == [
        AttemptStatus.FAILED,
        AttemptStatus.SUCCEEDED,
    ]


async def test_an_error_that_is_too_long_is_cut_at_its_end(world: World) -> None:
    claimed = await pending(world)
    error = "aü刹" * 100_000
    answer = await world.store.report_callback(report(world, S.FAILED, error=error))
    [attempt] = await world.store.attempts(claimed.execution.id)
    for told in (answer.execution.error, attempt.error):
        assert told is not None
        assert len(told) >= 10_000
        assert error.startswith(told)


async def test_callbacks_expire_only_past_their_deadline(world: World, url: str) -> None:
    job = await world.job(limit=1)
    late = await pending(world, job)
    in_time = await pending(world, token="other")
    waiting = await world.enqueue(job)
    assert await world.claim() == []
    await world.store.report_callback(report(world, token_hash="other"))
    world.clock.advance(MINUTE - timedelta(microseconds=1))
    assert await world.store.expire_callbacks(world.clock.now(), 10) == []
    world.clock.advance(timedelta(seconds=1))
    assert await world.store.expire_callbacks(world.clock.now(), 10) == [late.execution.id]
    assert await world.store.expire_callbacks(world.clock.now(), 10) == []
    expired = await world.store.execution(late.execution.id)
    assert (expired.status, expired.ended_at, expired.deadline_at) == (S.FAILED_TIMEOUT, world.clock.now(), None)
    [attempt] = await world.store.attempts(late.execution.id)
    assert attempt.status is AttemptStatus.TIMED_OUT
    assert await world.status(in_time.execution.id) is S.CALLBACK_SUCCESS
    assert [item.execution.id for item in await world.claim()] == [waiting.id]
    too_late = await world.store.report_callback(report(world, body="too late"))
    assert not too_late.accepted
    assert too_late.execution == expired
    assert ("IGNORED", "too late") in kept(url)


async def test_callbacks_expire_in_portions_the_longest_overdue_first(world: World) -> None:
    made = []
    for number in range(5):
        made.append((await pending(world, token=f"t{number}")).execution.id)
        world.clock.advance(timedelta(seconds=1))
    world.clock.advance(timedelta(hours=1))
    portions = [list(await world.store.expire_callbacks(world.clock.now(), 2)) for _ in range(4)]
    assert portions == [made[:2], made[2:4], made[4:], []]
