"""Document 000's chains: its acceptance cases (§J), its statuses and its words."""

import json

import httpx2
import pytest
from tests.unit.api.jobchain.workflow_bench import CHAINS, RUNS, WORKFLOWS, Desk, dag, node
from tests.unit.api.ksana_bench import Json, body

FIELDS = {"chainId", "name", "description", "enabled", "version", "dagJson", "createdAt", "updatedAt"}
ONE = json.dumps(dag(node("a")))


def refused(answer: httpx2.Response) -> tuple[int, str, str]:
    """Status, code and `error`."""
    envelope = body(answer)
    assert set(envelope) == {"code", "message", "details", "request_id", "error"}
    assert envelope["error"] == envelope["message"]
    return answer.status_code, envelope["code"], envelope["error"]


async def created(desk: Desk, **given: object) -> Json:
    answer = await desk.api.post(CHAINS, json={"name": "chain", "dagJson": ONE, **given})
    assert answer.status_code == 200, answer.text
    return body(answer)


async def test_a_chain_is_made_changed_and_shown(desk: Desk) -> None:
    chain = await created(desk, description="d", enabled=None)
    assert set(chain) == FIELDS
    assert (chain["version"], chain["enabled"], chain["dagJson"]) == (1, True, ONE)
    path = f"{CHAINS}/{chain['chainId']}"
    update = {"name": "chain", "description": None, "dagJson": ONE, "version": 1}
    changed = body(await desk.api.put(path, json=update))
    assert (changed["version"], changed["description"]) == (2, "")
    assert refused(await desk.api.put(path, json=update)) == (
        409,
        "VERSION_CONFLICT",
        "chain version conflict or not found",
    )
    assert body(await desk.api.put(path, json={**changed, "enabled": False}))["enabled"] is False
    page = await desk.get(CHAINS, keyword="chain", enabled="false")
    assert (page["total"], set(page["items"][0])) == (1, FIELDS - {"dagJson"})
    assert (await desk.get(f"{WORKFLOWS}/{chain['chainId']}"))["dag"] == dag(node("a"))


async def test_what_is_wrong_is_told_in_the_documents_words(desk: Desk) -> None:
    chain = await created(desk)
    other = {"name": "other", "dagJson": ONE}
    for text in ("{}", '{"nodes": []}'):
        answer = await desk.api.post(CHAINS, json={**other, "dagJson": text})
        assert refused(answer) == (400, "CHAIN_DAG_INVALID", "dag must have nodes")
    taken = await desk.api.post(CHAINS, json={**other, "name": "chain"})
    assert refused(taken) == (400, "CHAIN_NAME_CONFLICT", "chain name is taken: chain")
    assert refused(await desk.api.get(f"{CHAINS}/nobody")) == (400, "CHAIN_NOT_FOUND", "chain not found: nobody")
    assert body(await desk.api.get(f"{CHAINS}/nobody"))["details"] == {"chainId": "nobody"}
    assert body(await desk.api.post(f"{CHAINS}/{chain['chainId']}:disable"))["enabled"] is False
    answer = await desk.api.post(f"{CHAINS}/{chain['chainId']}:start")
    assert refused(answer) == (409, "CHAIN_DISABLED", "chain is disabled")


@pytest.mark.parametrize(
    "given",
    [
        {"name": None},
        {"name": " "},
        {"dagJson": None},
        {"dagJson": ""},
        {"dagJson": "{"},
        {"dagJson": "[]"},
        {"dagJson": "null"},
        {"dagJson": "7"},
        {"dagJson": {}},
        {"dagJson": json.dumps(dag(node("a"), node("a")))},
        {"dagJson": json.dumps(dag({"id": "a", "jobId": "nobody"}))},
        {"hue": 1},
    ],
)
async def test_a_wrong_chain_is_400_and_not_stored(desk: Desk, given: Json) -> None:
    chain = await created(desk)
    assert refused(await desk.api.post(CHAINS, json={"name": "other", "dagJson": ONE, **given}))[0] == 400
    update = {"name": "other", "dagJson": ONE, "version": 1, **given}
    assert refused(await desk.api.put(f"{CHAINS}/{chain['chainId']}", json=update))[0] == 400
    page = await desk.get(CHAINS)
    assert (page["total"], page["items"][0]["version"]) == (1, 1)


@pytest.mark.parametrize("version", [None, 0, "1", 1.5])
async def test_an_update_needs_its_version(desk: Desk, version: object) -> None:
    chain = await created(desk)
    update = {"name": "chain", "dagJson": ONE, "version": version}
    status, code, message = refused(await desk.api.put(f"{CHAINS}/{chain['chainId']}", json=update))
    assert (status, code, message.partition(":")[0]) == (400, "VALIDATION_ERROR", "version")


async def test_each_start_makes_a_run(desk: Desk) -> None:
    chain = await created(desk)
    path = f"{CHAINS}/{chain['chainId']}:start"
    first, second = [body(await desk.api.post(path)) for _ in range(2)]
    assert set(first) == {"runId"}
    assert first != second
    await desk.sim.settle()
    assert (await desk.get(f"{RUNS}/{first['runId']}"))["status"] == "SUCCESS"


async def test_a_path_that_is_not_there_stays_404(desk: Desk) -> None:
    assert refused(await desk.api.post(f"{CHAINS}/x:frob"))[:2] == (404, "NOT_FOUND")
    assert refused(await desk.api.get(f"{CHAINS}/x:start"))[:2] == (405, "METHOD_NOT_ALLOWED")
