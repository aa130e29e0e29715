"""What holds for all of the contract: its description, its codes, and the document's own script."""

from typing import Any

import httpx2
import pytest
from tests.unit.api.cronjob.conftest import Desk, refusal

from ksana.api.contracts.cronjob.problems import translate
from ksana.api.errors import Problem
from ksana.domain.errors import StoreError

DOCUMENT_SCRIPT_1 = (
    b'{"name":"t1","description":"d","cron_expr":"*/20 * * * * *","exec_type":"SYNC","http_method":"GET",'
    b'"target_url":"https://httpbin.org/get","timeout_seconds":5}'
)


async def test_the_ten_steps_of_the_document_work_as_written(client: httpx2.AsyncClient) -> None:
    json = {"content-type": "application/json"}
    made = await client.post("/api/v1/tasks", content=DOCUMENT_SCRIPT_1, headers=json)
    assert {"id": 1, "name": "t1"}.items() <= made.json().items()
    assert (await client.get("/api/v1/tasks")).json()["items"][0]["id"] == 1
    assert (await client.post("/api/v1/tasks/1/trigger")).json()["run_id"] == 1
    assert (await client.get("/api/v1/tasks/1/runs")).json()["items"][0]["id"] == 1
    assert (await client.get("/api/v1/runs/1")).json()["task_id"] == 1
    canceled = (await client.post("/api/v1/runs/1/cancel")).json()
    assert {"run_id": 1, "status": "CANCELED"}.items() <= canceled.items()
    assert (await client.patch("/api/v1/tasks/1/disable")).json()["status"] == "DISABLED"
    assert (await client.patch("/api/v1/tasks/1/enable")).json()["status"] == "ENABLED"
    patched = await client.patch("/api/v1/tasks/1", content=b'{"cron_expr":"*/10 * * * * *"}', headers=json)
    assert {"updated": True, "cron_expr": "*/10 * * * * *"}.items() <= patched.json().items()
    assert (await client.delete("/api/v1/tasks/1")).json()["deleted"] is True


async def test_the_description_tells_answers_and_errors_and_no_422(client: httpx2.AsyncClient) -> None:
    described = (await client.get("/openapi.json")).json()
    ours = {
        path: item
        for path, item in described["paths"].items()
        if path.startswith(("/api/v1/t", "/api/v1/r", "/api/v1/c"))
    }
    assert len(ours) == 12
    for path, item in ours.items():
        for operation in item.values():
            assert operation["tags"] == ["CronJob"]
            assert operation["summary"]
            assert {"400", "default"} <= set(operation["responses"])
            assert "422" not in operation["responses"], path
            (done,) = [answer for status, answer in operation["responses"].items() if status in {"200", "201"}]
            assert "$ref" in done["content"]["application/json"]["schema"]
    for path in ("/api/v1/tasks/{id}/trigger", "/api/v1/callbacks", "/api/v1/callbacks/{callback_token}"):
        schema = ours[path]["post"]["requestBody"]["content"]["application/json"]["schema"]
        assert schema["properties"]
        assert "$defs" not in schema
    changes = described["components"]["schemas"]["TaskChanges"]
    assert not [each for each in changes["properties"].values() if "default" in each]
    assert "required" not in changes


@pytest.mark.parametrize(
    ("status", "code", "shown"),
    [
        (500, "INTERNAL_ERROR", "INTERNAL"),
        (500, "STORE_ERROR", "INTERNAL"),
        (503, "STORE_UNAVAILABLE", "STORE_UNAVAILABLE"),
        (400, "JSON_PARSE_ERROR", "INVALID_JSON"),
        (400, "VALIDATION_ERROR", "INVALID_ARGUMENT"),
        (409, "NAME_CONFLICT", "NAME_CONFLICT"),
    ],
)
def test_codes_are_the_documents(status: int, code: str, shown: str) -> None:
    assert translate(Problem(status, code, "")).code == shown


async def test_what_breaks_inside_is_internal(
    desk: Desk, client: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: Any) -> None:
        raise StoreError("disk on fire")

    monkeypatch.setattr(type(desk.services.queries), "job", broken)
    answer = await client.get("/api/v1/tasks/1")
    assert refusal(answer) == (500, "INTERNAL", None)
    assert "fire" not in answer.text
