"""Tasks of document 003: made, listed, shown, switched, deleted."""

from dataclasses import replace
from datetime import timedelta

import httpx2
import pytest
from tests.contract.store.world import ANNA, http_spec
from tests.unit.api.cronjob.conftest import TASK, Desk, created, refusal, triggered

from ksana.domain.job import Contract
from ksana.domain.schedule import ScheduleKind, ScheduleSpec
from ksana.engine.commands import JobDraft, ScheduleDraft
from ksana.settings.table import DefaultRetrySettings, ExecutorSettings, SchedulerSettings
from ksana.store.requests import NewJob

FIELDS_8_1 = {
    *("id", "name", "description", "cron_expr", "timezone", "exec_type", "http_method", "target_url", "headers"),
    *("body_template", "timeout_seconds", "retry_policy", "max_concurrency", "concurrency_policy", "misfire_policy"),
    *("catchup_limit", "callback_method", "callback_timeout_sec", "status", "version", "created_at", "updated_at"),
}
DOCUMENT_EXAMPLE = {
    "name": "sync_stats",
    "description": "统计同步",
    "cron_expr": "0 */5 * * *",
    "exec_type": "SYNC",
    "http_method": "POST",
    "target_url": "http://svc.internal/api/sync",
    "headers": {"Content-Type": "application/json"},
    "body_template": '{"run_id": "{{run_id}}"}',
    "timeout_seconds": 10,
    "retry_policy": {"max_retries": 3, "initial_delay": 5, "strategy": "exponential", "max_delay": 60},
    "max_concurrency": 1,
    "concurrency_policy": "QUEUE",
    "misfire_policy": "FIRE_NOW",
    "catchup_limit": 5,
}


async def test_the_documents_example_is_created_and_shown_with_every_field(client: httpx2.AsyncClient) -> None:
    answer = await client.post("/api/v1/tasks", json=DOCUMENT_EXAMPLE)
    assert answer.status_code == 201
    assert (answer.json()["id"], answer.json()["name"]) == (1, "sync_stats")
    shown = (await client.get("/api/v1/tasks/1")).json()
    assert shown == answer.json()
    assert set(shown) >= FIELDS_8_1
    assert {**DOCUMENT_EXAMPLE, "cron_expr": "0 0 */5 * * *"}.items() <= shown.items()
    assert shown["created_at"] == "2026-01-01T00:00:00Z"
    assert shown["next_run_time"] == "2026-01-01T05:00:00Z"


async def test_what_is_not_given_has_the_documents_defaults(client: httpx2.AsyncClient) -> None:
    shown = await created(client)
    assert {
        "cron_expr": "0 */5 * * * *",
        "timezone": "UTC",
        "description": "",
        "exec_type": "SYNC",
        "http_method": "GET",
        "headers": {},
        "body_template": None,
        "timeout_seconds": 15,
        "retry_policy": {"max_retries": 0, "initial_delay": 1, "strategy": "exponential", "max_delay": 300},
        "max_concurrency": 1,
        "concurrency_policy": "QUEUE",
        "misfire_policy": "FIRE_NOW",
        "catchup_limit": 5,
        "callback_method": "POST",
        "callback_timeout_sec": 300,
        "status": "ENABLED",
        "version": 1,
        "recovery": "retry",
        "last_run": None,
    }.items() <= shown.items()


async def test_time_out_and_retries_default_to_the_settings(desk: Desk) -> None:
    retry = DefaultRetrySettings(max_retries=2, initial_delay=timedelta(seconds=9), strategy="fixed")
    executor = ExecutorSettings(request_timeout=timedelta(milliseconds=1500), default_retry=retry)
    async with desk.client(executor=executor) as client:
        shown = await created(client)
        part = await created(client, name="t2", retry_policy={"max_retries": 7})
    assert shown["timeout_seconds"] == 1.5
    assert shown["retry_policy"] == {"max_retries": 2, "initial_delay": 9, "strategy": "fixed", "max_delay": 300}
    assert part["retry_policy"] == {"max_retries": 7, "initial_delay": 9, "strategy": "fixed", "max_delay": 300}


async def test_every_field_can_be_given(client: httpx2.AsyncClient) -> None:
    given = {
        "exec_type": "ASYNC",
        "http_method": "put",
        "timezone": "Asia/Shanghai",
        "timeout_seconds": 2.5,
        "retry_policy": {"max_retries": 1, "initial_delay": "1m30s", "strategy": "fixed", "max_delay": "PT1H"},
        "concurrency_policy": "SKIP",
        "misfire_policy": "SKIP",
        "catchup_limit": 0,
        "callback_method": "PUT",
        "callback_timeout_sec": 60,
        "status": "DISABLED",
        "recovery": "fail",
        "queue_limit": 3,
        "follow_redirects": True,
        "labels": {"team": "a"},
        "start_at": "2026-02-01T00:00:00+08:00",
        "end_at": "2026-03-01T00:00:00Z",
        "jitter": "500ms",
        "connect_timeout": 3,
    }
    shown = await created(client, **given)
    assert shown["http_method"] == "PUT"
    assert shown["retry_policy"] == {"max_retries": 1, "initial_delay": 90, "strategy": "fixed", "max_delay": 3600}
    assert (shown["start_at"], shown["jitter"], shown["next_run_time"]) == ("2026-01-31T16:00:00Z", 0.5, None)
    same = set(given) - {"http_method", "retry_policy", "start_at", "jitter"}
    assert {name: shown[name] for name in same} == {name: given[name] for name in same}


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"cron_expr": "x"}, "cron_expr"),
        ({"cron_expr": "61 * * * *"}, "cron_expr"),
        ({"cron_expr": None}, "cron_expr"),
        ({"name": ""}, "name"),
        ({"name": 5}, "name"),
        ({"name": "a\x00b"}, "name"),
        ({"target_url": "ftp://a/"}, "target_url"),
        ({"target_url": ""}, "target_url"),
        ({"http_method": "BREW"}, "http_method"),
        ({"headers": [1]}, "headers"),
        ({"headers": {"a": {}}}, "headers.a"),
        ({"body_template": "{{ nope"}, "body_template"),
        ({"body_template": {"a": 1}}, "body_template"),
        ({"timezone": "Mars/One"}, "timezone"),
        ({"timeout_seconds": 0}, "timeout_seconds"),
        ({"timeout_seconds": -1}, "timeout_seconds"),
        ({"timeout_seconds": True}, "timeout_seconds"),
        ({"timeout_seconds": "5"}, "timeout_seconds"),
        ({"timeout_seconds": 10**30}, "timeout_seconds"),
        ({"callback_timeout_sec": 0}, "callback_timeout_sec"),
        ({"callback_method": "GET"}, "callback_method"),
        ({"exec_type": "LATER"}, "exec_type"),
        ({"retry_policy": {"max_retries": -1}}, "retry_policy.max_retries"),
        ({"retry_policy": {"max_retries": 10**30}}, "retry_policy.max_retries"),
        ({"retry_policy": {"max_retries": True}}, "retry_policy.max_retries"),
        ({"retry_policy": {"initial_delay": "soon"}}, "retry_policy.initial_delay"),
        ({"retry_policy": {"initial_delay": 9, "max_delay": 3}}, "retry_policy.max_delay"),
        ({"retry_policy": {"strategy": "linear"}}, "retry_policy.strategy"),
        ({"retry_policy": {"tries": 3}}, "retry_policy.tries"),
        ({"max_concurrency": 0}, "max_concurrency"),
        ({"max_concurrency": 1.0}, "max_concurrency"),
        ({"concurrency_policy": "WAIT"}, "concurrency_policy"),
        ({"misfire_policy": "PANIC"}, "misfire_policy"),
        ({"catchup_limit": 101}, "catchup_limit"),
        ({"catchup_limit": 2**53}, "catchup_limit"),
        ({"misfire_policy": "CATCH_UP_LIMITED", "catchup_limit": 0}, "catchup_limit"),
        ({"status": "PAUSED"}, "status"),
        ({"recovery": "maybe"}, "recovery"),
        ({"queue_limit": -1}, "queue_limit"),
        ({"follow_redirects": 1}, "follow_redirects"),
        ({"labels": {"a": 1}}, "labels.a"),
        ({"start_at": "tomorrow"}, "start_at"),
        ({"start_at": "2026-01-02T00:00:00Z", "end_at": "2026-01-01T00:00:00Z"}, "end_at"),
        ({"jitter": "8d"}, "jitter"),
        ({"connect_timeout": 0}, "connect_timeout"),
        ({"version": 1}, "version"),
        ({"colour": "red"}, "colour"),
    ],
)
async def test_a_wrong_field_is_named_in_the_documents_spelling_and_nothing_is_made(
    fields: dict[str, object], field: str, client: httpx2.AsyncClient
) -> None:
    answer = await client.post("/api/v1/tasks", json={**TASK, **fields})
    assert refusal(answer) == (400, "INVALID_ARGUMENT", field)
    assert (await client.get("/api/v1/tasks")).json()["total"] == 0


@pytest.mark.parametrize("missing", ["name", "cron_expr", "target_url"])
async def test_required_fields_are_required(missing: str, client: httpx2.AsyncClient) -> None:
    body = {name: value for name, value in TASK.items() if name != missing}
    assert refusal(await client.post("/api/v1/tasks", json=body)) == (400, "INVALID_ARGUMENT", missing)


@pytest.mark.parametrize("raw", [b"{", b"\xff", b'{"name": 1' + b"0" * 5000 + b"}", b"[" * 100_000])
async def test_what_is_not_json_is_invalid_json(raw: bytes, client: httpx2.AsyncClient) -> None:
    answer = await client.post("/api/v1/tasks", content=raw, headers={"content-type": "application/json"})
    assert refusal(answer) == (400, "INVALID_JSON", None)


@pytest.mark.parametrize("raw", [b"[]", b"null", b"", b'"x"'])
async def test_a_body_that_is_no_object_is_an_invalid_argument(raw: bytes, client: httpx2.AsyncClient) -> None:
    answer = await client.post("/api/v1/tasks", content=raw, headers={"content-type": "application/json"})
    assert refusal(answer) == (400, "INVALID_ARGUMENT", "body")


@pytest.mark.parametrize("text", ["a\\u0000b", "\\ud800"])
@pytest.mark.parametrize("field", ["description", "body_template", "timezone", "cron_expr", "target_url"])
async def test_odd_characters_are_kept_or_refused_but_never_crash(
    field: str, text: str, client: httpx2.AsyncClient
) -> None:
    raw = f'{{"name": "n", "cron_expr": "@daily", "target_url": "http://a/", "{field}": "{text}"}}'
    answer = await client.post("/api/v1/tasks", content=raw, headers={"content-type": "application/json"})
    assert answer.status_code in {201, 400}
    assert answer.status_code == 201 or refusal(answer)[2] == field


async def test_six_fields_are_refused_where_seconds_are_switched_off(desk: Desk) -> None:
    async with desk.client(scheduler=SchedulerSettings(enable_seconds_field=False)) as client:
        answer = await client.post("/api/v1/tasks", json={**TASK, "cron_expr": "*/5 * * * * *"})
        assert refusal(answer) == (400, "INVALID_ARGUMENT", "cron_expr")
        assert (await created(client, cron_expr="@hourly"))["cron_expr"]


async def test_a_longer_first_delay_than_the_default_ceiling_lifts_it(client: httpx2.AsyncClient) -> None:
    shown = await created(client, retry_policy={"max_retries": 1, "initial_delay": 600})
    assert shown["retry_policy"]["max_delay"] == 600


async def test_a_name_that_exists_is_a_conflict(client: httpx2.AsyncClient) -> None:
    await created(client)
    answer = await client.post("/api/v1/tasks", json=TASK)
    assert refusal(answer) == (409, "NAME_CONFLICT", "name")
    assert answer.json()["message"].startswith("task name")


async def test_tasks_are_listed_by_page_status_and_part_of_the_name(client: httpx2.AsyncClient) -> None:
    for name in ("alpha", "beta", "alphabet"):
        await created(client, name=name, status="DISABLED" if name == "beta" else "ENABLED")

    async def names(**query: str | int) -> tuple[list[str], int]:
        told = (await client.get("/api/v1/tasks", params=query)).json()
        assert set(told) == {"page", "page_size", "total", "items"}
        return [item["name"] for item in told["items"]], told["total"]

    assert await names() == (["alpha", "beta", "alphabet"], 3)
    assert await names(status="ENABLED") == (["alpha", "alphabet"], 2)
    assert await names(status="DISABLED", name="alpha") == ([], 0)
    assert await names(name="alpha", page=2, page_size=1) == (["alphabet"], 2)
    assert await names(name="", status="") == (["alpha", "beta", "alphabet"], 3)
    assert await names(name="%") == ([], 0)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("status=on", "status"),
        ("page=0", "page"),
        ("page=x", "page"),
        ("page=999999999999999999999999", "page"),
        ("page=10000&page_size=500", "page"),
        ("page_size=501", "page_size"),
        ("page_size=0", "page_size"),
        ("name=%00", "name"),
    ],
)
async def test_a_wrong_query_is_refused_by_field(query: str, field: str, client: httpx2.AsyncClient) -> None:
    assert refusal(await client.get(f"/api/v1/tasks?{query}")) == (400, "INVALID_ARGUMENT", field)


@pytest.mark.parametrize("wrong", ["abc", "0", "-1", "1.0", "9007199254740992", "9" * 5000, "%00", "\uff11"])
async def test_an_id_that_is_none_is_an_invalid_id(wrong: str, client: httpx2.AsyncClient) -> None:
    for method, path in [
        ("GET", f"/api/v1/tasks/{wrong}"),
        ("DELETE", f"/api/v1/tasks/{wrong}"),
        ("PATCH", f"/api/v1/tasks/{wrong}/enable"),
        ("POST", f"/api/v1/tasks/{wrong}/trigger"),
        ("GET", f"/api/v1/tasks/{wrong}/runs"),
    ]:
        assert refusal(await client.request(method, path)) == (400, "INVALID_ID", "id")
    assert refusal(await client.patch(f"/api/v1/tasks/{wrong}", json={})) == (400, "INVALID_ID", "id")


async def test_a_task_that_is_not_there_is_not_found(client: httpx2.AsyncClient) -> None:
    largest = 2**53 - 1
    for method, path, body in [
        ("GET", f"/api/v1/tasks/{largest}", None),
        ("PUT", "/api/v1/tasks/9", TASK),
        ("PATCH", "/api/v1/tasks/9", {}),
        ("DELETE", "/api/v1/tasks/9", None),
        ("PATCH", "/api/v1/tasks/9/enable", None),
        ("PATCH", "/api/v1/tasks/9/disable", None),
        ("POST", "/api/v1/tasks/9/trigger", None),
        ("GET", "/api/v1/tasks/9/runs", None),
    ]:
        answer = await client.request(method, path, json=body)
        assert refusal(answer) == (404, "NOT_FOUND", None)
        assert answer.json()["message"].startswith("task not found")


async def test_disabled_and_enabled_again(client: httpx2.AsyncClient) -> None:
    await created(client)
    off = (await client.patch("/api/v1/tasks/1/disable")).json()
    assert (off["status"], off["next_run_time"], off["id"]) == ("DISABLED", None, 1)
    on = (await client.patch("/api/v1/tasks/1/enable")).json()
    assert (on["status"], on["next_run_time"]) == ("ENABLED", "2026-01-01T00:05:00Z")


async def test_deleted_it_is_gone_but_its_runs_can_be_looked_at(client: httpx2.AsyncClient) -> None:
    await created(client)
    run_id = await triggered(client, 1)
    answer = await client.delete("/api/v1/tasks/1")
    assert (answer.status_code, answer.json()) == (200, {"deleted": True, "id": 1})
    for method, path in [("DELETE", ""), ("GET", ""), ("GET", "/runs")]:
        assert refusal(await client.request(method, f"/api/v1/tasks/1{path}"))[:2] == (404, "NOT_FOUND")
    assert (await client.get(f"/api/v1/runs/{run_id}")).json()["status"] == "CANCELED"
    assert (await created(client))["id"] == 2


async def test_jobs_of_other_contracts_are_shown_with_what_they_have(desk: Desk, client: httpx2.AsyncClient) -> None:
    every = ScheduleSpec(kind=ScheduleKind.EVERY, every=timedelta(minutes=90), anchor=desk.clock.now())
    spec = replace(
        http_spec("tick"), contract=Contract.KSANA, config={"url": "http://a/", "body": {"a": ["{{run_id}}"]}}
    )
    await desk.services.jobs.create(JobDraft(spec, ScheduleDraft(every)), ANNA)
    shell = replace(spec, name="sh", type="shell", config={"command": "true", "headers": 5})
    await desk.services.store.create_job(NewJob("sh-1", shell))
    tick = (await client.get("/api/v1/tasks/1")).json()
    assert (tick["cron_expr"], tick["schedule"]["kind"], tick["schedule"]["every"]) == (None, "every", "1h30m")
    assert tick["body_template"] == '{"a":["{{run_id}}"]}'
    bare = (await client.get("/api/v1/tasks/2")).json()
    assert (bare["type"], bare["schedule"], bare["cron_expr"]) == ("shell", None, None)
    assert [bare[name] for name in ("target_url", "http_method", "headers", "body_template")] == [None] * 4
    assert (await client.get("/api/v1/tasks")).json()["total"] == 2


async def test_the_last_run_is_shown(desk: Desk, client: httpx2.AsyncClient) -> None:
    await created(client)
    run_id = await triggered(client, 1)
    assert await desk.services.store.succeed(desk.world.ending(await desk.claimed()))
    last = (await client.get("/api/v1/tasks/1")).json()["last_run"]
    assert (last["run_id"], last["status"], last["end_time"]) == (run_id, "SUCCESS", "2026-01-01T00:00:00Z")


@pytest.mark.parametrize(
    "part",
    [
        r'"\ud800": 1',
        r'"a\u0000": 1',
        r'"labels": {"\ud800": "a"}',
        r'"labels": {"a": "\ud800"}',
        r'"headers": {"\ud800": "a"}',
        r'"headers": {"a": "\ud800"}',
        r'"headers": {"a": "\u0000"}',
        r'"headers": {"a": NaN}',
        r'"headers": {"a": 1' + "0" * 400 + "}",
        r'"retry_policy": {"\ud800": 1}',
        r'"timeout_seconds": NaN',
        r'"timeout_seconds": 1e999',
        r'"timeout_seconds": 1' + "0" * 4000,
        r'"retry_policy": {"initial_delay": Infinity}',
        r'"status": "\ud800"',
    ],
)
async def test_odd_parts_of_a_body_never_crash(part: str, client: httpx2.AsyncClient) -> None:
    raw = f'{{"name": "n", "cron_expr": "@daily", "target_url": "http://a/", {part}}}'
    answer = await client.post("/api/v1/tasks", content=raw, headers={"content-type": "application/json"})
    assert answer.status_code in {201, 400}, answer.text
    if answer.status_code == 201:
        assert (await client.get("/api/v1/tasks/1")).status_code == 200
