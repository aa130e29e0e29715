"""Document 001 §0.5, §1 and §4: what is refused, with which code, and that nothing changes by it; and what outlives a server."""

from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.contract.api.conftest import ON_SQLITE, unique
from tests.contract.api.cronjob_world import assert_error, until_run
from tests.contract.api.ksana_world import started
from tests.contract.api.test_jobchain_jobs import JOBS, a_job, create, fetch, find
from tests.contract.api.witness import Target

URL = "http://127.0.0.1:9/never-called"
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "name-blank": ({"name": "  "}, "name"),
    "name-null": ({"name": None}, "name"),
    "name-number": ({"name": 7}, "name"),
    "name-too-long": ({"name": "n" * 129}, "name"),
    "description-number": ({"description": 7}, "description"),
    "type-unknown": ({"type": "pigeon", "configJson": {}}, "type"),
    "type-null": ({"type": None}, "type"),
    "enabled-text": ({"enabled": "yes"}, "enabled"),
    "config-list": ({"configJson": ["cmd"]}, "configJson"),
    "config-text": ({"configJson": "echo hello"}, "configJson"),
    "config-no-url": ({"configJson": {"method": "GET"}}, "configJson.url"),
    "config-url": ({"configJson": {"url": "file:///etc/passwd"}}, "configJson.url"),
    "config-method": ({"configJson": {"url": URL, "method": "BREW"}}, "configJson.method"),
    "config-header": ({"configJson": {"url": URL, "headers": {"X-A": "a\r\nb"}}}, "configJson.headers.X-A"),
    "config-mode": ({"configJson": {"url": URL, "mode": "later"}}, "configJson.mode"),
    "config-unknown": ({"configJson": {"url": URL, "hue": 1}}, "configJson.hue"),
    "retry-attempts": ({"retry": {"maxAttempts": 0}}, "retry.maxAttempts"),
    "retry-backoff": ({"retry": {"maxAttempts": 2, "backoffMillis": -1}}, "retry.backoffMillis"),
    "retry-multiplier": ({"retry": {"maxAttempts": 2, "backoffMultiplier": 0}}, "retry.backoffMultiplier"),
    "retry-unknown": ({"retry": {"max_attempts": 2}}, "retry.max_attempts"),
    "timeout": ({"timeout": "soon"}, "timeout"),
    "unknown": ({"config_json": {}}, "config_json"),
}
EACH_WRONG = pytest.mark.parametrize(("given", "field"), list(WRONG.values()), ids=list(WRONG))


@ON_SQLITE
@EACH_WRONG
def test_a_wrong_value_is_named_and_no_job_is_made(api: httpx2.Client, given: dict[str, Any], field: str) -> None:
    before = find(api)["total"]
    details = assert_error(api.post(JOBS, json=a_job(unique("wrong"), URL, **given)), 400, "VALIDATION_ERROR")
    assert details["field"] == field
    assert find(api)["total"] == before


@ON_SQLITE
@EACH_WRONG
def test_a_wrong_value_in_a_change_is_named_and_changes_nothing(
    api: httpx2.Client, given: dict[str, Any], field: str
) -> None:
    job = create(api, a_job(unique("right"), URL))
    answer = api.put(f"{JOBS}/{job['jobId']}", json={"description": "other", **given})
    assert assert_error(answer, 400, "VALIDATION_ERROR")["field"] == field
    assert fetch(api, job["jobId"]) == job


@ON_SQLITE
@pytest.mark.parametrize("field", ["name", "type"])
def test_what_a_job_cannot_do_without_is_named(api: httpx2.Client, field: str) -> None:
    body = a_job(unique("short"), URL)
    del body[field]
    assert assert_error(api.post(JOBS, json=body), 400, "VALIDATION_ERROR")["field"] == field


@ON_SQLITE
@pytest.mark.parametrize("content", [b"{", b'{"name": }', b"\xff\xfe"], ids=["open", "gap", "bytes"])
def test_a_body_that_is_not_json_is_told_so(api: httpx2.Client, content: bytes) -> None:
    job = create(api, a_job(unique("right"), URL))
    for method, path in (("POST", JOBS), ("PUT", f"{JOBS}/{job['jobId']}")):
        answer = api.request(method, path, content=content, headers={"content-type": "application/json"})
        assert_error(answer, 400, "JSON_PARSE_ERROR")


@ON_SQLITE
@pytest.mark.parametrize(
    ("query", "field"),
    [({"page": 0}, "page"), ({"page": "x"}, "page"), ({"size": 0}, "size"), ({"enabled": "perhaps"}, "enabled")],
)
def test_a_wrong_query_is_named(api: httpx2.Client, query: dict[str, Any], field: str) -> None:
    assert assert_error(api.get(JOBS, params=query), 400, "VALIDATION_ERROR")["field"] == field


@ON_SQLITE
def test_an_order_takes_post_only_and_an_unknown_one_is_nowhere(api: httpx2.Client) -> None:
    job = create(api, a_job(unique("orders"), URL))
    path = f"{JOBS}/{job['jobId']}"
    for method in ("GET", "PUT", "PATCH", "DELETE"):
        assert_error(api.request(method, f"{path}:enable"), 405, "METHOD_NOT_ALLOWED")
    for method in ("GET", "POST"):
        assert_error(api.request(method, f"{path}:frob"), 404, "NOT_FOUND")
    assert fetch(api, job["jobId"]) == job


@ON_SQLITE
def test_a_job_may_wait_for_a_callback(api: httpx2.Client, target: Target) -> None:
    config = {"method": "POST", "url": target.url("/async"), "mode": "async", "callback_timeout": "1m"}
    job = create(api, a_job(unique("waits"), URL, configJson=config))
    assert job["configJson"] == config
    run = int(api.post(f"/jobs/{job['jobId']}/run-now").json()["run_id"])
    until_run(api, run, "CALLBACK_PENDING")
    assert api.post(f"/api/v1/callbacks/{target.hits[0].callback.token}", json={"status": "SUCCESS"}).is_success
    until_run(api, run, "CALLBACK_SUCCESS")


@pytest.mark.parametrize("store", ["sqlite", "json"])
def test_a_job_outlives_its_server(store: str, tmp_path: Path) -> None:
    given = a_job(
        unique("stays"),
        URL,
        configJson={"method": "POST", "url": URL, "body": {"a": [1]}, "mode": "async", "callback_timeout": "1m"},
        timeout="1m30s",
        retry={"maxAttempts": 3, "backoffMillis": 250, "backoffMultiplier": 1.5},
        maxConcurrency=4,
        concurrencyPolicy="SKIP",
        recovery="fail",
        labels={"team": "刹那"},
    )
    with started(tmp_path, store) as (_, api):
        job = create(api, given)
    assert {name: job[name] for name in given} == given
    with started(tmp_path, store) as (_, api):
        assert fetch(api, job["jobId"]) == job
