"""Jobs and schedules: what is defined comes back as it was, names and versions hold, and a refusal leaves no trace."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ksana.domain.errors import IdTaken, NameTaken, NotFound, VersionMismatch
from ksana.domain.events import EventType
from ksana.domain.job import ConcurrencyPolicy, Contract, ExecutionMode, Job, JobSpec, RecoveryRule
from ksana.domain.ledger import Schedule
from ksana.domain.retry import RetryPolicy
from ksana.domain.schedule import (
    MisfirePolicy,
    ScheduleKind,
    ScheduleSpec,
    SkippedRange,
    fire_time,
    next_instant,
)
from ksana.domain.states import ExecutionStatus, OccurrenceOutcome, ScheduleStatus
from ksana.store.base import Store
from ksana.store.requests import (
    JobChange,
    JobFilter,
    NewJob,
    NewSchedule,
    PageRequest,
    Resumption,
    ScheduleChange,
    ScheduleFilter,
)
from tests.contract.store.world import ALL, ANNA, World, http_spec, rivals

UNICODE = "刹那 ünï 'quoted' \"x\" \\ % _ \U0001f600"
MINUTE = timedelta(minutes=1)
START = datetime(2026, 3, 1, 12, 30, 15, 123456, tzinfo=UTC)
UNKNOWN = 4_711

FULL_SPEC = JobSpec(
    name=UNICODE,
    type="shell",
    config={"command": ["echo", UNICODE], "nested": {"deep": [1, 2.5, None, True, {"": []}]}, "big": 2**53 - 1},
    description="line one\nline two\t" + UNICODE,
    enabled=False,
    mode=ExecutionMode.ASYNC,
    timeout=timedelta(microseconds=1_500_001),
    callback_timeout=timedelta(days=3, microseconds=7),
    retry=RetryPolicy(5, timedelta(milliseconds=250), 1.7, timedelta(hours=2)),
    max_concurrency=7,
    concurrency=ConcurrencyPolicy.SKIP,
    queue_limit=0,
    recovery=RecoveryRule.FAIL,
    worker_queue="gpu",
    contract=Contract.KSANA,
    labels={"team": UNICODE, "": "empty"},
)
SCHEDULE_SPECS = {
    "once": ScheduleSpec(
        kind=ScheduleKind.ONCE, run_at=START, misfire=MisfirePolicy.SKIP, misfire_grace=timedelta(microseconds=1)
    ),
    "every": ScheduleSpec(
        kind=ScheduleKind.EVERY,
        every=timedelta(milliseconds=100),
        anchor=START - timedelta(microseconds=5),
        start_at=START,
        end_at=START + timedelta(days=365),
    ),
    "cron": ScheduleSpec(
        kind=ScheduleKind.CRON,
        cron="30 2 * * MON-FRI",
        timezone="Europe/Berlin",
        start_at=START,
        jitter=timedelta(minutes=90),
        misfire=MisfirePolicy.CATCH_UP_LIMITED,
        catchup_limit=17,
        misfire_grace=timedelta(seconds=3),
    ),
}


def once(world: World, after: timedelta = MINUTE) -> ScheduleSpec:
    return ScheduleSpec(kind=ScheduleKind.ONCE, run_at=world.clock.now() + after)


def new_schedule(spec: ScheduleSpec, key: str, **changes: Any) -> NewSchedule:
    return NewSchedule(**{"key": key, "spec": spec, "next_planned_for": next_instant(spec, None), **changes})


async def names(world: World, **filters: Any) -> list[str]:
    return [job.spec.name for job in (await world.store.jobs(JobFilter(**filters), ALL)).items]


# Jobs -----------------------------------------------------------------------------------------------------------------


async def test_a_job_comes_back_with_every_field_as_it_was_defined(world: World) -> None:
    created = await world.store.create_job(NewJob("own-key.1", FULL_SPEC, actor=ANNA))
    assert created == Job(1, "own-key.1", FULL_SPEC, 1, world.clock.now(), world.clock.now())
    assert await world.store.job(created.id) == created
    assert await world.store.job_by_key("own-key.1") == created
    assert (await world.store.jobs(JobFilter(), ALL)).items == [created]
    assert await world.schedules_of(created) == []


async def test_a_job_and_its_schedule_are_made_together(world: World) -> None:
    spec = SCHEDULE_SPECS["cron"]
    new = new_schedule(spec, "its-schedule", input={"who": UNICODE})
    job = await world.store.create_job(NewJob("job", http_spec("with schedule"), new, ANNA))
    [schedule] = await world.schedules_of(job)
    assert (schedule.id, schedule.key, schedule.job_id, schedule.spec, schedule.input) == (
        1,
        "its-schedule",
        job.id,
        spec,
        {"who": UNICODE},
    )
    assert await world.event_types() == [EventType.JOB_CREATED, EventType.SCHEDULE_CREATED]


async def test_a_refused_creation_leaves_no_trace(world: World) -> None:
    taken = new_schedule(once(world), "taken schedule")
    job = await world.store.create_job(NewJob("taken", http_spec("taken"), taken, ANNA))
    before = await world.everything()
    free = new_schedule(once(world), "free schedule")
    for new, error, kind in (
        (NewJob("free", http_spec("taken"), free, ANNA), NameTaken, "job"),
        (NewJob("taken", http_spec("free"), free, ANNA), IdTaken, "job"),
        (NewJob("free", http_spec("free"), taken, ANNA), IdTaken, "schedule"),
    ):
        with pytest.raises(error) as refused:
            await world.store.create_job(new)
        assert refused.value.details["kind"] == kind
        assert await world.everything() == before
    with pytest.raises(IdTaken):
        await world.store.create_schedule(job.id, taken, ANNA)
    assert await world.everything() == before
    await world.store.create_job(NewJob("free", http_spec("free"), free, ANNA))


async def test_names_are_unique_but_for_the_contract_whose_jobs_may_share_one(world: World) -> None:
    await world.job(name="shared", contract=Contract.KSANA)
    await world.job(name="shared", contract=Contract.KSANA)
    await world.job(name="shared", contract=Contract.CRONJOB)
    await world.job(name="shared", contract=Contract.KSANA)
    for contract in (Contract.CRONJOB, Contract.JOBCHAIN):
        with pytest.raises(NameTaken):
            await world.job(name="shared", contract=contract)
    assert await names(world) == ["shared"] * 4


async def test_names_and_keys_that_look_alike_are_different(world: World) -> None:
    alike = ["report", "Report", "REPORT", "réport", "re\u0301port", "straße", "strasse"]
    for name in alike:
        await world.job(name=name)
    for name in alike:
        assert await names(world, name=name) == [name]
    lower = await world.store.create_job(NewJob("some-key", http_spec("a"), actor=ANNA))
    upper = await world.store.create_job(NewJob("SOME-KEY", http_spec("b"), actor=ANNA))
    assert await world.store.job_by_key("some-key") == lower
    assert await world.store.job_by_key("SOME-KEY") == upper


async def test_of_many_creations_of_one_name_at_once_exactly_one_wins(world: World, url: str) -> None:
    wanted = [http_spec("wanted") for _ in range(20)] + [http_spec(f"other-{n}") for n in range(5)]
    async with rivals(world, url) as stores:
        answers = await asyncio.gather(
            *(stores[n % len(stores)].create_job(NewJob(f"k{n}", spec, actor=ANNA)) for n, spec in enumerate(wanted)),
            return_exceptions=True,
        )
    winners = [answer for answer in answers[:20] if isinstance(answer, Job)]
    losers = [answer for answer in answers[:20] if isinstance(answer, NameTaken)]
    assert (len(winners), len(losers)) == (1, 19)
    assert all(isinstance(answer, Job) for answer in answers[20:])
    assert sorted(await names(world)) == sorted(["wanted", *(f"other-{n}" for n in range(5))])
    assert await world.event_types() == [EventType.JOB_CREATED] * 6
    assert len(await world.audit()) == 6


async def test_a_change_needs_the_version_it_was_made_from(world: World) -> None:
    job = await world.job(name="before")
    world.clock.advance(MINUTE)
    new_spec = replace(FULL_SPEC, contract=Contract.CRONJOB)
    changed = await world.store.change_job(JobChange(job.id, new_spec, 1, ANNA))
    assert changed == replace(job, spec=new_spec, version=2, updated_at=world.clock.now())
    before = await world.everything()
    with pytest.raises(VersionMismatch) as refused:
        await world.store.change_job(JobChange(job.id, http_spec("lost"), 1, ANNA))
    assert (refused.value.details["expected"], refused.value.details["actual"]) == (1, 2)
    assert await world.everything() == before
    assert (await world.store.change_job(JobChange(job.id, http_spec("any version"), None, ANNA))).version == 3
    assert await names(world) == ["any version"]


async def test_of_changes_from_the_same_version_at_once_one_wins(world: World) -> None:
    job = await world.job()
    changes = [JobChange(job.id, http_spec(f"name-{n}"), 1, ANNA) for n in range(5)]
    answers = await asyncio.gather(*map(world.store.change_job, changes), return_exceptions=True)
    [winner] = [answer for answer in answers if isinstance(answer, Job)]
    assert sum(isinstance(answer, VersionMismatch) for answer in answers) == 4
    assert await world.store.job(job.id) == winner


async def test_a_change_to_a_name_that_is_taken_changes_nothing(world: World) -> None:
    await world.job(name="taken")
    job = await world.job(name="mine")
    shared = await world.job(name="taken", contract=Contract.KSANA)
    before = await world.everything()
    for change in (
        JobChange(job.id, http_spec("taken", timeout=MINUTE)),
        JobChange(shared.id, http_spec("taken", contract=Contract.JOBCHAIN)),
    ):
        with pytest.raises(NameTaken):
            await world.store.change_job(change)
        assert await world.everything() == before
    await world.store.change_job(JobChange(job.id, http_spec("free now")))
    await world.job(name="mine")


async def test_a_change_to_the_same_spec_is_no_change(world: World) -> None:
    job = await world.store.create_job(NewJob("key", FULL_SPEC, actor=ANNA))
    before = await world.everything()
    world.clock.advance(MINUTE)
    assert await world.store.change_job(JobChange(job.id, replace(FULL_SPEC), 1, ANNA)) == job
    assert await world.everything() == before


@pytest.mark.parametrize(
    ("changes", "started"),
    [
        ({"concurrency": ConcurrencyPolicy.QUEUE, "max_concurrency": 3}, 2),
        ({"concurrency": ConcurrencyPolicy.PARALLEL}, 3),
    ],
    ids=["higher", "none"],
)
async def test_a_raised_limit_starts_the_oldest_queued_runs(
    world: World, changes: dict[str, Any], started: int
) -> None:
    job = await world.job(limit=1)
    made = [await world.enqueue(job) for _ in range(4)]
    await world.claim()
    await world.store.change_job(JobChange(job.id, http_spec(job.spec.name, **changes)))
    assert [item.execution.id for item in await world.claim()] == [made[n + 1].id for n in range(started)]


async def test_deleting_a_job_cancels_what_has_not_started_and_keeps_the_rest(world: World) -> None:
    job = await world.job(limit=3)
    for _ in range(5):
        await world.enqueue(job)
    ended, running, pending = await world.claim()
    await world.store.await_callback(world.ending(pending), world.clock.now() + MINUTE)
    await world.store.succeed(world.ending(ended, output="kept"))
    assert await world.store.active_counts(job.id) == {
        ExecutionStatus.RUNNING: 1,
        ExecutionStatus.CALLBACK_PENDING: 1,
        ExecutionStatus.SCHEDULED: 1,
        ExecutionStatus.QUEUED: 1,
    }
    assert await world.store.delete_job(job.id, ANNA)
    assert [execution.status for execution in await world.executions(job_id=job.id)] == [
        ExecutionStatus.SUCCESS,
        ExecutionStatus.RUNNING,
        ExecutionStatus.CALLBACK_PENDING,
        ExecutionStatus.CANCELED,
        ExecutionStatus.CANCELED,
    ]
    assert await world.claim() == []
    assert await world.store.succeed(world.ending(running))


async def test_a_deleted_job_is_gone_from_everywhere_and_its_name_and_key_are_free(world: World) -> None:
    new = NewJob("key", http_spec("name"), new_schedule(once(world), "schedule-key"), ANNA)
    job = await world.store.create_job(new)
    [schedule] = await world.schedules_of(job)
    kept = await world.job(name="kept")
    assert await world.store.delete_job(job.id, ANNA)
    for question in (
        world.store.job(job.id),
        world.store.job_by_key("key"),
        world.store.schedule(schedule.id),
        world.store.change_job(JobChange(job.id, http_spec("again"))),
        world.store.create_schedule(job.id, new_schedule(once(world), "another"), ANNA),
    ):
        with pytest.raises(NotFound):
            await question
    with pytest.raises(NotFound):
        await world.enqueue(job)
    assert (await world.store.jobs(JobFilter(), ALL)).items == [kept]
    assert (await world.store.schedules(ALL)).total == 0
    assert await world.schedules_of(job) == []
    assert await world.store.next_fire_at() is None
    assert not await world.store.delete_job(job.id, ANNA)
    again = await world.store.create_job(replace(new, schedule=new_schedule(once(world), "new-key")))
    assert again.id > kept.id
    assert await world.store.job_by_key("key") == again


async def test_jobs_are_found_by_every_filter(world: World) -> None:
    await world.job(name="a http", labels={"x": "y"})
    await world.job(name="a shell", type="shell", enabled=False)
    await world.job(name="b shell", type="shell", contract=Contract.JOBCHAIN)
    gone = await world.job(name="a deleted")
    await world.store.delete_job(gone.id, ANNA)
    assert await names(world) == ["a http", "a shell", "b shell"]
    assert await names(world, name="a http") == ["a http"]
    assert await names(world, name="a") == []
    assert await names(world, enabled=True) == ["a http", "b shell"]
    assert await names(world, enabled=False) == ["a shell"]
    assert await names(world, type="shell") == ["a shell", "b shell"]
    assert await names(world, contract=Contract.JOBCHAIN) == ["b shell"]
    assert await names(world, keyword="a ", type="shell") == ["a shell"]


async def test_a_keyword_is_part_of_a_name_taken_literally(world: World) -> None:
    every = ["100% sure", "100 sure", "a_b", "aXb", "c\\d", "c/d", "it's", "Straße 刹那", "%", "__"]
    for name in every:
        await world.job(name=name)
    for keyword, found in {
        "0%": ["100% sure"],
        "%": ["100% sure", "%"],
        "a_b": ["a_b"],
        "_": ["a_b", "__"],
        "\\": ["c\\d"],
        "/": ["c/d"],
        "'": ["it's"],
        "ße 刹": ["Straße 刹那"],
        "sure": ["100% sure", "100 sure"],
        "Sure": [],
        "nowhere": [],
    }.items():
        assert await names(world, keyword=keyword) == found, keyword


async def test_lists_come_in_pages_with_a_total(world: World) -> None:
    jobs = [await world.job(enabled=number % 2 == 0) for number in range(7)]
    schedules = [await world.every(jobs[0], MINUTE) for _ in range(5)]
    pages = [await world.store.jobs(JobFilter(), PageRequest(page=page, size=3)) for page in (1, 2, 3, 4)]
    assert [page.items for page in pages] == [jobs[:3], jobs[3:6], jobs[6:], []]
    assert {page.total for page in pages} == {7}
    assert (pages[1].page, pages[1].size) == (2, 3)
    filtered = await world.store.jobs(JobFilter(enabled=True), PageRequest(page=2, size=3))
    assert (filtered.items, filtered.total) == ([jobs[6]], 4)
    last = await world.store.schedules(PageRequest(page=3, size=2))
    assert (last.items, last.total) == (schedules[4:], 5)


async def test_schedules_are_found_by_the_name_of_their_job_by_state_and_by_kind(world: World) -> None:
    job, other = await world.job(), await world.job()
    mine, theirs = await world.every(job, MINUTE), await world.every(other, MINUTE)

    async def found(**filters: Any) -> list[Schedule]:
        return list((await world.store.schedules(ALL, ScheduleFilter(**filters))).items)

    assert await found(keyword=job.spec.name) == [mine]
    assert await found(kind=ScheduleKind.EVERY, status=ScheduleStatus.ACTIVE) == [mine, theirs]
    assert await found(kind=ScheduleKind.CRON) == []
    assert await found(status=ScheduleStatus.PAUSED, keyword=job.spec.name) == []
    await world.store.delete_schedule(mine.id, ANNA)
    await world.store.delete_job(other.id, ANNA)
    assert await found() == await found(keyword="job") == []


async def test_schedules_that_are_looked_for_come_in_pages_with_a_total(world: World) -> None:
    jobs = [await world.job(name=name) for name in ("50% off", "50 off", "a_b")]
    schedules = [await world.every(jobs[number % 2], MINUTE) for number in range(6)]
    paused = [await world.store.pause_schedule(each.id, ANNA) for each in schedules[:4:2]]

    async def found(page: PageRequest, **filters: Any) -> tuple[list[int], int | None]:
        answer = await world.store.schedules(page, ScheduleFilter(**filters))
        return [schedules.index(each) if each in schedules else -1 for each in answer.items], answer.total

    assert len(paused) == 2
    assert await found(ALL, keyword="0%") == ([-1, -1, 4], 3)
    assert await found(ALL, keyword="_") == ([], 0)
    assert await found(PageRequest(2, 2), keyword="off") == ([-1, 3], 6)
    assert await found(PageRequest(3, 3), keyword="off") == ([], 6)
    assert await found(PageRequest(2, 2), status=ScheduleStatus.ACTIVE, keyword="off") == ([4, 5], 4)
    following = PageRequest(size=2, before_id=schedules[1].id)
    assert await found(following, status=ScheduleStatus.ACTIVE) == ([3, 4], None)


# Schedules ------------------------------------------------------------------------------------------------------------


async def test_a_schedule_comes_back_with_every_field_as_it_was_defined(world: World) -> None:
    job = await world.job()
    made = []
    for kind, spec in SCHEDULE_SPECS.items():
        first = next_instant(spec, None)
        assert first is not None
        new = NewSchedule(kind, spec, first, input={"kind": kind, "text": UNICODE, "list": [1, None]})
        created = await world.store.create_schedule(job.id, new, ANNA)
        now = world.clock.now()
        assert created == Schedule(
            id=created.id,
            key=kind,
            job_id=job.id,
            spec=spec,
            status=ScheduleStatus.ACTIVE,
            next_planned_for=first,
            next_fire_at=fire_time(spec, created.id, first),
            version=1,
            created_at=now,
            updated_at=now,
            input=new.input,
        )
        assert await world.store.schedule(created.id) == created
        made.append(created)
    assert await world.schedules_of(job) == made
    assert (await world.store.schedules(ALL)).items == made


async def test_a_schedule_fires_with_the_jitter_of_its_own_id(world: World) -> None:
    job = await world.job()
    made = [await world.every(job, timedelta(hours=1), jitter=timedelta(minutes=50)) for _ in range(5)]
    assert len({schedule.next_fire_at for schedule in made}) == 5
    planned = world.clock.now() + timedelta(hours=7)
    for schedule in made:
        assert schedule.next_planned_for is not None
        assert schedule.next_fire_at == fire_time(schedule.spec, schedule.id, schedule.next_planned_for)
        changed = await world.store.change_schedule(ScheduleChange(schedule.id, schedule.spec, planned))
        assert changed.next_fire_at == fire_time(schedule.spec, schedule.id, planned)
        paused = await world.store.pause_schedule(schedule.id, ANNA)
        resumed = await world.store.resume_schedule(Resumption(schedule.id, paused.version, planned))
        assert resumed.next_fire_at == fire_time(schedule.spec, schedule.id, planned)


async def test_a_schedule_without_a_next_instant_is_finished(world: World) -> None:
    job = await world.job()
    spec = once(world)
    created = await world.store.create_schedule(job.id, NewSchedule("created", spec, None), ANNA)
    changed = await world.every(job, MINUTE)
    changed = await world.store.change_schedule(ScheduleChange(changed.id, spec, None))
    paused = await world.store.pause_schedule((await world.every(job, MINUTE)).id, ANNA)
    resumed = await world.store.resume_schedule(Resumption(paused.id, paused.version, None))
    for schedule in (created, changed, resumed):
        assert schedule.status is ScheduleStatus.FINISHED
        assert (schedule.next_planned_for, schedule.next_fire_at) == (None, None)
    assert await world.store.next_fire_at() is None


async def test_a_changed_schedule_has_the_whole_new_spec_and_cursor(world: World) -> None:
    schedule = await world.every(await world.job(), MINUTE)
    world.clock.advance(MINUTE)
    spec = SCHEDULE_SPECS["cron"]
    planned = next_instant(spec, None)
    assert planned is not None
    changed = await world.store.change_schedule(ScheduleChange(schedule.id, spec, planned, 1, ANNA))
    assert changed == replace(
        schedule,
        spec=spec,
        next_planned_for=planned,
        next_fire_at=fire_time(spec, schedule.id, planned),
        version=2,
        updated_at=world.clock.now(),
    )
    assert await world.store.schedule(schedule.id) == changed
    before = await world.everything()
    with pytest.raises(VersionMismatch):
        await world.store.change_schedule(ScheduleChange(schedule.id, once(world), None, 1, ANNA))
    assert await world.everything() == before


async def test_a_change_wakes_a_parked_or_finished_schedule_but_not_a_paused_one(world: World) -> None:
    job = await world.job()
    parked, finished, paused = [await world.every(job, MINUTE) for _ in range(3)]
    assert await world.store.park_schedule(parked.id, parked.version, "cannot be read")
    await world.store.change_schedule(ScheduleChange(finished.id, finished.spec, None))
    await world.store.pause_schedule(paused.id, ANNA)
    planned = world.clock.now() + timedelta(hours=1)
    changed = [
        await world.store.change_schedule(ScheduleChange(schedule.id, schedule.spec, planned))
        for schedule in (parked, finished, paused)
    ]
    assert [schedule.status for schedule in changed] == [
        ScheduleStatus.ACTIVE,
        ScheduleStatus.ACTIVE,
        ScheduleStatus.PAUSED,
    ]
    assert {schedule.next_planned_for for schedule in changed} == {planned}
    assert changed[0].error is None
    due = await world.store.due_schedules(planned, 10)
    assert {schedule.id for schedule in due.schedules} == {parked.id, finished.id}


async def test_a_paused_schedule_is_not_due_and_pausing_it_again_changes_nothing(world: World) -> None:
    job = await world.job()
    schedule = await world.every(job, MINUTE)
    new = new_schedule(once(world), "paused from the start", paused=True)
    made_so = await world.store.create_schedule(job.id, new, ANNA)
    assert (made_so.status, made_so.next_planned_for) == (ScheduleStatus.PAUSED, new.next_planned_for)
    paused = await world.store.pause_schedule(schedule.id, ANNA)
    assert paused.status is ScheduleStatus.PAUSED
    assert paused.next_planned_for == schedule.next_planned_for
    assert await world.store.next_fire_at() is None
    before = await world.everything()
    assert await world.store.pause_schedule(schedule.id, ANNA) == paused
    assert await world.everything() == before


async def test_a_resumed_schedule_says_in_the_ledger_what_passed_meanwhile(world: World) -> None:
    schedule = await world.every(await world.job(), MINUTE)
    assert schedule.next_planned_for is not None
    paused = await world.store.pause_schedule(schedule.id, ANNA)
    world.clock.advance(timedelta(minutes=90))
    last = world.clock.now()
    passed = SkippedRange(schedule.next_planned_for, last, 90, OccurrenceOutcome.SKIPPED, "paused")
    stale = Resumption(schedule.id, paused.version + 1, last + MINUTE, passed, ANNA)
    before = await world.everything()
    with pytest.raises(VersionMismatch):
        await world.store.resume_schedule(stale)
    assert await world.everything() == before
    resumed = await world.store.resume_schedule(replace(stale, expected_version=paused.version))
    assert (resumed.status, resumed.next_planned_for) == (ScheduleStatus.ACTIVE, last + MINUTE)
    [row] = await world.ledger(schedule)
    assert (row.planned_for, row.last_planned_for, row.count) == (schedule.next_planned_for, last, 90)
    assert (row.outcome, row.reason, row.execution_id) == (OccurrenceOutcome.SKIPPED, "paused", None)
    assert row.recorded_at == world.clock.now()


async def test_a_schedule_is_parked_only_as_the_version_that_could_not_be_read(world: World) -> None:
    job = await world.job()
    schedule, paused, gone = [await world.every(job, MINUTE) for _ in range(3)]
    paused = await world.store.pause_schedule(paused.id, ANNA)
    await world.store.delete_schedule(gone.id, ANNA)
    before = await world.everything()
    for schedule_id, version in (
        (schedule.id, schedule.version + 1),
        (paused.id, paused.version),
        (gone.id, gone.version),
        (UNKNOWN, 1),
    ):
        assert not await world.store.park_schedule(schedule_id, version, "no")
    assert await world.everything() == before
    assert await world.store.park_schedule(schedule.id, schedule.version, "zone is gone: " + UNICODE)
    parked = await world.store.schedule(schedule.id)
    assert (parked.status, parked.error) == (ScheduleStatus.PARKED, "zone is gone: " + UNICODE)
    assert await world.store.next_fire_at() is None
    assert (await world.events())[-1].type is EventType.SCHEDULE_PARKED
    again = world.clock.now() + MINUTE
    resumed = await world.store.resume_schedule(Resumption(parked.id, parked.version, again))
    assert (resumed.status, resumed.error, resumed.next_planned_for) == (ScheduleStatus.ACTIVE, None, again)


async def test_a_deleted_schedule_fires_no_more_and_its_ledger_stays(world: World) -> None:
    job = await world.job()
    schedule = await world.every(job, MINUTE)
    kept = await world.every(job, timedelta(hours=1))
    world.clock.advance(MINUTE)
    await world.fire_due()
    assert await world.store.delete_schedule(schedule.id, ANNA)
    assert not await world.store.delete_schedule(schedule.id, ANNA)
    assert [row.outcome for row in await world.ledger(schedule)] == [OccurrenceOutcome.FIRED]
    assert await world.schedules_of(job) == [kept]
    assert (await world.store.schedules(ALL)).items == [kept]
    assert await world.store.next_fire_at() == kept.next_fire_at


Question = Callable[[Store, int, NewSchedule], Awaitable[object]]
NOT_FOUND: dict[str, Question] = {
    "job": lambda store, key, _: store.job(key),
    "job_by_key": lambda store, key, _: store.job_by_key(f"key-{key}"),
    "change_job": lambda store, key, _: store.change_job(JobChange(key, http_spec("x"), 1)),
    "create_schedule": lambda store, key, new: store.create_schedule(key, new, ANNA),
    "schedule": lambda store, key, _: store.schedule(key),
    "change_schedule": lambda store, key, new: store.change_schedule(ScheduleChange(key, new.spec, None, 1)),
    "pause_schedule": lambda store, key, _: store.pause_schedule(key, ANNA),
    "resume_schedule": lambda store, key, _: store.resume_schedule(Resumption(key, 1, None)),
}


async def test_what_there_is_not_is_not_found(world: World) -> None:
    before = await world.everything()
    for name, question in NOT_FOUND.items():
        with pytest.raises(NotFound):
            await question(world.store, UNKNOWN, new_schedule(once(world), name))
    assert not await world.store.delete_job(UNKNOWN, ANNA)
    assert not await world.store.delete_schedule(UNKNOWN, ANNA)
    assert await world.everything() == before
