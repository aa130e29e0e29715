"""The audit: every instant of a lived-through time is found again, and whatever is taken away or added is noticed."""

import asyncio
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.contract.store.world import ANNA, run_sql
from tests.unit.engine.conftest import simulated
from tests.unit.engine.simulation import Simulation

from ksana.domain.job import ConcurrencyPolicy, Job
from ksana.domain.schedule import MisfirePolicy, ScheduleKind, ScheduleSpec
from ksana.engine.audit import Report, audit_ledger
from ksana.engine.commands import JobEdit
from ksana.engine.upkeep import RetentionOptions, purge_all
from ksana.store.requests import JobChange

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


async def report_of(sim: Simulation, since: datetime) -> Report:
    return await audit_ledger(sim.store, since, sim.clock.now() + timedelta(microseconds=1), sim.clock.now())


async def test_what_was_lived_through_is_all_there(sim: Simulation) -> None:
    start = sim.clock.now()
    view = await sim.job(sim.every(MINUTE))
    await sim.job(ScheduleSpec(kind=ScheduleKind.CRON, cron="*/5 * * * *"))
    await sim.advance(10 * MINUTE)
    await sim.jobs.change(view.job.id, JobEdit(view.job.spec, schedule=sim.every(2 * MINUTE)), ANNA)
    await sim.advance(10 * MINUTE + timedelta(seconds=1))
    await sim.jobs.switch(view.job.id, ANNA, enabled=False)
    await sim.advance(10 * MINUTE)
    await sim.jobs.switch(view.job.id, ANNA, enabled=True)
    await sim.advance(10 * MINUTE)
    report = await report_of(sim, start)
    tally = report.tally
    assert (report.schedules, tally.lost, tally.unplanned, tally.waiting) == (2, 0, 0, 0)
    assert tally.planned == 10 + 5 + 5 + 5 + 8 == tally.ran + sum(tally.skipped.values())
    assert dict(tally.skipped) == {"paused": 5}


async def test_an_outage_is_accounted_for_by_reason(sim: Simulation) -> None:
    start = sim.clock.now()
    await sim.job(sim.every(timedelta(seconds=1), misfire=MisfirePolicy.SKIP, misfire_grace=timedelta(0)))
    sim.clock.advance(HOUR)
    await sim.settle()
    tally = (await report_of(sim, start)).tally
    assert (tally.planned, tally.ran, dict(tally.skipped), tally.lost) == (3600, 1, {"misfire_skip": 3599}, 0)


async def test_a_missing_row_is_lost_and_a_strange_one_unplanned(sim: Simulation, tmp_path: Path) -> None:
    start = sim.clock.now()
    view = await sim.job(sim.every(MINUTE))
    await sim.advance(10 * MINUTE)
    url = f"sqlite:///{tmp_path / 'ksana.db'}"
    assert view.schedule is not None
    rows = await sim.ledger(view.schedule)
    micros = int(rows[4].planned_for.timestamp() * 1_000_000)
    run_sql(url, "DELETE FROM occurrences WHERE planned_for = :at", at=micros)
    run_sql(url, "UPDATE occurrences SET planned_for = planned_for + 7 WHERE planned_for = :at", at=micros + 60_000_000)
    report = await report_of(sim, start)
    assert (report.tally.lost, report.tally.unplanned) == (2, 1)
    assert [finding.key for finding in report.findings] == [view.schedule.key]


async def test_a_paused_schedules_instants_wait_and_a_deleted_ones_are_dropped(sim: Simulation) -> None:
    start = sim.clock.now()
    paused, deleted = await sim.job(sim.every(MINUTE)), await sim.job(sim.every(MINUTE))
    for view in (paused, deleted):
        await sim.jobs.switch(view.job.id, ANNA, enabled=False)
    await sim.advance(5 * MINUTE)
    await sim.jobs.delete(deleted.job.id, ANNA)
    tally = (await report_of(sim, start)).tally
    assert (tally.planned, tally.waiting, tally.dropped, tally.lost) == (10, 5, 5, 0)


async def test_what_retention_removed_is_not_asked_for(sim: Simulation) -> None:
    start = sim.clock.now()
    await sim.job(sim.every(MINUTE))
    await sim.advance(2 * HOUR)
    purged = await purge_all(sim.store, RetentionOptions(max_age=HOUR), sim.clock.now())
    assert purged.runs == purged.instants == 59
    report = await report_of(sim, start)
    assert (report.since, report.tally.planned, report.tally.lost) == (sim.clock.now() - HOUR, 61, 0)


async def test_a_change_that_is_written_later_than_it_was_worked_out_loses_nothing(
    sim: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = sim.clock.now()
    view = await sim.job(sim.every(timedelta(milliseconds=100)))
    real = sim.store.change_job

    async def slow(change: JobChange) -> Job:
        sim.clock.advance(timedelta(milliseconds=70))  # the commit takes its time
        return await real(change)

    monkeypatch.setattr(sim.store, "change_job", slow)
    for number in range(30):
        await sim.advance(timedelta(milliseconds=130))
        period = timedelta(milliseconds=100 + 10 * (number % 3))
        spec = ScheduleSpec(kind=ScheduleKind.EVERY, every=period, anchor=start)
        await sim.jobs.change(view.job.id, JobEdit(view.job.spec, schedule=spec), ANNA)
    await sim.advance(timedelta(seconds=1))
    tally = (await report_of(sim, start)).tally
    assert (tally.lost, tally.unplanned) == (0, 0)


async def test_a_change_worked_out_before_a_fire_is_worked_out_anew(
    sim: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = sim.clock.now()
    view = await sim.job(sim.every(timedelta(seconds=1)))
    await sim.settle()
    real = sim.store.change_job
    waited: list[bool] = []

    async def overtaken(change: JobChange) -> Job:
        if not waited:
            waited.append(True)
            await sim.advance(timedelta(seconds=3))
        return await real(change)

    monkeypatch.setattr(sim.store, "change_job", overtaken)
    await sim.jobs.change(view.job.id, JobEdit(view.job.spec, schedule=sim.every(timedelta(seconds=2))), ANNA)
    await sim.advance(timedelta(seconds=4))
    tally = (await report_of(sim, start)).tally
    assert (tally.ran, tally.lost, tally.unplanned) == (tally.planned, 0, 0)


async def test_a_long_pause_that_reaches_into_what_is_kept_is_kept(sim: Simulation) -> None:
    view = await sim.job(sim.every(HOUR))
    await sim.jobs.switch(view.job.id, ANNA, enabled=False)
    sim.clock.advance(40 * 24 * HOUR)
    await sim.jobs.switch(view.job.id, ANNA, enabled=True)
    await purge_all(sim.store, RetentionOptions(max_age=30 * 24 * HOUR), sim.clock.now())
    tally = (await report_of(sim, sim.clock.now() - 20 * 24 * HOUR)).tally
    assert (tally.lost, tally.skipped["paused"]) == (0, 481)


STEPS = st.lists(
    st.tuples(st.sampled_from(["advance", "outage", "disable", "enable", "every", "cron"]), st.integers(1, 400)),
    max_size=8,
)


@pytest.mark.parametrize("policy", list(MisfirePolicy))
@settings(
    max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(steps=STEPS)
def test_whatever_happens_nothing_is_lost(
    tmp_path_factory: pytest.TempPathFactory, policy: MisfirePolicy, steps: list[tuple[str, int]]
) -> None:

    async def live() -> None:
        async with simulated(tmp_path_factory.mktemp("audit")) as sim:
            start = sim.clock.now()
            view = await sim.job(sim.every(timedelta(seconds=37), misfire=policy), concurrency=ConcurrencyPolicy.SKIP)
            for action, seconds in steps:
                await take(sim, view.job.id, policy, action, seconds)
            await sim.settle()
            tally = (await report_of(sim, start)).tally
            assert tally.sound
            total = tally.ran + sum(tally.skipped.values()) + tally.missed + tally.waiting
            assert tally.planned == total

    asyncio.run(live())


async def take(sim: Simulation, job_id: int, policy: MisfirePolicy, action: str, seconds: int) -> None:
    view = await sim.queries.job(job_id)
    match action:
        case "advance":
            await sim.advance(timedelta(seconds=seconds))
        case "outage":
            sim.clock.advance(timedelta(seconds=seconds))
        case "disable" | "enable":
            await sim.jobs.switch(job_id, ANNA, enabled=action == "enable")
        case "every":
            spec = sim.every(timedelta(seconds=seconds), misfire=policy)
            await sim.jobs.change(job_id, JobEdit(view.job.spec, schedule=spec), ANNA)
        case "cron":
            spec = ScheduleSpec(kind=ScheduleKind.CRON, cron=f"*/{1 + seconds % 50} * * * * *", misfire=policy)
            await sim.jobs.change(job_id, JobEdit(view.job.spec, schedule=spec), ANNA)
