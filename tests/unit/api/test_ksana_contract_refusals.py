"""Bad input at `/jobs`: 400, the field in document 002's own words, and nothing has changed."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from tests.clock import FakeClock
from tests.unit.api.ksana_bench import Bench, Json, a_job, benched, refusal

pytestmark = pytest.mark.asyncio(loop_scope="module")
URL = "https://example.com/ping"
EVERY = {"kind": "every", "every": "5m"}
HALF = "\ud800"


def call(**given: Any) -> Json:
    return {"http": {"url": URL, **given}}


def schedule(**given: Any) -> Json:
    return {"schedule": {**EVERY, **given}}


def cron(**given: Any) -> Json:
    return {"schedule": {"kind": "cron", "cron": "@daily", **given}}


WRONG: list[tuple[Json, str]] = [
    ({"name": "  "}, "name"),
    ({"name": None}, "name"),
    ({"name": f"a{HALF}"}, "name"),
    ({"enabled": 1}, "enabled"),
    ({"enabled": None}, "enabled"),
    ({"hue": 1}, "hue"),
    ({"timeout": "abc"}, "timeout"),
    ({"timeout": "0s"}, "timeout"),
    ({"timeout": 10}, "timeout"),
    ({"max_retries": -1}, "max_retries"),
    ({"max_retries": True}, "max_retries"),
    ({"max_retries": 1.0}, "max_retries"),
    ({"max_retries": 10**400}, "max_retries"),
    ({"retry_backoff": "-1s"}, "retry_backoff"),
    ({"retry_backoff": "999999999h"}, "retry_backoff"),
    ({"http": "GET"}, "http"),
    (call(url="ftp://example.com"), "http.url"),
    (call(url=f"http://example.com/{HALF}"), "http"),
    (call(url=""), "http.url"),
    (call(url=None), "http.url"),
    (call(method="TRACE"), "http.method"),
    (call(headers=["a"]), "http.headers"),
    (call(headers={"X-A": 1}), "http.headers.X-A"),
    (call(headers={"X-A": "b\r\nc"}), "http.headers.X-A"),
    (call(headers={"Host": "b"}), "http.headers.Host"),
    (call(body="{{ nothing }}"), "http.body"),
    (call(body={"a": 1}), "http.body"),
    (call(hue=1), "http.hue"),
    ({"schedule": "5m"}, "schedule"),
    (schedule(kind="lunar"), "schedule.kind"),
    (schedule(every="99ms"), "schedule.every"),
    (schedule(every="abc"), "schedule.every"),
    (schedule(every=""), "schedule.every"),
    (schedule(every=300), "schedule.every"),
    (schedule(run_at="2026-01-01T00:00:00Z"), "schedule.run_at"),
    (schedule(start_at="soon"), "schedule.start_at"),
    (schedule(start_at="2026-01-01T00:00:00"), "schedule.start_at"),
    (schedule(start_at="0001-01-01T00:00:00Z"), "schedule.start_at"),
    (schedule(start_at="2026-02-01T00:00:00Z", end_at="2026-01-01T00:00:00Z"), "schedule.end_at"),
    (schedule(jitter="-1s"), "schedule.jitter"),
    (schedule(jitter="8d"), "schedule.jitter"),
    (schedule(misfire_policy="MAYBE"), "schedule.misfire_policy"),
    (schedule(misfire_policy="CATCH_UP_LIMITED", catchup_limit=0), "schedule.catchup_limit"),
    (schedule(catchup_limit=101), "schedule.catchup_limit"),
    (schedule(misfire_grace="x"), "schedule.misfire_grace"),
    (schedule(misfire="SKIP"), "schedule.misfire"),
    (schedule(hue=1), "schedule.hue"),
    ({"schedule": {"kind": "once"}}, "schedule.run_at"),
    ({"schedule": {"kind": "once", "run_at": "2026-02-30T00:00:00Z"}}, "schedule.run_at"),
    (cron(cron="61 * * * *"), "schedule.cron"),
    (cron(cron=""), "schedule.cron"),
    (cron(timezone="Mars/Olympus"), "schedule.timezone"),
    (cron(timezone=HALF), "schedule.timezone"),
]
WRONG_WHEN_NEW: list[tuple[Json, str]] = [
    ({"id": "a/b"}, "id"),
    ({"id": "12"}, "id"),
    ({"type": "pigeon"}, "type"),
    ({"type": HALF}, "type"),
    ({"http": None}, "http"),
    ({"config": {}}, "config"),
    ({"schedule": None}, "schedule"),
    ({"schedule": {"every": "5m"}}, "schedule.kind"),
]
WRONG_AS_CHANGE: list[tuple[Json, str]] = [
    ({"id": "another"}, "id"),
    ({"type": "noop"}, "type"),
    ({"http": None}, "http"),
    ({"config": {}}, "config"),
    ({"schedule": None}, "schedule"),
    ({"schedule": {"cron": "@daily"}}, "schedule.cron"),
    ({"timeout": None}, "timeout"),
    ({"max_retries": None}, "max_retries"),
    ({"retry_backoff": None}, "retry_backoff"),
    ({"max_retries": 9, "timeout": "abc"}, "timeout"),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Bench]:
    async with benched(tmp_path_factory.mktemp("refusals"), FakeClock()) as bench:
        good = await bench.create(id="good")
        yield bench
        assert (await bench.api.get("/jobs")).json() == [good], "something that was refused has changed something"


async def send(world: Bench, method: str, path: str, document: Json) -> tuple[int, str, str]:
    content = json.dumps(document).encode()  # escapes halves of characters, which httpx2 would not send
    answer = await world.api.request(method, path, content=content, headers={"Content-Type": "application/json"})
    return refusal(answer)


@pytest.mark.parametrize(("given", "field"), WRONG + WRONG_WHEN_NEW)
async def test_a_bad_job_is_refused_by_field(given: Json, field: str, world: Bench) -> None:
    assert await send(world, "POST", "/jobs", a_job(**given)) == (400, "VALIDATION_ERROR", field)


@pytest.mark.parametrize(("given", "field"), WRONG + WRONG_AS_CHANGE)
async def test_a_bad_change_is_refused_by_field(given: Json, field: str, world: Bench) -> None:
    assert await send(world, "PATCH", "/jobs/good", given) == (400, "VALIDATION_ERROR", field)


@pytest.mark.parametrize("field", ["name", "http", "schedule"])
async def test_what_a_job_must_have_is_named_if_it_is_missing(field: str, world: Bench) -> None:
    given = {name: value for name, value in a_job().items() if name != field}
    assert await send(world, "POST", "/jobs", given) == (400, "VALIDATION_ERROR", field)


async def test_a_wrong_cron_says_which_part_and_why(world: Bench) -> None:
    answer = await world.api.post("/jobs", json=a_job(**cron(cron="0 25 * * *")))
    assert answer.json()["message"] == "schedule.cron: hour: 25 is not between 0 and 23"


@pytest.mark.parametrize("limit", ["0", "-1", "x", "9" * 30])
async def test_a_wrong_limit_is_named(limit: str, world: Bench) -> None:
    answer = await world.api.get("/jobs", params={"limit": limit})
    assert refusal(answer) == (400, "VALIDATION_ERROR", "limit")


@pytest.mark.parametrize("job_id", ["nobody", "0", "9" * 16, "9" * 5000, "~1", "a b", "%00", "%ff", "é", "x" * 65])
async def test_an_id_that_nothing_can_have_is_not_found(job_id: str, world: Bench) -> None:
    for method, path in (("GET", ""), ("PATCH", ""), ("DELETE", ""), ("POST", "/pause"), ("POST", "/run-now")):
        answer = await world.api.request(method, f"/jobs/{job_id}{path}", json={})
        assert refusal(answer)[:2] == (404, "NOT_FOUND")
