"""Retention: what has ended goes by age and number, with all that belongs to it; nothing else ever does."""

from datetime import datetime, timedelta

import pytest

from ksana.domain.job import Job
from ksana.domain.states import ExecutionStatus
from ksana.engine.commands.runs import token_hash
from ksana.store.requests import CallbackReport, NewCallback, Purged, PurgeRequest
from ksana.store.sql.statements import retention
from tests.contract.store.world import World, claim_of, run_sql

DAY = timedelta(days=1)
KEEP_ALL = 1_000_000


async def ended(world: World, job: Job, number: int = 1) -> list[int]:
    ids = []
    for _ in range(number):
        claimed = await world.running(job)
        await world.store.succeed(world.ending(claimed))
        ids.append(claimed.execution.id)
        world.clock.advance(timedelta(seconds=1))
    return ids


async def purge(world: World, before: datetime, keep: int = KEEP_ALL, limit: int = 500) -> Purged:
    """Until nothing is left to do; the sum."""
    total = last = Purged(done=False)
    for _ in range(100):
        request = PurgeRequest(before, keep, limit, after_job=last.after_job, after_schedule=last.after_schedule)
        last = await world.store.purge(request)
        total = Purged(total.runs + last.runs, total.instants + last.instants, total.events + last.events)
        if last.done:
            return total
    raise AssertionError("it never ends")


async def test_runs_that_ended_long_ago_go_and_newer_ones_stay(world: World) -> None:
    job = await world.job()
    await ended(world, job, 3)
    world.clock.advance(DAY)
    kept = await ended(world, job, 2)
    assert (await purge(world, world.clock.now() - DAY / 2)).runs == 3
    assert [run.id for run in await world.executions()] == kept


async def test_what_has_not_ended_stays_however_old(world: World) -> None:
    job = await world.job()
    waiting, running = await world.job(limit=1), await world.running(job)
    for _ in range(2):
        await world.enqueue(waiting)
    await world.claim()
    world.clock.advance(1000 * DAY)
    await purge(world, world.clock.now(), keep=0)
    statuses = {run.status for run in await world.executions()}
    assert statuses == {ExecutionStatus.RUNNING, ExecutionStatus.QUEUED}
    assert await world.store.succeed(world.ending(running))


async def test_of_each_job_only_the_newest_are_kept(world: World) -> None:
    busy, quiet = await world.job(), await world.job()
    runs = await ended(world, busy, 7)
    alone = await ended(world, quiet, 1)
    assert (await purge(world, world.clock.now() - DAY, keep=3)).runs == 4
    assert sorted(run.id for run in await world.executions()) == sorted([*runs[-3:], *alone])


async def test_the_newest_are_kept_however_they_ended(world: World) -> None:
    """In the index that is asked, each state has its own place."""
    job, other = await world.job(), await world.job()
    runs: list[int] = []
    for verb in (world.store.fail, world.store.succeed, world.store.time_out) * 12:
        claimed = await world.running(job)
        assert await verb(world.ending(claimed))
        world.clock.advance(timedelta(minutes=1))
        runs.append(claimed.execution.id)
    under_way = await world.running(job)
    alone = await ended(world, other, 20)
    assert (await purge(world, world.clock.now() - DAY, keep=20)).runs == 17
    left = [run.id for run in await world.executions()]
    assert sorted(left) == sorted([*runs[17:], under_way.execution.id, *alone])


async def test_it_goes_in_portions_and_says_when_it_is_done(world: World) -> None:
    await ended(world, await world.job(), 7)
    world.clock.advance(DAY)
    first = await world.store.purge(PurgeRequest(world.clock.now(), KEEP_ALL, limit=3))
    assert (first.runs, first.done) == (3, False)
    assert (await purge(world, world.clock.now(), limit=3)).runs == 4


@pytest.mark.parametrize(("jobs", "schedules"), [(6, 3), (3, 6), (4, 4), (1, 7)])
async def test_every_job_and_schedule_is_looked_at_once_however_many_there_are(
    world: World, monkeypatch: pytest.MonkeyPatch, jobs: int, schedules: int
) -> None:
    monkeypatch.setattr(retention, "JOBS_AT_A_TIME", 2)
    monkeypatch.setattr(retention, "SCHEDULES_AT_A_TIME", 2)
    made = [await world.job() for _ in range(jobs)]
    for job in made:
        await ended(world, job, 2)
    for _ in range(schedules):
        await world.every(made[0], timedelta(hours=1))
    calls, removed, last = 0, 0, Purged()
    while not calls or not last.done:
        request = PurgeRequest(world.clock.now() - DAY, 1, 500, last.after_job, last.after_schedule)
        last = await world.store.purge(request)
        calls, removed = calls + 1, removed + last.runs
    assert (removed, calls) == (jobs, max(jobs, schedules) // 2 + 1)


async def test_attempts_callbacks_and_keys_go_with_their_run(world: World, url: str) -> None:
    job = await world.job()
    claimed = await world.running(job)
    claim = claim_of(claimed)
    await world.store.open_callback(NewCallback(claim, token_hash("t"), world.clock.now() + DAY))
    report = CallbackReport(ExecutionStatus.CALLBACK_SUCCESS, world.clock.now(), token_hash=token_hash("t"))
    assert (await world.store.report_callback(report)).accepted
    keyed = await world.enqueue(job, idempotency_key="again")
    await world.store.succeed(world.ending((await world.claim())[0]))
    world.clock.advance(DAY)
    assert (await purge(world, world.clock.now())).runs == 2
    for table in ("executions", "attempts", "callbacks", "callback_tokens", "idempotency_keys"):
        assert run_sql(url, f"SELECT count(*) FROM {table}")[0][0] == 0
    anew = await world.enqueue(job, idempotency_key="again")
    assert anew.id != keyed.id


async def test_the_ledger_goes_by_age_alone_and_tells_from_when_it_is_whole(world: World) -> None:
    job = await world.job()
    schedule = await world.every(job, timedelta(hours=1))
    assert await world.store.ledger_since() is None
    for _ in range(4):
        world.clock.advance(timedelta(hours=1))
        await world.fire_due()
        for claimed in await world.claim():
            await world.store.succeed(world.ending(claimed))
    edge = world.clock.now() - timedelta(minutes=90)
    purged = await purge(world, edge, keep=1)
    assert (purged.runs, purged.instants) == (3, 2)
    assert len(await world.ledger(schedule)) == 2
    assert await world.store.ledger_since() == edge
    await purge(world, edge - DAY)
    assert await world.store.ledger_since() == edge


async def test_events_go_and_who_did_what_stays(world: World) -> None:
    await world.job()
    world.clock.advance(DAY)
    assert (await purge(world, world.clock.now())).events == 1
    assert await world.events() == []
    assert [entry.action for entry in await world.audit()] == ["job.created"]


async def test_instances_that_are_gone_are_forgotten_and_living_ones_are_not(world: World) -> None:
    await world.join("gone")
    await world.store.leave("gone")
    await world.join("here", lease=1000 * DAY)
    later = max(each.heartbeat_at for each in await world.store.instances()) + DAY
    await purge(world, later)
    assert [each.id for each in await world.store.instances()] == ["here"]
