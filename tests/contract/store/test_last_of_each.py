"""The last of each: one answer for many jobs or schedules, whatever their history."""

from datetime import UTC, datetime, timedelta

import pytest

from ksana.domain.errors import NotFound, VersionMismatch
from ksana.domain.schedule import ScheduleKind, ScheduleSpec, next_instant, passed_over
from ksana.domain.states import ExecutionStatus, OccurrenceOutcome, ScheduleStatus
from ksana.engine.commands.runs import token_hash
from ksana.store.requests import (
    CallbackReport,
    JobChange,
    NewCallback,
    NewSchedule,
    Pausing,
    Resumption,
    ScheduleChange,
)
from tests.contract.store.world import ANNA, World, claim_of, http_spec

HOUR = timedelta(hours=1)


async def test_the_last_ended_run_of_each_job_is_the_one_for_the_latest_instant(world: World) -> None:
    one, two, none = await world.job(), await world.job(), await world.job()
    for job in (one, two, one):
        claimed = await world.running(job)
        await world.store.fail(world.ending(claimed, error="no"))
        world.clock.advance(HOUR)
    await world.running(one)  # not ended: does not count
    found = await world.store.last_ended([one.id, two.id, none.id])
    assert {job_id: run.id for job_id, run in found.items()} == {one.id: 3, two.id: 2}


async def test_the_last_ended_run_may_be_for_an_instant_before_1970(world: World) -> None:
    job = await world.job()
    for year, verb in ((1960, world.store.succeed), (1969, world.store.fail)):
        await world.enqueue(job, ready_at=datetime(year, 7, 20, tzinfo=UTC))
        (claimed,) = await world.claim()
        assert await verb(world.ending(claimed))
    found = await world.store.last_ended([job.id])
    assert (found[job.id].id, found[job.id].status) == (claimed.execution.id, ExecutionStatus.FAILED)


async def test_the_last_ended_run_of_each_of_many_jobs(world: World) -> None:
    jobs = [await world.job() for _ in range(70)]  # with their states, more than are given as values
    ran = {job.id: (await world.running(job)) for job in jobs}
    for claimed in ran.values():
        assert await world.store.succeed(world.ending(claimed))
    found = await world.store.last_ended([job.id for job in jobs])
    assert {job_id: run.id for job_id, run in found.items()} == {
        job_id: claimed.execution.id for job_id, claimed in ran.items()
    }


async def test_the_last_row_of_each_ledger(world: World) -> None:
    job = await world.job()
    often, never = await world.every(job, HOUR), await world.every(job, 1000 * HOUR)
    for _ in range(2):
        world.clock.advance(HOUR)
        await world.fire_due()
    found = await world.store.last_occurrences([often.id, never.id])
    assert [row.planned_for for row in found.values()] == [world.clock.now()]


async def test_schedules_by_job_and_by_key(world: World) -> None:
    one, two, none = await world.job(), await world.job(), await world.job()
    first, second, other = [await world.every(job, HOUR) for job in (one, one, two)]
    found = await world.store.schedules_of([one.id, two.id, none.id])
    assert {job_id: list(each) for job_id, each in found.items()} == {one.id: [first, second], two.id: [other]}
    assert await world.store.schedule_by_key(second.key) == second
    with pytest.raises(NotFound):
        await world.store.schedule_by_key("nobody")


async def test_the_next_that_is_ready_and_the_next_deadline(world: World) -> None:
    assert await world.store.next_ready_at(["default"]) is None
    assert await world.store.next_deadline_at() is None
    await world.job(worker_queue="other")
    claimed = await world.running()
    await world.enqueue(await world.job(worker_queue="gpu"))
    await world.store.retry(world.ending(claimed, error="no"), world.clock.now() + HOUR)
    assert await world.store.next_ready_at(["default"]) == world.clock.now() + HOUR
    assert await world.store.next_ready_at(["default", "gpu"]) == world.clock.now()
    waiting = await world.running()
    await world.store.await_callback(world.ending(waiting), world.clock.now() + 2 * HOUR)
    assert await world.store.next_deadline_at() == world.clock.now() + 2 * HOUR


async def test_received_callbacks_are_listed_in_order(world: World) -> None:
    claimed = await world.running()
    await world.store.open_callback(NewCallback(claim_of(claimed), token_hash("t"), world.clock.now() + HOUR))
    for body in ("first", "second"):
        report = CallbackReport(
            ExecutionStatus.CALLBACK_SUCCESS,
            world.clock.now(),
            token_hash=token_hash("t"),
            headers={"x": "y"},
            body=body,
        )
        await world.store.report_callback(report)
    came = await world.store.callbacks(claimed.execution.id)
    assert [(each.body, each.status, dict(each.headers)) for each in came] == [
        ("first", "RECEIVED", {"x": "y"}),
        ("second", "IGNORED", {"x": "y"}),
    ]


async def test_figures_count_jobs_and_what_has_not_ended(world: World) -> None:
    await world.job(enabled=False)
    limited = await world.job(limit=1)
    for _ in range(3):
        await world.enqueue(limited)
    await world.claim()
    figures = await world.store.figures()
    assert (figures.jobs_enabled, figures.jobs_disabled) == (1, 1)
    assert dict(figures.active) == {ExecutionStatus.RUNNING: 1, ExecutionStatus.QUEUED: 2}


async def test_a_job_changes_with_its_schedules_or_not_at_all(world: World) -> None:
    job = await world.job()
    schedule = await world.every(job, HOUR)
    spec = ScheduleSpec(kind=ScheduleKind.CRON, cron="0 0 * * *")
    after = next_instant(spec, world.clock.now())
    stale = ScheduleChange(schedule.id, spec, after, schedule.version + 1, ANNA)
    before = await world.everything()
    with pytest.raises(VersionMismatch):
        await world.store.change_job(JobChange(job.id, http_spec("renamed"), actor=ANNA, steps=(stale,)))
    assert await world.everything() == before
    change = ScheduleChange(schedule.id, spec, after, schedule.version, ANNA)
    further = NewSchedule("further", spec, after)
    changed = await world.store.change_job(JobChange(job.id, job.spec, actor=ANNA, steps=(change, further)))
    assert changed.version == job.version + 1
    assert [each.spec.kind for each in await world.schedules_of(job)] == [ScheduleKind.CRON, ScheduleKind.CRON]


async def test_a_pause_and_a_going_on_are_steps_too(world: World) -> None:
    job = await world.job()
    schedule = await world.every(job, HOUR)
    await world.store.change_job(JobChange(job.id, job.spec, actor=ANNA, steps=(Pausing(schedule.id),)))
    [paused] = await world.schedules_of(job)
    assert paused.status is ScheduleStatus.PAUSED
    world.clock.advance(3 * HOUR)
    passed = passed_over(paused.spec, paused.next_planned_for, world.clock.now(), "paused")
    going_on = Resumption(paused.id, paused.version, next_instant(paused.spec, world.clock.now()), passed, ANNA)
    await world.store.change_job(JobChange(job.id, job.spec, actor=ANNA, steps=(going_on,)))
    assert [(row.count, row.reason) for row in await world.ledger(schedule)] == [(3, "paused")]


async def test_a_schedule_may_be_over_before_it_is_made(world: World) -> None:
    job = await world.job()
    moment = world.clock.now() - HOUR
    spec = ScheduleSpec(kind=ScheduleKind.ONCE, run_at=moment)
    passed = passed_over(spec, moment, world.clock.now(), "once_missed")
    schedule = await world.store.create_schedule(job.id, NewSchedule("over", spec, None, passed=passed), ANNA)
    assert schedule.status is ScheduleStatus.FINISHED
    assert [row.outcome for row in await world.ledger(schedule)] == [OccurrenceOutcome.MISSED]


async def test_every_definition_a_schedule_had_is_known_to_an_audit(world: World) -> None:
    job = await world.job()
    schedule = await world.every(job, HOUR)
    made = world.clock.now()
    world.clock.advance(HOUR)
    spec = ScheduleSpec(kind=ScheduleKind.CRON, cron="0 0 * * *")
    await world.store.change_schedule(
        ScheduleChange(schedule.id, spec, next_instant(spec, world.clock.now()), actor=ANNA)
    )
    changed = world.clock.now()
    world.clock.advance(HOUR)
    await world.store.delete_schedule(schedule.id, ANNA)
    [audited] = await world.store.audited_schedules(0, 10)
    assert list(audited.definitions) == [(made, schedule.spec), (changed, spec)]
    assert audited.deleted_at == world.clock.now()
    assert await world.store.audited_schedules(schedule.id, 10) == []
