"""One execution from claim to end: outcomes, retries, callbacks, cancels, hand-backs, fences."""

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.contract.store.world import ANNA, run_sql
from tests.unit.engine.simulation import Simulation

from ksana.domain.errors import ConcurrencyLimit, NotFound, StoreUnavailable
from ksana.domain.job import ConcurrencyPolicy, ExecutionMode, RecoveryRule
from ksana.domain.outcome import AwaitingCallback, Evidence, Failed, Outcome, Succeeded, TimedOut
from ksana.domain.retry import RetryPolicy
from ksana.domain.states import AttemptStatus, ExecutionStatus
from ksana.engine.commands import CallbackMessage, JobEdit
from ksana.engine.queries import JobView
from ksana.executors.base import ExecutionContext
from ksana.store.requests import ClaimRequest, Ending, NewInstance

SECOND = timedelta(seconds=1)
FIXED = RetryPolicy(max_attempts=3, delay=10 * SECOND)
GROWING = RetryPolicy(max_attempts=5, delay=10 * SECOND, multiplier=2.0, max_delay=30 * SECOND)
S = ExecutionStatus


async def test_a_success_keeps_its_output_and_its_evidence(sim: Simulation) -> None:
    evidence = Evidence(request={"method": "GET", "url": "http://t/"}, response_code=200, response_body="ok")
    sim.target.answer = lambda _: Succeeded(output={"n": 1}, evidence=evidence)
    view = await sim.job()
    run = await sim.run(view.job)
    await sim.settle()
    ended = await sim.store.execution(run.id)
    assert (ended.status, ended.output, ended.attempt) == (S.SUCCESS, {"n": 1}, 1)
    [attempt] = await sim.store.attempts(run.id)
    assert attempt.evidence == evidence
    assert sim.figure("cronjob_run_total", status="SUCCESS") == 1
    assert sim.figure("cronjob_http_request_total", method="GET", code="200") == 1


async def test_a_fixed_wait_is_kept_between_attempts_until_none_are_left(sim: Simulation) -> None:
    sim.target.answer = lambda _: Failed("answered 503")
    view = await sim.job(retry=FIXED)
    run = await sim.run(view.job)
    start = sim.clock.now()
    await sim.settle()
    waiting = await sim.store.execution(run.id)
    assert (waiting.status, waiting.ready_at) == (S.RETRYING, start + 10 * SECOND)
    await sim.advance(timedelta(minutes=1))
    assert [context.triggered_at - start for context in sim.target.asked] == [n * 10 * SECOND for n in range(3)]
    ended = await sim.store.execution(run.id)
    assert (ended.status, ended.error, ended.attempt) == (S.FAILED, "answered 503", 3)
    assert sim.figure("cronjob_run_retries_total", task_id=str(view.job.id)) == 2


async def test_an_exponential_wait_doubles_up_to_its_limit(sim: Simulation) -> None:
    sim.target.answer = lambda _: Failed("answered 500")
    await sim.run((await sim.job(retry=GROWING)).job)
    start = sim.clock.now()
    await sim.advance(timedelta(minutes=5))
    assert [(context.triggered_at - start) // SECOND for context in sim.target.asked] == [0, 10, 30, 60, 90]


async def test_a_final_failure_is_not_tried_again(sim: Simulation) -> None:
    sim.target.answer = lambda _: Failed("answered 404", retryable=False)
    view = await sim.job(retry=FIXED)
    await sim.run(view.job)
    await sim.advance(timedelta(minutes=5))
    assert (len(sim.target.asked), await sim.statuses(view.job)) == (1, [S.FAILED])


async def test_a_target_that_asks_for_time_gets_it(sim: Simulation) -> None:
    sim.target.answer = lambda _: Failed("answered 429", retry_after=timedelta(minutes=2))
    view = await sim.job(retry=FIXED)
    run = await sim.run(view.job)
    start = sim.clock.now()
    await sim.settle()
    assert (await sim.store.execution(run.id)).ready_at == start + timedelta(minutes=2)


async def test_a_time_out_is_retried_and_ends_as_such(sim: Simulation) -> None:
    sim.target.answer = lambda _: TimedOut("no answer within 5s")
    view = await sim.job(retry=FIXED)
    run = await sim.run(view.job)
    await sim.advance(timedelta(minutes=1))
    assert await sim.statuses(view.job) == [S.TIMEOUT]
    attempts = await sim.store.attempts(run.id)
    assert [attempt.status for attempt in attempts] == [AttemptStatus.TIMED_OUT] * 3


async def test_every_attempt_of_a_run_carries_the_same_key_and_no_other_run_does(sim: Simulation) -> None:
    sim.target.answer = lambda _: Failed("answered 503")
    view = await sim.job(retry=FIXED)
    await sim.run(view.job)
    await sim.run(view.job)
    await sim.advance(timedelta(minutes=1))
    keys = {context.execution.id: set[str]() for context in sim.target.asked}
    for context in sim.target.asked:
        keys[context.execution.id].add(context.idempotency_key)
    assert [len(each) for each in keys.values()] == [1, 1]
    assert len({key for each in keys.values() for key in each}) == 2


async def test_an_executor_that_breaks_fails_its_attempt_and_nothing_else(sim: Simulation) -> None:
    def broken(_: ExecutionContext) -> Outcome:
        raise RuntimeError("boom")

    sim.target.answer = broken
    view = await sim.job()
    await sim.run(view.job)
    await sim.settle()
    assert await sim.statuses(view.job) == [S.FAILED]


async def test_a_job_without_an_executor_fails_for_good_and_says_so(sim: Simulation) -> None:
    view = await sim.job(retry=FIXED)
    run = await sim.run(view.job)
    sim.engine.workers._runner._executors._ready.clear()  # type: ignore[attr-defined]
    await sim.advance(timedelta(minutes=1))
    ended = await sim.store.execution(run.id)
    assert ended.status is S.FAILED
    assert "no executor of that type" in (ended.error or "")


# Callbacks ----------------------------------------------------------------------------------------------------------


async def pending(sim: Simulation, **changes: Any) -> int:
    sim.target.answer = lambda context: AwaitingCallback(context.job.spec.callback_timeout)
    view = await sim.job(mode=ExecutionMode.ASYNC, callback_timeout=timedelta(minutes=5), **changes)
    run = await sim.run(view.job)
    await sim.settle()
    assert (await sim.store.execution(run.id)).status is S.CALLBACK_PENDING
    return run.id


def token_of(sim: Simulation, number: int = -1) -> str:
    callback = sim.target.asked[number].callback
    assert callback is not None
    assert callback.url == f"http://ksana/api/v1/callbacks/{callback.token}"
    return callback.token


async def test_a_callback_ends_the_run_once(sim: Simulation) -> None:
    run_id = await pending(sim)
    message = CallbackMessage(succeeded=True, token=token_of(sim), output={"rows": 3})
    first, second = await sim.runs.report(message), await sim.runs.report(message)
    assert (first.accepted, second.accepted) == (True, False)
    ended = await sim.store.execution(run_id)
    assert (ended.status, ended.output) == (S.CALLBACK_SUCCESS, {"rows": 3})
    assert [each.status for each in await sim.store.callbacks(run_id)] == ["RECEIVED", "IGNORED"]


async def test_a_callback_that_reports_a_failure_ends_the_run_failed(sim: Simulation) -> None:
    run_id = await pending(sim)
    await sim.runs.report(CallbackMessage(succeeded=False, token=token_of(sim), error="no rows"))
    ended = await sim.store.execution(run_id)
    assert (ended.status, ended.error) == (S.FAILED, "no rows")


async def test_a_callback_that_does_not_come_in_time_ends_the_run(sim: Simulation) -> None:
    run_id = await pending(sim)
    await sim.advance(timedelta(minutes=5))
    assert (await sim.store.execution(run_id)).status is S.FAILED_TIMEOUT
    late = await sim.runs.report(CallbackMessage(succeeded=True, token=token_of(sim)))
    assert not late.accepted
    assert sim.figure("cronjob_run_total", status="FAILED_TIMEOUT") == 1


async def test_an_unknown_token_is_refused(sim: Simulation) -> None:
    await pending(sim)
    with pytest.raises(NotFound):
        await sim.runs.report(CallbackMessage(succeeded=True, token="x" * 43))


async def test_a_callback_before_the_answer_counts_and_the_answer_is_still_kept(sim: Simulation) -> None:
    sim.target.held = asyncio.Event()
    evidence = Evidence(request={"method": "POST"}, response_code=202)
    sim.target.answer = lambda _: AwaitingCallback(timedelta(minutes=5), evidence)
    view = await sim.job(mode=ExecutionMode.ASYNC)
    run = await sim.run(view.job)
    await sim.settle()
    await sim.asked()
    answer = await sim.runs.report(CallbackMessage(succeeded=True, token=token_of(sim)))
    assert answer.accepted
    sim.target.held.set()
    await sim.idle()
    assert (await sim.store.execution(run.id)).status is S.CALLBACK_SUCCESS
    [attempt] = await sim.store.attempts(run.id)
    assert attempt.evidence == evidence


async def test_the_token_of_one_attempt_cannot_close_the_next(sim: Simulation) -> None:
    answers: list[Outcome] = [Failed("answered 503"), AwaitingCallback(timedelta(minutes=5))]
    sim.target.answer = lambda _: answers[len(sim.target.asked) - 1]
    view = await sim.job(mode=ExecutionMode.ASYNC, retry=FIXED)
    run = await sim.run(view.job)
    await sim.advance(15 * SECOND)
    stale = await sim.runs.report(CallbackMessage(succeeded=True, token=token_of(sim, 0)))
    assert (stale.accepted, stale.execution.status) == (False, S.CALLBACK_PENDING)
    assert (await sim.runs.report(CallbackMessage(succeeded=True, token=token_of(sim, 1)))).accepted
    assert (await sim.store.execution(run.id)).status is S.CALLBACK_SUCCESS


async def test_a_run_can_be_made_asynchronous_when_it_is_asked_for(sim: Simulation) -> None:
    sim.target.answer = lambda _: AwaitingCallback(timedelta(minutes=5))
    view = await sim.job()
    await sim.run(view.job, force_async=True)
    await sim.settle()
    assert sim.target.asked[0].mode is ExecutionMode.ASYNC
    assert await sim.statuses(view.job) == [S.CALLBACK_PENDING]


# Cancel -------------------------------------------------------------------------------------------------------------


async def hold(sim: Simulation, **changes: Any) -> int:
    sim.target.held = asyncio.Event()
    view = await sim.job(**changes)
    run = await sim.run(view.job)
    await sim.settle()
    await sim.asked()
    return run.id


async def test_a_running_one_is_cancelled_and_its_work_stopped(sim: Simulation) -> None:
    run_id = await hold(sim)
    canceled = await sim.runs.cancel(run_id, ANNA)
    assert (canceled.execution.status, canceled.by_this) == (S.CANCELED, True)
    await sim.idle()  # though nobody lets it go
    assert sim.engine.workers.claims == []


async def test_what_waits_is_cancelled_too(sim: Simulation) -> None:
    sim.target.answer = lambda _: Failed("answered 503")
    retrying = await sim.run((await sim.job(retry=FIXED)).job)
    await sim.settle()
    waiting = await pending(sim)
    for run_id in (retrying.id, waiting):
        assert (await sim.runs.cancel(run_id, ANNA)).execution.status is S.CANCELED
    await sim.advance(timedelta(hours=1))
    assert len(sim.target.asked) == 2


async def test_a_finished_run_stays_as_it_is(sim: Simulation) -> None:
    run = await sim.run((await sim.job()).job)
    await sim.settle()
    canceled = await sim.runs.cancel(run.id, ANNA)
    assert (canceled.execution.status, canceled.by_this) == (S.SUCCESS, False)


# Concurrency ----------------------------------------------------------------------------------------------------


async def test_queued_runs_go_in_order_one_at_a_time_and_know_their_place(sim: Simulation) -> None:
    view = await sim.job(concurrency=ConcurrencyPolicy.QUEUE, max_concurrency=1)
    sim.target.held = asyncio.Event()
    runs = [await sim.run(view.job) for _ in range(4)]
    await sim.settle()
    why = await sim.queries.explain(runs[2].id, sim.clock.now())
    assert (why.code, why.position, why.running, why.limit) == ("QUEUED", 1, 1, 1)
    sim.target.held.set()
    sim.target.held = None
    await sim.settle()
    assert [context.execution.id for context in sim.target.asked] == [run.id for run in runs]
    assert await sim.all_ended(view.job)


async def test_a_changed_limit_applies_at_once(sim: Simulation) -> None:
    view = await sim.job(concurrency=ConcurrencyPolicy.QUEUE, max_concurrency=1)
    sim.target.held = asyncio.Event()
    for _ in range(4):
        await sim.run(view.job)
    await sim.settle()
    assert len(sim.engine.workers.claims) == 1
    await sim.jobs.change(view.job.id, JobEdit(replace(view.job.spec, max_concurrency=3)), ANNA)
    await sim.settle()
    assert len(sim.engine.workers.claims) == 3


async def test_a_full_job_that_skips_refuses_a_run_by_hand_and_writes_nothing(sim: Simulation) -> None:
    run_id = await hold(sim, concurrency=ConcurrencyPolicy.SKIP, max_concurrency=1)
    job_id = (await sim.store.execution(run_id)).job_id
    assert job_id is not None
    job = await sim.store.job(job_id)
    with pytest.raises(ConcurrencyLimit):
        await sim.run(job)
    assert len(await sim.executions(job)) == 1


# The end of an instance ---------------------------------------------------------------------------------------------


async def test_a_stop_hands_back_what_does_not_end_in_time(sim: Simulation) -> None:
    run_id = await hold(sim)
    await sim.engine.workers.drain(timedelta(0))
    given_back = await sim.store.execution(run_id)
    assert (given_back.status, given_back.attempt) == (S.SCHEDULED, 0)


async def test_a_stop_fails_what_must_not_run_twice(sim: Simulation) -> None:
    run_id = await hold(sim, recovery=RecoveryRule.FAIL)
    await sim.engine.workers.drain(timedelta(0))
    assert (await sim.store.execution(run_id)).status is S.FAILED


async def test_a_stop_lets_what_runs_end_within_the_grace(sim: Simulation) -> None:
    run_id = await hold(sim)
    assert sim.target.held is not None
    draining = asyncio.create_task(sim.engine.workers.drain(timedelta(seconds=60)))
    sim.target.held.set()
    await draining
    assert (await sim.store.execution(run_id)).status is S.SUCCESS


async def test_what_has_not_begun_yet_is_handed_back_even_if_it_must_not_run_twice(sim: Simulation) -> None:
    run = await sim.run((await sim.job(recovery=RecoveryRule.FAIL)).job)
    await sim.engine.dispatcher.run_once(sim.clock.now())  # claimed, and nobody has had a turn since
    sim.engine.workers.hand_back()
    await sim.idle()
    given_back = await sim.store.execution(run.id)
    assert (given_back.status, given_back.attempt, sim.target.asked) == (S.SCHEDULED, 0, [])


async def test_what_has_not_begun_yet_gives_its_place_back_when_its_claim_is_lost(sim: Simulation) -> None:
    run = await sim.run((await sim.job()).job)
    await sim.engine.dispatcher.run_once(sim.clock.now())
    sim.engine.workers.abandon()
    await sim.idle()
    assert (sim.engine.workers.claims, sim.engine.workers.free) == ([], sim.engine.workers.size)
    assert ((await sim.store.execution(run.id)).status, sim.target.asked) == (S.RUNNING, [])


async def test_an_instance_that_lost_its_lease_writes_nothing(sim: Simulation) -> None:
    run_id = await hold(sim)
    sim.engine.workers.abandon()
    await sim.idle()
    left = await sim.store.execution(run_id)
    assert (left.status, left.owner) == (S.RUNNING, "one")


async def test_a_result_that_comes_after_somebody_elses_is_dropped(sim: Simulation) -> None:
    run_id = await hold(sim)
    [claim] = sim.engine.workers.claims
    assert await sim.store.fail(Ending(claim, sim.clock.now(), error="said by another"))
    assert sim.target.held is not None
    sim.target.held.set()
    await sim.idle()
    assert (await sim.store.execution(run_id)).error == "said by another"


async def test_a_store_that_is_away_for_a_moment_does_not_lose_a_result(
    sim: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    succeed, failures = sim.store.succeed, [StoreUnavailable("away"), StoreUnavailable("away")]

    async def flaky(ending: Ending) -> bool:
        if failures:
            raise failures.pop()
        return await succeed(ending)

    monkeypatch.setattr(sim.store, "succeed", flaky)
    view = await sim.job()
    await sim.run(view.job)
    await sim.settle()
    assert await sim.statuses(view.job) == [S.SUCCESS]


async def test_what_a_dead_instance_ran_is_run_again_or_failed_by_the_jobs_rule(sim: Simulation) -> None:
    again = await hold(sim)
    sim.target.asked.clear()
    never = await hold(sim, recovery=RecoveryRule.FAIL)
    sim.engine.workers.abandon()
    await sim.idle()
    sim.target.held = None
    sim.instance = "two"
    await sim.join()  # on this store, whoever joins is the only one
    await sim.engine.recovery.run_once(sim.clock.now())
    await sim.settle()
    assert (await sim.store.execution(again)).status is S.SUCCESS
    assert (await sim.store.execution(never)).status is S.FAILED
    attempts = await sim.store.attempts(again)
    assert [attempt.status for attempt in attempts] == [AttemptStatus.LOST, AttemptStatus.SUCCEEDED]


async def test_a_claim_whose_answer_was_lost_is_handed_back_and_run(sim: Simulation) -> None:
    view = await sim.job()
    run = await sim.run(view.job)
    await sim.store.claim(ClaimRequest(sim.instance, 1), sim.clock.now())  # and nobody hears of it
    assert (await sim.engine.watch.run_once(sim.clock.now())).done == 0  # it may just be on its way to the workers
    assert (await sim.engine.watch.run_once(sim.clock.now())).done == 1
    await sim.settle()
    ended = await sim.store.execution(run.id)
    assert (ended.status, ended.attempt) == (S.SUCCESS, 1)


async def test_the_watch_lets_a_request_end_whose_callback_came_first(sim: Simulation) -> None:
    sim.target.held = asyncio.Event()
    evidence = Evidence(request={"method": "POST"}, response_code=500)
    sim.target.answer = lambda _: Failed("answered 500", evidence=evidence)
    run = await sim.run((await sim.job(mode=ExecutionMode.ASYNC)).job)
    await sim.settle()
    await sim.asked()
    assert (await sim.runs.report(CallbackMessage(succeeded=True, token=token_of(sim)))).accepted
    assert (await sim.engine.watch.run_once(sim.clock.now())).done == 0
    sim.target.held.set()
    await sim.idle()
    assert (await sim.store.execution(run.id)).status is S.CALLBACK_SUCCESS
    [attempt] = await sim.store.attempts(run.id)
    assert attempt.evidence == evidence


async def test_the_watch_stops_what_somebody_else_cancelled(sim: Simulation) -> None:
    run_id = await hold(sim)
    await sim.store.cancel(run_id, ANNA, sim.clock.now())  # on another instance
    assert (await sim.engine.watch.run_once(sim.clock.now())).done == 1
    await sim.idle()


async def test_a_job_that_nobody_can_read_does_not_keep_the_others_from_running(
    sim: Simulation, tmp_path: Path
) -> None:
    broken, sound = await sim.job(), await sim.job()
    runs = [await sim.run(view.job) for view in (broken, sound)]
    spec = json.dumps({"broken": 1})
    run_sql(
        f"sqlite:///{tmp_path / 'ksana.db'}", "UPDATE jobs SET spec = :spec WHERE id = :id", spec=spec, id=broken.job.id
    )
    await sim.settle()
    ended = [await sim.store.execution(run.id) for run in runs]
    assert [(run.status, run.reason) for run in ended] == [(S.CANCELED, "job_unreadable"), (S.SUCCESS, None)]


async def test_amendments_at_once_all_count(sim: Simulation) -> None:
    view = await sim.job()

    def labelled(number: int) -> Callable[[JobView], JobEdit]:
        return lambda now: JobEdit(replace(now.job.spec, labels={**now.job.spec.labels, str(number): "x"}))

    await asyncio.gather(*(sim.jobs.amend(view.job.id, labelled(number), ANNA) for number in range(40)))
    assert len((await sim.store.job(view.job.id)).spec.labels) == 40


async def test_a_report_without_a_token_is_heard_only_where_one_is_waited_for(sim: Simulation) -> None:
    sim.target.held = asyncio.Event()
    sim.target.answer = lambda _: AwaitingCallback(timedelta(minutes=5))
    run = await sim.run((await sim.job(mode=ExecutionMode.ASYNC)).job)
    await sim.settle()
    await sim.asked()
    message = CallbackMessage(succeeded=True, job_id=run.job_id, execution_id=run.id)
    assert not (await sim.runs.report(message)).accepted
    sim.target.held.set()
    await sim.idle()
    assert (await sim.runs.report(message)).accepted


async def test_reports_that_come_too_late_are_kept_but_not_without_end(sim: Simulation) -> None:
    run_id = await pending(sim)
    message = CallbackMessage(succeeded=True, token=token_of(sim), body="x" * 20_000)
    for _ in range(105):
        await sim.runs.report(message)
    came = await sim.store.callbacks(run_id)
    assert (len(came), len(came[0].body), len(came[1].body)) == (100, 20_000, 10_000)


async def test_an_attempt_that_was_lost_with_its_instance_takes_no_retry_away(sim: Simulation) -> None:
    view = await sim.job(retry=RetryPolicy(max_attempts=2))
    run = await sim.run(view.job)
    await sim.store.join(NewInstance("gone", "gone", "0", ("all",), timedelta(0)))
    assert len(await sim.store.claim(ClaimRequest("gone", 1), sim.clock.now())) == 1
    assert (await sim.store.recover(sim.clock.now(), 10)).requeued == 1
    answers: Iterator[Outcome] = iter([Failed("first"), Succeeded()])
    sim.target.answer = lambda _: next(answers)
    await sim.advance(timedelta(minutes=1))
    assert (await sim.store.execution(run.id)).status is ExecutionStatus.SUCCESS
