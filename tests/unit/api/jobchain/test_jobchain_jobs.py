"""Document 001's jobs at `/api/v1/jobs`: made, read, listed, changed, switched, deleted."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.clock import FakeClock
from tests.unit.api.jobchain.bench import JOBS, RETRY, URL, World, a_job, opened, told
from tests.unit.api.ksana_bench import Json, body

from ksana.domain.errors import JobInUse
from ksana.domain.job import ConcurrencyPolicy, Contract, ExecutionMode
from ksana.domain.retry import RetryPolicy

PAGE = Path(__file__).parents[4] / "docs/reference/http.md"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with opened(tmp_path, FakeClock()) as world:
        yield world


async def test_a_created_job_comes_back_complete(world: World) -> None:
    answer = await world.api.post(JOBS, json=a_job(description="says hello"))
    job = body(answer)
    assert answer.status_code == 201
    assert answer.headers["location"] == f"{JOBS}/{job['jobId']}"
    assert job == {
        "jobId": job["jobId"],
        "name": "demo-job",
        "description": "says hello",
        "type": "http",
        "configJson": {"method": "GET", "url": URL},
        "enabled": True,
        "createdAt": "2026-01-01T00:00:00Z",
        "updatedAt": "2026-01-01T00:00:00Z",
        "timeout": "15s",
        "retry": {"maxAttempts": 1, "backoffMillis": 0, "backoffMultiplier": 1.0},
        "maxConcurrency": 1,
        "concurrencyPolicy": "PARALLEL",
        "recovery": "retry",
        "labels": {},
        "workerQueue": "default",
    }
    assert await world.fetch(job["jobId"]) == job


async def test_a_job_has_no_schedule_and_is_this_contracts(world: World) -> None:
    job = await world.store.job_by_key((await world.create())["jobId"])
    assert job.spec.contract is Contract.JOBCHAIN
    assert await world.store.schedules_of([job.id]) == {}


async def test_a_job_that_is_no_call_may_take_an_hour(world: World) -> None:
    job = await world.create(type="noop", configJson={"cmd": "echo hello"})
    assert (job["configJson"], job["timeout"]) == ({"cmd": "echo hello"}, "1h")


async def test_everything_that_can_be_said_is_kept_and_shown(world: World) -> None:
    given = {
        "enabled": False,
        "timeout": "1m30s",
        "retry": RETRY,
        "maxConcurrency": 5,
        "concurrencyPolicy": "SKIP",
        "recovery": "fail",
        "labels": {"team": "刹那"},
    }
    job = await world.create(**given)
    assert {name: job[name] for name in given} == given
    spec = (await world.store.job_by_key(job["jobId"])).spec
    assert spec.retry == RetryPolicy(3, timedelta(seconds=1), 2.0)
    assert (spec.concurrency, spec.timeout) == (ConcurrencyPolicy.SKIP, timedelta(seconds=90))


@pytest.mark.parametrize(("given", "shown"), [(30, "30s"), (0.25, "250ms"), ("PT1H", "1h"), (None, "15s")])
async def test_a_timeout_is_seconds_or_a_text(given: Any, shown: str, world: World) -> None:
    assert (await world.create(timeout=given))["timeout"] == shown


async def test_a_retry_may_say_only_a_part(world: World) -> None:
    job = await world.create(retry={"maxAttempts": 4})
    assert job["retry"] == {"maxAttempts": 4, "backoffMillis": 0, "backoffMultiplier": 1.0}
    changed = await world.put(job["jobId"], retry={"backoffMillis": 1500.5})
    assert changed["retry"] == {"maxAttempts": 4, "backoffMillis": 1500.5, "backoffMultiplier": 1.0}
    assert (await world.put(job["jobId"], retry=None))["retry"]["maxAttempts"] == 1


async def test_a_retry_of_another_contract_keeps_its_ceiling_above_the_first_wait(world: World) -> None:
    job = await world.create()
    await world.respec(job["jobId"], retry=RetryPolicy(2, timedelta(seconds=1), 2.0, timedelta(seconds=5)))
    await world.put(job["jobId"], retry={"backoffMillis": 9000})
    spec = (await world.store.job_by_key(job["jobId"])).spec
    assert spec.retry == RetryPolicy(2, timedelta(seconds=9), 2.0, timedelta(seconds=9))


# configJson ---------------------------------------------------------------------------------------------------------


async def test_a_config_says_whether_a_callback_brings_the_result(world: World) -> None:
    config = {"method": "POST", "url": URL, "mode": "async", "callback_timeout": "10m"}
    job = await world.create(configJson=config)
    assert job["configJson"] == config
    spec = (await world.store.job_by_key(job["jobId"])).spec
    assert (spec.mode, spec.callback_timeout) == (ExecutionMode.ASYNC, timedelta(minutes=10))
    assert not {"mode", "callback_timeout"} & set(spec.config)
    assert (await world.put(job["jobId"], description="x"))["configJson"] == config
    assert (await world.put(job["jobId"], configJson={"url": URL}))["configJson"] == {"method": "GET", "url": URL}


async def test_a_config_may_be_a_text_that_holds_it(world: World) -> None:
    job = await world.create(configJson=f'{{"url": "{URL}", "headers": {{"X-A": "b"}}}}')
    assert job["configJson"] == {"method": "GET", "url": URL, "headers": {"X-A": "b"}}


@pytest.mark.parametrize(
    "config",
    [
        {"method": "POST", "url": URL, "headers": {"X-Token": "abc"}, "body": '{"run": "{{run_id}}"}'},
        {"method": "POST", "url": URL, "body": {"deep": [1, {"run": "{{run_id}}"}]}},
        {"method": "PUT", "url": URL, "follow_redirects": True, "connect_timeout": "3s", "callback_method": "PUT"},
        {"method": "GET", "url": URL, "callback_timeout": "1h"},
    ],
)
async def test_a_config_comes_back_as_it_was_sent(config: Json, world: World) -> None:
    assert (await world.create(configJson=config))["configJson"] == config


# Changes ------------------------------------------------------------------------------------------------------------


async def test_a_change_leaves_what_it_does_not_name(world: World) -> None:
    job = await world.create(description="old", retry=RETRY, labels={"a": "b"})
    world.clock.advance(timedelta(seconds=5))
    changed = await world.put(job["jobId"], description="new", name="other")
    assert changed == {**job, "description": "new", "name": "other", "updatedAt": "2026-01-01T00:00:05Z"}
    assert await world.fetch(job["jobId"]) == changed


async def test_a_job_that_was_read_can_be_sent_back_and_changes_nothing(world: World) -> None:
    job = await world.create(retry=RETRY, configJson={"method": "GET", "url": URL, "mode": "async"})
    before = await world.store.job_by_key(job["jobId"])
    world.clock.advance(timedelta(seconds=5))
    assert await world.put(job["jobId"], **job) == job
    assert await world.store.job_by_key(job["jobId"]) == before


async def test_a_job_can_become_one_of_another_type(world: World) -> None:
    job = await world.create(configJson={"method": "GET", "url": URL, "mode": "async"})
    changed = await world.put(job["jobId"], type="noop", configJson={"cmd": "echo hello"})
    assert (changed["type"], changed["configJson"]) == ("noop", {"cmd": "echo hello"})
    assert (await world.store.job_by_key(job["jobId"])).spec.mode is ExecutionMode.SYNC
    refused = await world.api.put(f"{JOBS}/{job['jobId']}", json={"type": "http"})
    assert told(refused) == (400, "VALIDATION_ERROR", {"field": "configJson"})


async def test_null_takes_a_part_back_to_its_default(world: World) -> None:
    first = await world.create()
    job = await world.create(
        name="other", description="x", timeout=1, labels={"a": "b"}, maxConcurrency=3, concurrencyPolicy="QUEUE"
    )
    names = ("description", "timeout", "labels", "maxConcurrency", "concurrencyPolicy", "recovery", "retry")
    changed = await world.put(job["jobId"], **dict.fromkeys(names))
    assert {name: changed[name] for name in names} == {name: first[name] for name in names}


async def test_two_changes_at_once_do_not_undo_each_other(world: World) -> None:
    job = await world.create()
    path = f"{JOBS}/{job['jobId']}"
    changes: list[Json] = [{"timeout": "1s"}, {"description": "new"}, {"retry": {"maxAttempts": 2}}, {"enabled": False}]
    answers = await asyncio.gather(*(world.api.put(path, json=change) for change in changes))
    assert all(answer.is_success for answer in answers)
    changed = await world.fetch(job["jobId"])
    assert (changed["timeout"], changed["description"], changed["enabled"]) == ("1s", "new", False)
    assert changed["retry"]["maxAttempts"] == 2


async def test_a_job_is_switched_off_and_on(world: World) -> None:
    job = await world.create()
    path = f"{JOBS}/{job['jobId']}"
    for order, enabled in (("disable", False), ("disable", False), ("enable", True), ("enable", True)):
        answer = await world.api.post(f"{path}:{order}")
        assert (answer.status_code, body(answer)["enabled"]) == (200, enabled)
        assert await world.fetch(job["jobId"]) == body(answer)


async def test_a_deleted_job_is_gone_and_its_name_is_free(world: World) -> None:
    job = await world.create()
    path = f"{JOBS}/{job['jobId']}"
    answer = await world.api.delete(path)
    assert (answer.status_code, answer.content) == (204, b"")
    for method in ("GET", "PUT", "DELETE"):
        again = await world.api.request(method, path, json={})
        assert told(again) == (404, "JOB_NOT_FOUND", {"jobId": job["jobId"]})
    assert (await world.create())["jobId"] != job["jobId"]


async def test_a_job_that_workflows_name_is_not_deleted(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    job = await world.create()

    async def in_use(*_: object) -> bool:
        raise JobInUse(job["jobId"], ["nightly", "weekly"])

    monkeypatch.setattr(world.store, "delete_job", in_use)
    answer = await world.api.delete(f"{JOBS}/{job['jobId']}")
    assert told(answer) == (409, "JOB_IN_USE", {"jobId": job["jobId"], "workflows": ["nightly", "weekly"]})


# Lists --------------------------------------------------------------------------------------------------------------


async def test_the_list_is_a_page_of_summaries(world: World) -> None:
    job = await world.create(description="says hello")
    names = ("jobId", "name", "description", "type", "enabled", "createdAt", "updatedAt")
    page = {"page": 1, "size": 20, "total": 1, "items": [{name: job[name] for name in names}]}
    assert body(await world.api.get(JOBS)) == page


async def test_the_list_goes_by_pages_and_filters(world: World) -> None:
    for name in ("alpha-1", "beta_1", "alpha-2"):
        await world.create(name=name)
    await world.create(name="alpha-3", type="noop", configJson={}, enabled=False)
    assert await world.found() == ["alpha-1", "beta_1", "alpha-2", "alpha-3"]
    assert await world.found(page=2, size=3) == ["alpha-3"]
    assert await world.found(page=3, size=3) == []
    assert await world.found(keyword="alpha") == ["alpha-1", "alpha-2", "alpha-3"]
    assert await world.found(keyword="_") == ["beta_1"]
    assert await world.found(enabled="false") == ["alpha-3"]
    assert await world.found(enabled="true", keyword="alpha", size=1) == ["alpha-1"]
    assert await world.found(type="noop") == ["alpha-3"]
    assert await world.found(type="pigeon") == []
    assert await world.found(type="", enabled="", keyword="") == ["alpha-1", "beta_1", "alpha-2", "alpha-3"]


async def test_jobs_and_tasks_of_other_contracts_are_jobs_here(world: World) -> None:
    task = {"name": "t1", "cron_expr": "@daily", "target_url": URL, "exec_type": "ASYNC", "callback_timeout_sec": 60}
    made = body(await world.api.post("/api/v1/tasks", json=task))
    schedule = {"kind": "every", "every": "5m"}
    assert (
        await world.api.post("/jobs", json={"id": "k1", "name": "k", "http": {"url": URL}, "schedule": schedule})
    ).is_success
    assert await world.found() == ["t1", "k"]
    shown = await world.fetch(str(made["id"]))
    assert shown["jobId"] == made["key"]
    assert shown["configJson"] == {"method": "GET", "url": URL, "mode": "async", "callback_timeout": "1m"}
    assert shown["concurrencyPolicy"] == "QUEUE"
    assert (await world.put("k1", description="from here"))["name"] == "k"
    kept = body(await world.api.get("/jobs/k1"))
    assert (kept["schedule"]["every"], kept["max_retries"]) == ("5m", 3)


async def test_a_job_of_here_is_shown_by_the_other_contracts(world: World) -> None:
    job = await world.create(retry=RETRY)
    shown = body(await world.api.get(f"/jobs/{job['jobId']}"))
    assert (shown["name"], shown["schedule"], shown["max_retries"]) == ("demo-job", None, 2)
    (task,) = body(await world.api.get("/api/v1/tasks"))["items"]
    assert (task["key"], task["target_url"], task["cron_expr"]) == (job["jobId"], URL, None)


async def test_switching_a_job_off_pauses_its_schedule(world: World) -> None:
    task = {"name": "t1", "cron_expr": "@daily", "target_url": URL}
    made = body(await world.api.post("/api/v1/tasks", json=task))
    assert (await world.api.post(f"{JOBS}/{made['id']}:disable")).is_success
    paused = body(await world.api.get(f"/api/v1/tasks/{made['id']}"))
    assert (paused["status"], paused["next_run_time"]) == ("DISABLED", None)


# The description ----------------------------------------------------------------------------------------------------


async def test_the_routes_are_described_and_the_page_names_them(world: World) -> None:
    paths = body(await world.api.get("/openapi.json"))["paths"]
    ours = {path: methods for path, methods in paths.items() if path.startswith(JOBS)}
    page = PAGE.read_text()
    assert set(ours) == {JOBS, f"{JOBS}/{{jobId}}", f"{JOBS}/{{jobId}}:enable", f"{JOBS}/{{jobId}}:disable"}
    for path, methods in ours.items():
        for method, operation in methods.items():
            assert operation["summary"]
            assert operation["tags"] == ["JobChain"]
            assert f"`{method.upper()} {path}`" in page
