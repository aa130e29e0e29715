"""Every error is answered in one envelope, and says nothing about the inside."""

from dataclasses import replace

import httpx2
import pytest
from tests.unit.api.conftest import Bench

from ksana.api.errors import Problem, Translation
from ksana.domain.errors import (
    ConcurrencyLimit,
    IllegalTransition,
    InvalidInput,
    KsanaError,
    NameTaken,
    NotFound,
    SchemaMismatch,
    StoreError,
    StoreFull,
    StoreInUse,
    StoreUnavailable,
    VersionMismatch,
)

MEMBERS = {"code", "message", "details", "request_id"}


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (InvalidInput("name", "must not be blank"), 400, "VALIDATION_ERROR"),
        (NotFound("job", 7), 404, "NOT_FOUND"),
        (NameTaken("job", "a"), 409, "NAME_CONFLICT"),
        (VersionMismatch("job", 1, expected=1, actual=2), 409, "VERSION_CONFLICT"),
        (ConcurrencyLimit(1, limit=1), 409, "CONCURRENCY_LIMIT"),
        (IllegalTransition("execution", "SUCCESS", "RUNNING"), 409, "ILLEGAL_TRANSITION"),
    ],
)
async def test_what_the_caller_can_mend_is_told_in_full(
    error: KsanaError, status: int, code: str, bench: Bench, client: httpx2.AsyncClient
) -> None:
    bench.error = error
    answer = await client.get("/sample/things/raise")
    body = answer.json()
    assert (answer.status_code, body["code"], body["message"]) == (status, code, error.message)
    assert set(body) == MEMBERS
    assert body["details"] == error.details
    assert body["request_id"] == answer.headers["x-request-id"]


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (StoreUnavailable("db.internal:5432 refused", details={"host": "db.internal"}), 503, "STORE_UNAVAILABLE"),
        (StoreFull("db.internal disk"), 507, "STORE_FULL"),
        (StoreInUse("db.internal"), 500, "STORE_IN_USE"),
        (SchemaMismatch("db.internal"), 500, "SCHEMA_MISMATCH"),
        (StoreError("db.internal"), 500, "STORE_ERROR"),
        (KsanaError("db.internal"), 500, "INTERNAL_ERROR"),
        (RuntimeError("db.internal"), 500, "INTERNAL_ERROR"),
    ],
)
async def test_what_happened_inside_is_not_told(
    error: Exception, status: int, code: str, bench: Bench, client: httpx2.AsyncClient
) -> None:
    bench.error = error
    answer = await client.get("/sample/things/raise")
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert set(answer.json()) == MEMBERS
    assert "db.internal" not in answer.text
    assert "Traceback" not in answer.text
    assert ("retry-after" in answer.headers) == (status == 503)


async def test_paths_and_methods_that_do_not_exist_are_answered_in_the_envelope(client: httpx2.AsyncClient) -> None:
    missing = await client.get("/nowhere")
    assert (missing.status_code, missing.json()["code"], set(missing.json())) == (404, "NOT_FOUND", MEMBERS)
    wrong = await client.delete("/health")
    assert (wrong.status_code, wrong.json()["code"], wrong.headers["allow"]) == (405, "METHOD_NOT_ALLOWED", "GET")


@pytest.mark.parametrize(
    ("body", "field"),
    [({}, "name"), ({"name": "a", "sizes": [1, "x"]}, "sizes[1]"), ([], "body")],
)
async def test_a_body_of_the_wrong_shape_names_the_field(body: object, field: str, client: httpx2.AsyncClient) -> None:
    answer = await client.post("/sample/things", json=body)
    told = answer.json()
    assert (answer.status_code, told["code"], told["details"]["field"]) == (400, "VALIDATION_ERROR", field)
    assert told["message"].startswith(f"{field}: ")
    assert told["details"]["errors"][0]["field"] == field


async def test_a_wrong_path_parameter_is_a_validation_error(client: httpx2.AsyncClient) -> None:
    answer = await client.get("/sample/things/abc")
    assert (answer.status_code, answer.json()["details"]["field"]) == (400, "thing_id")


@pytest.mark.parametrize("body", [b"{", b"", b"\xff\xfe", b"[" * 900])
async def test_a_body_that_is_not_json_is_told_so(body: bytes, client: httpx2.AsyncClient) -> None:
    answer = await client.post("/sample/things", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 400
    assert answer.json()["code"] == ("JSON_PARSE_ERROR" if body else "VALIDATION_ERROR")


async def test_a_contract_shows_the_problems_of_its_paths_in_its_own_words(bench: Bench) -> None:
    def old_words(problem: Problem) -> Problem:
        return replace(problem, status=400, code="GONE_ASTRAY", extra={"error": "GONE_ASTRAY"})

    def other_words(problem: Problem) -> Problem:
        return replace(problem, code="OTHER")

    bench.error = NotFound("thing", 1)
    bench.translations = [Translation("/sample", other_words), Translation("/sample/things", old_words)]
    async with bench.client() as client:
        answer = await client.get("/sample/things/raise")
        assert answer.status_code == 400
        assert answer.json()["code"] == answer.json()["error"] == "GONE_ASTRAY"
        assert (await client.get("/sample/thingsome")).json()["code"] == "OTHER"
        assert (await client.get("/samples")).json()["code"] == "NOT_FOUND"


async def test_a_body_that_is_not_sent_as_json_is_told_how_to_send_it(client: httpx2.AsyncClient) -> None:
    answer = await client.post("/sample/things", content='{"name": "x"}', headers={"Content-Type": "text/plain"})
    assert answer.status_code == 400
    assert "Content-Type: application/json" in answer.json()["message"]
