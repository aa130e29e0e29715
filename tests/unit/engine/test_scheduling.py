"""Planned instants on simulated time: each fires once, late ones follow the policy, changes count at once."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.contract.store.world import ANNA
from tests.unit.engine.simulation import Simulation

from ksana.domain import schedule
from ksana.domain.errors import Conflict, StoreUnavailable
from ksana.domain.job import ConcurrencyPolicy
from ksana.domain.ledger import Fired, Firing
from ksana.domain.schedule import MisfirePolicy, ScheduleKind, ScheduleSpec
from ksana.domain.states import ExecutionStatus, OccurrenceOutcome, ScheduleStatus
from ksana.engine import scheduler
from ksana.engine.commands import JobEdit
from ksana.store.requests import DueSchedules

MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)
PATIENCE = 30.0


async def test_a_day_of_a_quarter_hourly_cron_is_ninety_six_runs_each_on_its_instant(sim: Simulation) -> None:
    view = await sim.job(ScheduleSpec(kind=ScheduleKind.CRON, cron="*/15 * * * *"))
    start = sim.clock.now()
    await sim.advance(DAY)
    runs = await sim.executions(view.job)
    assert [run.planned_for for run in runs] == [start + n * timedelta(minutes=15) for n in range(1, 97)]
    assert {run.status for run in runs} == {ExecutionStatus.SUCCESS}
    assert [run.started_at for run in runs] == [run.planned_for for run in runs]


async def test_the_ledger_has_every_instant_once(sim: Simulation) -> None:
    view = await sim.job(sim.every(timedelta(seconds=90)))
    await sim.advance(timedelta(hours=1))
    ledger = await sim.ledger(view.schedule)
    assert [row.outcome for row in ledger] == [OccurrenceOutcome.FIRED] * 40
    assert len({row.planned_for for row in ledger}) == 40


async def test_a_changed_schedule_counts_at_once(sim: Simulation) -> None:
    view = await sim.job(sim.every(timedelta(hours=1)))
    await sim.settle()
    edit = JobEdit(view.job.spec, schedule=sim.every(timedelta(seconds=10)))
    changed = await sim.jobs.change(view.job.id, edit, ANNA)
    assert changed.job.version == view.job.version + 1
    await sim.advance(MINUTE)
    assert len(await sim.executions(view.job)) == 6


async def test_a_look_that_was_not_answered_is_made_again(sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(*_: object) -> DueSchedules:
        raise StoreUnavailable("away")

    sim.engine.scheduler.look_again()
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(sim.store, "due_schedules", away)
        for _ in range(2):
            with pytest.raises(StoreUnavailable):
                await sim.engine.scheduler.run_once(sim.clock.now())
    await sim.engine.scheduler.run_once(sim.clock.now())


@dataclass
class SlowLook:
    """Looks whose answers are what the store had when they were asked for, and come only when they are let go."""

    ask: Callable[[datetime, int], Awaitable[DueSchedules]]
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    let_go: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, until: datetime, limit: int) -> DueSchedules:
        found = await self.ask(until, limit)
        self.asked.set()
        await self.let_go.wait()
        return found


@pytest.fixture
async def slow(sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> SlowLook:
    slow = SlowLook(sim.store.due_schedules)
    monkeypatch.setattr(sim.store, "due_schedules", slow)
    return slow


async def test_what_is_due_does_not_wait_for_a_look(
    sim: Simulation, slow: SlowLook, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow.let_go.set()
    view = await sim.job(sim.every(timedelta(seconds=10)))
    await sim.settle()
    slow.let_go.clear()
    fired = asyncio.Event()
    real = sim.store.fire

    async def fire(*firings: Any) -> Sequence[Fired]:
        answers = await real(*firings)
        fired.set()
        return answers

    monkeypatch.setattr(sim.store, "fire", fire)
    sim.engine.scheduler.look_again()
    sim.clock.advance(timedelta(seconds=10))
    looking = asyncio.create_task(sim.engine.scheduler.run_once(sim.clock.now()))
    await asyncio.wait_for(fired.wait(), PATIENCE)
    assert not looking.done()
    assert len(await sim.executions(view.job)) == 1
    slow.let_go.set()
    await asyncio.wait_for(looking, PATIENCE)
    await sim.advance(timedelta(seconds=10))
    assert len(await sim.executions(view.job)) == 2


@pytest.mark.parametrize("answered", ["before the fire", "after the fire"])
@pytest.mark.parametrize("period", [timedelta(seconds=10), timedelta(hours=1)])
async def test_a_look_from_before_a_fire_makes_nobody_fire_it_again(
    sim: Simulation, slow: SlowLook, period: timedelta, answered: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow.let_go.set()
    view = await sim.job(sim.every(period))
    await sim.advance(period - timedelta(seconds=1))
    slow.let_go.clear()
    slow.asked.clear()
    looked = asyncio.Event()
    answers: list[Fired] = []
    real = sim.store.fire

    async def fire(*firings: Any) -> Sequence[Fired]:
        await slow.asked.wait()
        if answered == "before the fire":
            slow.let_go.set()
            await looked.wait()
        answers.extend(await real(*firings))
        slow.let_go.set()
        return answers

    monkeypatch.setattr(sim.store, "fire", fire)
    monkeypatch.setattr(sim.measures, "looked", lambda _: looked.set())
    sim.engine.scheduler.look_again()
    sim.clock.advance(timedelta(seconds=1))
    await asyncio.wait_for(sim.engine.scheduler.run_once(sim.clock.now()), PATIENCE)
    monkeypatch.undo()
    await sim.advance(period)
    assert len(await sim.executions(view.job)) == 2
    assert [each.lost for each in answers] == [False]


async def test_a_look_that_fails_beside_what_is_due_is_told_of_and_made_again(
    sim: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = await sim.job(sim.every(timedelta(seconds=10)))
    await sim.settle()

    async def away(*_: object) -> DueSchedules:
        raise StoreUnavailable("away")

    sim.engine.scheduler.look_again()
    sim.clock.advance(timedelta(seconds=10))
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(sim.store, "due_schedules", away)
        for _ in range(2):
            with pytest.raises(StoreUnavailable):
                await sim.engine.scheduler.run_once(sim.clock.now())
    await sim.settle()
    assert len(await sim.executions(view.job)) == 1
    await sim.advance(timedelta(seconds=10))
    assert len(await sim.executions(view.job)) == 2


async def test_schedules_that_are_alike_fire_by_one_decision(sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    decided: list[int] = []
    decide = schedule.decide_fire

    def counted(spec: ScheduleSpec, schedule_id: int, cursor: datetime, now: datetime) -> object:
        decided.append(schedule_id)
        return decide(spec, schedule_id, cursor, now)

    monkeypatch.setattr(scheduler, "decide_fire", counted)
    hourly = ScheduleSpec(kind=ScheduleKind.CRON, cron="0 * * * *")
    spread = ScheduleSpec(kind=ScheduleKind.CRON, cron="0 * * * *", jitter=timedelta(seconds=30))
    alike = [await sim.job(hourly) for _ in range(5)]
    apart = [await sim.job(spread) for _ in range(2)]
    await sim.advance(timedelta(hours=2) - timedelta(seconds=1))
    assert [len(await sim.executions(view.job)) for view in (*alike, *apart)] == [1] * 7
    by_kind = Counter(schedule_id in {view.schedule.id for view in alike if view.schedule} for schedule_id in decided)
    assert by_kind == {True: 1, False: 2}, "one for all that are alike, one for each that has jitter of its own"


async def test_a_disabled_job_does_not_fire_and_the_ledger_says_what_passed(sim: Simulation) -> None:
    view = await sim.job(sim.every(MINUTE))
    await sim.advance(2 * MINUTE)
    await sim.jobs.switch(view.job.id, ANNA, enabled=False)
    await sim.advance(timedelta(minutes=10))
    assert len(await sim.executions(view.job)) == 2
    await sim.jobs.switch(view.job.id, ANNA, enabled=True)
    await sim.advance(2 * MINUTE)
    ledger = await sim.ledger(view.schedule)
    assert [(row.outcome, row.count, row.reason) for row in ledger] == [
        (OccurrenceOutcome.FIRED, 1, None),
        (OccurrenceOutcome.FIRED, 1, None),
        (OccurrenceOutcome.SKIPPED, 10, "paused"),
        (OccurrenceOutcome.FIRED, 1, None),
        (OccurrenceOutcome.FIRED, 1, None),
    ]


@pytest.mark.parametrize(
    ("policy", "ran"), [(MisfirePolicy.FIRE_NOW, 1), (MisfirePolicy.SKIP, 0), (MisfirePolicy.CATCH_UP_LIMITED, 3)]
)
async def test_a_long_outage_of_a_per_second_schedule_follows_its_policy_and_is_one_row(
    sim: Simulation, policy: MisfirePolicy, ran: int
) -> None:
    spec = sim.every(timedelta(seconds=1), misfire=policy, catchup_limit=3, misfire_grace=timedelta(0))
    view = await sim.job(spec)
    sim.clock.advance(timedelta(days=30, milliseconds=500))
    await sim.settle()
    ledger = await sim.ledger(view.schedule)
    assert len(await sim.executions(view.job)) == ran
    assert sum(row.count for row in ledger) == 30 * 86_400
    assert len(ledger) == ran + 1


async def test_instants_within_the_grace_all_run(sim: Simulation) -> None:
    view = await sim.job(sim.every(timedelta(seconds=10)))
    sim.clock.advance(timedelta(seconds=59))
    await sim.settle()
    assert len(await sim.executions(view.job)) == 5


async def test_a_once_in_the_past_is_missed_if_it_skips_and_runs_if_it_fires_now(sim: Simulation) -> None:
    past = sim.clock.now() - timedelta(seconds=10)
    missed = await sim.job(ScheduleSpec(kind=ScheduleKind.ONCE, run_at=past, misfire=MisfirePolicy.SKIP))
    late = await sim.job(ScheduleSpec(kind=ScheduleKind.ONCE, run_at=past, misfire=MisfirePolicy.FIRE_NOW))
    await sim.settle()
    assert await sim.executions(missed.job) == []
    assert [row.outcome for row in await sim.ledger(missed.schedule)] == [OccurrenceOutcome.MISSED]
    assert await sim.statuses(late.job) == [ExecutionStatus.SUCCESS]
    again = await sim.queries.job(late.job.id)
    assert again.schedule is not None
    assert again.schedule.status is ScheduleStatus.FINISHED


async def test_a_schedule_that_cannot_be_worked_out_is_parked_and_the_others_go_on(
    sim: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, good = await sim.job(sim.every(MINUTE)), await sim.job(sim.every(MINUTE))
    decide = schedule.decide_fire
    assert bad.schedule is not None
    bad_id = bad.schedule.id

    def broken(spec: ScheduleSpec, schedule_id: int, cursor: datetime, now: datetime) -> object:
        if schedule_id == bad_id:
            raise ValueError("no such calendar")
        return decide(spec, schedule_id, cursor, now)

    monkeypatch.setattr(scheduler, "decide_fire", broken)
    await sim.advance(2 * MINUTE)
    assert len(await sim.executions(good.job)) == 2
    parked = (await sim.queries.job(bad.job.id)).schedule
    assert parked is not None
    assert (parked.status, parked.error) == (ScheduleStatus.PARKED, "no such calendar")


async def test_a_clock_that_goes_back_fires_nothing_twice_and_does_not_stall(sim: Simulation) -> None:
    view = await sim.job(sim.every(MINUTE))
    await sim.advance(5 * MINUTE)
    sim.clock.advance(-3 * MINUTE)
    await sim.settle()
    assert len(await sim.executions(view.job)) == 5
    await sim.advance(4 * MINUTE)
    planned = [run.planned_for for run in await sim.executions(view.job)]
    assert len(planned) == len(set(planned)) == 6


async def test_a_window_smaller_than_what_is_due_fires_it_all_the_same(sim: Simulation) -> None:
    sim.engine.scheduler._options = type(sim.engine.scheduler._options)(batch_limit=3)
    views = [await sim.job(sim.every(MINUTE)) for _ in range(10)]
    await sim.advance(MINUTE)
    assert [len(await sim.executions(view.job)) for view in views] == [1] * 10


async def test_a_window_full_of_one_instant_is_not_looked_at_ever_more_often(
    sim: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    sim.engine.scheduler._options = type(sim.engine.scheduler._options)(batch_limit=3)
    for _ in range(10):
        await sim.job(sim.every(MINUTE))
    looks: list[datetime] = []
    real = sim.store.due_schedules

    async def counted(until: datetime, limit: int) -> DueSchedules:
        looks.append(sim.clock.now())
        return await real(until, limit)

    await sim.advance(MINUTE - timedelta(seconds=2))
    monkeypatch.setattr(sim.store, "due_schedules", counted)
    for _ in range(199):
        await sim.advance(timedelta(milliseconds=10))
    assert len(looks) <= 3, "each second"


async def test_a_job_that_skips_records_the_skip_with_its_reason(sim: Simulation) -> None:
    sim.target.held = asyncio.Event()
    view = await sim.job(sim.every(MINUTE), concurrency=ConcurrencyPolicy.SKIP, max_concurrency=1)
    await sim.advance(2 * MINUTE)
    sim.target.held.set()
    await sim.idle()
    runs = await sim.executions(view.job)
    assert [(run.status, run.reason) for run in runs] == [
        (ExecutionStatus.SUCCESS, None),
        (ExecutionStatus.SKIPPED, "concurrency_limit"),
    ]
    assert sim.figure("ksana_skips_total", reason="concurrency_limit") == 1


async def test_daylight_saving_is_the_zones_business(sim: Simulation) -> None:
    sim.clock.advance(datetime(2026, 3, 28, tzinfo=UTC) - sim.clock.now())
    spec = ScheduleSpec(kind=ScheduleKind.CRON, cron="0 30 2 * * *", timezone="Europe/Zurich")
    view = await sim.job(spec)
    await sim.advance(timedelta(days=3))
    planned = [run.planned_for for run in await sim.executions(view.job)]
    assert planned == [
        datetime(2026, 3, 28, 1, 30, tzinfo=UTC),
        datetime(2026, 3, 29, 1, 0, tzinfo=UTC),  # the gap: once, right after it
        datetime(2026, 3, 30, 0, 30, tzinfo=UTC),
    ]


async def test_a_schedule_of_a_disabled_job_cannot_go_on_by_itself(sim: Simulation) -> None:
    view = await sim.job(sim.every(MINUTE))
    await sim.jobs.switch(view.job.id, ANNA, enabled=False)
    assert view.schedule is not None
    with pytest.raises(Conflict, match="disabled"):
        await sim.schedules.resume(view.schedule.key, ANNA)
    await sim.advance(2 * MINUTE)
    assert await sim.executions(view.job) == []


async def test_a_schedule_that_somebody_else_is_at_is_left_alone_for_a_while_and_the_others_fire(
    sim: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = (await sim.job(sim.every(MINUTE))).schedule
    free = (await sim.job(sim.every(MINUTE))).schedule
    assert taken is not None
    rounds: list[list[int]] = []
    real = sim.store.fire

    async def fire(firings: Sequence[Firing], *rest: Any) -> Sequence[Fired]:
        rounds.append([each.schedule_id for each in firings])
        mine = await real([each for each in firings if each.schedule_id != taken.id], *rest)
        return [*mine, *(Fired(taken.id, lost=True) for each in firings if each.schedule_id == taken.id)]

    monkeypatch.setattr(sim.store, "fire", fire)
    sim.clock.advance(MINUTE)
    for _ in range(200):  # ten seconds
        await sim.engine.scheduler.run_once(sim.clock.now())
        sim.clock.advance(timedelta(milliseconds=50))
    assert len(await sim.ledger(free)) == 1
    tries = sum(taken.id in each for each in rounds)
    assert 10 <= tries <= 25, "soon again at first, then once a second"
    monkeypatch.undo()
    sim.clock.advance(timedelta(seconds=1))
    await sim.engine.scheduler.run_once(sim.clock.now())
    assert len(await sim.ledger(taken)) == 1
