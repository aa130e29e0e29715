"""Document 002's PATCH, pause and resume, and what a job says about its last run."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.clock import FakeClock
from tests.unit.api.ksana_bench import Bench, Json, benched, body

from ksana.domain.errors import VersionMismatch
from ksana.domain.events import Actor
from ksana.domain.job import ConcurrencyPolicy
from ksana.domain.retry import RetryPolicy
from ksana.engine.commands import JobCommands, JobEdit
from ksana.engine.queries import JobView

MINUTE = timedelta(minutes=1)
LAST = ("last_status", "last_error", "last_run_at", "next_run_at")


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[Bench]:
    async with benched(tmp_path, FakeClock()) as bench:
        yield bench


def last(job: Json) -> tuple[str, ...]:
    return tuple(job[field] for field in LAST)


async def test_only_what_is_given_changes(world: Bench) -> None:
    job = await world.create(http={"method": "POST", "url": "http://a.example/", "headers": {"X-A": "1"}, "body": "x"})
    changed = await world.patch(job["id"], name="new", max_retries=0, http={"url": "http://b.example/"})
    assert changed == {**job, "name": "new", "max_retries": 0, "http": {**job["http"], "url": "http://b.example/"}}
    cleared = await world.patch(job["id"], http={"headers": {}, "body": ""}, timeout="1m", retry_backoff="0s")
    assert cleared["http"] == {"method": "POST", "url": "http://b.example/", "headers": {}, "body": ""}
    assert (cleared["timeout"], cleared["retry_backoff"]) == ("1m", "0s")
    assert await world.fetch(job["id"]) == cleared


async def test_what_the_document_cannot_say_survives_a_change(world: Bench) -> None:
    job = await world.create()
    retry = RetryPolicy(5, timedelta(seconds=1), 2.0, timedelta(seconds=10))
    config = {"url": "http://a.example/", "body": {"a": 1}, "follow_redirects": True}
    before = await world.respec(job["id"], retry=retry, config=config, concurrency=ConcurrencyPolicy.SKIP)
    shown = await world.fetch(job["id"])
    assert shown["http"]["body"] == '{"a":1}'
    await world.patch(job["id"], **shown)
    assert (await world.store.job_by_key(job["id"])).spec == before
    await world.patch(job["id"], retry_backoff="20s")
    after = (await world.store.job_by_key(job["id"])).spec.retry
    assert (after.delay, after.max_delay, after.multiplier) == (timedelta(seconds=20), timedelta(seconds=20), 2.0)


@pytest.mark.parametrize(
    ("change", "next_run_at"),
    [
        ({"kind": "every", "every": "300s"}, "2026-01-01T00:05:00Z"),  # the same: what is due stays due
        ({"kind": "every", "every": "300s", "jitter": "1s"}, "2026-01-01T00:10:00Z"),
        ({"every": "10m"}, "2026-01-01T00:17:00Z"),
        ({"kind": "every", "every": "10m"}, "2026-01-01T00:17:00Z"),
        ({"start_at": "2026-01-02T00:00:30Z"}, "2026-01-02T00:00:30Z"),
        ({"kind": "once", "run_at": "2026-01-03T00:00:00Z"}, "2026-01-03T00:00:00Z"),
        ({"kind": "cron", "cron": "0 12 * * *"}, "2026-01-01T12:00:00Z"),
    ],
)
async def test_the_grid_of_every_moves_only_with_its_interval_or_start(
    change: Json, next_run_at: str, world: Bench
) -> None:
    job = await world.create()
    world.clock.advance(7 * MINUTE)
    assert (await world.patch(job["id"], schedule=change))["next_run_at"] == next_run_at


async def test_a_start_that_is_taken_away_gives_way_to_now(world: Bench) -> None:
    job = await world.create(schedule={"kind": "every", "every": "5m", "start_at": "2026-02-01T00:00:00Z"})
    assert job["next_run_at"] == "2026-02-01T00:00:00Z"
    changed = await world.patch(job["id"], schedule={"start_at": ""})
    assert (changed["schedule"]["start_at"], changed["next_run_at"]) == ("", "2026-01-01T00:05:00Z")


async def test_a_part_of_a_schedule_keeps_the_others_and_a_kind_replaces_them(world: Bench) -> None:
    job = await world.create(schedule={"kind": "every", "every": "5m", "jitter": "5s", "misfire_policy": "FIRE_NOW"})
    merged = await world.patch(job["id"], schedule={"every": "6m"})
    assert merged["schedule"] == {**job["schedule"], "every": "6m"}
    whole = await world.patch(job["id"], schedule={"kind": "every", "every": "6m"})
    assert whole["schedule"] == {"kind": "every", "every": "6m", "start_at": "", "jitter": "0s"}


async def test_a_change_is_worked_out_again_if_somebody_was_faster(
    world: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = await world.create()
    commands = type(world.services.jobs)
    plain = commands.change

    async def overtaken(self: JobCommands, job_id: int, edit: JobEdit, actor: Actor) -> JobView:
        monkeypatch.setattr(commands, "change", plain)
        await world.respec(job["id"], timeout=timedelta(seconds=77))
        return await plain(self, job_id, edit, actor)

    monkeypatch.setattr(commands, "change", overtaken)
    changed = await world.patch(job["id"], name="new")
    assert (changed["name"], changed["timeout"]) == ("new", "1m17s")


async def test_a_change_that_is_always_late_is_a_conflict(world: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    job = await world.create()

    async def late(*_given: Any) -> JobView:
        raise VersionMismatch("job", 1, expected=1, actual=2)

    monkeypatch.setattr(type(world.services.jobs), "change", late)
    answer = await world.api.patch(f"/jobs/{job['id']}", json={"name": "new"})
    assert (answer.status_code, body(answer)["code"]) == (409, "VERSION_CONFLICT")


async def test_a_paused_job_is_disabled_and_a_resumed_one_goes_on_from_now(world: Bench) -> None:
    job = await world.create()
    paused = body(await world.api.post(f"/jobs/{job['id']}/pause"))
    assert paused == {**job, "enabled": False, "last_status": "paused", "next_run_at": ""}
    assert await world.patch(job["id"], name="still paused") == {**paused, "name": "still paused"}
    world.clock.advance(7 * MINUTE)
    resumed = body(await world.api.post(f"/jobs/{job['id']}/resume"))
    assert resumed["enabled"]
    assert last(resumed) == ("skipped", "paused", "", "2026-01-01T00:10:00Z")


async def test_enabled_is_another_word_for_it(world: Bench) -> None:
    job = await world.create(enabled=False)
    assert last(job) == ("paused", "", "", "")
    assert last(await world.patch(job["id"], enabled=True)) == ("", "", "", "2026-01-01T00:05:00Z")
    assert last(await world.patch(job["id"], enabled=False)) == ("paused", "", "", "")


async def test_a_schedule_that_was_paused_by_itself_is_resumed_with_its_job(world: Bench) -> None:
    job = await world.create()
    schedule = body(await world.api.get("/api/v1/schedules"))["items"][0]
    await world.api.post(f"/api/v1/schedules/{schedule['id']}/pause")
    assert last(await world.fetch(job["id"])) == ("paused", "", "", "")
    assert body(await world.api.post(f"/jobs/{job['id']}/resume")) == job


async def test_a_job_without_a_schedule_can_be_given_one(world: Bench) -> None:
    job = await world.create()
    schedule = body(await world.api.get("/api/v1/schedules"))["items"][0]
    await world.api.delete(f"/api/v1/schedules/{schedule['id']}")
    bare = await world.fetch(job["id"])
    assert (bare["schedule"], bare["next_run_at"]) == (None, "")
    assert await world.patch(job["id"], **bare) == bare
    assert (await world.api.patch(f"/jobs/{job['id']}", json={"schedule": {"every": "5m"}})).status_code == 400
    assert await world.patch(job["id"], schedule=job["schedule"]) == job


@pytest.mark.parametrize(
    ("ending", "status", "error"),
    [
        ({}, "success", ""),
        ({"error": "404 from the target"}, "failed", "404 from the target"),
        ({"error": "longer than 10s", "timed_out": True}, "timeout", "longer than 10s"),
    ],
)
async def test_the_last_run_is_told(ending: Json, status: str, error: str, world: Bench) -> None:
    job = await world.create()
    await world.fire(5 * MINUTE)
    assert last(await world.fetch(job["id"])) == ("", "", "", "2026-01-01T00:10:00Z")
    await world.run_all(**ending)
    told = (status, error, "2026-01-01T00:05:00Z", "2026-01-01T00:10:00Z")
    assert last(await world.fetch(job["id"])) == told


async def test_instants_that_were_not_run_are_told_if_they_are_later_than_the_last_run(world: Bench) -> None:
    job = await world.create()
    await world.fire(5 * MINUTE)
    await world.run_all()
    await world.fire(12 * MINUTE)
    skipped = ("skipped", "misfire_skip", "2026-01-01T00:05:00Z", "2026-01-01T00:20:00Z")
    assert last(await world.fetch(job["id"])) == skipped
    await world.api.post(f"/jobs/{job['id']}/run-now")
    await world.run_all()
    assert last(await world.fetch(job["id"])) == ("success", "", "2026-01-01T00:17:00Z", "2026-01-01T00:20:00Z")


async def test_a_once_that_has_passed_is_missed(world: Bench) -> None:
    late = await world.create(schedule={"kind": "once", "run_at": "2025-12-31T00:00:00Z"})
    assert last(late) == ("missed", "once_missed", "", "")
    slept = await world.create(schedule={"kind": "once", "run_at": "2026-01-01T00:01:00Z"})
    await world.fire(2 * MINUTE)
    assert last(await world.fetch(slept["id"])) == ("missed", "once_missed", "", "")


async def test_a_once_that_passes_in_a_pause_is_missed(world: Bench) -> None:
    job = await world.create(schedule={"kind": "once", "run_at": "2026-01-01T00:01:00Z"})
    await world.api.post(f"/jobs/{job['id']}/pause")
    world.clock.advance(2 * MINUTE)
    assert last(body(await world.api.post(f"/jobs/{job['id']}/resume"))) == ("missed", "paused", "", "")
