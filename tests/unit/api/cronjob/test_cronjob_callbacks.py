"""Callbacks of document 003: by token, by ids, repeated, stale, wrong."""

from dataclasses import dataclass
from datetime import timedelta

import httpx2
import pytest
from tests.unit.api.cronjob.conftest import Desk, created, refusal, triggered

from ksana.settings.table import CallbackSettings

TOKEN = "t0ken" * 8
PATH = f"/api/v1/callbacks/{TOKEN}"


@pytest.fixture
async def run_id(desk: Desk, client: httpx2.AsyncClient) -> int:
    """A run that waits for its callback."""
    await created(client, exec_type="ASYNC")
    await triggered(client, 1)
    return await desk.pending(TOKEN)


@pytest.mark.parametrize("method", ["POST", "PUT"])
async def test_a_success_ends_the_run_and_is_kept_as_it_came(
    method: str, run_id: int, client: httpx2.AsyncClient
) -> None:
    raw = b'{ "status":"SUCCESS", "data":{"rows": 5}, "error_message":"", "more": 1 }'
    headers = {"authorization": "Bearer s3cret", "cookie": "s3cret", "x-from": "svc"}
    answer = await client.request(method, PATH, content=raw, headers=headers)
    assert (answer.status_code, answer.json()) == (
        200,
        {"run_id": run_id, "final_status": "SUCCESS", "status": "CALLBACK_SUCCESS", "accepted": True},
    )
    run = (await client.get(f"/api/v1/runs/{run_id}")).json()
    assert (run["status"], run["final_status"], run["output"]) == ("CALLBACK_SUCCESS", "SUCCESS", {"rows": 5})
    (kept,) = run["callbacks"]
    assert (kept["status"], kept["body"], kept["headers"]["x-from"]) == ("RECEIVED", raw.decode(), "svc")
    assert "s3cret" not in str(run)
    assert run["callback_token"] is None


async def test_a_failure_is_recorded_with_its_message(run_id: int, client: httpx2.AsyncClient) -> None:
    answer = await client.post(PATH, json={"status": "FAILED", "error_message": "no disk"})
    assert answer.json()["final_status"] == "FAILED"
    run = (await client.get(f"/api/v1/runs/{run_id}")).json()
    assert (run["status"], run["error_message"]) == ("FAILED", "no disk")


async def test_repeated_it_answers_how_the_run_ended(run_id: int, client: httpx2.AsyncClient) -> None:
    await client.post(PATH, json={"status": "SUCCESS"})
    again = await client.post(PATH, json={"status": "FAILED"})
    assert (again.status_code, again.json()["final_status"], again.json()["accepted"]) == (200, "SUCCESS", False)
    kept = (await client.get(f"/api/v1/runs/{run_id}")).json()["callbacks"]
    assert [each["status"] for each in kept] == ["RECEIVED", "IGNORED"]


async def test_after_a_cancel_it_answers_that(run_id: int, client: httpx2.AsyncClient) -> None:
    await client.post(f"/api/v1/runs/{run_id}/cancel")
    late = await client.post(PATH, json={"status": "SUCCESS"})
    assert (late.status_code, late.json()["final_status"]) == (200, "CANCELED")


async def test_a_token_that_ran_out_is_stale(desk: Desk, run_id: int, client: httpx2.AsyncClient) -> None:
    desk.clock.advance(timedelta(hours=2))
    answer = await client.post(PATH, json={"status": "SUCCESS"})
    assert refusal(answer) == (409, "CALLBACK_STALE", None)
    assert (await client.get(f"/api/v1/runs/{run_id}")).json()["status"] == "CALLBACK_PENDING"


async def test_by_ids(run_id: int, client: httpx2.AsyncClient) -> None:
    body = {"task_id": 1, "run_id": run_id, "status": "SUCCESS", "data": {}, "error_message": ""}
    for ids in ({"task_id": 2}, {"run_id": 99}):
        assert refusal(await client.post("/api/v1/callbacks", json={**body, **ids}))[:2] == (404, "NOT_FOUND")
    answer = await client.post("/api/v1/callbacks", json=body)
    assert (answer.status_code, answer.json()["final_status"]) == (200, "SUCCESS")


async def test_by_ids_only_of_a_run_that_opened_a_callback(client: httpx2.AsyncClient) -> None:
    await created(client)
    run = await triggered(client, 1)
    answer = await client.post("/api/v1/callbacks", json={"task_id": 1, "run_id": run, "status": "SUCCESS"})
    assert refusal(answer)[:2] == (404, "NOT_FOUND")


@dataclass(frozen=True)
class NoIds(CallbackSettings):
    allow_ids: bool = False


async def test_by_ids_can_be_switched_off(desk: Desk, run_id: int) -> None:
    async with desk.client(callback=NoIds()) as client:
        body = {"task_id": 1, "run_id": run_id, "status": "SUCCESS"}
        assert refusal(await client.post("/api/v1/callbacks", json=body))[:2] == (404, "NOT_FOUND")
        assert (await client.post(PATH, json=body)).json()["accepted"] is True


@pytest.mark.parametrize(
    ("raw", "code", "field"),
    [
        (b"", "INVALID_JSON", None),
        (b"{", "INVALID_JSON", None),
        (b'{"status": NaN}', "INVALID_JSON", None),
        (b"[]", "INVALID_ARGUMENT", "body"),
        (b"{}", "INVALID_ARGUMENT", "status"),
        (b'{"status": "MAYBE"}', "INVALID_ARGUMENT", "status"),
        (b'{"status": "SUCCESS", "error_message": 5}', "INVALID_ARGUMENT", "error_message"),
        (b'{"status": "SUCCESS", "data": ' + b"[" * 300 + b"]" * 300 + b"}", "INVALID_ARGUMENT", "data"),
    ],
)
async def test_a_wrong_report_changes_nothing(
    raw: bytes, code: str, field: str | None, run_id: int, client: httpx2.AsyncClient
) -> None:
    assert refusal(await client.post(PATH, content=raw)) == (400, code, field)
    run = (await client.get(f"/api/v1/runs/{run_id}")).json()
    assert (run["status"], run["callbacks"]) == ("CALLBACK_PENDING", [])


@pytest.mark.parametrize("field", ["task_id", "run_id"])
@pytest.mark.parametrize("value", [0, -1, "1", 1.0, True, 2**53, 10**40, None])
async def test_wrong_ids_in_a_report_are_named(field: str, value: object, client: httpx2.AsyncClient) -> None:
    body = {"task_id": 1, "run_id": 1, "status": "SUCCESS", field: value}
    assert refusal(await client.post("/api/v1/callbacks", json=body)) == (400, "INVALID_ARGUMENT", field)


async def test_odd_data_is_kept_without_a_crash(run_id: int, client: httpx2.AsyncClient) -> None:
    raw = b'{"status": "SUCCESS", "data": {"n": 1' + b"0" * 40 + b', "z": "\\u0000"}, "error_message": "\\u0000"}'
    assert (await client.post(PATH, content=raw)).json()["accepted"] is True
    assert (await client.get(f"/api/v1/runs/{run_id}")).json()["callbacks"][0]["body"] == raw.decode()


async def test_a_large_report_is_refused(run_id: int, client: httpx2.AsyncClient) -> None:
    answer = await client.post(PATH, json={"status": "SUCCESS", "data": "x" * (256 * 1024)})
    assert refusal(answer) == (413, "BODY_TOO_LARGE", None)
    assert (await client.get(f"/api/v1/runs/{run_id}")).json()["callbacks"] == []


@pytest.mark.parametrize("token", ["x", "%00", "a" * 5000, TOKEN[:-1], "%F0%9F%98%80", "..%2e"])
async def test_an_unknown_token_is_not_found_and_not_repeated(
    token: str, run_id: int, client: httpx2.AsyncClient
) -> None:
    answer = await client.post(f"/api/v1/callbacks/{token}", json={"status": "SUCCESS"}, headers={"x-request-id": "r"})
    assert answer.json() == {
        "code": "NOT_FOUND",
        "message": "callback not found: unknown",
        "details": {"kind": "callback", "id": "unknown"},
        "request_id": "r",
    }
    assert answer.status_code == 404
