"""Document 001 §0.5, §1: what workflows, runs and nodes refuse, with which code, and that nothing changes by it."""

from typing import Any

import httpx2
import pytest

from tests.contract.api.conftest import ON_SQLITE, unique
from tests.contract.api.cronjob_world import assert_error
from tests.contract.api.jobchain_world import (
    NOBODY,
    RUNS,
    WORKFLOWS,
    Json,
    a_job,
    a_workflow,
    at_once,
    create,
    dag,
    defined,
    ended,
    fetch,
    find,
    http,
    node_order,
    of_job,
    order,
    refused_dag,
    shell,
    start,
    started,
    wait,
)

pytestmark = ON_SQLITE

URL = "http://127.0.0.1:9/never-called"
OPENING = "{{"


def child(**cfg: Any) -> Json:
    return {"id": "child", "type": "workflow", "cfg": cfg}


WRONG_DAGS: dict[str, tuple[Json, tuple[str, ...]]] = {
    "no-nodes": (dag(), ("nodes",)),
    "nodes-missing": ({"job": "demo"}, ("nodes",)),
    "nodes-not-a-list": ({"nodes": {"a": {}}}, ("nodes",)),
    "node-not-an-object": ({"nodes": ["a"]}, ("nodes",)),
    "id-missing": (dag({"type": "wait"}), ("id",)),
    "id-blank": (dag(at_once(" ")), ("id",)),
    "id-number": (dag({"id": 7, "type": "wait"}), ("id",)),
    "id-twice": (dag(at_once("first"), at_once("twice"), at_once("twice")), ("twice",)),
    "unknown-dependency": (dag(at_once("first"), at_once("second", "missing")), ("second", "missing")),
    "itself": (dag(at_once("first", "first")), ("first",)),
    "cycle": (
        dag(at_once("one", "three"), at_once("two", "one"), at_once("three", "two")),
        ("cycle", "one", "two", "three"),
    ),
    "neither-job-nor-type": (dag({"id": "empty"}), ("empty",)),
    "unknown-type": (dag({"id": "odd", "type": "pigeon", "cfg": {}}), ("odd", "pigeon")),
    "attempts-none": (dag(at_once("tries", retry={"maxAttempts": 0})), ("tries", "maxAttempts")),
    "attempts-text": (dag(at_once("tries", retry={"maxAttempts": "many"})), ("tries", "maxAttempts")),
    "backoff-negative": (dag(at_once("tries", retry={"backoffMillis": -1})), ("tries", "backoffMillis")),
    "multiplier-none": (dag(at_once("tries", retry={"backoffMultiplier": 0})), ("tries", "backoffMultiplier")),
    "retry-unknown": (dag(at_once("tries", retry={"max": 1})), ("tries", "max")),
    "trigger-rule": (dag(at_once("rule", triggerRule="perhaps")), ("rule", "triggerRule")),
    "when-syntax": (dag(at_once("cond", when="params.x >")), ("cond", "when")),
    "when-number": (dag(at_once("cond", when=7)), ("cond", "when")),
    "timeout": (dag(at_once("slow", timeout="soon")), ("slow", "timeout")),
    "template": (dag(http("call", URL, cfg={"body": OPENING + " nodes.a.artifact"})), ("call",)),
    "template-in-a-command": (dag(shell("run", "echo " + OPENING + " params.x }}")), ("run", "cmd")),
    "config-of-http": (dag({"id": "call", "type": "http", "cfg": {"method": "GET"}}), ("call", "url")),
    "config-of-shell": (dag({"id": "run", "type": "shell", "cfg": {}}), ("run", "cmd")),
    "config-of-wait": (dag(wait("rest", cfg={"for": "long"})), ("rest", "for")),
    "config-of-wait-unknown": (dag(wait("rest", cfg={"hue": 1})), ("rest", "hue")),
    "workflow-of-a-node-unknown": (dag(child(workflowId=NOBODY)), ("child", NOBODY)),
    "workflow-of-a-node-missing": (dag(child()), ("child", "workflowId")),
    "fail-fast": (dag(at_once("a"), failFast="maybe"), ("failFast",)),
    "run-timeout": (dag(at_once("a"), timeout="soon"), ("timeout",)),
    "schema": (dag(at_once("a"), paramsSchema={"type": "pigeon"}), ("paramsSchema",)),
    "node-unknown-field": (dag(at_once("a", hue=1)), ("a", "hue")),
}
EACH_WRONG_DAG = pytest.mark.parametrize(("graph", "words"), list(WRONG_DAGS.values()), ids=list(WRONG_DAGS))
WRONG: dict[str, tuple[Json, str]] = {
    "name-blank": ({"name": "  "}, "name"),
    "name-null": ({"name": None}, "name"),
    "name-number": ({"name": 7}, "name"),
    "name-too-long": ({"name": "n" * 129}, "name"),
    "description-number": ({"description": 7}, "description"),
    "enabled-text": ({"enabled": "yes"}, "enabled"),
    "unknown": ({"workflow_name": "x"}, "workflow_name"),
}
EACH_WRONG = pytest.mark.parametrize(("given", "field"), list(WRONG.values()), ids=list(WRONG))


@EACH_WRONG_DAG
def test_a_dag_that_is_wrong_is_refused_with_what_is_wrong_and_nothing_is_stored(
    api: httpx2.Client, graph: Json, words: tuple[str, ...]
) -> None:
    given = a_workflow(graph)
    refused_dag(api.post(WORKFLOWS, json=given), *words)
    refused_dag(api.post(f"{WORKFLOWS}:validate", json=given), *words)
    assert find(api, keyword=given["name"])["total"] == 0


@EACH_WRONG_DAG
def test_a_change_to_a_dag_that_is_wrong_changes_nothing(
    api: httpx2.Client, graph: Json, words: tuple[str, ...]
) -> None:
    workflow = create(api, dag(at_once("right")))
    path = f"{WORKFLOWS}/{workflow['workflowId']}"
    refused_dag(api.put(path, json={"description": "other", "dag": graph}), *words)
    assert fetch(api, workflow["workflowId"]) == workflow
    assert api.get(f"{path}/versions/2").status_code == 404


def test_a_cycle_is_shown_as_its_path(api: httpx2.Client) -> None:
    nodes = [at_once("free"), at_once("one", "free", "three"), at_once("two", "one"), at_once("three", "two")]
    message = refused_dag(api.post(WORKFLOWS, json=a_workflow(dag(*nodes, at_once("after", "three")))), "cycle")
    shown = [word for word in message.replace(",", " ").replace(":", " ").split() if word in {"one", "two", "three"}]
    ring = "one two three " * 3
    assert " ".join(shown) in ring or " ".join(reversed(shown)) in ring, message
    assert set(shown) == {"one", "two", "three"}
    assert "free" not in message
    assert "after" not in message


def test_a_job_that_is_not_there_is_named(api: httpx2.Client) -> None:
    given = a_workflow(dag(at_once("fine"), of_job("lost", NOBODY)))
    refused_dag(api.post(WORKFLOWS, json=given), "lost", NOBODY, code="JOB_NOT_FOUND")
    refused_dag(api.post(f"{WORKFLOWS}:validate", json=given), "lost", NOBODY, code="JOB_NOT_FOUND")
    assert find(api, keyword=given["name"])["total"] == 0
    workflow = create(api, dag(at_once("right")))
    answer = api.put(f"{WORKFLOWS}/{workflow['workflowId']}", json={"dag": given["dag"]})
    refused_dag(answer, "lost", NOBODY, code="JOB_NOT_FOUND")
    assert fetch(api, workflow["workflowId"]) == workflow


def test_a_job_that_is_disabled_is_named(api: httpx2.Client) -> None:
    job = a_job(api, enabled=False)["jobId"]
    given = a_workflow(dag(at_once("fine"), of_job("off", job)))
    refused_dag(api.post(WORKFLOWS, json=given), "off", job, code="JOB_DISABLED")
    assert find(api, keyword=given["name"])["total"] == 0


def test_a_workflow_whose_job_was_disabled_does_not_start(api: httpx2.Client) -> None:
    job = a_job(api)["jobId"]
    workflow = defined(api, of_job("off", job))
    assert api.post(f"/api/v1/jobs/{job}:disable").status_code == 200
    answer = api.post(f"{WORKFLOWS}/{workflow}:start", json={})
    assert_error(answer, 400)
    assert answer.json()["code"] in {"JOB_DISABLED", "WORKFLOW_DAG_INVALID"}
    assert find(api, RUNS, workflowId=workflow)["total"] == 0


@EACH_WRONG
def test_a_wrong_value_is_named_and_no_workflow_is_made(api: httpx2.Client, given: Json, field: str) -> None:
    before = find(api)["total"]
    details = assert_error(api.post(WORKFLOWS, json=a_workflow(dag(at_once("a")), **given)), 400, "VALIDATION_ERROR")
    assert details["field"] == field
    assert find(api)["total"] == before


@EACH_WRONG
def test_a_wrong_value_in_a_change_is_named_and_changes_nothing(api: httpx2.Client, given: Json, field: str) -> None:
    workflow = create(api, dag(at_once("a")))
    answer = api.put(f"{WORKFLOWS}/{workflow['workflowId']}", json={"dag": dag(at_once("b")), **given})
    assert assert_error(answer, 400, "VALIDATION_ERROR")["field"] == field
    assert fetch(api, workflow["workflowId"]) == workflow


@pytest.mark.parametrize("field", ["name", "dag"])
def test_what_a_workflow_cannot_do_without_is_named(api: httpx2.Client, field: str) -> None:
    body = a_workflow(dag(at_once("a")))
    del body[field]
    answer = api.post(WORKFLOWS, json=body)
    assert_error(answer, 400)
    assert answer.json()["code"] in {"VALIDATION_ERROR", "WORKFLOW_DAG_INVALID"}
    assert field in answer.json()["message"]


@pytest.mark.parametrize("version", [0, -1, "one", 1.5], ids=str)
def test_a_version_is_a_whole_number_from_one(api: httpx2.Client, version: Any) -> None:
    workflow = create(api, dag(at_once("a")))
    answer = api.put(f"{WORKFLOWS}/{workflow['workflowId']}", json={"description": "other", "version": version})
    assert assert_error(answer, 400, "VALIDATION_ERROR")["field"] == "version"
    assert fetch(api, workflow["workflowId"]) == workflow


@pytest.mark.parametrize("content", [b"{", b'{"name": }', b"\xff\xfe"], ids=["open", "gap", "bytes"])
def test_a_body_that_is_not_json_is_told_so(api: httpx2.Client, content: bytes) -> None:
    workflow = defined(api, wait("a"))
    run = start(api, workflow)
    requests = [
        ("POST", WORKFLOWS),
        ("PUT", f"{WORKFLOWS}/{workflow}"),
        ("POST", f"{WORKFLOWS}/{workflow}:start"),
        ("POST", f"{RUNS}/{run}:stop"),
        ("POST", f"{RUNS}/{run}/nodes/a:complete"),
    ]
    for method, path in requests:
        answer = api.request(method, path, content=content, headers={"content-type": "application/json"})
        assert_error(answer, 400, "JSON_PARSE_ERROR")
    order(api, run, "close")


@pytest.mark.parametrize(
    ("query", "field"),
    [({"page": 0}, "page"), ({"page": "x"}, "page"), ({"size": 0}, "size"), ({"enabled": "perhaps"}, "enabled")],
)
def test_a_wrong_query_is_named(api: httpx2.Client, query: Json, field: str) -> None:
    assert assert_error(api.get(WORKFLOWS, params=query), 400, "VALIDATION_ERROR")["field"] == field


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"runId": 7}, "runId"),
        ({"runId": ""}, "runId"),
        ({"runId": "r" * 129}, "runId"),
        ({"idempotencyKey": 7}, "idempotencyKey"),
        ({"params": [1]}, "params"),
        ({"hue": 1}, "hue"),
    ],
    ids=["id-number", "id-empty", "id-too-long", "key-number", "params-list", "unknown"],
)
def test_a_wrong_start_is_named_and_makes_no_run(api: httpx2.Client, body: Json, field: str) -> None:
    workflow = defined(api, at_once("a"))
    answer = api.post(f"{WORKFLOWS}/{workflow}:start", json=body)
    assert assert_error(answer, 400, "VALIDATION_ERROR")["field"] == field
    assert find(api, RUNS, workflowId=workflow)["total"] == 0


def test_a_run_that_is_not_there_is_not_found(api: httpx2.Client) -> None:
    nobody = unique("nobody")
    requests = [("GET", ""), ("GET", "/nodes"), ("GET", "/graph"), ("GET", "/events"), ("GET", "/nodes/a/logs")]
    requests += [("POST", f":{what}") for what in ("stop", "close", "resume", "retry-failed")]
    requests += [("POST", f"/nodes/a:{what}") for what in ("retry", "complete", "skip")]
    for method, suffix in requests:
        answer = api.request(method, f"{RUNS}/{nobody}{suffix}")
        assert assert_error(answer, 404, "RUN_NOT_FOUND")["runId"] == nobody


def test_a_node_that_is_not_there_is_not_found(api: httpx2.Client) -> None:
    run = started(api, at_once("a"))
    ended(api, run)
    for what in ("retry", "complete", "skip"):
        answer = node_order(api, run, "nobody", what)
        assert assert_error(answer, 404, "NODE_NOT_FOUND")["nodeId"] == "nobody"
    assert_error(api.get(f"{RUNS}/{run}/nodes/nobody/logs"), 404, "NODE_NOT_FOUND")


def test_an_order_takes_post_only_and_an_unknown_one_is_nowhere(api: httpx2.Client) -> None:
    workflow = defined(api, at_once("a"))
    run = start(api, workflow)
    ended(api, run)
    for path in (f"{WORKFLOWS}/{workflow}:disable", f"{WORKFLOWS}/{workflow}:start", f"{RUNS}/{run}:close"):
        for method in ("GET", "PUT", "DELETE"):
            assert_error(api.request(method, path), 405, "METHOD_NOT_ALLOWED")
    for path in (f"{WORKFLOWS}/{workflow}:frob", f"{RUNS}/{run}:frob", f"{RUNS}/{run}/nodes/a:frob"):
        assert_error(api.post(path), 404, "NOT_FOUND")
    assert fetch(api, workflow)["enabled"] is True
