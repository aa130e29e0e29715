"""Every planned instant ends as exactly one row, together with its execution and the moved cursor."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from ksana.domain.events import EventType
from ksana.domain.execution import Trigger
from ksana.domain.job import ConcurrencyPolicy, Job
from ksana.domain.ledger import Fired, Schedule
from ksana.domain.schedule import (
    FireDecision,
    MisfirePolicy,
    ScheduleKind,
    ScheduleSpec,
    SkippedRange,
    fire_time,
    next_instant,
    next_instants,
)
from ksana.domain.states import ExecutionStatus, OccurrenceOutcome, ScheduleStatus
from ksana.store.base import Store
from ksana.store.requests import JobChange, NewSchedule, ScheduleChange
from tests.contract.store.world import ANNA, World, http_spec, rivals, run_sql

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
FIRED, SKIPPED, MISSED = OccurrenceOutcome.FIRED, OccurrenceOutcome.SKIPPED, OccurrenceOutcome.MISSED


async def due_schedule(world: World, job: Job | None = None, **changes: Any) -> Schedule:
    """A schedule of every minute whose first instant has come."""
    schedule = await world.every(job or await world.job(), MINUTE, **changes)
    world.clock.advance(MINUTE)
    return schedule


async def add(world: World, job: Job, spec: ScheduleSpec, key: str, **changes: Any) -> Schedule:
    new = NewSchedule(key, spec, next_instant(spec, world.clock.now()), **changes)
    return await world.store.create_schedule(job.id, new, ANNA)


async def fates(world: World, schedule: Schedule) -> list[tuple[OccurrenceOutcome, str | None]]:
    return [(row.outcome, row.reason) for row in await world.ledger(schedule)]


# What a fire writes ---------------------------------------------------------------------------------------------------


async def test_a_fire_writes_the_occurrence_the_execution_and_the_cursor_together(world: World) -> None:
    schedule = await due_schedule(world)
    planned = world.clock.now()
    world.clock.advance(timedelta(seconds=2))
    [fired] = await world.fire_due()
    [execution] = await world.executions()
    assert fired == Fired(schedule.id, execution_ids=(execution.id,))
    assert (execution.status, execution.trigger) == (ExecutionStatus.SCHEDULED, Trigger.SCHEDULE)
    assert (execution.job_id, execution.schedule_id, execution.planned_for) == (schedule.job_id, schedule.id, planned)
    [row] = await world.ledger(schedule)
    assert (row.planned_for, row.outcome, row.execution_id, row.count) == (planned, FIRED, execution.id, 1)
    assert row.recorded_at == world.clock.now()
    after = await world.store.schedule(schedule.id)
    assert (after.next_planned_for, after.next_fire_at) == (planned + MINUTE, planned + MINUTE)
    assert [claimed.execution.id for claimed in await world.claim()] == [execution.id]


async def test_several_instants_of_one_schedule_fire_at_once(world: World) -> None:
    spec: dict[str, Any] = {
        "misfire": MisfirePolicy.CATCH_UP_LIMITED,
        "catchup_limit": 3,
        "misfire_grace": timedelta(0),
    }
    schedule = await due_schedule(world, **spec)
    first = world.clock.now()
    world.clock.advance(timedelta(minutes=9, seconds=30))
    [fired] = await world.fire_due()
    assert (len(fired.execution_ids), fired.skipped) == (3, 7)
    rows = await world.ledger(schedule)
    assert [(row.planned_for, row.outcome, row.reason, row.count) for row in rows] == [
        (first, SKIPPED, "catchup_limit", 7),
        *((first + n * MINUTE, FIRED, None, 1) for n in (7, 8, 9)),
    ]
    assert rows[0].last_planned_for == first + 6 * MINUTE
    assert rows[0].execution_id is None
    executions = [await world.store.execution(execution_id) for execution_id in fired.execution_ids]
    assert [execution.planned_for for execution in executions] == [first + n * MINUTE for n in (7, 8, 9)]
    assert [row.execution_id for row in rows[1:]] == list(fired.execution_ids)


async def test_a_once_whose_time_had_passed_is_missed_in_the_ledger(world: World) -> None:
    at = world.clock.now() + MINUTE
    spec = ScheduleSpec(kind=ScheduleKind.ONCE, run_at=at, misfire=MisfirePolicy.SKIP)
    schedule = await add(world, await world.job(), spec, "once")
    world.clock.advance(DAY)
    assert await world.fire_due() == [Fired(schedule.id, skipped=1)]
    [row] = await world.ledger(schedule)
    assert (row.planned_for, row.outcome, row.reason, row.count) == (at, MISSED, "once_missed", 1)
    assert (await world.store.schedule(schedule.id)).status is ScheduleStatus.FINISHED
    assert await world.executions() == []


async def test_each_execution_belongs_to_the_schedule_and_instant_that_made_it(world: World) -> None:
    jobs = [await world.job() for _ in range(3)]
    specs = [
        ScheduleSpec(kind=ScheduleKind.ONCE, run_at=world.clock.now() + timedelta(microseconds=1 + n % 7))
        for n in range(500)
    ]
    made = await asyncio.gather(
        *(
            add(world, jobs[n % 3], spec, f"s{n}", input={"number": n, "text": "ä 刹那" * (n % 5)})
            for n, spec in enumerate(specs)
        )
    )
    world.clock.advance(timedelta(seconds=1))
    fired = await world.fire_due()
    assert {answer.schedule_id for answer in fired} == {schedule.id for schedule in made}
    by_schedule = {answer.schedule_id: answer.execution_ids for answer in fired}
    by_id = {execution.id: execution for execution in await world.executions()}
    assert len(by_id) == 500
    for schedule in made:
        [execution_id] = by_schedule[schedule.id]
        execution = by_id[execution_id]
        assert (execution.schedule_id, execution.job_id) == (schedule.id, schedule.job_id)
        assert execution.planned_for == schedule.next_planned_for
        assert execution.input == schedule.input
        assert [row.execution_id for row in await world.ledger(schedule)] == [execution_id]


# Lost fires -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["one after the other", "at once", "in one batch"])
async def test_one_decision_fires_once_however_often_it_is_brought(world: World, url: str, way: str) -> None:
    other = await world.every(await world.job(), MINUTE)
    schedule = await due_schedule(world)
    now = world.clock.now()
    firings = [world.firing(schedule), world.firing(other)]
    fired: list[Fired] = []
    if way == "one after the other":
        for _ in range(3):
            fired += await world.store.fire(firings, now)
    elif way == "at once":
        async with rivals(world, url) as stores:
            rounds = await asyncio.gather(*(stores[n % len(stores)].fire(firings, now) for n in range(10)))
        fired = [answer for answers in rounds for answer in answers]
    else:
        fired = list(await world.store.fire([*firings, *map(replace, firings), *firings], now))
    winners = [answer for answer in fired if not answer.lost]
    assert sorted(answer.schedule_id for answer in winners) == [other.id, schedule.id]
    assert {answer for answer in fired if answer.lost} == {Fired(s.id, lost=True) for s in (schedule, other)}
    assert len(await world.executions()) == 2
    assert [await fates(world, s) for s in (schedule, other)] == [[(FIRED, None)]] * 2


Change = Callable[[Store, Schedule], Awaitable[object]]
BETWEEN: dict[str, Change] = {
    "changed": lambda store, due: store.change_schedule(ScheduleChange(due.id, due.spec, due.next_planned_for)),
    "paused": lambda store, due: store.pause_schedule(due.id, ANNA),
    "parked": lambda store, due: store.park_schedule(due.id, due.version, "unreadable"),
    "deleted": lambda store, due: store.delete_schedule(due.id, ANNA),
    "deleted with its job": lambda store, due: store.delete_job(due.job_id or 0, ANNA),
}


@pytest.mark.parametrize("what", BETWEEN)
async def test_a_schedule_that_moved_since_the_decision_does_not_fire(world: World, what: str) -> None:
    schedule = await due_schedule(world)
    firing = world.firing(schedule)
    await BETWEEN[what](world.store, schedule)
    before = await world.everything()
    assert await world.store.fire([firing], world.clock.now()) == [Fired(schedule.id, lost=True)]
    assert await world.everything() == before
    assert await world.ledger(schedule) == []


async def test_a_stale_decision_beside_a_fresh_one_in_a_batch_is_the_one_that_is_lost(world: World) -> None:
    schedule = await due_schedule(world)
    stale = world.firing(schedule)
    hourly = replace(schedule.spec, every=timedelta(hours=1), anchor=schedule.next_planned_for)
    changed = await world.store.change_schedule(ScheduleChange(schedule.id, hourly, schedule.next_planned_for))
    fresh = world.firing(changed)
    wrong_cursor = replace(fresh, cursor=fresh.cursor + MINUTE)
    fired = await world.store.fire([stale, wrong_cursor, fresh, stale], world.clock.now())
    assert [answer.lost for answer in fired] == [True, True, False, True]
    assert (await world.store.schedule(schedule.id)).next_planned_for == fresh.decision.next_cursor
    assert len(await world.executions()) == 1


async def test_a_cursor_set_back_gives_no_instant_a_second_row_and_holds_up_nobody(world: World) -> None:
    job = await world.job()
    set_back = await due_schedule(world, job)
    first = world.clock.now()
    await world.fire_due()
    world.clock.advance(MINUTE)
    await world.fire_due()
    await world.store.change_schedule(ScheduleChange(set_back.id, set_back.spec, first, actor=ANNA))
    other = await due_schedule(world, job)
    await world.fire_due()
    assert await fates(world, other) == [(FIRED, None)]
    planned = [row.planned_for for row in await world.ledger(set_back)]
    assert planned == [first, first + MINUTE, first + 2 * MINUTE]
    assert len(await world.executions_of(set_back)) == 3


# Jobs that do not take it ---------------------------------------------------------------------------------------------


async def test_a_full_job_that_skips_has_a_skipped_execution_and_says_why(world: World) -> None:
    job = await world.job(concurrency=ConcurrencyPolicy.SKIP, max_concurrency=1)
    schedules = [await world.every(job, MINUTE) for _ in range(2)]
    world.clock.advance(MINUTE)
    first, second = await world.fire_due()
    assert (len(first.execution_ids), first.skipped) == (1, 0)
    assert (second.execution_ids, second.skipped) == ((), 1)
    ran, skipped = await world.executions(job_id=job.id)
    assert (ran.status, skipped.status) == (ExecutionStatus.SCHEDULED, ExecutionStatus.SKIPPED)
    assert (skipped.reason, skipped.ended_at) == ("concurrency_limit", world.clock.now())
    assert [await fates(world, schedule) for schedule in schedules] == [
        [(FIRED, None)],
        [(SKIPPED, "concurrency_limit")],
    ]
    [row] = await world.ledger(schedules[1])
    assert row.execution_id == skipped.id
    assert (await world.store.schedule(schedules[1].id)).next_planned_for == world.clock.now() + MINUTE
    assert EventType.OCCURRENCE_SKIPPED in await world.event_types()
    [claimed] = await world.claim()
    await world.store.succeed(world.ending(claimed))
    world.clock.advance(MINUTE)
    assert sorted(len(answer.execution_ids) for answer in await world.fire_due()) == [0, 1]


async def test_a_full_job_that_queues_takes_no_more_than_its_queue_holds(world: World) -> None:
    job = await world.job(limit=1, queue_limit=2)
    schedules = [await world.every(job, MINUTE) for _ in range(5)]
    world.clock.advance(MINUTE)
    fired = await world.fire_due()
    assert [answer.skipped for answer in fired] == [0, 0, 0, 1, 1]
    assert [(await fates(world, schedule))[0] for schedule in schedules] == [
        *[(FIRED, None)] * 3,
        *[(SKIPPED, "queue_full")] * 2,
    ]
    assert len(await world.claim()) == 1
    assert [execution.status for execution in await world.executions()] == [
        ExecutionStatus.RUNNING,
        ExecutionStatus.QUEUED,
        ExecutionStatus.QUEUED,
        ExecutionStatus.SKIPPED,
        ExecutionStatus.SKIPPED,
    ]


async def test_the_instants_of_a_disabled_job_are_skipped_until_it_is_enabled(world: World) -> None:
    job = await world.job(enabled=False)
    schedule = await due_schedule(world, job)
    [fired] = await world.fire_due()
    assert (fired.lost, fired.execution_ids, fired.skipped) == (False, (), 1)
    assert await world.claim() == []
    await world.store.change_job(JobChange(job.id, http_spec(job.spec.name, enabled=True)))
    world.clock.advance(MINUTE)
    await world.fire_due()
    assert await fates(world, schedule) == [(SKIPPED, "job_disabled"), (FIRED, None)]


# What is due ----------------------------------------------------------------------------------------------------------


async def test_due_schedules_come_earliest_first_and_only_those_that_fire(world: World) -> None:
    job = await world.job()
    start = world.clock.now()
    late, early, middle, paused, future = [
        await world.every(job, timedelta(minutes=minutes)) for minutes in (3, 1, 2, 1, 60)
    ]
    await world.store.pause_schedule(paused.id, ANNA)
    until = start + timedelta(minutes=3)
    due = await world.store.due_schedules(until, 10)
    assert due.schedules == [early, middle, late]
    assert list(due.unreadable) == []
    assert (await world.store.due_schedules(until, 2)).schedules == [early, middle]
    assert (await world.store.due_schedules(until - timedelta(microseconds=1), 10)).schedules == [early, middle]
    assert await world.store.next_fire_at() == start + MINUTE
    for schedule in (early, middle, late):
        await world.store.delete_schedule(schedule.id, ANNA)
    assert await world.store.next_fire_at() == future.next_fire_at


async def test_a_schedule_that_can_no_longer_be_read_comes_back_as_such_beside_the_others(
    world: World, url: str
) -> None:
    job = await world.job()
    cron = ScheduleSpec(kind=ScheduleKind.CRON, cron="* * * * *", timezone="Europe/Berlin")
    broken = await add(world, job, cron, "broken")
    good = await world.every(job, MINUTE)
    run_sql(url, "UPDATE schedules SET spec = REPLACE(spec, 'Europe/Berlin', 'Gone/Nowhere')")
    world.clock.advance(MINUTE)
    due = await world.store.due_schedules(world.clock.now(), 10)
    assert due.schedules == [good]
    [unreadable] = due.unreadable
    assert (unreadable.schedule_id, unreadable.version) == (broken.id, broken.version)
    assert "Gone/Nowhere" in unreadable.error
    assert await world.store.park_schedule(unreadable.schedule_id, unreadable.version, unreadable.error)
    assert [answer.schedule_id for answer in await world.fire_due()] == [good.id]
    parked = await world.store.schedule(broken.id)
    assert (parked.status, parked.error) == (ScheduleStatus.PARKED, unreadable.error)
    planned = world.clock.now() + MINUTE
    mended = await world.store.change_schedule(ScheduleChange(broken.id, cron, planned))
    assert (mended.spec, mended.status, mended.error) == (cron, ScheduleStatus.ACTIVE, None)


async def test_the_ledger_is_read_from_one_instant_up_to_before_another(world: World) -> None:
    job = await world.job()
    schedule, other = [await world.every(job, MINUTE) for _ in range(2)]
    start = world.clock.now()
    for _ in range(6):
        world.clock.advance(MINUTE)
        await world.fire_due()

    async def planned(since: datetime, until: datetime, limit: int = 100, *, newest: bool = False) -> list[int]:
        rows = await world.store.occurrences(schedule.id, since, until, limit, newest=newest)
        assert {row.schedule_id for row in rows} <= {schedule.id}
        return [(row.planned_for - start) // MINUTE for row in rows]

    assert await planned(start, start + DAY) == [1, 2, 3, 4, 5, 6]
    assert await planned(start + 2 * MINUTE, start + 5 * MINUTE) == [2, 3, 4]
    assert await planned(start, start + DAY, 2) == [1, 2]
    assert await planned(start + DAY, start + 2 * DAY) == []
    assert await planned(start, start + DAY, 4, newest=True) == [6, 5, 4, 3]
    assert await planned(start, start + 3 * MINUTE, 4, newest=True) == [2, 1]
    assert await planned(start, start + MINUTE, newest=True) == []
    assert len(await world.ledger(other)) == 6


async def test_a_range_that_began_before_comes_first_or_where_the_newest_do_last(world: World) -> None:
    schedule, start = await world.every(await world.job(), HOUR), world.clock.now()
    world.clock.advance(3 * DAY)
    await world.fire_due()
    row, fired = await world.ledger(schedule)
    assert (row.planned_for, row.count, fired.planned_for) == (start + HOUR, 71, start + 3 * DAY)
    since, until = start + DAY, start + 9 * DAY
    for limit, found in {5: [row, fired], 1: [row]}.items():
        assert await world.store.occurrences(schedule.id, since, until, limit) == found
    for limit, found in {5: [fired, row], 1: [fired]}.items():
        assert await world.store.occurrences(schedule.id, since, until, limit, newest=True) == found
    assert await world.store.occurrences(schedule.id, since, fired.planned_for, 5, newest=True) == [row]


async def test_a_fire_that_decides_nothing_changes_nothing(world: World) -> None:
    schedule = await due_schedule(world)
    firing = world.firing(schedule)
    nothing = FireDecision((), (), schedule.next_planned_for, schedule.next_fire_at)
    assert await world.store.fire([replace(firing, decision=nothing)], world.clock.now()) == [Fired(schedule.id)]
    assert await world.store.fire([], world.clock.now()) == []
    assert await world.ledger(schedule) == []
    assert [answer.lost for answer in await world.store.fire([firing], world.clock.now())] == [False]


async def finished(world: World, schedule: Schedule) -> bool:
    return (await world.store.schedule(schedule.id)).status is ScheduleStatus.FINISHED


# A day ----------------------------------------------------------------------------------------------------------------


async def test_after_a_day_with_an_outage_the_ledger_has_every_planned_instant_exactly_once(world: World) -> None:
    job = await world.job()
    start = world.clock.now()
    grace: dict[str, Any] = {"misfire_grace": timedelta(minutes=5)}
    specs = {
        "every": ScheduleSpec(ScheduleKind.EVERY, every=timedelta(minutes=7), anchor=start, **grace),
        "jitter": ScheduleSpec(
            ScheduleKind.EVERY, every=timedelta(minutes=40), anchor=start, jitter=timedelta(minutes=39), **grace
        ),
        "skip": ScheduleSpec(ScheduleKind.CRON, cron="*/15 * * * *", misfire=MisfirePolicy.SKIP, **grace),
        "catch up": ScheduleSpec(
            ScheduleKind.CRON,
            cron="0 */20 * * * *",
            timezone="Asia/Kolkata",
            misfire=MisfirePolicy.CATCH_UP_LIMITED,
            catchup_limit=2,
            **grace,
        ),
        "once": ScheduleSpec(ScheduleKind.ONCE, run_at=start + timedelta(hours=7)),
        "ends": ScheduleSpec(
            ScheduleKind.EVERY, every=timedelta(hours=1), anchor=start, end_at=start + timedelta(hours=5), **grace
        ),
    }
    schedules = [await add(world, job, spec, f"s{n}") for n, spec in enumerate(specs.values())]
    end = start + DAY
    while (due := await world.store.next_fire_at()) is not None and due <= end:
        outage = start + timedelta(hours=6) <= due < start + timedelta(hours=8)
        moment = start + timedelta(hours=8) if outage else due
        world.clock.advance(max(moment - world.clock.now(), timedelta(0)))
        assert not any(fired.lost for fired in await world.fire_due())
    for name, schedule in zip(specs, schedules, strict=True):
        planned = next_instants(schedule.spec, start, limit=1_000)
        after = await world.store.schedule(schedule.id)
        planned = [at for at in planned if after.next_planned_for is None or at < after.next_planned_for]
        recorded: list[datetime] = []
        for row in await world.ledger(schedule):
            covered = [at for at in planned if row.planned_for <= at <= (row.last_planned_for or row.planned_for)]
            assert len(covered) == row.count, name
            recorded += covered
        assert recorded == planned, name
        if after.next_planned_for is None:
            assert (after.status, after.next_fire_at) == (ScheduleStatus.FINISHED, None)
        else:
            assert after.next_fire_at == fire_time(schedule.spec, schedule.id, after.next_planned_for)
        assert after.next_planned_for is None or after.next_planned_for > end - timedelta(hours=1), name
    assert [name for name, schedule in zip(specs, schedules, strict=True) if await finished(world, schedule)] == [
        "once",
        "ends",
    ]
    executions = [await world.executions_of(schedule) for schedule in schedules]
    fired_instants = [[execution.planned_for for execution in made] for made in executions]
    assert all(len(instants) == len(set(instants)) for instants in fired_instants)
    assert sum(map(len, fired_instants)) > 300


async def test_a_firing_that_cannot_be_written_does_not_hold_up_the_others(world: World) -> None:
    job = await world.job()
    schedules = [await world.every(job, timedelta(minutes=1)) for _ in range(5)]
    now = world.clock.advance(timedelta(minutes=1))
    firings = [world.firing(schedule) for schedule in schedules]
    twice = replace(firings[2].decision, fires=firings[2].decision.fires * 2)
    firings[2] = replace(firings[2], decision=twice)
    answers = await world.store.fire(firings, now)
    assert [bool(answer.execution_ids) for answer in answers] == [True, True, False, True, True]
    assert answers[2].error
    assert await world.ledger(schedules[2]) == []


async def test_a_changed_schedule_keeps_account_of_what_passed_while_it_was_paused(world: World) -> None:
    job = await world.job()
    schedule = await world.every(job, timedelta(minutes=1))
    await world.store.pause_schedule(schedule.id, ANNA)
    start, now = world.clock.now(), world.clock.advance(timedelta(minutes=10))
    passed = SkippedRange(start + timedelta(minutes=1), now, 10, OccurrenceOutcome.SKIPPED, "paused")
    change = ScheduleChange(schedule.id, schedule.spec, now + timedelta(minutes=1), actor=ANNA, passed=(passed,))
    changed = await world.store.change_schedule(change)
    assert changed.status is ScheduleStatus.PAUSED
    [row] = await world.ledger(schedule)
    assert (row.planned_for, row.last_planned_for, row.count, row.reason) == (passed.first, now, 10, "paused")


async def test_firing_nothing_does_nothing(world: World) -> None:
    assert await world.store.fire([], world.clock.now()) == []
