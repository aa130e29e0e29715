"""Document 001 §6 on every store: runs are started once, shown, stopped, closed, resumed, and keep what they started with."""

from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest

from tests.contract.api.conftest import ANSWER_SECONDS, unique, until
from tests.contract.api.cronjob_world import assert_error, done, trigger
from tests.contract.api.cronjob_world import create as a_task
from tests.contract.api.jobchain_world import (
    JOB,
    JOBS,
    NO_RETRY,
    NODE,
    ON_STORES,
    RUN,
    RUN_STATUSES,
    RUNS,
    STATE,
    WORKFLOWS,
    a_job,
    at_once,
    dag,
    defined,
    ended,
    events_of,
    failing,
    find,
    held,
    http,
    ids,
    instant,
    node_order,
    nodes_in,
    nodes_of,
    obeyed,
    of_job,
    order,
    paths,
    put,
    retries,
    run_of,
    runs_of,
    shell,
    start,
    started,
    statuses,
    until_node,
    until_run,
    wait,
)
from tests.contract.api.ksana_world import now
from tests.contract.api.witness import Target

pytestmark = ON_STORES


def test_a_start_answers_with_a_pending_run_that_goes_on_by_itself(api: httpx2.Client) -> None:
    workflow = defined(api, at_once("a"))
    begun = now()
    answer = api.post(f"{WORKFLOWS}/{workflow}:start", json={})
    run = answer.json()
    assert answer.status_code in {200, 201}
    assert isinstance(run["runId"], str)
    assert (run["workflowId"], run["status"]) == (workflow, "PENDING")
    assert begun <= instant(run["createdAt"]) <= now()
    assert until_run(api, run["runId"], "SUCCESS")["createdAt"] == run["createdAt"]


def test_a_start_needs_no_body(api: httpx2.Client) -> None:
    workflow = defined(api, at_once("a"))
    ended(api, done(api.post(f"{WORKFLOWS}/{workflow}:start"))["runId"])


def test_a_run_has_every_field_of_the_document(api: httpx2.Client) -> None:
    job = a_job(api)
    graph = dag(of_job("a", job["jobId"]), wait("b", "a"), job="demo")
    workflow = done(api.post(WORKFLOWS, json={"name": unique("shape"), "dag": graph}))["workflowId"]
    run = start(api, workflow)
    until_node(api, run, "a", "SUCCESS")
    until_node(api, run, "b", "RUNNING")
    shown = run_of(api, run)
    assert set(shown) >= RUN
    assert (shown["runId"], shown["workflowId"], shown["status"]) == (run, workflow, "RUNNING")
    assert shown["dag"] == graph
    assert [node["nodeId"] for node in shown["nodes"]] == ["a", "b"]
    first, second = shown["nodes"]
    assert set(first) >= NODE
    assert set(second) >= NODE
    assert (first["status"], first["attempt"], first["lastError"]) == ("SUCCESS", 1, None)
    assert {name: first["job"][name] for name in JOB} == {name: job[name] for name in JOB}
    assert instant(shown["createdAt"]) <= instant(first["startedAt"]) <= instant(first["endedAt"])
    assert (second["attempt"], second["endedAt"]) == (1, None)
    obeyed(api, run, "close")


def test_the_nodes_of_a_run_are_a_list_of_their_own(api: httpx2.Client) -> None:
    run = started(api, at_once("a"), failing("b", "a"), at_once("c", "b"))
    ended(api, run, "FAILED")
    nodes = api.get(f"{RUNS}/{run}/nodes").json()
    assert [node["nodeId"] for node in nodes] == ["a", "b", "c"]
    assert [node["status"] for node in nodes] == ["SUCCESS", "FAILED", "SKIPPED"]
    assert [node["attempt"] for node in nodes] == [1, 1, 0]
    assert nodes[1]["lastError"]
    assert set(nodes[0]) >= NODE - {"job"}


def test_the_graph_of_a_run_has_what_the_document_draws(api: httpx2.Client) -> None:
    job = a_job(api)
    workflow = defined(api, of_job("a", job["jobId"]), at_once("b", "a", retry=retries(2, 10)))
    run = start(api, workflow)
    ended(api, run)
    graph = done(api.get(f"{RUNS}/{run}/graph"))
    assert (graph["runId"], graph["workflowId"], graph["status"]) == (run, workflow, "SUCCESS")
    first, second = graph["nodes"]
    assert (first["nodeId"], first["dependsOn"], first["retry"]) == ("a", [], NO_RETRY)
    assert (second["nodeId"], second["dependsOn"], second["retry"]) == ("b", ["a"], retries(2, 10))
    assert {name: first["job"][name] for name in JOB} == {name: job[name] for name in JOB}
    assert set(first) >= {"artifact", "checkpoint"}
    assert set(first["state"]) >= STATE
    assert (first["state"]["status"], first["state"]["attempt"], first["state"]["lastError"]) == ("SUCCESS", 1, None)
    assert instant(first["state"]["startedAt"]) <= instant(first["state"]["endedAt"])
    assert [(edge["from"], edge["to"], edge["type"]) for edge in graph["edges"]] == [("a", "b", "DEPENDS_ON")]


def test_a_run_tells_what_happened_to_it(api: httpx2.Client) -> None:
    run = started(api, at_once("a"), failing("b", "a"))
    ended(api, run, "FAILED")
    text = str(events_of(api, run))
    assert "SUCCESS" in text
    assert "FAILED" in text
    assert "'a'" in text
    assert "'b'" in text


def test_the_same_run_id_is_the_same_run(api: httpx2.Client, target: Target) -> None:
    workflow, run = defined(api, http("a", target.url())), unique("my-run")
    first = done(api.post(f"{WORKFLOWS}/{workflow}:start", json={"runId": run}))
    assert (first["runId"], first["workflowId"]) == (run, workflow)
    ended(api, run)
    again = done(api.post(f"{WORKFLOWS}/{workflow}:start", json={"runId": run}))
    assert (again["runId"], again["createdAt"], again["status"]) == (run, first["createdAt"], "SUCCESS")
    assert ids(find(api, RUNS, workflowId=workflow), "runId") == [run]
    assert len(target.hits) == 1


def test_fifty_starts_with_one_run_id_at_once_make_one_run(api: httpx2.Client, target: Target) -> None:
    workflow, run = defined(api, http("a", target.url())), unique("fifty")
    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(lambda _: api.post(f"{WORKFLOWS}/{workflow}:start", json={"runId": run}), range(50)))
    assert {answer.status_code for answer in answers} <= {200, 201}, {answer.text for answer in answers}
    assert {(answer.json()["runId"], answer.json()["createdAt"]) for answer in answers} == {
        (run, run_of(api, run)["createdAt"])
    }
    ended(api, run)
    assert ids(find(api, RUNS, workflowId=workflow), "runId") == [run]
    assert len(target.hits) == 1


def test_a_run_id_is_of_one_workflow_only(api: httpx2.Client) -> None:
    first, second, run = defined(api, at_once("a")), defined(api, at_once("a")), unique("taken")
    start(api, first, runId=run)
    answer = api.post(f"{WORKFLOWS}/{second}:start", json={"runId": run})
    assert answer.status_code == 409 or answer.json()["workflowId"] == first
    assert runs_of(api, second) == []


def test_the_same_idempotency_key_is_the_same_run_in_the_body_and_in_the_header(
    api: httpx2.Client, target: Target
) -> None:
    workflow, key = defined(api, http("a", target.url())), unique("key")
    path = f"{WORKFLOWS}/{workflow}:start"
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: api.post(path, json={"idempotencyKey": key}), range(20)))
    answers.append(api.post(path, headers={"Idempotency-Key": key}))
    answers.append(api.post(path, json={}, headers={"Idempotency-Key": key}))
    assert {answer.status_code for answer in answers} <= {200, 201}, {answer.text for answer in answers}
    (run,) = {answer.json()["runId"] for answer in answers}
    ended(api, run)
    assert len(target.hits) == 1
    assert start(api, workflow, idempotencyKey=unique("other")) != run
    assert start(api, workflow) != run


def test_a_start_that_is_repeated_answers_its_run_whatever_became_of_the_workflow(api: httpx2.Client) -> None:
    workflow, run, key = defined(api, at_once("a")), unique("again"), unique("key")
    start(api, workflow, runId=run)
    other = start(api, workflow, idempotencyKey=key)
    done(api.post(f"{WORKFLOWS}/{workflow}:disable"))
    assert start(api, workflow, runId=run) == run
    assert start(api, workflow, idempotencyKey=key) == other
    assert len(runs_of(api, workflow)) == 2


def test_params_reach_templates_and_are_shown(api: httpx2.Client, target: Target) -> None:
    node = http("a", target.url("/ok/{{ params.day }}"), cfg={"body": "{{ params.who }} {{ params.list[1] }}"})
    run = start(api, defined(api, node), params={"day": "monday", "who": "刹那", "list": [1, 2]})
    ended(api, run)
    (hit,) = target.hits
    assert (hit.path, hit.text) == ("/ok/monday", "刹那 2")


def test_params_are_checked_against_the_schema_of_the_workflow(api: httpx2.Client, target: Target) -> None:
    schema = {
        "type": "object",
        "properties": {"rows": {"type": "integer", "minimum": 1}},
        "required": ["rows"],
    }
    workflow = defined(api, http("a", target.url(), cfg={"body": "{{ params.rows }}"}), paramsSchema=schema)
    for params in ({}, {"rows": "many"}, {"rows": 0}):
        answer = api.post(f"{WORKFLOWS}/{workflow}:start", json={"params": params})
        assert_error(answer, 400, "VALIDATION_ERROR")
        assert "rows" in answer.text
    assert_error(api.post(f"{WORKFLOWS}/{workflow}:start", json={}), 400, "VALIDATION_ERROR")
    assert runs_of(api, workflow) == []
    ended(api, start(api, workflow, params={"rows": 7}))
    assert [hit.text for hit in target.hits] == ["7"]


def test_a_run_keeps_the_dag_and_the_configs_that_it_started_with(api: httpx2.Client, target: Target) -> None:
    job = a_job(api, "http", {"method": "POST", "url": target.url("/ok/before"), "body": "before"})["jobId"]
    workflow = defined(api, http("gate", target.url("/hold")), of_job("call", job, "gate"))
    graph = run_of(api, run := start(api, workflow))["dag"]
    hit = held(target, "/hold")
    config = {"method": "POST", "url": target.url("/ok/after"), "body": "after"}
    done(api.put(f"{JOBS}/{job}", json={"configJson": config}))
    put(api, workflow, dag=dag(of_job("call", job)))
    done(api.post(f"{JOBS}/{job}:disable"))
    assert run_of(api, run)["dag"] == graph
    target.release(hit)
    assert set(ended(api, run)) == {"gate", "call"}
    assert paths(target.hits) == ["/hold", "/ok/before"]
    assert run_of(api, run)["dag"] == graph
    done(api.post(f"{JOBS}/{job}:enable"))
    assert set(ended(api, start(api, workflow))) == {"call"}
    assert paths(target.hits) == ["/hold", "/ok/before", "/ok/after"]


def test_a_node_may_override_the_config_of_its_job(api: httpx2.Client, target: Target) -> None:
    job = a_job(api, "http", {"method": "PUT", "url": target.url(), "body": "of the job"})["jobId"]
    ended(api, started(api, of_job("a", job), of_job("b", job, "a", params={"body": "of the node"})))
    assert [(hit.method, hit.text) for hit in target.hits] == [("PUT", "of the job"), ("PUT", "of the node")]


def test_runs_are_listed_by_workflow_and_status_and_by_pages(api: httpx2.Client) -> None:
    workflow = defined(api, wait("a"))
    runs = [start(api, workflow) for _ in range(3)]
    for run in runs:
        until_node(api, run, "a", "RUNNING")
    obeyed(api, runs[0], "close")
    assert set(ids(find(api, RUNS, workflowId=workflow), "runId")) == set(runs)
    assert set(ids(find(api, RUNS, workflowId=workflow, status="RUNNING"), "runId")) == set(runs[1:])
    assert ids(find(api, RUNS, workflowId=workflow, status="CLOSED"), "runId") == [runs[0]]
    assert find(api, RUNS, workflowId=workflow, status="FAILED")["total"] == 0
    pages = [find(api, RUNS, workflowId=workflow, page=page, size=2) for page in (1, 2, 3)]
    assert [(page["page"], page["size"], page["total"]) for page in pages] == [(n, 2, 3) for n in (1, 2, 3)]
    assert [len(page["items"]) for page in pages] == [2, 1, 0]
    assert {run for page in pages for run in ids(page, "runId")} == set(runs)
    (item,) = find(api, RUNS, workflowId=workflow, status="CLOSED")["items"]
    assert (item["workflowId"], item["status"]) == (workflow, "CLOSED")
    assert instant(item["createdAt"]) <= instant(item["updatedAt"])
    for run in runs:
        order(api, run, "close")


def test_the_list_of_runs_has_both_kinds(api: httpx2.Client, target: Target) -> None:
    run = started(api, at_once("a"))
    ended(api, run)
    other = trigger(api, a_task(api, target.url()))
    until(api, f"{RUNS}/{other}", lambda body: body["status"] == "SUCCESS")
    items = find(api, RUNS)["items"]
    assert any(item.get("runId") == run for item in items)
    assert any(item.get("id") == other for item in items)


# Stop


def test_a_stopped_run_ends_what_runs_and_starts_nothing_new(api: httpx2.Client, target: Target) -> None:
    run = started(api, http("a", target.url("/hold")), http("b", target.url("/ok/b"), "a"))
    hit = held(target, "/hold")
    until_run(api, run, "RUNNING")
    assert obeyed(api, run, "stop")["status"] == "STOPPING"
    assert run_of(api, run)["status"] == "STOPPING"
    assert obeyed(api, run, "stop")["status"] == "STOPPING"
    assert not hit.gone
    target.release(hit)
    assert statuses(ended(api, run, "STOPPED")) == {"a": "SUCCESS", "b": "STOPPED"}
    assert paths(target.hits) == ["/hold"]


def test_a_stop_ends_what_waits_for_its_next_attempt(api: httpx2.Client, target: Target) -> None:
    run = started(api, http("a", target.url("/status/503"), retry=retries(5, 1500)), http("b", target.url(), "a"))
    until_node(api, run, "a", "RETRYING")
    obeyed(api, run, "stop")
    assert statuses(ended(api, run, "STOPPED")) == {"a": "STOPPED", "b": "STOPPED"}
    assert len(target.hits) == 1


def test_a_soft_stop_lets_what_waits_for_its_callback_end(api: httpx2.Client, target: Target) -> None:
    run = started(api, http("a", target.url("/async"), cfg={"mode": "async"}), http("b", target.url("/ok/b"), "a"))
    (hit,) = target.wait_hits(1)
    until(api, f"{RUNS}/{run}/events", lambda body: "CALLBACK_PENDING" in str(body))
    assert obeyed(api, run, "stop")["status"] == "STOPPING"
    answer = httpx2.post(hit.callback.url, json={"status": "SUCCESS"}, timeout=ANSWER_SECONDS)
    assert answer.status_code == 200, answer.text
    assert statuses(ended(api, run, "STOPPED")) == {"a": "SUCCESS", "b": "STOPPED"}
    assert target.at("/ok/b") == []


def test_a_stop_with_force_cancels_what_runs(api: httpx2.Client, target: Target) -> None:
    run = started(api, http("a", target.url("/hold")), shell("s", "sleep 60"), wait("w"), at_once("b", "a", "s", "w"))
    hit = held(target, "/hold")
    until_node(api, run, "s", "RUNNING")
    until_node(api, run, "w", "RUNNING")
    obeyed(api, run, "stop", force=True)
    assert set(statuses(ended(api, run, "STOPPED", timeout=10)).values()) == {"STOPPED"}
    target.wait_gone(hit)


def test_a_run_under_a_soft_stop_can_still_be_stopped_with_force(api: httpx2.Client, target: Target) -> None:
    run = started(api, http("a", target.url("/hold")))
    hit = held(target, "/hold")
    obeyed(api, run, "stop")
    obeyed(api, run, "stop", force=True)
    assert statuses(ended(api, run, "STOPPED")) == {"a": "STOPPED"}
    target.wait_gone(hit)


def test_a_run_that_has_ended_is_not_stopped(api: httpx2.Client) -> None:
    good, bad = started(api, at_once("a")), started(api, failing("a"))
    ended(api, good)
    ended(api, bad, "FAILED")
    for run, status in ((good, "SUCCESS"), (bad, "FAILED")):
        assert_error(order(api, run, "stop"), 409, "RUN_NOT_RUNNING")
        assert run_of(api, run)["status"] == status


# Close


def test_a_closed_run_never_moves_again(api: httpx2.Client, target: Target) -> None:
    run = started(api, http("a", target.url("/hold")), http("b", target.url("/ok/b"), "a"))
    hit = held(target, "/hold")
    assert obeyed(api, run, "close")["status"] == "CLOSED"
    closed = run_of(api, run)
    assert closed["status"] == "CLOSED"
    target.release(hit)
    for what in ("stop", "resume", "retry-failed"):
        assert_error(order(api, run, what), 409)
    for node in ("a", "b"):
        for what in ("retry", "complete", "skip"):
            assert_error(node_order(api, run, node, what), 409, "RUN_TERMINAL")
    ended(api, started(api, http("other", target.url("/ok/other"))))  # the engine had time
    assert run_of(api, run)["status"] == "CLOSED"
    assert target.at("/ok/b") == []
    assert nodes_of(api, run)["b"]["status"] not in {"SUCCESS", "RUNNING"}


def test_a_run_that_has_ended_can_be_closed_and_closed_again(api: httpx2.Client) -> None:
    run = started(api, failing("a"), at_once("b", "a"))
    ended(api, run, "FAILED")
    for _ in range(2):
        assert obeyed(api, run, "close")["status"] == "CLOSED"
    assert_error(node_order(api, run, "a", "retry"), 409, "RUN_TERMINAL")
    assert statuses(nodes_of(api, run)) == {"a": "FAILED", "b": "SKIPPED"}


# Resume


def test_a_stopped_run_goes_on_from_what_is_not_done(api: httpx2.Client, target: Target) -> None:
    url = target.url
    run = started(api, http("a", url("/ok/a")), http("b", url("/hold"), "a"), http("c", url("/ok/c"), "b"))
    hit = held(target, "/hold")
    obeyed(api, run, "stop")
    target.release(hit)
    ended(api, run, "STOPPED")
    obeyed(api, run, "resume")
    assert set(statuses(ended(api, run)).values()) == {"SUCCESS"}
    assert paths(target.hits) == ["/ok/a", "/hold", "/ok/c"]


def test_a_run_that_was_stopped_with_force_runs_again_what_was_cut_off(api: httpx2.Client, target: Target) -> None:
    run = started(api, http("a", target.url("/ok/a")), http("b", target.url("/hold"), "a"))
    hit = held(target, "/hold")
    obeyed(api, run, "stop", force=True)
    ended(api, run, "STOPPED")
    target.wait_gone(hit)
    obeyed(api, run, "resume")
    target.release(held(target, "/hold"))
    assert ended(api, run)["b"]["attempt"] == 2
    assert paths(target.hits) == ["/ok/a", "/hold", "/hold"]


def test_a_failed_run_goes_on_from_what_failed(api: httpx2.Client, target: Target) -> None:
    url = target.url
    run = started(api, http("a", url("/ok/a")), http("b", url("/flaky/1"), "a"), http("c", url("/ok/c"), "b"))
    assert statuses(ended(api, run, "FAILED")) == {"a": "SUCCESS", "b": "FAILED", "c": "SKIPPED"}
    obeyed(api, run, "resume")
    assert set(statuses(ended(api, run)).values()) == {"SUCCESS"}
    assert paths(target.hits) == ["/ok/a", "/flaky/1", "/flaky/1", "/ok/c"]


def test_what_has_nothing_to_go_on_with_is_not_resumed(api: httpx2.Client) -> None:
    good, running = started(api, at_once("a")), started(api, wait("a"))
    ended(api, good)
    until_run(api, running, "RUNNING")
    assert_error(order(api, good, "resume"), 409)
    assert_error(order(api, running, "resume"), 409)
    assert run_of(api, good)["status"] == "SUCCESS"
    obeyed(api, running, "close")


def test_all_failed_nodes_are_retried_at_once_and_no_other(api: httpx2.Client, target: Target) -> None:
    url = target.url
    run = started(
        api,
        http("good", url("/ok/good")),
        http("one", url("/flaky/1"), "good"),
        http("two", url("/flaky/1/2"), "good"),
        http("after", url("/ok/after"), "one", "two"),
    )
    assert statuses(ended(api, run, "FAILED"))["after"] == "SKIPPED"
    obeyed(api, run, "retry-failed")
    nodes = ended(api, run)
    assert {node: found["attempt"] for node, found in nodes.items()} == {"good": 1, "one": 2, "two": 2, "after": 1}
    assert sorted(paths(target.hits)) == sorted(["/ok/good", "/ok/after", *["/flaky/1", "/flaky/1/2"] * 2])


def test_a_run_without_a_failed_node_has_nothing_to_retry(api: httpx2.Client) -> None:
    run = started(api, at_once("a"))
    ended(api, run)
    answer = order(api, run, "retry-failed")
    assert answer.status_code in {200, 409}
    nodes = nodes_in(until_run(api, run, "SUCCESS"))
    assert nodes["a"]["attempt"] == 1


# Limits


def test_a_run_that_takes_too_long_fails_and_what_runs_is_cancelled(api: httpx2.Client, target: Target) -> None:
    run = started(api, http("a", target.url("/hold")), http("b", target.url("/ok/b"), "a"), timeout="500ms")
    hit = held(target, "/hold")
    nodes = ended(api, run, "FAILED", timeout=10)
    target.wait_gone(hit)
    assert nodes["a"]["status"] in {"FAILED", "STOPPED"}
    assert nodes["b"]["status"] in {"SKIPPED", "STOPPED"}
    assert target.at("/ok/b") == []


@pytest.mark.parametrize("first", ["stop", "close"])
def test_of_a_finish_and_an_order_at_once_one_wins(api: httpx2.Client, target: Target, first: str) -> None:
    run = started(api, http("a", target.url("/hold")))
    hit = held(target, "/hold")
    with ThreadPoolExecutor(4) as pool:
        answers = [pool.submit(order, api, run, first) for _ in range(3)]
        target.release(hit)
        told = [answer.result().status_code for answer in answers]
    assert set(told) <= {200, 409}
    shown = until_run(api, run, "SUCCESS", "STOPPED", "CLOSED")
    assert shown["status"] in RUN_STATUSES
    assert (shown["status"] == "CLOSED") == (first == "close" and 200 in told)
