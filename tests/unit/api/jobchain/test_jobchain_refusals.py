"""Bad input at `/api/v1/jobs`: document 001's codes, the field as the caller wrote it, and nothing has changed."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
import pytest_asyncio
from tests.clock import FakeClock
from tests.unit.api.jobchain.bench import JOBS, URL, World, a_job, opened, told
from tests.unit.api.ksana_bench import Json, refusal

pytestmark = pytest.mark.asyncio(loop_scope="module")
HALF = "\ud800"


def config(**given: Any) -> Json:
    return {"configJson": {"url": URL, **given}}


WRONG: list[tuple[Json, str]] = [
    ({"name": "  "}, "name"),
    ({"name": ""}, "name"),
    ({"name": " a"}, "name"),
    ({"name": None}, "name"),
    ({"name": 7}, "name"),
    ({"name": "n" * 129}, "name"),
    ({"name": f"a{HALF}"}, "name"),
    ({"description": 1}, "description"),
    ({"description": "d" * 513}, "description"),
    ({"description": HALF}, "description"),
    ({"type": "pigeon", "configJson": {}}, "type"),
    ({"type": "a b"}, "type"),
    ({"type": ""}, "type"),
    ({"type": None}, "type"),
    ({"type": HALF}, "type"),
    ({"enabled": 1}, "enabled"),
    ({"enabled": "true"}, "enabled"),
    ({"enabled": None}, "enabled"),
    ({"hue": 1}, "hue"),
    ({"config": {}}, "config"),
    ({"configJson": None}, "configJson"),
    ({"configJson": 5}, "configJson"),
    ({"configJson": []}, "configJson"),
    ({"configJson": "not JSON"}, "configJson"),
    ({"configJson": "[1]"}, "configJson"),
    ({"configJson": HALF}, "configJson"),
    ({"configJson": {}}, "configJson.url"),
    ({"configJson": "{}"}, "configJson.url"),
    (config(url="ftp://example.com"), "configJson.url"),
    (config(url=f"http://example.com/{HALF}"), "configJson"),
    (config(body=f"{HALF}"), "configJson"),
    (config(method="BREW"), "configJson.method"),
    (config(headers=["a"]), "configJson.headers"),
    (config(headers={"Host": "b"}), "configJson.headers.Host"),
    (config(body="{{ nothing }}"), "configJson.body"),
    (config(hue=1), "configJson.hue"),
    (config(timeout=1), "configJson.timeout"),
    (config(mode="later"), "configJson.mode"),
    (config(mode=1), "configJson.mode"),
    (config(callback_timeout="soon"), "configJson.callback_timeout"),
    (config(callback_timeout=0), "configJson.callback_timeout"),
    ({"timeout": "abc"}, "timeout"),
    ({"timeout": 0}, "timeout"),
    ({"timeout": -1}, "timeout"),
    ({"timeout": True}, "timeout"),
    ({"timeout": 10**400}, "timeout"),
    ({"retry": 3}, "retry"),
    ({"retry": {"maxAttempts": 0}}, "retry.maxAttempts"),
    ({"retry": {"maxAttempts": 1001}}, "retry.maxAttempts"),
    ({"retry": {"maxAttempts": True}}, "retry.maxAttempts"),
    ({"retry": {"maxAttempts": "3"}}, "retry.maxAttempts"),
    ({"retry": {"maxAttempts": 10**400}}, "retry.maxAttempts"),
    ({"retry": {"backoffMillis": -1}}, "retry.backoffMillis"),
    ({"retry": {"backoffMillis": 1e300}}, "retry.backoffMillis"),
    ({"retry": {"backoffMillis": float("nan")}}, "retry.backoffMillis"),
    ({"retry": {"backoffMillis": 10**400}}, "retry.backoffMillis"),
    ({"retry": {"backoffMultiplier": 0.5}}, "retry.backoffMultiplier"),
    ({"retry": {"backoffMultiplier": float("inf")}}, "retry.backoffMultiplier"),
    ({"retry": {"max_attempts": 3}}, "retry.max_attempts"),
    ({"maxConcurrency": 0}, "maxConcurrency"),
    ({"maxConcurrency": 1_000_001}, "maxConcurrency"),
    ({"maxConcurrency": "5"}, "maxConcurrency"),
    ({"concurrencyPolicy": "MAYBE"}, "concurrencyPolicy"),
    ({"recovery": "hope"}, "recovery"),
    ({"labels": ["a"]}, "labels"),
    ({"labels": {"a": 1}}, "labels.a"),
    ({"labels": {"a": HALF}}, "labels.a"),
]
WRONG_WHEN_NEW: list[tuple[Json, str]] = [
    ({"jobId": "mine"}, "jobId"),
    ({"createdAt": "2026-01-01T00:00:00Z"}, "createdAt"),
]
WRONG_AS_CHANGE: list[tuple[Json, str]] = [
    ({"type": "noop"}, "configJson"),
    ({"jobId": "another"}, "jobId"),
    ({"jobId": None}, "jobId"),
    ({"name": "other", "timeout": "abc"}, "timeout"),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def good(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[World, str]]:
    async with opened(tmp_path_factory.mktemp("refusals"), FakeClock()) as world:
        job = await world.create(name="good")
        yield world, job["jobId"]
        assert await world.found() == ["good"]
        assert await world.fetch(job["jobId"]) == job, "something that was refused has changed something"


async def send(world: World, method: str, path: str, document: Json) -> httpx2.Response:
    content = json.dumps(document).encode()  # escapes halves of characters, which httpx2 would not send
    return await world.api.request(method, path, content=content, headers={"Content-Type": "application/json"})


@pytest.mark.parametrize(("given", "field"), [each for each in WRONG if each[0] != {"type": "pigeon"}] + WRONG_WHEN_NEW)
async def test_a_bad_job_is_refused_by_field(given: Json, field: str, good: tuple[World, str]) -> None:
    answer = await send(good[0], "POST", JOBS, a_job(**given))
    assert refusal(answer) == (400, "VALIDATION_ERROR", field)
    assert answer.json()["message"].startswith(f"{field}: ")


@pytest.mark.parametrize(("given", "field"), WRONG + WRONG_AS_CHANGE)
async def test_a_bad_change_is_refused_by_field(given: Json, field: str, good: tuple[World, str]) -> None:
    answer = await send(good[0], "PUT", f"{JOBS}/{good[1]}", given)
    assert refusal(answer) == (400, "VALIDATION_ERROR", field)


@pytest.mark.parametrize("field", ["name", "type"])
async def test_what_a_job_must_have_is_named_if_it_is_missing(field: str, good: tuple[World, str]) -> None:
    given = {name: value for name, value in a_job().items() if name != field}
    assert refusal(await send(good[0], "POST", JOBS, given)) == (400, "VALIDATION_ERROR", field)


async def test_a_name_that_is_taken_is_a_conflict(good: tuple[World, str]) -> None:
    world, _ = good
    taken = {"field": "name", "name": "good"}
    assert told(await send(world, "POST", JOBS, a_job(name="good"))) == (409, "JOB_NAME_CONFLICT", taken)
    other = await world.create(name="other")
    answer = await send(world, "PUT", f"{JOBS}/{other['jobId']}", {"name": "good"})
    assert told(answer) == (409, "JOB_NAME_CONFLICT", taken)
    assert (await world.api.delete(f"{JOBS}/{other['jobId']}")).is_success


@pytest.mark.parametrize("content", [b"{", b"\xff\xfe", b'{"name": }'])
async def test_a_body_that_is_not_json_is_told_so(content: bytes, good: tuple[World, str]) -> None:
    world, job_id = good
    for method, path in (("POST", JOBS), ("PUT", f"{JOBS}/{job_id}")):
        headers = {"Content-Type": "application/json"}
        answer = await world.api.request(method, path, content=content, headers=headers)
        assert refusal(answer)[:2] == (400, "JSON_PARSE_ERROR")


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"page": "0"}, "page"),
        ({"page": "x"}, "page"),
        ({"page": "9" * 30}, "page"),
        ({"page": "9000", "size": "500"}, "page"),
        ({"size": "0"}, "size"),
        ({"size": "501"}, "size"),
        ({"enabled": "perhaps"}, "enabled"),
        ({"keyword": "k" * 129}, "keyword"),
        ({"keyword": "\0"}, "keyword"),
        ({"type": "\0"}, "type"),
    ],
)
async def test_a_wrong_query_is_named(query: Json, field: str, good: tuple[World, str]) -> None:
    assert refusal(await good[0].api.get(JOBS, params=query)) == (400, "VALIDATION_ERROR", field)


@pytest.mark.parametrize("job_id", ["nobody", "0", "9" * 16, "9" * 5000, "~1", "a b", "%00", "%ff", "é", "x" * 65])
async def test_an_id_that_nothing_has_is_not_found(job_id: str, good: tuple[World, str]) -> None:
    orders = [("GET", ""), ("PUT", ""), ("DELETE", ""), ("POST", ":enable"), ("POST", ":disable")]
    for method, order in orders:
        status, code, details = told(await good[0].api.request(method, f"{JOBS}/{job_id}{order}", json={}))
        assert (status, code, list(details)) == (404, "JOB_NOT_FOUND", ["jobId"])


async def test_the_id_that_was_not_found_is_told_as_text(good: tuple[World, str]) -> None:
    assert told(await good[0].api.get(f"{JOBS}/4711")) == (404, "JOB_NOT_FOUND", {"jobId": "4711"})


@pytest.mark.parametrize("order", [":enable", ":disable", "%3Aenable"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "PATCH", "DELETE"])
async def test_an_order_takes_post_only(method: str, order: str, good: tuple[World, str]) -> None:
    answer = await good[0].api.request(method, f"{JOBS}/{good[1]}{order}")
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert method == "HEAD" or answer.json()["code"] == "METHOD_NOT_ALLOWED"


@pytest.mark.parametrize("order", [":", ":frob", ":enable:disable", "::enable", ":enable/", "/enable", ":Enable"])
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
async def test_an_order_that_there_is_not_is_no_path(method: str, order: str, good: tuple[World, str]) -> None:
    answer = await good[0].api.request(method, f"{JOBS}/{good[1]}{order}", follow_redirects=True)
    if order == ":enable/" and method == "POST":
        assert answer.status_code == 200  # a slash too many is forgiven, as everywhere
        return
    assert refusal(answer)[:2] in {(404, "NOT_FOUND"), (405, "METHOD_NOT_ALLOWED")}


async def test_an_escaped_colon_is_one(good: tuple[World, str]) -> None:
    assert (await good[0].api.post(f"{JOBS}/{good[1]}%3Aenable")).status_code == 200


async def test_a_job_itself_takes_no_post(good: tuple[World, str]) -> None:
    answer = await good[0].api.post(f"{JOBS}/{good[1]}", json={})
    assert refusal(answer)[:2] == (405, "METHOD_NOT_ALLOWED")
