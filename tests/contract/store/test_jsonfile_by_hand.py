"""A file that people write and edit: document 002's plain shape, and changes made while Ksana is stopped."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ksana.domain.job import ConcurrencyPolicy, Contract
from ksana.domain.retry import RetryPolicy
from ksana.domain.schedule import MisfirePolicy
from ksana.domain.states import ExecutionStatus, OccurrenceOutcome, ScheduleStatus
from ksana.store.requests import JobFilter
from tests.clock import FakeClock
from tests.contract.store.conftest import EVERYTHING
from tests.contract.store.test_jsonfile import MINUTE, SECOND, opened, said
from tests.contract.store.world import ANNA

NOON = datetime(2025, 9, 19, 11, tzinfo=UTC)
PLAIN: dict[str, Any] = {
    "id": "uuid-1",
    "name": "ping service",
    "enabled": True,
    "type": "http",
    "http": {"method": "GET", "url": "https://example.com/ping", "headers": {"X-Token": "abc"}, "body": ""},
    "schedule": {"kind": "every", "every": "5m", "start_at": "", "jitter": "5s"},
    "timeout": "10s",
    "max_retries": 3,
    "retry_backoff": "5s",
    "last_run_at": "",
    "next_run_at": "2025-09-19T11:05:00Z",
    "last_status": "",
    "last_error": "",
}


def write(path: Path, *jobs: dict[str, Any], **changes: Any) -> None:
    document = {"version": 1, "updated_at": "2025-09-19T11:00:00Z", "jobs": list(jobs), **changes}
    path.write_text("\ufeff" + json.dumps(document))  # as some editors begin a file


def edit(path: Path, **changes: Any) -> None:
    document = said(path)
    document["jobs"][0] |= changes
    path.write_text(json.dumps(document))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jobs.json"


async def test_the_example_of_document_002_is_read(path: Path) -> None:
    clock = FakeClock(NOON + timedelta(minutes=1))
    write(path, PLAIN)
    async with opened(path, clock) as world:
        job = await world.store.job_by_key("uuid-1")
        assert job.spec.config == PLAIN["http"]
        assert (job.spec.retry, job.spec.timeout) == (RetryPolicy(4, 5 * SECOND), 10 * SECOND)
        assert (job.spec.contract, job.spec.concurrency) == (Contract.KSANA, ConcurrencyPolicy.PARALLEL)
        [schedule] = (await world.store.schedules(EVERYTHING)).items
        assert (schedule.next_planned_for, schedule.spec.misfire) == (NOON + 5 * MINUTE, MisfirePolicy.SKIP)
        assert (schedule.spec.jitter, schedule.status) == (5 * SECOND, ScheduleStatus.ACTIVE)
    async with opened(path, clock) as world:
        assert await world.store.job_by_key("uuid-1") == job
        assert list((await world.store.schedules(EVERYTHING)).items) == [schedule]


async def test_a_job_needs_to_say_little(path: Path) -> None:
    clock = FakeClock(NOON)
    write(path, {"name": "small", "http": {"url": "http://x/"}, "schedule": {"kind": "every", "every": "1m"}})
    async with opened(path, clock) as world:
        [job] = (await world.store.jobs(JobFilter(), EVERYTHING)).items
        assert job.spec.config == {"method": "GET", "url": "http://x/", "headers": {}, "body": ""}
        assert (job.spec.retry.max_attempts, job.spec.enabled) == (4, True)
        assert len(job.key) == 36
        [schedule] = (await world.store.schedules(EVERYTHING)).items
        assert schedule.next_planned_for == NOON + MINUTE


async def test_an_every_that_lags_behind_rolls_to_the_next_instant_from_now(path: Path) -> None:
    clock = FakeClock(NOON + timedelta(hours=2, minutes=1))
    write(path, PLAIN)
    async with opened(path, clock) as world:
        [schedule] = (await world.store.schedules(EVERYTHING)).items
        assert schedule.next_planned_for == NOON + timedelta(hours=2, minutes=5)


async def test_a_once_that_is_past_is_missed_unless_it_ran(path: Path) -> None:
    clock = FakeClock(NOON)
    once = {"kind": "once", "run_at": "2025-09-19T10:00:00+01:00"}
    ran = {"last_run_at": "2025-09-19T09:00:00Z", "last_status": "timeout", "last_error": "too slow", "next_run_at": ""}
    write(path, PLAIN | {"schedule": once}, PLAIN | {"id": "ran", "schedule": once} | ran)
    async with opened(path, clock) as world:
        [due, done] = (await world.store.schedules(EVERYTHING)).items
        assert done.status is ScheduleStatus.FINISHED
        await world.fire_due()
        assert [row.outcome for row in await world.ledger(due)] == [OccurrenceOutcome.MISSED]
        [run] = await world.executions()
        assert (run.status, run.error) == (ExecutionStatus.TIMEOUT, "too slow")
    assert [job["last_status"] for job in said(path)["jobs"]] == ["missed", "timeout"]


async def test_a_disabled_job_does_not_fire(path: Path) -> None:
    clock = FakeClock(NOON)
    write(path, PLAIN | {"enabled": False})
    async with opened(path, clock) as world:
        [schedule] = (await world.store.schedules(EVERYTHING)).items
        assert (schedule.status, schedule.next_fire_at) == (ScheduleStatus.PAUSED, None)
    edit(path, enabled=True)
    async with opened(path, clock) as world:
        [schedule] = (await world.store.schedules(EVERYTHING)).items
        assert (schedule.status, schedule.next_planned_for) == (ScheduleStatus.ACTIVE, NOON + 5 * MINUTE)


async def test_an_edited_file_counts(path: Path) -> None:
    clock = FakeClock(NOON)
    write(path, PLAIN)
    async with opened(path, clock) as world:
        before = await world.store.job_by_key("uuid-1")
        [schedule] = (await world.store.schedules(EVERYTHING)).items
    edit(path, http=PLAIN["http"] | {"url": "http://new/"}, timeout="1m", schedule={"kind": "every", "every": "7m"})
    async with opened(path, clock) as world:
        job = await world.store.job_by_key("uuid-1")
        assert (job.id, job.spec.config["url"], job.spec.timeout) == (before.id, "http://new/", MINUTE)
        [changed] = (await world.store.schedules(EVERYTHING)).items
        assert (changed.id, changed.version, changed.spec.every) == (schedule.id, schedule.version + 1, 7 * MINUTE)
        assert changed.next_planned_for is not None
        assert changed.next_planned_for > clock.now()
        assert await world.store.delete_job(job.id, ANNA)
    assert said(path)["jobs"] == []


async def test_an_edited_schedule_does_not_repeat_what_its_ledger_has(path: Path) -> None:
    clock = FakeClock(NOON)
    write(path, PLAIN | {"schedule": {"kind": "every", "every": "5m"}})
    async with opened(path, clock) as world:
        clock.advance(5 * MINUTE)
        assert len((await world.fire_due())[0].execution_ids) == 1
        [schedule] = (await world.store.schedules(EVERYTHING)).items
    clock.advance(-2 * MINUTE)  # the clock was set back, too
    edit(path, schedule={"kind": "every", "every": "5m", "jitter": "1s"})
    async with opened(path, clock) as world:
        [edited] = (await world.store.schedules(EVERYTHING)).items
        assert edited.next_planned_for == schedule.next_planned_for


async def test_a_job_can_be_added_and_taken_out(path: Path) -> None:
    clock = FakeClock(NOON)
    write(path, PLAIN, PLAIN | {"id": "uuid-2"})
    async with opened(path, clock) as world:
        second = await world.store.job_by_key("uuid-2")
    document = said(path)
    jobs = [document["jobs"][1], PLAIN | {"id": "uuid-3"}]
    write(path, *jobs, ksana=document["ksana"])
    async with opened(path, clock) as world:
        found = (await world.store.jobs(JobFilter(), EVERYTHING)).items
        assert [(job.id, job.key) for job in found] == [(second.id, "uuid-2"), (second.id + 1, "uuid-3")]
