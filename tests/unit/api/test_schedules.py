"""`/api/v1/schedules`: schedules of any job, made, listed, changed, paused, deleted."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.clock import FakeClock
from tests.unit.api.ksana_bench import Bench, Json, benched, body, refusal

from ksana.domain.events import SYSTEM

PATH = "/api/v1/schedules"
NIGHTLY: Json = {"kind": "cron", "cron": "30 2 * * MON-FRI", "timezone": "Europe/Berlin"}


class World:
    """A bench with one job and a schedule beside its own."""

    def __init__(self, bench: Bench, job: Json) -> None:
        self.bench, self.api, self.clock, self.job = bench, bench.api, bench.clock, job

    async def post(self, **given: Any) -> httpx2.Response:
        return await self.api.post(PATH, json={"jobId": self.job["id"], **NIGHTLY, **given})

    async def create(self, **given: Any) -> Json:
        answer = await self.post(**given)
        assert answer.status_code == 201, answer.text
        return body(answer)

    async def change(self, schedule: Json, *, method: str = "PATCH", **given: Any) -> httpx2.Response:
        return await self.api.request(method, f"{PATH}/{schedule['id']}", json=given)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with benched(tmp_path, FakeClock()) as bench:
        yield World(bench, await bench.create(id="nightly", name="Nightly report"))


async def test_a_schedule_comes_back_complete(world: World) -> None:
    answer = await world.post(input={"depth": 3}, jitter="5s", endAt="2027-01-01T00:00:00+01:00")
    schedule = body(answer)
    assert (answer.status_code, answer.headers["location"]) == (201, f"{PATH}/{schedule['id']}")
    fires_at = schedule.pop("nextFireAt")
    assert "2026-01-01T01:30:00" <= fires_at < "2026-01-01T01:30:06"
    assert schedule == {
        "id": schedule["id"],
        "jobId": "nightly",
        "jobName": "Nightly report",
        "workflowId": None,
        "workflowName": None,
        "kind": "cron",
        "cron": "0 30 2 * * MON-FRI",
        "every": None,
        "runAt": None,
        "timezone": "Europe/Berlin",
        "startAt": None,
        "endAt": "2026-12-31T23:00:00Z",
        "jitter": "5s",
        "misfirePolicy": "FIRE_NOW",
        "catchupLimit": 5,
        "misfireGrace": "1m",
        "status": "ACTIVE",
        "nextPlannedFor": "2026-01-01T01:30:00Z",
        "error": None,
        "input": {"depth": 3},
        "version": 1,
        "description": "At 02:30, Monday through Friday",
        "cronInWords": {"en": "At 02:30, Monday through Friday", "zh": "每周一至周五 02:30"},
        "createdAt": "2026-01-01T00:00:00Z",
        "updatedAt": "2026-01-01T00:00:00Z",
    }
    assert body(await world.api.get(f"{PATH}/{schedule['id']}")) == {**schedule, "nextFireAt": fires_at}


async def test_every_counts_from_its_start_or_its_creation(world: World) -> None:
    bare = {"kind": "every", "every": "1h", "cron": None, "timezone": None}
    assert (await world.create(**bare))["nextPlannedFor"] == "2026-01-01T01:00:00Z"
    begun = await world.create(**bare, startAt="2025-12-31T23:10:00Z")
    assert (begun["nextPlannedFor"], begun["startAt"]) == ("2026-01-01T00:10:00Z", "2025-12-31T23:10:00Z")


async def test_a_job_is_named_by_its_string_or_its_integer(world: World) -> None:
    number = (await world.bench.store.job_by_key("nightly")).id
    for job_id in (number, str(number), "nightly"):
        assert (await world.create(jobId=job_id))["jobId"] == "nightly"


async def test_schedules_are_listed_by_page_and_by_job(world: World) -> None:
    mine = [await world.create() for _ in range(3)]
    other = await world.bench.create(name="other")
    page = body(await world.api.get(PATH, params={"page": 2, "pageSize": 2}))
    assert (page["page"], page["pageSize"], page["total"]) == (2, 2, 5)
    assert page["items"] == mine[1:3]
    of_job = body(await world.api.get(PATH, params={"jobId": "nightly", "page": 2, "pageSize": 3}))
    assert (of_job["total"], of_job["items"]) == (4, mine[2:])
    (single,) = body(await world.api.get(PATH, params={"jobId": other["id"]}))["items"]
    assert (single["jobName"], single["kind"], single["misfirePolicy"]) == ("other", "every", "SKIP")


@pytest.mark.parametrize("method", ["PATCH", "PUT"])
async def test_only_what_is_given_changes(method: str, world: World) -> None:
    schedule = await world.create(jitter="5s", endAt="2027-01-01T00:00:00Z")
    changed = body(await world.change(schedule, method=method, cron="0 3 * * *", endAt=None))
    fields = {"cron": "0 0 3 * * *", "endAt": None, "version": 2, "description": "At 03:00"}
    words = {"cronInWords": {"en": "At 03:00, every day", "zh": "每天 03:00"}}
    moved = {"nextPlannedFor": "2026-01-01T02:00:00Z", "nextFireAt": changed["nextFireAt"]}
    assert changed == {**schedule, **fields, **words, **moved}
    hourly = body(await world.change(schedule, method=method, kind="every", every="1h", jitter=None))
    assert (hourly["kind"], hourly["cron"], hourly["jitter"]) == ("every", None, "0s")
    assert hourly["nextPlannedFor"] == "2026-01-01T01:00:00Z"


async def test_a_schedule_that_was_read_can_be_sent_back_and_changes_nothing(world: World) -> None:
    for schedule in (await world.create(input={"a": 1}), body(await world.api.get(PATH))["items"][0]):
        world.clock.advance(timedelta(seconds=1))
        assert body(await world.change(schedule, method="PUT", **schedule)) == schedule


async def test_a_change_of_a_version_that_is_over_is_a_conflict(world: World) -> None:
    schedule = await world.create()
    assert (await world.change(schedule, version=1, jitter="1s")).status_code == 200
    late = await world.change(schedule, version=1, jitter="2s")
    assert (late.status_code, body(late)["code"]) == (409, "VERSION_CONFLICT")
    assert body(await world.change(schedule, jitter="3s"))["jitter"] == "3s"


async def test_a_schedule_does_not_move_to_another_job(world: World) -> None:
    schedule, other = await world.create(), await world.bench.create(name="other")
    assert refusal(await world.change(schedule, jobId=other["id"])) == (400, "VALIDATION_ERROR", "jobId")
    assert (await world.change(schedule, jobId="nobody")).status_code == 404


async def test_a_schedule_is_paused_and_resumed(world: World) -> None:
    schedule = await world.create(kind="every", every="1h", cron=None)
    paused = body(await world.api.post(f"{PATH}/{schedule['id']}/pause"))
    assert (paused["status"], paused["nextFireAt"]) == ("PAUSED", None)
    world.clock.advance(timedelta(minutes=90))
    resumed = body(await world.api.post(f"{PATH}/{schedule['id']}/resume"))
    assert (resumed["status"], resumed["nextPlannedFor"]) == ("ACTIVE", "2026-01-01T02:00:00Z")
    assert (await world.create(paused=True))["status"] == "PAUSED"


async def test_a_schedule_of_a_disabled_job_starts_paused(world: World) -> None:
    await world.bench.patch("nightly", enabled=False)
    assert (await world.create())["status"] == "PAUSED"


async def test_a_deleted_schedule_is_gone(world: World) -> None:
    schedule = await world.create()
    assert (await world.api.delete(f"{PATH}/{schedule['id']}")).status_code == 204
    assert (await world.api.delete(f"{PATH}/{schedule['id']}")).status_code == 404
    assert body(await world.api.get(PATH))["total"] == 1


async def test_the_schedules_of_a_deleted_job_are_gone(world: World) -> None:
    await world.create()
    job = await world.bench.store.job_by_key("nightly")
    await world.bench.services.jobs.delete(job.id, SYSTEM)
    assert body(await world.api.get(PATH)) == {"page": 1, "pageSize": 20, "total": 0, "items": []}


async def test_schedules_are_found_by_name_state_and_kind_and_tell_their_last_instant(world: World) -> None:
    (own,) = body(await world.api.get(PATH))["items"]
    nightly = await world.create()
    await world.api.post(f"{PATH}/{nightly['id']}/pause")
    await world.bench.fire(timedelta(minutes=5))

    async def found(**query: str) -> list[str]:
        return [each["id"] for each in body(await world.api.get(PATH, params=query))["items"]]

    assert await found(status="PAUSED") == [nightly["id"]]
    assert await found(kind="cron", keyword="ightly rep") == [nightly["id"]]
    assert await found(keyword="nothing of that name") == []
    refused = await world.api.get(PATH, params={"jobId": "nightly", "kind": "cron"})
    assert refusal(refused) == (400, "VALIDATION_ERROR", "keyword")
    told = body(await world.api.get(PATH, params={"include": "last"}))["items"]
    assert [(each["id"], each["last"] and each["last"]["outcome"]) for each in told] == [
        (own["id"], "FIRED"),
        (nightly["id"], None),
    ]
