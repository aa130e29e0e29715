"""The JSON-file store: what the file says, and what survives a restart."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ksana.domain.errors import NotFound, StoreUnavailable
from ksana.domain.job import ConcurrencyPolicy, Contract, ExecutionMode, Job, JobSpec, RecoveryRule
from ksana.domain.ledger import Schedule
from ksana.domain.plan import WaveTally
from ksana.domain.retry import RetryPolicy
from ksana.domain.schedule import MisfirePolicy, ScheduleKind, ScheduleSpec, next_instant
from ksana.domain.states import ExecutionStatus, ScheduleStatus
from ksana.store.jsonfile import open_json_store
from ksana.store.plan_requests import TaskFilter
from ksana.store.requests import JobFilter, NewExecution, NewJob, NewSchedule
from ksana.store.sql.store import SqlStore
from ksana.store.view_requests import TargetKind
from tests.clock import FakeClock
from tests.contract.store.conftest import EVERYTHING, OPTIONS
from tests.contract.store.world import ANNA, World, http_spec, run_sql

pytestmark = pytest.mark.parametrize("back_end", ["json"], indirect=True)

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)


@asynccontextmanager
async def opened(path: Path, clock: FakeClock) -> AsyncIterator[World]:
    store = open_json_store(f"json://{path}", options=OPTIONS, clock=clock)
    try:
        yield World(store, clock)
    finally:
        await store.close()


def said(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(path.read_text())
    return document


def version_of(path: Path) -> tuple[int, int]:
    """Another one for every write."""
    found = path.stat()
    return found.st_ino, found.st_mtime_ns


def mode_of(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.fixture
def file(json_file: Path | None) -> Path:
    assert json_file is not None
    return json_file


# The shape --------------------------------------------------------------------------------------------------------------


async def test_a_new_file_is_an_empty_template(file: Path, store: SqlStore) -> None:
    assert said(file) == {
        "version": 1,
        "updated_at": "2026-01-01T00:00:00Z",
        "jobs": [],
        "ksana": {"format": 1, "ids": {}},
    }
    assert mode_of(file) == 0o600


async def test_there_are_neither_workflows_nor_plans_to_tell_of(store: SqlStore) -> None:
    assert await store.newest_runs(["nightly"], 10) == {}
    assert await store.schedules_of_workflows([1]) == {}
    assert await store.names_of(TargetKind.PLAN, ["rollout"]) == {}
    assert await store.plan_counts([1]) == {1: WaveTally()}
    assert (await store.tasks(TaskFilter(1, keyword="acme"), EVERYTHING)).items == []
    with pytest.raises(NotFound):
        await store.task_by_key("acme")


async def test_a_job_is_written_in_the_shape_of_document_002(file: Path, store: SqlStore, clock: FakeClock) -> None:
    config = {"method": "POST", "url": "https://example.com/ping", "headers": {"X-Token": "abc"}, "body": "{}"}
    spec = http_spec("ping service", config=config, retry=RetryPolicy(4, 5 * SECOND), contract=Contract.KSANA)
    every = ScheduleSpec(kind=ScheduleKind.EVERY, every=5 * MINUTE, jitter=5 * SECOND, anchor=clock.now())
    new = NewSchedule("s", every, next_instant(every, clock.now()))
    await store.create_job(NewJob("uuid-1", spec, new))
    [written] = said(file)["jobs"]
    assert written.pop("ksana")
    assert written == {
        "id": "uuid-1",
        "name": "ping service",
        "enabled": True,
        "type": "http",
        "http": config,
        "schedule": {"kind": "every", "every": "5m", "start_at": "", "jitter": "5s"},
        "timeout": "10s",
        "max_retries": 3,
        "retry_backoff": "5s",
        "last_run_at": "",
        "next_run_at": "2026-01-01T00:05:00Z",
        "last_status": "",
        "last_error": "",
    }


JOBS = [
    http_spec("nothing but a url"),
    http_spec("more than the shape", config={"url": "u", "method": "PUT", "retry_on": [500], "headers": {"a": "b"}}),
    http_spec("other types", config={"url": None, "method": 1, "headers": {"a": ["b", "c"]}, "body": {"x": 1.5}}),
    http_spec("what looks like a default", config={"method": "GET", "url": "", "headers": {}, "body": ""}),
    http_spec("empty", config={}),
    JobSpec(
        name='刹那 "quoted" \\ 😀',
        type="shell",
        config={"command": ["echo", "\u2028\x01"], "http": {"url": "x"}, "deep": {"": [None, True, 1e300]}},
        description="line one\nline two",
        enabled=False,
        mode=ExecutionMode.ASYNC,
        timeout=timedelta(hours=1, microseconds=1),
        callback_timeout=timedelta(days=3, microseconds=7),
        retry=RetryPolicy(7, timedelta(milliseconds=1), 2.5, timedelta(days=2)),
        max_concurrency=7,
        concurrency=ConcurrencyPolicy.SKIP,
        queue_limit=0,
        recovery=RecoveryRule.FAIL,
        worker_queue="gpu",
        contract=Contract.JOBCHAIN,
        labels={"team": "刹那"},
    ),
]
SCHEDULES: list[Callable[[FakeClock], ScheduleSpec]] = [
    lambda clock: ScheduleSpec(kind=ScheduleKind.ONCE, run_at=clock.now() + timedelta(microseconds=1)),
    lambda clock: ScheduleSpec(
        kind=ScheduleKind.ONCE, run_at=clock.now() + MINUTE, start_at=clock.now(), jitter=SECOND, timezone="Asia/Tokyo"
    ),
    lambda clock: ScheduleSpec(kind=ScheduleKind.EVERY, every=timedelta(seconds=0.1), anchor=clock.now() - MINUTE),
    lambda clock: ScheduleSpec(
        kind=ScheduleKind.EVERY,
        every=timedelta(days=1.5),
        start_at=clock.now(),
        end_at=clock.now() + timedelta(days=400),
        jitter=MINUTE,
        misfire=MisfirePolicy.CATCH_UP_LIMITED,
        catchup_limit=17,
        misfire_grace=timedelta(0),
    ),
    lambda _: ScheduleSpec(
        kind=ScheduleKind.CRON, cron="0 30 2 * * 1-5", timezone="Europe/Zurich", misfire=MisfirePolicy.SKIP
    ),
]


async def definitions(store: SqlStore) -> tuple[list[Job], list[Schedule]]:
    return list((await store.jobs(JobFilter(), EVERYTHING)).items), list((await store.schedules(EVERYTHING)).items)


async def test_every_spec_comes_back_exactly(file: Path, store: SqlStore, clock: FakeClock) -> None:
    for number, spec in enumerate(JOBS):
        job = await store.create_job(NewJob(f"k{number}", spec, actor=ANNA))
        for other, make in enumerate(SCHEDULES[: number + 1]):
            when = make(clock)
            first = next_instant(when, clock.now())
            new = NewSchedule(f"s{number}-{other}", when, first, paused=other == 3, input={"n": [other]})
            await store.create_schedule(job.id, new, ANNA)
    before, version = await definitions(store), version_of(file)
    await store.close()
    clock.advance(MINUTE)
    async with opened(file, clock) as world:
        assert isinstance(world.store, SqlStore)
        assert await definitions(world.store) == before
    assert version_of(file) == version  # to open it is no change


async def test_ids_are_never_given_out_twice(file: Path, store: SqlStore, clock: FakeClock) -> None:
    world = World(store, clock)
    job = await world.job()
    schedule, run = await world.every(job, MINUTE), await world.enqueue(job)
    newest = (await world.events())[-1].id
    await store.delete_job(job.id, ANNA)
    await store.close()
    async with opened(file, clock) as again:
        other = await again.job()
        assert other.id > job.id
        assert (await again.every(other, MINUTE)).id > schedule.id
        assert (await again.enqueue(other)).id > run.id
        assert (await again.events())[0].id > newest


# What survives ------------------------------------------------------------------------------------------------------------


async def test_no_instant_fires_twice_across_a_restart(file: Path, store: SqlStore, clock: FakeClock) -> None:
    world = World(store, clock)
    schedule = await world.every(await world.job(), MINUTE, jitter=SECOND)
    clock.advance(MINUTE + SECOND)
    [fired] = await world.fire_due()
    moved = await store.schedule(schedule.id)
    await store.close()
    async with opened(file, clock) as again:
        assert await again.store.schedule(schedule.id) == moved
        assert await again.fire_due() == []
        [kept] = await again.ledger(schedule)
        assert (kept.planned_for, kept.execution_id) == (schedule.next_planned_for, fired.execution_ids[0])


async def test_the_last_run_of_a_job_is_there_after_a_restart(file: Path, store: SqlStore, clock: FakeClock) -> None:
    world = World(store, clock)
    job = await world.job()
    await store.succeed(world.ending(await world.running(job)))
    clock.advance(MINUTE)
    claimed = await world.running(job)
    clock.advance(SECOND)
    await store.fail(world.ending(claimed, error="HTTP 500"))
    last = await store.execution(claimed.execution.id)
    [written] = said(file)["jobs"]
    assert (written["last_run_at"], written["last_status"]) == ("2026-01-01T00:01:00Z", "failed")
    assert written["last_error"] == "HTTP 500"
    await store.close()
    async with opened(file, clock) as again:
        [found] = await again.executions()
        assert (found.id, found.status, found.error) == (last.id, ExecutionStatus.FAILED, "HTTP 500")
        assert (found.started_at, found.ended_at, found.job_id) == (last.started_at, last.ended_at, job.id)
    assert said(file)["jobs"] == [written]


async def test_what_the_ledger_had_before_the_restart_is_known_to_be_gone(
    file: Path, store: SqlStore, clock: FakeClock
) -> None:
    world = World(store, clock)
    await world.every(await world.job(), MINUTE)
    assert await store.ledger_since() is None
    clock.advance(MINUTE)
    await world.fire_due()
    written = clock.now()
    await store.close()
    clock.advance(MINUTE)
    async with opened(file, clock) as again:
        assert await again.store.ledger_since() == written


async def test_a_once_that_was_missed_stays_missed(file: Path, store: SqlStore, clock: FakeClock) -> None:
    world = World(store, clock)
    once = ScheduleSpec(kind=ScheduleKind.ONCE, run_at=clock.now() + MINUTE, misfire=MisfirePolicy.SKIP)
    job = await world.job()
    schedule = await store.create_schedule(job.id, NewSchedule("s", once, once.run_at), ANNA)
    clock.advance(timedelta(hours=1))
    await world.fire_due()
    assert said(file)["jobs"][0]["last_status"] == "missed"
    await store.close()
    async with opened(file, clock) as again:
        assert (await again.store.schedule(schedule.id)).status is ScheduleStatus.FINISHED
        assert [row.reason for row in await again.ledger(schedule)] == ["once_missed"]
    assert said(file)["jobs"][0]["last_status"] == "missed"


async def test_runs_that_had_not_ended_are_run_again_or_failed_by_their_rule(
    file: Path, store: SqlStore, clock: FakeClock
) -> None:
    world = World(store, clock)
    again_and_again, once = await world.job(), await world.job(recovery=RecoveryRule.FAIL)
    waiting = await world.enqueue(again_and_again, input={"a": [1]}, trace_id="trace")
    lost = await world.enqueue(once)
    assert len(await world.claim()) == 2
    await store.close()
    async with opened(file, clock) as restarted:
        [claimed] = await restarted.claim()
        assert (claimed.execution.id, claimed.execution.input) == (waiting.id, {"a": [1]})
        assert claimed.execution.trace_id == "trace"
        assert await restarted.status(lost.id) is ExecutionStatus.FAILED
        assert await restarted.store.succeed(restarted.ending(claimed))


async def test_closing_commits_what_was_asked_for_and_refuses_the_rest(
    file: Path, store: SqlStore, clock: FakeClock
) -> None:
    job = await World(store, clock).job()
    new = NewExecution(job_id=job.id, ready_at=clock.now())
    asked = [asyncio.ensure_future(store.enqueue(new)) for _ in range(20)]
    await asyncio.sleep(0)
    await store.close()
    await asyncio.gather(*asked)
    with pytest.raises(StoreUnavailable):
        await store.enqueue(new)
    async with opened(file, clock) as again:
        assert sum((await again.store.active_counts(job.id)).values()) == 20


async def test_a_schedule_whose_zone_is_gone_is_no_damage(
    file: Path, store: SqlStore, url: str, clock: FakeClock
) -> None:
    world = World(store, clock)
    job = await world.job()
    cron = ScheduleSpec(kind=ScheduleKind.CRON, cron="* * * * *", timezone="Europe/Berlin")
    broken = await store.create_schedule(job.id, NewSchedule("s", cron, clock.now() + MINUTE), ANNA)
    run_sql(url, "UPDATE schedules SET spec = REPLACE(spec, 'Europe/Berlin', 'Gone/Nowhere')")
    await world.job()
    await store.close()
    clock.advance(MINUTE)
    async with opened(file, clock) as again:
        [unreadable] = (await again.store.due_schedules(clock.now(), 10)).unreadable
        assert unreadable.schedule_id == broken.id
    assert said(file)["jobs"][0]["schedule"]["timezone"] == "Gone/Nowhere"
