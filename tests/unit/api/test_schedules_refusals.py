"""Bad input at `/api/v1/schedules`: the field is named, what is not there is not found, and nothing has changed."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
import pytest_asyncio
from tests.clock import FakeClock
from tests.unit.api.ksana_bench import Bench, Json, benched, body, refusal

pytestmark = pytest.mark.asyncio(loop_scope="module")
PATH = "/api/v1/schedules"
PREVIEW = f"{PATH}:preview"
NIGHTLY: Json = {"jobId": "nightly", "kind": "cron", "cron": "30 2 * * MON-FRI", "input": {"a": 1}}


class World:
    """A bench with one job and a schedule beside its own."""

    def __init__(self, bench: Bench, schedule: Json) -> None:
        self.api, self.path = bench.api, f"{PATH}/{schedule['id']}"

    async def post(self, **given: Any) -> httpx2.Response:
        return await self.api.post(PATH, json={**NIGHTLY, **given})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    async with benched(tmp_path_factory.mktemp("refusals"), FakeClock()) as bench:
        await bench.create(id="nightly")
        schedule = body(await bench.api.post(PATH, json=NIGHTLY))
        before = (await bench.api.get(PATH)).json()
        yield World(bench, schedule)
        assert (await bench.api.get(PATH)).json() == before, "something that was refused has changed something"


@pytest.mark.parametrize("job_id", ["nobody", 99, "99", "9" * 40, "a/b", ""])
async def test_a_job_that_is_not_there_is_not_found(job_id: object, world: World) -> None:
    assert refusal(await world.post(jobId=job_id))[:2] == (404, "NOT_FOUND")
    if isinstance(job_id, str):
        assert (await world.api.get(PATH, params={"jobId": job_id})).status_code == 404


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"jobId": True}, "jobId"),
        ({"jobId": None}, "jobId"),
        ({"jobId": 10**30}, "jobId"),
        ({"jobId": -1}, "jobId"),
        ({"workflowId": "w"}, "workflowId"),
        ({"kind": "lunar"}, "kind"),
        ({"cron": "0 25 * * *"}, "cron"),
        ({"cron": None}, "cron"),
        ({"timezone": "Mars/Olympus"}, "timezone"),
        ({"runAt": "2026-01-01T00:00:00Z"}, "runAt"),
        ({"startAt": "soon"}, "startAt"),
        ({"startAt": "2026-01-02T00:00:00Z", "endAt": "2026-01-01T00:00:00Z"}, "endAt"),
        ({"jitter": 5}, "jitter"),
        ({"misfirePolicy": "MAYBE"}, "misfirePolicy"),
        ({"catchupLimit": 101}, "catchupLimit"),
        ({"catchupLimit": True}, "catchupLimit"),
        ({"misfireGrace": "-1s"}, "misfireGrace"),
        ({"paused": "yes"}, "paused"),
        ({"input": [1]}, "input"),
        ({"input": {"n": 10**30}}, "input"),
        ({"misfire": "SKIP"}, "misfire"),
        ({"start_at": "2026-01-02T00:00:00Z"}, "start_at"),
        ({"hue": 1}, "hue"),
    ],
)
async def test_a_bad_schedule_is_refused_by_field(given: Json, field: str, world: World) -> None:
    assert refusal(await world.post(**given)) == (400, "VALIDATION_ERROR", field)


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"page": "0"}, "page"),
        ({"pageSize": "501"}, "pageSize"),
        ({"page": "9" * 40}, "page"),
        ({"page": "9999"}, "page"),
    ],
)
async def test_a_page_that_cannot_be_is_refused(params: dict[str, str], field: str, world: World) -> None:
    assert refusal(await world.api.get(PATH, params=params)) == (400, "VALIDATION_ERROR", field)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"cron": "61 * * * *"}, "cron"),
        ({"every": "5m"}, "every"),
        ({"kind": "every"}, "every"),
        ({"version": True}, "version"),
        ({"version": 10**30}, "version"),
        ({"paused": True}, "paused"),
        ({"hue": 1}, "hue"),
    ],
)
async def test_a_bad_change_is_refused_by_field(given: Json, field: str, world: World) -> None:
    assert refusal(await world.api.patch(world.path, json=given)) == (400, "VALIDATION_ERROR", field)


@pytest.mark.parametrize("key", ["nobody", "1", "9" * 40, "~1", "%00", "a b"])
async def test_an_id_that_nothing_can_have_is_not_found(key: str, world: World) -> None:
    for method, rest in (("GET", ""), ("PUT", ""), ("DELETE", ""), ("POST", "/pause"), ("GET", "/next")):
        assert refusal(await world.api.request(method, f"{PATH}/{key}{rest}", json={}))[:2] == (404, "NOT_FOUND")


@pytest.mark.parametrize("count", ["0", "1001", "x", "9" * 30])
async def test_a_wrong_count_is_named(count: str, world: World) -> None:
    assert refusal(await world.api.get(f"{world.path}/next", params={"count": count}))[2] == "count"


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"from": "yesterday"}, "from"),
        ({"to": "2026-01-01"}, "to"),
        ({"from": "2026-01-02T00:00:00Z", "to": "2026-01-01T00:00:00Z"}, "to"),
        ({"limit": "10001"}, "limit"),
        ({"limit": "0"}, "limit"),
    ],
)
async def test_a_wrong_window_is_named(params: dict[str, str], field: str, world: World) -> None:
    assert refusal(await world.api.get(f"{world.path}/occurrences", params=params)) == (400, "VALIDATION_ERROR", field)


@pytest.mark.parametrize(
    ("given", "field", "why"),
    [
        ({"kind": "cron", "cron": "0 25 * * *"}, "cron", "hour: 25 is not between 0 and 23"),
        ({"kind": "cron", "cron": "* * *"}, "cron", "has 3 fields"),
        ({"kind": "cron", "cron": "0 0 31 2 *"}, "cron", ""),
        ({"kind": "cron", "cron": "@daily", "timezone": "Nowhere"}, "timezone", "not an IANA time zone"),
        ({"kind": "every", "every": "1ms"}, "every", "100ms"),
        ({"kind": "every", "every": "1m", "count": 1001}, "count", ""),
        ({"kind": "every", "every": "1m", "count": True}, "count", ""),
        ({"kind": "every", "every": "1m", "after": "now"}, "after", "RFC 3339"),
        ({"kind": "every", "every": "1m", "jobId": "a"}, "jobId", ""),
        ({}, "kind", "required"),
    ],
)
async def test_what_is_wrong_with_it_is_named(given: Json, field: str, why: str, world: World) -> None:
    answer = await world.api.post(PREVIEW, json=given)
    assert refusal(answer) == (400, "VALIDATION_ERROR", field)
    assert why in body(answer)["message"]
