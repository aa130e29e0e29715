"""What overviews ask, on every database: late events, whose events are, what is planned, a ledger in days."""

from datetime import datetime, timedelta

from ksana.domain.job import Contract
from ksana.domain.states import OccurrenceOutcome
from ksana.store.requests import JobChange
from ksana.store.view_requests import LedgerCount, LedgerRange, Origin, TargetKind
from tests.contract.store.world import ANNA, World, http_spec, rivals, run_sql

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def days(first: datetime, count: int) -> list[datetime]:
    return [first + number * DAY for number in range(count + 1)]


async def test_events_are_found_by_their_ids_and_the_newest_is_known(world: World) -> None:
    assert await world.store.newest_event_id() == 0
    for _ in range(4):
        await world.job()
    one, two, three, four = await world.events()
    assert await world.store.newest_event_id() == four.id
    assert await world.store.events_by_ids([four.id, two.id, four.id + 1_000_000]) == [two, four]
    assert await world.store.events_by_ids([]) == []
    assert (one.id, three.id) != (two.id, four.id)


async def test_the_subject_of_an_event_is_shown_as_clients_know_it(world: World) -> None:
    job = await world.job()
    schedule = await world.every(job, HOUR)
    run = await world.enqueue(job)
    subjects = [f"job/{job.id}", f"schedule/{schedule.id}", f"execution/{run.id}", "execution/999999", "instance/one"]
    assert await world.store.origins(subjects) == {
        f"job/{job.id}": Origin(None, TargetKind.JOB, job.key),
        f"schedule/{schedule.id}": Origin(None, TargetKind.JOB, job.key),
        f"execution/{run.id}": Origin(str(run.id), TargetKind.JOB, job.key),
    }
    assert await world.store.names_of(TargetKind.JOB, {job.key, "another"}) == {job.key: job.spec.name}
    await world.store.delete_job(job.id, ANNA)
    assert await world.store.names_of(TargetKind.JOB, [job.key]) == {}
    assert await world.store.origins([f"execution/{run.id}"]) == {
        f"execution/{run.id}": Origin(str(run.id), None, None)
    }


async def test_every_commit_of_any_store_is_counted_by_the_one_that_made_it(world: World, url: str) -> None:
    async with rivals(world, url) as stores:
        before = [store.commits for store in stores]
        await world.job()
        assert world.store.commits > before[0]
        assert [store.commits for store in stores[1:]] == before[1:]


async def test_what_is_planned_is_of_enabled_jobs_and_soonest_first(world: World) -> None:
    job, off = await world.job(), await world.job()
    later, soon, _ = await world.every(job, 2 * HOUR), await world.every(job, HOUR), await world.every(off, HOUR)
    paused, far = await world.every(job, HOUR), await world.every(job, DAY)
    await world.store.pause_schedule(paused.id, ANNA)
    disabled = http_spec(off.spec.name, enabled=False)
    await world.store.change_job(JobChange(off.id, disabled, off.version, ANNA))
    found = await world.store.planned_schedules(world.clock.now() + 2 * HOUR, 10)
    assert [each.schedule for each in found] == [soon, later]
    assert {(each.kind, each.key, each.name, each.contract) for each in found} == {
        (TargetKind.JOB, job.key, job.spec.name, Contract.CRONJOB)
    }
    assert [each.schedule for each in await world.store.planned_schedules(world.clock.now() + DAY, 1)] == [soon]
    assert far.id


async def test_a_ledger_is_counted_by_days_with_what_failed_and_what_was_deleted_since(world: World) -> None:
    first = world.clock.now()
    job = await world.job()
    schedule = await world.every(job, 12 * HOUR)
    for fails in (True, False, False, True):
        world.clock.advance(12 * HOUR)
        await world.fire_due()
        [claimed] = await world.claim()
        await (world.store.fail if fails else world.store.succeed)(world.ending(claimed))
    await world.store.delete_schedule(schedule.id, ANNA)
    ledger = await world.store.job_ledger(job.id, days(first, 3), 100)
    assert sorted(ledger.counts, key=lambda each: each.day) == [
        LedgerCount(0, OccurrenceOutcome.FIRED, 1, 1),
        LedgerCount(1, OccurrenceOutcome.FIRED, 2, 0),
        LedgerCount(2, OccurrenceOutcome.FIRED, 1, 1),
    ]
    assert (list(ledger.ranges), ledger.whole_from) == ([], 0)
    other = await world.job()
    assert list((await world.store.job_ledger(other.id, days(first, 3), 100)).counts) == []


async def test_a_ledger_that_is_too_long_is_counted_from_its_end(world: World) -> None:
    first = world.clock.now()
    job = await world.job()
    await world.every(job, 12 * HOUR)
    for _ in range(4):
        world.clock.advance(12 * HOUR)
        await world.fire_due()
    ledger = await world.store.job_ledger(job.id, days(first, 3), 3)
    assert {each.day: each.count for each in ledger.counts} == {1: 2, 2: 1}
    assert ledger.whole_from == 2


async def test_a_range_is_told_as_one_also_if_it_began_before(world: World) -> None:
    first = world.clock.now()
    job = await world.job()
    schedule = await world.every(job, HOUR)
    world.clock.advance(3 * DAY)
    await world.fire_due()
    skipped = LedgerRange(schedule.id, first + HOUR, first + 3 * DAY - HOUR, 71, OccurrenceOutcome.SKIPPED)
    for beginning in (first, first + DAY):
        ledger = await world.store.job_ledger(job.id, days(beginning, 1), 100)
        assert (list(ledger.counts), list(ledger.ranges)) == ([], [skipped])


async def test_an_event_that_is_committed_late_is_found_by_its_id(world: World, url: str) -> None:
    await world.job()
    [event] = await world.events()
    late = event.id + 2
    run_sql(
        url,
        "INSERT INTO events (id, type, at, subject) VALUES (:id, 'job.changed', :at, 'job/1')",
        id=late,
        at=0,
    )
    assert [each.id for each in await world.store.events_by_ids([event.id + 1, late])] == [late]
