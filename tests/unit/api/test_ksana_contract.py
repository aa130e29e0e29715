"""Document 002's jobs at `/jobs`: made, read, listed, deleted, run."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from tests.clock import FakeClock
from tests.unit.api.ksana_bench import Bench, Json, a_job, benched, body, refusal

from ksana.domain.job import ConcurrencyPolicy, Contract
from ksana.domain.schedule import MisfirePolicy


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[Bench]:
    async with benched(tmp_path, FakeClock()) as bench:
        yield bench


async def test_a_job_as_the_document_writes_it_comes_back_complete(world: Bench) -> None:
    given = {
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
    answer = await world.api.post("/jobs", json=given)
    assert (answer.status_code, answer.headers["location"]) == (201, "/jobs/uuid-1")
    assert answer.json() == {**given, "next_run_at": "2026-01-01T00:05:00Z"}
    assert await world.fetch("uuid-1") == answer.json()


async def test_what_is_left_out_comes_from_the_settings(world: Bench) -> None:
    job = await world.create(id="")
    assert job["id"]
    assert (job["enabled"], job["type"], job["timeout"]) == (True, "http", "10s")
    assert (job["max_retries"], job["retry_backoff"]) == (3, "5s")
    assert job["http"] == {"method": "GET", "url": "https://example.com/ping", "headers": {}, "body": ""}
    assert job["schedule"] == {"kind": "every", "every": "5m", "start_at": "", "jitter": "0s"}
    spec = (await world.store.job_by_key(job["id"])).spec
    assert (spec.contract, spec.concurrency) == (Contract.KSANA, ConcurrencyPolicy.PARALLEL)
    assert (spec.retry.max_attempts, spec.retry.multiplier, spec.retry.delay) == (4, 1.0, timedelta(seconds=5))


@pytest.mark.parametrize(
    ("schedule", "shown", "next_run_at"),
    [
        (
            {"kind": "once", "run_at": "2026-01-02T03:04:05.5+08:00", "every": "", "start_at": None},
            {"kind": "once", "run_at": "2026-01-01T19:04:05.500000Z"},
            "2026-01-01T19:04:05.500000Z",
        ),
        (
            {"kind": "every", "every": "90s", "start_at": "2025-12-31T23:59:59Z"},
            {"kind": "every", "every": "1m30s", "start_at": "2025-12-31T23:59:59Z", "jitter": "0s"},
            "2026-01-01T00:01:29Z",
        ),
        (
            {"kind": "cron", "cron": "30 9 * * mon-fri", "timezone": "Asia/Shanghai"},
            {"kind": "cron", "cron": "0 30 9 * * MON-FRI", "timezone": "Asia/Shanghai"},
            "2026-01-01T01:30:00Z",
        ),
        (
            {
                "kind": "cron",
                "cron": "@daily",
                "end_at": "2027-01-01T00:00:00Z",
                "jitter": "1m",
                "misfire_policy": "SKIP",
            },
            {
                "kind": "cron",
                "cron": "0 0 0 * * *",
                "timezone": "UTC",
                "end_at": "2027-01-01T00:00:00Z",
                "jitter": "1m",
                "misfire_policy": "SKIP",
            },
            "2026-01-02T00:00:00Z",
        ),
    ],
    ids=["once", "every", "cron", "extensions"],
)
async def test_a_schedule_is_shown_in_its_kind(schedule: Json, shown: Json, next_run_at: str, world: Bench) -> None:
    job = await world.create(schedule=schedule)
    assert (job["schedule"], job["next_run_at"]) == (shown, next_run_at)


@pytest.mark.parametrize(
    ("schedule", "policy", "grace"),
    [
        ({"kind": "once", "run_at": "2027-01-01T00:00:00Z"}, MisfirePolicy.SKIP, "1s"),
        ({"kind": "every", "every": "5m"}, MisfirePolicy.SKIP, "1s"),
        ({"kind": "every", "every": "200ms"}, MisfirePolicy.SKIP, "100ms"),
        ({"kind": "cron", "cron": "@hourly"}, MisfirePolicy.FIRE_NOW, "1m"),
    ],
)
async def test_what_is_late_is_treated_as_the_document_says(
    schedule: Json, policy: MisfirePolicy, grace: str, world: Bench
) -> None:
    job = await world.create(schedule=schedule)
    shown = body(await world.api.get("/api/v1/schedules", params={"jobId": job["id"]}))["items"][0]
    assert (shown["misfirePolicy"], shown["misfireGrace"]) == (policy, grace)


async def test_a_job_that_was_read_can_be_sent_again_and_changes_nothing(world: Bench) -> None:
    schedule = {"kind": "every", "every": "5m", "misfire_policy": "CATCH_UP_LIMITED", "catchup_limit": 7}
    first = await world.create(schedule=schedule, timeout="1m", max_retries=0)
    world.clock.advance(timedelta(seconds=7))
    before = await world.store.job_by_key(first["id"])
    assert await world.patch(first["id"], **first) == first
    assert await world.store.job_by_key(first["id"]) == before
    again = await world.create(**{**first, "id": "", "name": "copy"})
    assert again["schedule"] == first["schedule"]


async def test_an_id_that_is_taken_is_a_conflict_and_a_name_may_be_used_again(world: Bench) -> None:
    first = await world.create(id="mine")
    assert refusal(await world.api.post("/jobs", json=a_job(id="mine", name="b"))) == (409, "ID_CONFLICT", "id")
    assert (await world.create())["name"] == first["name"]
    assert await world.fetch("mine") == first


async def test_the_list_has_every_job_however_many_pages_that_takes(
    world: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ksana.api.contracts.ksana.MAX_PAGE_SIZE", 2)
    made = [await world.create(name=f"job {number}") for number in range(5)]
    assert (await world.api.get("/jobs")).json() == made
    some = await world.api.get("/jobs", params={"limit": 3, "after": made[0]["id"]})
    assert some.json() == made[1:4]
    assert (await world.api.get("/jobs", params={"after": made[4]["id"]})).json() == []
    assert refusal(await world.api.get("/jobs", params={"after": "nobody"}))[2] == "after"


async def test_an_empty_list_is_an_array(world: Bench) -> None:
    assert (await world.api.get("/jobs")).json() == []


async def test_a_deleted_job_is_gone(world: Bench) -> None:
    job = await world.create()
    answer = await world.api.delete(f"/jobs/{job['id']}")
    assert (answer.status_code, answer.content) == (204, b"")
    assert (await world.api.delete(f"/jobs/{job['id']}")).status_code == 404
    assert (await world.api.get("/jobs")).json() == []


async def test_the_integer_of_document_003_is_an_id_too(world: Bench) -> None:
    job = await world.create()
    number = (await world.store.job_by_key(job["id"])).id
    assert await world.fetch(str(number)) == job


async def test_run_now_makes_a_run_and_leaves_the_next_instant(world: Bench) -> None:
    job = await world.create()
    answer = await world.api.post(f"/jobs/{job['id']}/run-now")
    assert answer.status_code == 202
    told = body(answer)
    assert told == {"run_id": told["run_id"], "job_id": job["id"], "status": "SCHEDULED"}
    assert (await world.store.execution(int(told["run_id"]))).job_id is not None
    assert await world.fetch(job["id"]) == job


async def test_run_now_with_the_same_key_is_the_same_run(world: Bench) -> None:
    path = f"/jobs/{(await world.create())['id']}/run-now"
    runs = [body(await world.api.post(path, headers={"Idempotency-Key": key}))["run_id"] for key in ("a", "a", "b")]
    assert runs[0] == runs[1] != runs[2]
    refused = await world.api.post(path, headers={"Idempotency-Key": "x" * 1000})
    assert refusal(refused) == (400, "VALIDATION_ERROR", "Idempotency-Key")


async def test_a_job_of_another_type_shows_its_config(world: Bench) -> None:
    job = await world.create(type="noop", http=None, config={"depth": [1, 2]})
    assert (job["type"], job["http"], job["config"]) == ("noop", None, {"depth": [1, 2]})
    assert await world.patch(job["id"], **job) == job
    assert (await world.patch(job["id"], config={"depth": 3}))["config"] == {"depth": 3}
    refused = await world.api.patch(f"/jobs/{job['id']}", json={"http": {"url": "http://e.com"}})
    assert refusal(refused) == (400, "VALIDATION_ERROR", "http")


async def test_the_routes_and_their_errors_are_described(world: Bench) -> None:
    document = body(await world.api.get("/openapi.json"))
    operations = {
        (path, method): operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if path.startswith(("/jobs", "/api/v1/schedules"))
    }
    assert len(operations) == 8 + 11
    assert all(operation["summary"] and operation["tags"] for operation in operations.values())
    for (_, method), operation in operations.items():
        assert method != "patch" or {"200", "400", "404", "409"} <= set(operation["responses"])
