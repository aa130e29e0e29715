"""Document 000 on every store: its fourteen acceptance cases (§J), as they are written, and the rest of §B1."""

import json
from typing import Any

import httpx2
import pytest

from tests.contract.api.conftest import unique
from tests.contract.api.cronjob_world import assert_error, done
from tests.contract.api.jobchain_world import (
    CHAINS,
    NOBODY,
    ON_STORES,
    RUNS,
    WORKFLOWS,
    Json,
    a_job,
    at_once,
    dag,
    ended,
    failing,
    find,
    held,
    http,
    ids,
    node_order,
    nodes_of,
    of_job,
    order,
    shell,
    until_node,
    until_run,
    wait,
)
from tests.contract.api.witness import Target

pytestmark = ON_STORES


def a_chain(*nodes: Json, **given: Any) -> Json:
    """What a client sends (§B1.1)."""
    return {"name": unique("chain"), "description": "...", "dagJson": json.dumps(dag(*nodes)), **given}


def create(api: httpx2.Client, *nodes: Json, **given: Any) -> Json:
    answer = api.post(CHAINS, json=a_chain(*nodes, **given))
    assert answer.is_success, answer.text
    return done(answer)


def start(api: httpx2.Client, *nodes: Json) -> str:
    """The run of a new chain of these nodes."""
    return str(done(api.post(f"{CHAINS}/{create(api, *nodes)['chainId']}:start"))["runId"])


def assert_chain_error(answer: httpx2.Response, status: int, word: str = "") -> None:
    """The envelope of Ksana with the `error` of §B0 beside its code."""
    assert_error(answer, status)
    assert isinstance(answer.json()["error"], str)
    assert word in answer.json()["error"]


def test_case_1_a_chain_is_created_with_an_id_and_version_one(api: httpx2.Client) -> None:
    given = a_chain(at_once("a"), at_once("b", "a"))
    chain = done(api.post(CHAINS, json=given))
    assert isinstance(chain["chainId"], str)
    assert (chain["version"], chain["enabled"]) == (1, True)
    assert {name: chain[name] for name in given} == given


def test_case_2_a_name_that_is_taken_is_400(api: httpx2.Client) -> None:
    chain = create(api, at_once("a"))
    assert_chain_error(api.post(CHAINS, json=a_chain(at_once("b"), name=chain["name"])), 400)
    assert find(api, CHAINS, keyword=chain["name"])["total"] == 1


@pytest.mark.parametrize("text", ['{"nodes": []}', "{}"], ids=["empty", "missing"])
def test_case_3_a_dag_without_nodes_is_400(api: httpx2.Client, text: str) -> None:
    given = a_chain(dagJson=text)
    assert_chain_error(api.post(CHAINS, json=given), 400, "dag must have nodes")
    assert find(api, CHAINS, keyword=given["name"])["total"] == 0


def test_case_4_an_update_with_the_right_version_raises_it(api: httpx2.Client) -> None:
    chain = create(api, at_once("a"))
    given = {**a_chain(at_once("a"), at_once("b", "a")), "version": 1}
    changed = done(api.put(f"{CHAINS}/{chain['chainId']}", json=given))
    assert {name: changed[name] for name in ("name", "description", "dagJson")} == {
        name: given[name] for name in ("name", "description", "dagJson")
    }
    assert changed["version"] == 2
    assert done(api.get(f"{CHAINS}/{chain['chainId']}")) == changed


def test_case_5_an_update_with_an_old_version_is_409(api: httpx2.Client) -> None:
    chain = create(api, at_once("a"))
    path = f"{CHAINS}/{chain['chainId']}"
    changed = done(api.put(path, json={**a_chain(at_once("b")), "version": 1}))
    assert_chain_error(api.put(path, json={**a_chain(at_once("c")), "version": 1}), 409)
    assert done(api.get(path)) == changed


def test_case_6_a_disabled_chain_does_not_start_409(api: httpx2.Client) -> None:
    chain = create(api, at_once("a"))["chainId"]
    assert done(api.post(f"{CHAINS}/{chain}:disable"))["enabled"] is False
    assert_chain_error(api.post(f"{CHAINS}/{chain}:start"), 409, "disabled")
    assert done(api.post(f"{CHAINS}/{chain}:enable"))["enabled"] is True
    assert done(api.post(f"{CHAINS}/{chain}:start"))["runId"]


def test_case_7_chains_are_paged_and_found_by_keyword_and_state(api: httpx2.Client) -> None:
    word = unique("paged")
    on = create(api, at_once("a"), name=f"a {word}")["chainId"]
    off = create(api, at_once("a"), name=f"b {word}", enabled=False)["chainId"]
    assert set(ids(find(api, CHAINS, keyword=word), "chainId")) == {on, off}
    assert ids(find(api, CHAINS, keyword=word, enabled="true"), "chainId") == [on]
    assert ids(find(api, CHAINS, keyword=word, enabled="false"), "chainId") == [off]
    first, second = (find(api, CHAINS, keyword=word, page=page, size=1) for page in (1, 2))
    assert [(page["page"], page["size"], page["total"]) for page in (first, second)] == [(1, 1, 2), (2, 1, 2)]
    assert {*ids(first, "chainId"), *ids(second, "chainId")} == {on, off}
    assert find(api, CHAINS, keyword="", page=1, size=20)["total"] >= 2


def test_case_8_a_chain_is_shown_with_its_dag_json(api: httpx2.Client) -> None:
    given = a_chain(at_once("a"), at_once("b", "a"))
    chain = done(api.post(CHAINS, json=given))
    shown = done(api.get(f"{CHAINS}/{chain['chainId']}"))
    assert shown["dagJson"] == given["dagJson"]
    assert shown == chain


def test_case_9_a_start_makes_a_run_and_another_start_another(api: httpx2.Client) -> None:
    chain = create(api, at_once("a"))["chainId"]
    runs = [done(api.post(f"{CHAINS}/{chain}:start"))["runId"] for _ in range(2)]
    assert len(set(runs)) == 2
    for run in runs:
        ended(api, run)


def test_case_10_a_run_is_seen_to_go_from_pending_to_its_end(api: httpx2.Client, target: Target) -> None:
    run = start(api, http("a", target.url("/hold")))
    assert until_run(api, run, "PENDING", "RUNNING")["runId"] == run
    hit = held(target, "/hold")
    until_run(api, run, "RUNNING")
    target.release(hit)
    until_run(api, run, "SUCCESS")
    until_run(api, start(api, failing("a")), "FAILED")


def test_case_11_every_node_of_a_run_is_there_from_its_start(api: httpx2.Client) -> None:
    run = start(api, wait("a"), at_once("b", "a"), at_once("c"))
    nodes = api.get(f"{RUNS}/{run}/nodes").json()
    assert isinstance(nodes, list)
    assert {node["nodeId"] for node in nodes} >= {"a", "b", "c"}
    assert {node["nodeId"]: node["status"] for node in nodes}["b"] == "PENDING"
    order(api, run, "close")


def test_case_12_a_running_run_is_stopping_and_then_stopped(api: httpx2.Client, target: Target) -> None:
    run = start(api, http("a", target.url("/hold")), http("b", target.url("/ok/b"), "a"))
    hit = held(target, "/hold")
    until_run(api, run, "RUNNING")
    answer = done(order(api, run, "stop"))
    assert (answer["runId"], answer["status"]) == (run, "STOPPING")
    again = done(order(api, run, "stop"))
    assert (again["runId"], again["status"]) == (run, "STOPPING")
    target.release(hit)
    until_run(api, run, "STOPPED")
    assert target.at("/ok/b") == []
    finished = start(api, at_once("a"))
    ended(api, finished)
    assert order(api, finished, "stop").status_code == 409


def test_case_13_what_succeeded_is_not_retried_what_failed_or_was_stopped_is(
    api: httpx2.Client, target: Target
) -> None:
    run = start(api, at_once("done"), failing("bad", "done"))
    ended(api, run, "FAILED")
    assert node_order(api, run, "done", "retry").status_code == 409
    assert nodes_of(api, run)["bad"]["attempt"] == 1
    done(node_order(api, run, "bad", "retry", reason="once more"))
    assert until_node(api, run, "bad", "FAILED")["attempt"] == 2
    run = start(api, http("a", target.url("/hold")), at_once("b", "a"))
    hit = held(target, "/hold")
    done(order(api, run, "stop"))
    target.release(hit)
    until_run(api, run, "STOPPED")
    stopped = nodes_of(api, run)["b"]
    assert stopped["status"] == "STOPPED"
    done(node_order(api, run, "b", "retry"))
    assert until_node(api, run, "b", "SUCCESS")["attempt"] == stopped["attempt"] + 1


def test_case_14_what_waits_is_not_completed_what_failed_was_stopped_or_runs_is(
    api: httpx2.Client, target: Target
) -> None:
    run = start(api, http("a", target.url("/hold")), at_once("b", "a"))
    held(target, "/hold")
    assert node_order(api, run, "b", "complete").status_code == 409
    done(node_order(api, run, "a", "complete", reason="by hand"))
    assert until_node(api, run, "a", "SUCCESS")["attempt"] == 1
    run = start(api, failing("bad"))
    ended(api, run, "FAILED")
    done(node_order(api, run, "bad", "complete", artifactJson='{"rows": 3}', reason="by hand"))
    assert until_node(api, run, "bad", "SUCCESS")["artifact"] == {"rows": 3}
    run = start(api, http("a", target.url("/hold/2")), at_once("b", "a"))
    hit = held(target, "/hold/2")
    done(order(api, run, "stop"))
    target.release(hit)
    until_run(api, run, "STOPPED")
    done(node_order(api, run, "b", "complete"))
    until_node(api, run, "b", "SUCCESS")


def test_a_chain_that_is_not_there_is_400(api: httpx2.Client) -> None:
    requests = [("GET", ""), ("POST", ":enable"), ("POST", ":disable"), ("POST", ":start")]
    for method, suffix in requests:
        assert_chain_error(api.request(method, f"{CHAINS}/{NOBODY}{suffix}"), 400)
    assert_chain_error(api.put(f"{CHAINS}/{NOBODY}", json={**a_chain(at_once("a")), "version": 1}), 400)


@pytest.mark.parametrize(
    "given",
    [
        {"name": " "},
        {"name": None},
        {"dagJson": ""},
        {"dagJson": None},
        {"dagJson": "{"},
        {"dagJson": "[]"},
        {"dagJson": json.dumps(dag(at_once("a"), at_once("a")))},
        {"dagJson": json.dumps(dag(at_once("a", "lost")))},
        {"dagJson": json.dumps(dag(at_once("a", "b"), at_once("b", "a")))},
        {"dagJson": json.dumps(dag(of_job("a", NOBODY)))},
    ],
    ids=["name", "no-name", "empty", "none", "open", "list", "twice", "unknown-dependency", "cycle", "unknown-job"],
)
def test_a_chain_that_is_wrong_is_400_and_is_not_stored(api: httpx2.Client, given: Json) -> None:
    before = find(api, CHAINS)["total"]
    assert_chain_error(api.post(CHAINS, json=a_chain(at_once("a"), **given)), 400)
    assert find(api, CHAINS)["total"] == before
    chain = create(api, at_once("a"))
    path = f"{CHAINS}/{chain['chainId']}"
    assert_chain_error(api.put(path, json={**a_chain(at_once("b")), "version": 1, **given}), 400)
    assert done(api.get(path)) == chain


@pytest.mark.parametrize("field", ["name", "dagJson", "version"])
def test_an_update_without_what_it_needs_is_400(api: httpx2.Client, field: str) -> None:
    chain = create(api, at_once("a"))
    body = {**a_chain(at_once("b")), "version": 1}
    del body[field]
    assert_chain_error(api.put(f"{CHAINS}/{chain['chainId']}", json=body), 400, field)
    assert done(api.get(f"{CHAINS}/{chain['chainId']}")) == chain


def test_an_update_to_the_name_of_another_chain_is_400(api: httpx2.Client) -> None:
    first, chain = create(api, at_once("a")), create(api, at_once("a"))
    body = {**a_chain(at_once("b"), name=first["name"]), "version": 1}
    assert_chain_error(api.put(f"{CHAINS}/{chain['chainId']}", json=body), 400)
    assert done(api.get(f"{CHAINS}/{chain['chainId']}")) == chain


def test_enabled_may_be_null_and_means_true(api: httpx2.Client) -> None:
    assert create(api, at_once("a"), enabled=None)["enabled"] is True
    assert create(api, at_once("a"), enabled=False)["enabled"] is False


def test_an_update_that_changes_nothing_raises_the_version_all_the_same(api: httpx2.Client) -> None:
    given = a_chain(at_once("a"))
    chain = done(api.post(CHAINS, json=given))["chainId"]
    assert done(api.put(f"{CHAINS}/{chain}", json={**given, "version": 1}))["version"] == 2
    assert_chain_error(api.put(f"{CHAINS}/{chain}", json={**given, "version": 1}), 409)


def test_a_chain_is_a_workflow_and_a_workflow_a_chain(api: httpx2.Client) -> None:
    job = a_job(api)["jobId"]
    nodes = [of_job("a", job), shell("b", "true", "a")]
    chain = create(api, *nodes)
    workflow = done(api.get(f"{WORKFLOWS}/{chain['chainId']}"))
    assert (workflow["workflowId"], workflow["name"], workflow["dag"]) == (chain["chainId"], chain["name"], dag(*nodes))
    made = done(api.post(WORKFLOWS, json={"name": unique("workflow"), "dag": dag(*nodes)}))
    shown = done(api.get(f"{CHAINS}/{made['workflowId']}"))
    assert (shown["chainId"], shown["name"], json.loads(shown["dagJson"])) == (
        made["workflowId"],
        made["name"],
        dag(*nodes),
    )
    run = done(api.post(f"{CHAINS}/{made['workflowId']}:start"))["runId"]
    ended(api, run)
    assert ids(find(api, RUNS, workflowId=made["workflowId"]), "runId") == [run]
