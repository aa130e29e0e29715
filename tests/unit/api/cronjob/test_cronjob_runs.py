"""Runs of document 003: asked for, listed, shown, canceled, explained."""

from datetime import timedelta

import httpx2
import pytest
from tests.unit.api.cronjob.conftest import Desk, created, refusal, triggered

from ksana.domain.outcome import Evidence

FIELDS_8_2 = {
    *("id", "task_id", "scheduled_time", "start_time", "end_time", "status", "attempt", "request_headers"),
    *("request_body", "response_code", "response_body", "error_message", "next_retry_time", "callback_token"),
    *("callback_deadline", "trace_id", "created_at", "updated_at"),
}
BODIES = {"request_headers", "request_body", "response_code", "response_body"}
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


@pytest.mark.parametrize("body", [b"", b"{}", b'{"override_body": null, "force_async": false}'])
async def test_a_trigger_needs_no_body_and_no_content_type(body: bytes, desk: Desk, client: httpx2.AsyncClient) -> None:
    await created(client)
    answer = await client.post("/api/v1/tasks/1/trigger", content=body)
    assert (answer.status_code, answer.json()) == (200, {"run_id": 1, "task_id": 1, "status": "SCHEDULED"})
    assert (await desk.services.store.execution(1)).input == {}


@pytest.mark.parametrize(
    ("given", "kept"), [("x {{run_id}}", "x {{run_id}}"), ({"a": [1]}, '{"a":[1]}'), ([], "[]"), (0, "0"), ("", "")]
)
async def test_the_override_is_kept_as_text(given: object, kept: str, desk: Desk, client: httpx2.AsyncClient) -> None:
    await created(client)
    run_id = await triggered(client, 1, override_body=given, force_async=True)
    assert (await desk.services.store.execution(run_id)).input == {"override_body": kept, "force_async": True}


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        (b'{"override_body": "{{ nope"}', "INVALID_ARGUMENT", "override_body"),
        (b'{"override_body": ' + b"[" * 300 + b"]" * 300 + b"}", "INVALID_ARGUMENT", "override_body"),
        (b'{"force_async": 1}', "INVALID_ARGUMENT", "force_async"),
        (b'{"colour": 1}', "INVALID_ARGUMENT", "colour"),
        (b"[]", "INVALID_ARGUMENT", "body"),
        (b"{", "INVALID_JSON", None),
        (b"\xff", "INVALID_JSON", None),
    ],
)
async def test_a_wrong_trigger_makes_no_run(
    body: bytes, code: str, field: str | None, client: httpx2.AsyncClient
) -> None:
    await created(client)
    assert refusal(await client.post("/api/v1/tasks/1/trigger", content=body)) == (400, code, field)
    assert (await client.get("/api/v1/tasks/1/runs")).json()["total"] == 0


async def test_an_idempotency_key_gives_the_same_run(client: httpx2.AsyncClient) -> None:
    await created(client)
    path, headers = "/api/v1/tasks/1/trigger", {"idempotency-key": "k"}
    first, second = [(await client.post(path, headers=headers)).json() for _ in range(2)]
    assert first == second
    answer = await client.post(path, headers={"idempotency-key": "k" * 200})
    assert refusal(answer) == (400, "INVALID_ARGUMENT", "Idempotency-Key")


@pytest.mark.parametrize(
    ("traceparent", "gone_on_with"),
    [(f"00-{TRACE}-00f067aa0ba902b7-01", True), (f"00-{'0' * 32}-00f067aa0ba902b7-01", False), ("nonsense", False)],
    ids=["good", "zeros", "nonsense"],
)
async def test_a_trace_is_gone_on_with_and_else_one_is_made(
    traceparent: str, gone_on_with: bool, client: httpx2.AsyncClient
) -> None:
    await created(client)
    answer = await client.post("/api/v1/tasks/1/trigger", headers={"traceparent": traceparent})
    run = (await client.get(f"/api/v1/runs/{answer.json()['run_id']}")).json()
    assert (run["trace_id"] == TRACE) is gone_on_with
    assert len(run["trace_id"]) == 32
    assert set(run["trace_id"]) != {"0"}


async def test_a_full_task_that_skips_refuses_to_be_triggered(client: httpx2.AsyncClient) -> None:
    await created(client, concurrency_policy="SKIP")
    await triggered(client, 1)
    answer = await client.post("/api/v1/tasks/1/trigger")
    assert refusal(answer) == (409, "CONCURRENCY_LIMIT", None)
    assert (await client.get("/api/v1/tasks/1/runs")).json()["total"] == 1


async def test_a_run_is_shown_with_every_field_and_every_attempt(desk: Desk, client: httpx2.AsyncClient) -> None:
    await created(client, retry_policy={"max_retries": 1})
    run_id = await triggered(client, 1)
    fresh = (await client.get(f"/api/v1/runs/{run_id}")).json()
    assert set(fresh) >= FIELDS_8_2
    assert (fresh["status"], fresh["attempt"], fresh["final_status"], fresh["attempts"]) == ("SCHEDULED", 0, None, [])
    assert (fresh["trigger"], fresh["scheduled_time"], fresh["callback_token"]) == (
        "manual",
        "2026-01-01T00:00:00Z",
        None,
    )

    store, world = desk.services.store, desk.world
    request = {"method": "GET", "url": "http://a/", "headers": {"X": "1"}}
    bad = Evidence(request, "sent", 500, {"Y": "2"}, "oops")
    soon = desk.clock.now() + timedelta(seconds=5)
    assert await store.retry(world.ending(await desk.claimed(), error="500", evidence=bad), soon)
    waiting = (await client.get(f"/api/v1/runs/{run_id}")).json()
    assert (waiting["status"], waiting["next_retry_time"]) == ("RETRYING", "2026-01-01T00:00:05Z")
    assert (waiting["response_code"], waiting["error_message"]) == (500, "500")

    desk.clock.advance(timedelta(seconds=5))
    good = Evidence(request, "sent", 200, {}, "fine")
    assert await store.succeed(world.ending(await desk.claimed(), output={"a": 1}, evidence=good))
    done = (await client.get(f"/api/v1/runs/{run_id}")).json()
    assert (done["status"], done["final_status"], done["attempt"], done["next_retry_time"]) == (
        "SUCCESS",
        "SUCCESS",
        2,
        None,
    )
    assert (done["response_code"], done["response_body"], done["request_body"]) == (200, "fine", "sent")
    assert (done["request_headers"], done["output"]) == ({"X": "1"}, {"a": 1})
    first = done["attempts"][0]
    assert (first["attempt"], first["status"], first["request_url"]) == (1, "FAILED", "http://a/")
    assert (first["response_headers"], first["error_message"]) == ({"Y": "2"}, "500")


async def test_runs_are_listed_newest_first_and_filtered(desk: Desk, client: httpx2.AsyncClient) -> None:
    await created(client, concurrency_policy="PARALLEL")
    await created(client, name="t2")
    runs = []
    for _ in range(3):
        runs.append(await triggered(client, 1))
        desk.clock.advance(timedelta(minutes=1))
    other = await triggered(client, 2)
    await client.post(f"/api/v1/runs/{runs[0]}/cancel")

    async def ids(path: str) -> list[int]:
        answer = await client.get(path)
        assert answer.status_code == 200, answer.text
        assert set(answer.json()) - {"size"} == {"page", "page_size", "total", "items"}
        assert all(not BODIES & set(item) and set(item) >= FIELDS_8_2 - BODIES for item in answer.json()["items"])
        return [item["id"] for item in answer.json()["items"]]

    mine = "/api/v1/tasks/1/runs"
    assert await ids(mine) == runs[::-1]
    assert await ids(f"{mine}?page=2&page_size=2") == runs[:1]
    assert await ids(f"{mine}?before_id={runs[2]}&page_size=1") == [runs[1]]
    assert await ids(f"{mine}?status=CANCELED") == runs[:1]
    assert await ids(f"{mine}?status=SCHEDULED") == [runs[2], runs[1]]
    assert await ids(f"{mine}?from=2026-01-01T00:01:00Z&to=2026-01-01T00:02:00Z") == [runs[1]]
    assert await ids(f"{mine}?from=2026-01-01T08:02:00+08:00") == [runs[2]]
    assert await ids(f"{mine}?to=2026-01-01T00:01:00") == [runs[0]]
    assert await ids(f"{mine}?from=2026-01-02") == []
    assert await ids("/api/v1/runs") == [other, *runs[::-1]]
    assert await ids("/api/v1/runs?task_id=2") == [other]
    key = (await client.get("/api/v1/tasks/2")).json()["key"]
    assert await ids(f"/api/v1/runs?jobId={key}&status=SCHEDULED") == [other]
    assert await ids("/api/v1/runs?jobId=2&from=2026-01-01") == [other]
    assert await ids(f"/api/v1/runs?jobId={key}&task_id=1") == []
    assert await ids("/api/v1/runs?jobId=nobody") == await ids("/api/v1/runs?task_id=99") == []
    assert await ids(f"/api/v1/runs?before_id={other}&page_size=2") == [runs[2], runs[1]]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("status=DONE", "status"),
        ("status=QUEUED", "status"),
        ("from=yesterday", "from"),
        ("to=9999-12-31T23:59:59-23:00", "to"),
        ("from=2026-01-02&to=2026-01-01", "from"),
        ("page_size=1000", "page_size"),
        ("before_id=0", "before_id"),
        ("before_id=99999999999999999999", "before_id"),
    ],
)
async def test_a_wrong_query_for_runs_is_refused_by_field(query: str, field: str, client: httpx2.AsyncClient) -> None:
    await created(client)
    assert refusal(await client.get(f"/api/v1/tasks/1/runs?{query}")) == (400, "INVALID_ARGUMENT", field)
    assert refusal(await client.get(f"/api/v1/runs?task_id=1&{query}")) == (400, "INVALID_ARGUMENT", field)


@pytest.mark.parametrize(
    ("query", "field"), [("task_id=x", "task_id"), ("jobId=%00", "jobId"), ("from=2026-01-01", "from")]
)
async def test_all_runs_are_asked_for_by_ids_that_can_be(query: str, field: str, client: httpx2.AsyncClient) -> None:
    assert refusal(await client.get(f"/api/v1/runs?{query}")) == (400, "INVALID_ARGUMENT", field)


async def test_a_run_that_is_not_there(client: httpx2.AsyncClient) -> None:
    for method, path in [("GET", ""), ("POST", "/cancel"), ("GET", "/explain")]:
        assert refusal(await client.request(method, f"/api/v1/runs/7{path}"))[:2] == (404, "NOT_FOUND")
        # A text may be the id of a workflow's run; but `_x` is none either.
        assert refusal(await client.request(method, f"/api/v1/runs/_x{path}")) == (400, "INVALID_ID", "run_id")


async def test_a_run_is_canceled_once_and_what_ended_stays(desk: Desk, client: httpx2.AsyncClient) -> None:
    await created(client)
    run_id = await triggered(client, 1)
    first = (await client.post(f"/api/v1/runs/{run_id}/cancel")).json()
    assert (first["run_id"], first["status"], first["canceled"]) == (run_id, "CANCELED", True)
    assert (await client.post(f"/api/v1/runs/{run_id}/cancel")).json()["canceled"] is False
    done = await triggered(client, 1)
    assert await desk.services.store.succeed(desk.world.ending(await desk.claimed()))
    answer = await client.post(f"/api/v1/runs/{done}/cancel")
    assert (answer.status_code, answer.json()["status"], answer.json()["canceled"]) == (200, "SUCCESS", False)


async def test_why_a_run_waits(desk: Desk, client: httpx2.AsyncClient) -> None:
    await created(client)
    runs = [await triggered(client, 1) for _ in range(3)]
    await desk.world.claim(10)
    told = (await client.get(f"/api/v1/runs/{runs[0]}/explain")).json()
    assert set(told) == {"run_id", "status", "code", "message", "until", "position", "running", "limit"}
    assert told["code"] == "RUNNING"
    last = (await client.get(f"/api/v1/runs/{runs[2]}/explain")).json()
    assert (last["code"], last["position"], last["running"], last["limit"]) == ("QUEUED", 1, 1, 1)
    assert last["status"] == "SCHEDULED"
    assert (await client.get(f"/api/v1/runs/{runs[2]}")).json()["queue_position"] == 1
