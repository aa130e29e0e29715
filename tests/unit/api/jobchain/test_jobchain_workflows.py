"""Document 001's workflows (§5), and how they are started (§6.1)."""

from datetime import timedelta

import pytest
from tests.unit.api.jobchain.workflow_bench import RUNS, WORKFLOWS, Desk, dag, node, told
from tests.unit.api.ksana_bench import Json, body

AT = "2026-01-01T00:00:00Z"
RETRY = {"maxAttempts": 3, "backoffMillis": 1000, "backoffMultiplier": 2.0}
NO_RETRY = {"maxAttempts": 1, "backoffMillis": 0, "backoffMultiplier": 1.0}


async def test_a_created_workflow_comes_back_as_it_was_sent(desk: Desk) -> None:
    graph = dag(node("a"), {"id": "b", "type": "scripted", "dependsOn": ["a"], "description": "刹那"}, job="demo")
    sent = {"name": "demo", "description": "d", "enabled": False, "dag": graph}
    answer = await desk.api.post(WORKFLOWS, json=sent)
    shown = body(answer)
    assert answer.status_code == 201
    assert answer.headers["location"] == f"{WORKFLOWS}/{shown['workflowId']}"
    assert shown == {**sent, "workflowId": shown["workflowId"], "version": 1, "createdAt": AT, "updatedAt": AT}
    assert await desk.get(answer.headers["location"]) == shown


async def test_a_client_may_bring_the_id_but_only_once(desk: Desk) -> None:
    assert (await desk.create(node("a"), workflow_id="mine"))["workflowId"] == "mine"
    again = {"name": "other", "workflowId": "mine", "dag": dag(node("a"))}
    taken = await desk.api.post(WORKFLOWS, json=again)
    assert told(taken) == (409, "ID_CONFLICT", {"field": "workflowId", "workflowId": "mine"})
    wrong = await desk.api.post(WORKFLOWS, json={**again, "workflowId": "a b"})
    assert told(wrong) == (400, "VALIDATION_ERROR", {"field": "workflowId"})


async def test_workflows_are_listed_without_their_dags(desk: Desk) -> None:
    for name in ("one", "two", "three"):
        await desk.create(node("a"), workflow_id=f"w-{name}", name=name)
    await desk.api.post(f"{WORKFLOWS}/w-two:disable")
    page = await desk.get(WORKFLOWS, page=1, size=2)
    assert {**page, "items": len(page["items"])} == {"page": 1, "size": 2, "total": 3, "items": 2}
    assert page["items"][0] == {
        "workflowId": "w-one",
        "name": "one",
        "description": "",
        "enabled": True,
        "version": 1,
        "createdAt": AT,
        "updatedAt": AT,
    }
    assert [each["name"] for each in (await desk.get(WORKFLOWS, keyword="t"))["items"]] == ["two", "three"]
    assert [each["name"] for each in (await desk.get(WORKFLOWS, enabled="false"))["items"]] == ["two"]
    assert (await desk.get(WORKFLOWS, enabled="", keyword=""))["total"] == 3


async def test_a_change_leaves_what_it_does_not_name(desk: Desk) -> None:
    path = f"{WORKFLOWS}/{(await desk.create(node('a'), workflow_id='w'))['workflowId']}"
    before = await desk.get(path)
    desk.clock.advance(timedelta(seconds=1))
    changed = body(await desk.api.put(path, json={"description": "new", "version": 1}))
    assert changed == {**before, "description": "new", "version": 2, "updatedAt": "2026-01-01T00:00:01Z"}
    stale = await desk.api.put(path, json={"description": "newer", "version": 1})
    assert told(stale) == (409, "WORKFLOW_VERSION_CONFLICT", {"workflowId": "w", "expected": 1, "actual": 2})
    assert body(await desk.api.put(path, json={"description": None}))["description"] == ""
    assert body(await desk.api.put(path, json=await desk.get(path)))["version"] == 3
    assert body(await desk.api.put(path, json={}))["version"] == 3


@pytest.mark.parametrize(
    ("sent", "code", "field"),
    [
        ({"name": None}, "VALIDATION_ERROR", "name"),
        ({"name": " "}, "VALIDATION_ERROR", "name"),
        ({"dag": None}, "WORKFLOW_DAG_INVALID", "dag"),
        ({"dag": "{}"}, "WORKFLOW_DAG_INVALID", "dag"),
        ({"dag": {"nodes": []}}, "WORKFLOW_DAG_INVALID", "dag.nodes"),
        ({"dag": {"nodes": [{"id": "a", "jobId": "nobody"}]}}, "JOB_NOT_FOUND", "dag.nodes[0].jobId"),
        ({"enabled": None}, "VALIDATION_ERROR", "enabled"),
        ({"version": 0}, "VALIDATION_ERROR", "version"),
        ({"workflowId": "other"}, "VALIDATION_ERROR", "workflowId"),
        ({"colour": 1}, "VALIDATION_ERROR", "colour"),
    ],
)
async def test_a_wrong_change_is_named_and_changes_nothing(desk: Desk, sent: Json, code: str, field: str) -> None:
    shown = await desk.create(node("a"), workflow_id="w")
    status, found, details = told(await desk.api.put(f"{WORKFLOWS}/w", json=sent))
    assert (status, found, details["field"]) == (400, code, field)
    assert await desk.get(f"{WORKFLOWS}/w") == shown


async def test_a_dag_that_no_database_keeps_is_refused(desk: Desk) -> None:
    for wrong in ("[" * 300 + "]" * 300, "1" + "0" * 30, '"\\ud800"'):
        sent = '{"name": "n", "dag": {"nodes": [{"id": "a", "type": "scripted", "cfg": {"x": HERE}}]}}'.replace(
            "HERE", wrong
        )
        answer = await desk.api.post(WORKFLOWS, content=sent, headers={"content-type": "application/json"})
        assert told(answer)[:2] == (400, "WORKFLOW_DAG_INVALID")


async def test_a_job_that_is_disabled_is_named(desk: Desk) -> None:
    job = (await desk.sim.job(enabled=False)).job.key
    answer = await desk.api.post(WORKFLOWS, json={"name": "n", "dag": dag({"id": "a", "jobId": job})})
    assert told(answer)[:2] == (400, "JOB_DISABLED")


async def test_the_graph_has_jobs_and_edges(desk: Desk) -> None:
    job = (await desk.sim.job(name="demo-job", description="d")).job
    nodes: list[Json] = [
        {"id": "a", "jobId": job.key},
        {"id": "b", "jobId": str(job.id), "dependsOn": ["a"], "retry": RETRY},
    ]
    await desk.create(*nodes, node("c", "a", "b"), workflow_id="w")
    graph = await desk.get(f"{WORKFLOWS}/w/graph")
    shown = {"jobId": job.key, "name": "demo-job", "type": "scripted", "enabled": True, "description": "d"}
    usual = {"triggerRule": "all_success", "when": None}
    assert graph == {
        "workflowId": "w",
        "version": 1,
        "nodes": [
            {"nodeId": "a", "job": shown, "dependsOn": [], "retry": NO_RETRY, **usual},
            {"nodeId": "b", "job": shown, "dependsOn": ["a"], "retry": RETRY, **usual},
            {
                "nodeId": "c",
                "job": {"jobId": None, "name": "c", "type": "scripted", "enabled": True, "description": ""},
                "dependsOn": ["a", "b"],
                "retry": NO_RETRY,
                **usual,
            },
        ],
        "edges": [
            {"from": "a", "to": "b", "type": "DEPENDS_ON", "index": 0},
            {"from": "a", "to": "c", "type": "DEPENDS_ON", "index": 0},
            {"from": "b", "to": "c", "type": "DEPENDS_ON", "index": 1},
        ],
    }


async def test_every_version_stays_to_be_read(desk: Desk) -> None:
    await desk.create(node("a"), workflow_id="w")
    await desk.api.put(f"{WORKFLOWS}/w", json={"name": "two", "dag": dag(node("b"))})
    page = await desk.get(f"{WORKFLOWS}/w/versions")
    summary = {"version": 1, "name": "w", "description": "", "createdAt": AT, "createdBy": "anonymous"}
    assert [each["version"] for each in page["items"]] == [2, 1]
    assert page["items"][1] == summary
    assert await desk.get(f"{WORKFLOWS}/w/versions/1") == {**summary, "dag": dag(node("a"))}
    assert told(await desk.api.get(f"{WORKFLOWS}/w/versions/3")) == (404, "VERSION_NOT_FOUND", {"version": "3"})
    assert told(await desk.api.get(f"{WORKFLOWS}/w/versions/x"))[:2] == (400, "VALIDATION_ERROR")


async def test_a_dry_run_stores_nothing(desk: Desk) -> None:
    good, bad = dag(node("a"), node("b", "a")), dag(node("a", "b"))
    assert body(await desk.api.post(f"{WORKFLOWS}:validate", json={"dag": good})) == {"valid": True, "nodes": 2}
    assert told(await desk.api.post(f"{WORKFLOWS}:validate", json={"dag": bad}))[1] == "WORKFLOW_DAG_INVALID"
    assert told(await desk.api.post(f"{WORKFLOWS}:validate", json={}))[:2] == (400, "VALIDATION_ERROR")
    assert (await desk.get(WORKFLOWS))["total"] == 0
    await desk.create(node("a"), workflow_id="w")
    assert body(await desk.api.post(f"{WORKFLOWS}/w:validate")) == {"valid": True, "nodes": 1}
    assert body(await desk.api.post(f"{WORKFLOWS}/w:validate", json={"dag": good}))["nodes"] == 2
    itself = dag({"id": "a", "type": "workflow", "cfg": {"workflowId": "w"}})
    assert told(await desk.api.post(f"{WORKFLOWS}/w:validate", json={"dag": itself}))[1] == "WORKFLOW_DAG_INVALID"
    assert (await desk.get(f"{WORKFLOWS}/w"))["version"] == 1


async def test_a_start_needs_no_body_and_no_content_type(desk: Desk) -> None:
    await desk.create(node("a"), workflow_id="w")
    runs = set()
    for content in (b"", b"{}", b"null", b" "):
        answer = await desk.api.post(f"{WORKFLOWS}/w:start", content=content)
        started = body(answer)
        assert (answer.status_code, answer.headers["location"]) == (201, f"{RUNS}/{started['runId']}")
        assert started == {"runId": started["runId"], "workflowId": "w", "status": "PENDING", "createdAt": AT}
        runs.add(started["runId"])
    assert len(runs) == 4


async def test_the_same_id_or_key_gives_the_same_run(desk: Desk) -> None:
    await desk.create(node("a"), workflow_id="w")
    path = f"{WORKFLOWS}/w:start"
    for given, headers in (({"runId": "mine"}, {}), ({"idempotencyKey": "k"}, {}), ({}, {"idempotency-key": "h"})):
        first, second = [await desk.api.post(path, json=given, headers=headers) for _ in range(2)]
        assert (first.status_code, second.status_code) == (201, 200)
        assert first.json() == second.json()
    agreed = await desk.api.post(path, json={"idempotencyKey": "h"}, headers={"idempotency-key": "h"})
    assert agreed.status_code == 200
    torn = await desk.api.post(path, json={"idempotencyKey": "k"}, headers={"idempotency-key": "h"})
    assert told(torn) == (400, "VALIDATION_ERROR", {"field": "idempotencyKey"})
    long = await desk.api.post(path, json={"idempotencyKey": "k" * 200})
    assert told(long)[2]["field"] == "idempotencyKey"


async def test_parameters_are_kept_with_the_run(desk: Desk) -> None:
    await desk.create(node("a"), workflow_id="w", paramsSchema={"required": ["day"]})
    answer = await desk.api.post(f"{WORKFLOWS}/w:start", json={"runId": "r", "params": {"day": 1}})
    assert answer.status_code == 201
    assert (await desk.run())["params"] == {"day": 1}
    assert told(await desk.api.post(f"{WORKFLOWS}/w:start"))[:2] == (400, "VALIDATION_ERROR")


async def test_a_disabled_workflow_does_not_start(desk: Desk) -> None:
    await desk.create(node("a"), workflow_id="w")
    assert body(await desk.api.post(f"{WORKFLOWS}/w:disable"))["enabled"] is False
    answer = await desk.api.post(f"{WORKFLOWS}/w:start")
    assert told(answer) == (400, "WORKFLOW_DISABLED", {"workflowId": "w"})
    assert body(await desk.api.post(f"{WORKFLOWS}/w:enable"))["enabled"] is True


async def test_a_full_workflow_that_skips_refuses_to_start(desk: Desk) -> None:
    await desk.create(node("a"), workflow_id="w", maxActiveRuns=1, overlap="SKIP")
    assert (await desk.api.post(f"{WORKFLOWS}/w:start")).status_code == 201
    assert told(await desk.api.post(f"{WORKFLOWS}/w:start"))[:2] == (409, "CONCURRENCY_LIMIT")


async def test_a_deleted_workflow_is_gone(desk: Desk) -> None:
    await desk.create(node("a"), workflow_id="w")
    assert (await desk.api.delete(f"{WORKFLOWS}/w")).status_code == 204
    for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/graph"), ("GET", "/versions"), ("POST", ":start")):
        answer = await desk.api.request(method, f"{WORKFLOWS}/w{path}")
        assert told(answer) == (404, "WORKFLOW_NOT_FOUND", {"workflowId": "w"})


@pytest.mark.parametrize("key", ["nobody", "7", "a b", "%00", "x" * 80])
async def test_an_id_that_nothing_has_is_not_found(desk: Desk, key: str) -> None:
    for method, path in (("GET", ""), ("POST", ":enable"), ("POST", ":start"), ("POST", ":validate")):
        answer = await desk.api.request(method, f"{WORKFLOWS}/{key}{path}")
        assert told(answer)[:2] == (404, "WORKFLOW_NOT_FOUND")
