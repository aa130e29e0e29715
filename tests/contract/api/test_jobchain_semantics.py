"""How the nodes of a run follow each other: branches, failures, rules, conditions, items, child workflows, limits, schedules."""

import json
from typing import Any

import httpx2
import pytest

from tests.contract.api.conftest import ON_SQLITE, until
from tests.contract.api.cronjob_world import assert_error, done
from tests.contract.api.jobchain_world import (
    RUNS,
    SCHEDULES,
    WORKFLOWS,
    Json,
    at_once,
    create,
    dag,
    defined,
    ended,
    failing,
    held,
    http,
    making,
    node_obeyed,
    node_of,
    obeyed,
    paths,
    refused_dag,
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
from tests.contract.api.witness import Hit, Target

pytestmark = ON_SQLITE  # tests/contract/store/test_workflows.py has what follows from a graph on every database


# Branches


def test_branches_run_at_the_same_time_and_join(api: httpx2.Client, target: Target) -> None:
    url = target.url
    run = started(
        api,
        http("first", url("/ok/first")),
        http("left", url("/hold/left"), "first"),
        http("right", url("/hold/right"), "first"),
        http("last", url("/ok/last"), "left", "right"),
    )
    left, right = held(target, "/hold/left"), held(target, "/hold/right")
    target.release(left)
    until_node(api, run, "left", "SUCCESS")
    assert node_of(api, run, "last")["status"] == "PENDING"
    target.release(right)
    ended(api, run)
    assert paths(target.hits)[0] == "/ok/first"
    assert paths(target.hits)[-1] == "/ok/last"
    assert len(target.hits) == 4


def test_a_failed_node_skips_what_depends_on_it_and_nothing_else(api: httpx2.Client, target: Target) -> None:
    url = target.url
    run = started(
        api,
        failing("bad"),
        at_once("under", "bad"),
        at_once("deeper", "under"),
        http("other", url("/hold")),
        http("further", url("/ok/further"), "other"),
        at_once("both", "under", "further"),
    )
    until_node(api, run, "deeper", "SKIPPED")
    until_run(api, run, "RUNNING")
    target.release(held(target, "/hold"))
    nodes = ended(api, run, "FAILED")
    assert statuses(nodes) == {
        "bad": "FAILED",
        "under": "SKIPPED",
        "deeper": "SKIPPED",
        "other": "SUCCESS",
        "further": "SUCCESS",
        "both": "SKIPPED",
    }
    assert nodes["under"]["attempt"] == 0


def test_fail_fast_stops_the_rest(api: httpx2.Client, target: Target) -> None:
    run = started(
        api,
        http("slow", target.url("/hold/slow")),
        http("bad", target.url("/hold/bad")),
        http("after", target.url("/ok/after"), "slow"),
        failFast=True,
    )
    slow = held(target, "/hold/slow")
    target.release(held(target, "/hold/bad"), 404)
    until_node(api, run, "bad", "FAILED")
    target.release(slow)
    nodes = ended(api, run, "FAILED")
    assert nodes["after"]["status"] in {"STOPPED", "SKIPPED"}
    assert target.at("/ok/after") == []


def test_a_node_that_is_tried_again_holds_back_fail_fast(api: httpx2.Client, target: Target) -> None:
    flaky = http("flaky", target.url("/flaky/1"), retry=retries(2, 50))
    ended(
        api, started(api, flaky, http("other", target.url("/slow/0.3")), at_once("c", "flaky", "other"), failFast=True)
    )


def test_a_wide_graph_ends_with_every_node_run_once(api: httpx2.Client, target: Target) -> None:
    middle = [http(f"n{number}", target.url(f"/ok/{number}"), "first") for number in range(60)]
    last = at_once("last", *[node["id"] for node in middle])
    ended(api, started(api, at_once("first"), *middle, last))
    assert sorted(paths(target.hits)) == sorted(f"/ok/{number}" for number in range(60))


def test_layers_that_are_fully_connected_end_in_order(api: httpx2.Client, target: Target) -> None:
    layers = [[f"l{layer}n{number}" for number in range(5)] for layer in range(5)]
    nodes = []
    for number, layer in enumerate(layers):
        before = layers[number - 1] if number else []
        nodes += [http(node, target.url(f"/ok/{node}"), *before) for node in layer]
    ended(api, started(api, *nodes))
    seen = [path.removeprefix("/ok/") for path in paths(target.hits)]
    assert [node[:2] for node in seen] == [f"l{layer}" for layer in range(5) for _ in range(5)]
    assert len(set(seen)) == 25


# Trigger rules

RULES: list[tuple[str, str, str]] = [
    ("all_success", "ok ok", "SUCCESS"),
    ("all_success", "ok bad", "SKIPPED"),
    ("all_success", "ok skip", "SKIPPED"),
    ("all_done", "ok bad", "SUCCESS"),
    ("all_done", "bad skip", "SUCCESS"),
    ("all_failed", "bad bad", "SUCCESS"),
    ("all_failed", "ok bad", "SKIPPED"),
    ("one_success", "ok bad", "SUCCESS"),
    ("one_success", "bad bad", "SKIPPED"),
    ("one_failed", "ok bad", "SUCCESS"),
    ("one_failed", "ok ok", "SKIPPED"),
    ("none_failed", "ok skip", "SUCCESS"),
    ("none_failed", "ok ok", "SUCCESS"),
    ("none_failed", "ok bad", "SKIPPED"),
]


def upstream(node: str, kind: str) -> Json:
    """A node that succeeds, fails, or is skipped."""
    if kind == "bad":
        return failing(node)
    return at_once(node) if kind == "ok" else at_once(node, when="false")


@pytest.mark.parametrize(("rule", "kinds", "status"), RULES, ids=lambda value: str(value).replace(" ", "+"))
def test_a_trigger_rule_decides_by_what_came_before(api: httpx2.Client, rule: str, kinds: str, status: str) -> None:
    before = [upstream(f"n{number}", kind) for number, kind in enumerate(kinds.split())]
    run = started(api, *before, at_once("it", *[node["id"] for node in before], triggerRule=rule))
    shown = until_run(api, run, "FAILED" if "bad" in kinds else "SUCCESS")
    assert {node["nodeId"]: node["status"] for node in shown["nodes"]}["it"] == status


def test_one_success_does_not_wait_for_the_others(api: httpx2.Client) -> None:
    run = started(api, at_once("quick"), wait("slow"), at_once("it", "quick", "slow", triggerRule="one_success"))
    until_node(api, run, "it", "SUCCESS")
    assert node_of(api, run, "slow")["status"] == "RUNNING"
    node_obeyed(api, run, "slow", "complete")
    ended(api, run)


def test_one_failed_does_not_wait_for_the_others(api: httpx2.Client) -> None:
    run = started(api, failing("bad"), wait("slow"), at_once("it", "bad", "slow", triggerRule="one_failed"))
    until_node(api, run, "it", "SUCCESS")
    assert node_of(api, run, "slow")["status"] == "RUNNING"
    obeyed(api, run, "close")


# Conditions


def test_a_node_whose_condition_is_false_is_skipped_with_the_reason(api: httpx2.Client, target: Target) -> None:
    nodes = [
        http("yes", target.url("/ok/yes"), when="params.rows > 3 && params.who == 'a'"),
        http("no", target.url("/ok/no"), when="params.rows > 5"),
        http("after", target.url("/ok/after"), "no"),
    ]
    run = start(api, defined(api, *nodes), params={"rows": 4, "who": "a"})
    found = ended(api, run)
    assert statuses(found) == {"yes": "SUCCESS", "no": "SKIPPED", "after": "SKIPPED"}
    assert found["no"]["reason"]
    assert found["no"]["attempt"] == 0
    assert paths(target.hits) == ["/ok/yes"]


def test_a_condition_sees_the_artifacts_of_the_nodes_before(api: httpx2.Client) -> None:
    nodes = [
        making("count", '{"rows": 7}'),
        at_once("many", "count", when="nodes.count.artifact.rows > 5"),
        at_once("few", "count", when="nodes.count.artifact.rows <= 5"),
    ]
    assert statuses(ended(api, started(api, *nodes))) == {"count": "SUCCESS", "many": "SUCCESS", "few": "SKIPPED"}


def test_a_condition_that_cannot_be_answered_fails_its_node(api: httpx2.Client) -> None:
    run = started(api, at_once("it", when="params.missing > 3"), at_once("other"))
    nodes = ended(api, run, "FAILED")
    assert statuses(nodes) == {"it": "FAILED", "other": "SUCCESS"}
    assert "missing" in nodes["it"]["lastError"]


# Artifacts


def test_templates_see_the_artifacts_of_the_nodes_before(api: httpx2.Client, target: Target) -> None:
    body = {"body": "{{ nodes.a.artifact.x }} {{ nodes.a.artifact.list[0].y }}"}
    run = started(
        api,
        making("a", '{"x": "one", "list": [{"y": 2}]}'),
        http("b", target.url("/ok/{{ nodes.a.artifact.x }}"), "a", cfg=body),
        shell("c", 'printf %s "$X" > "$KSANA_ARTIFACT"', "b", env={"X": "{{ nodes.a.artifact.list | tojson }}"}),
    )
    nodes = ended(api, run)
    assert [(hit.path, hit.text) for hit in target.hits] == [("/ok/one", "one 2")]
    assert nodes["a"]["artifact"] == {"x": "one", "list": [{"y": 2}]}
    assert nodes["c"]["artifact"] == [{"y": 2}]


def test_a_template_that_cannot_be_filled_fails_its_node_and_calls_nobody(api: httpx2.Client, target: Target) -> None:
    body = {"body": "{{ nodes.a.artifact.missing.deeper }}"}
    run = started(api, making("a", '{"x": 1}'), http("b", target.url(), "a", cfg=body))
    nodes = ended(api, run, "FAILED")
    assert statuses(nodes) == {"a": "SUCCESS", "b": "FAILED"}
    assert nodes["b"]["lastError"]
    assert target.hits == []


# Items


def test_each_item_is_an_execution_of_its_own_and_the_results_are_in_order(api: httpx2.Client, target: Target) -> None:
    each = http("each", target.url("/ok/{{ item.name }}"), cfg={"body": "{{ index }}"}, forEach="params.items")
    run = start(api, defined(api, each, at_once("after", "each")), params={"items": [{"name": n} for n in "abc"]})
    nodes = ended(api, run)
    assert sorted((hit.path, hit.text) for hit in target.hits) == [("/ok/a", "0"), ("/ok/b", "1"), ("/ok/c", "2")]
    assert nodes["each"]["status"] == "SUCCESS"
    assert len(nodes["each"]["artifact"]) == 3
    listed = {node["nodeId"]: node["status"] for node in api.get(f"{RUNS}/{run}/nodes").json()}
    assert {name: listed[name] for name in ("each[0]", "each[1]", "each[2]")} == dict.fromkeys(
        ("each[0]", "each[1]", "each[2]"), "SUCCESS"
    )


def test_the_results_of_items_are_gathered_in_order_whichever_ends_first(api: httpx2.Client, target: Target) -> None:
    cmd = 'sleep "$NAP"; printf \'{"i": %s, "id": "%s"}\' "$KSANA_INDEX" "$KSANA_NODE_ID" > "$KSANA_ARTIFACT"'
    each = shell("each", cmd, "list", env={"NAP": "{{ item }}"}, forEach="nodes.list.artifact.naps")
    after = http("after", target.url(), "each", cfg={"body": "{{ nodes.each.artifact[2].i }}"})
    nodes = ended(api, started(api, making("list", '{"naps": [0.5, 0.2, 0]}'), each, after))
    assert [item["i"] for item in nodes["each"]["artifact"]] == [0, 1, 2]
    assert [item["id"] for item in nodes["each"]["artifact"]] == ["each[0]", "each[1]", "each[2]"]
    assert [hit.text for hit in target.hits] == ["2"]


def test_no_more_items_run_at_a_time_than_allowed(api: httpx2.Client, target: Target) -> None:
    each = http("each", target.url("/hold/{{ item }}"), forEach={"items": "params.items", "maxParallel": 2})
    run = start(api, defined(api, each), params={"items": [0, 1, 2, 3, 4]})
    for seen in range(2, 6):
        target.wait_hits(seen)
        oldest = target.wait_held(2)[0]
        assert len(target.hits) == seen
        target.release(oldest)
    target.release_all()
    ended(api, run)
    assert sorted(paths(target.hits)) == [f"/hold/{item}" for item in range(5)]


def test_no_items_at_all_succeed(api: httpx2.Client, target: Target) -> None:
    each = http("each", target.url("/ok/{{ item }}"), forEach="params.items")
    nodes = ended(api, start(api, defined(api, each, at_once("after", "each")), params={"items": []}))
    assert statuses(nodes) == {"each": "SUCCESS", "after": "SUCCESS"}
    assert nodes["each"]["artifact"] == []
    assert target.hits == []


def test_an_item_that_fails_fails_the_node_and_only_it_is_retried(api: httpx2.Client, target: Target) -> None:
    each = http("each", target.url("/{{ item }}"), forEach="params.items")
    workflow = defined(api, each, at_once("after", "each"))
    run = start(api, workflow, params={"items": ["ok/0", "flaky/1", "ok/2"]})
    nodes = ended(api, run, "FAILED")
    assert (nodes["each"]["status"], nodes["after"]["status"]) == ("FAILED", "SKIPPED")
    assert nodes["each"]["lastError"]
    obeyed(api, run, "retry-failed")
    nodes = ended(api, run)
    assert (nodes["each"]["status"], nodes["after"]["status"]) == ("SUCCESS", "SUCCESS")
    assert sorted(paths(target.hits)) == ["/flaky/1", "/flaky/1", "/ok/0", "/ok/2"]


def test_items_are_completed_and_retried_by_hand(api: httpx2.Client, target: Target) -> None:
    each = http("each", target.url("/{{ item }}"), forEach="params.items")
    after = http("after", target.url("/ok/after"), "each", cfg={"body": "{{ nodes.each.artifact[2].by }}"})
    run = start(api, defined(api, each, after), params={"items": ["ok/0", "flaky/1", "status/404"]})
    ended(api, run, "FAILED")
    node_obeyed(api, run, "each[1]", "retry")
    node_obeyed(api, run, "each[2]", "complete", artifact={"by": "hand"})
    nodes = ended(api, run)
    assert nodes["each"]["artifact"][2] == {"by": "hand"}
    assert [hit.text for hit in target.at("/ok/after")] == ["hand"]
    assert sorted(paths(target.hits)) == ["/flaky/1", "/flaky/1", "/ok/0", "/ok/after", "/status/404"]


def test_a_node_with_items_that_is_retried_has_one_attempt_more(api: httpx2.Client, target: Target) -> None:
    each = http("each", target.url("/{{ item }}"), forEach="params.items")
    run = start(api, defined(api, each), params={"items": ["ok/0", "flaky/1"]})
    assert ended(api, run, "FAILED")["each"]["attempt"] == 1
    node_obeyed(api, run, "each", "retry")
    assert ended(api, run)["each"]["attempt"] == 2
    assert sorted(paths(target.hits)) == ["/flaky/1", "/flaky/1", "/ok/0"]


def test_each_item_has_attempts_of_its_own(api: httpx2.Client, target: Target) -> None:
    each = http("each", target.url("/flaky/1/{{ item }}"), forEach="params.items", retry=retries(2))
    ended(api, start(api, defined(api, each), params={"items": [0, 1]}))
    assert sorted(paths(target.hits)) == ["/flaky/1/0", "/flaky/1/0", "/flaky/1/1", "/flaky/1/1"]


def test_many_items_end_with_every_one_run_once(api: httpx2.Client, target: Target) -> None:
    each = http("each", target.url("/ok/{{ item }}"), forEach={"items": "params.items", "maxParallel": 20})
    nodes = ended(api, start(api, defined(api, each), params={"items": list(range(200))}))
    assert sorted(paths(target.hits)) == sorted(f"/ok/{item}" for item in range(200))
    assert len(nodes["each"]["artifact"]) == 200


def test_items_that_are_no_list_fail_the_node(api: httpx2.Client, target: Target) -> None:
    each = http("each", target.url("/ok/{{ item }}"), forEach="params.items")
    nodes = ended(api, start(api, defined(api, each, at_once("other")), params={"items": 7}), "FAILED")
    assert statuses(nodes) == {"each": "FAILED", "other": "SUCCESS"}
    assert nodes["each"]["lastError"]
    assert target.hits == []


# Workflows as nodes


def child(node: str, workflow: str, *after: str, params: Json | None = None, **given: Any) -> Json:
    cfg = {"workflowId": workflow} if params is None else {"workflowId": workflow, "params": params}
    return {"id": node, "type": "workflow", "cfg": cfg, "dependsOn": list(after), **given}


def test_a_workflow_runs_another_as_a_node_and_both_know_each_other(api: httpx2.Client, target: Target) -> None:
    inner = defined(api, http("in", target.url("/hold"), cfg={"body": "{{ params.who }}"}))
    outer = defined(
        api, child("sub", inner, params={"who": "{{ params.name }}"}), http("after", target.url("/ok"), "sub")
    )
    run = start(api, outer, params={"name": "刹那"})
    hit = held(target, "/hold")
    assert hit.text == "刹那"
    (item,) = runs_of(api, inner)
    inside = item["runId"]
    assert inside in json.dumps(node_of(api, run, "sub"))
    parent = {name: value for name, value in run_of(api, inside).items() if name not in {"dag", "nodes"}}
    assert run in json.dumps(parent)
    assert until_node(api, run, "sub", "RUNNING")["attempt"] == 1
    target.release(hit)
    ended(api, run)
    ended(api, inside)
    assert paths(target.hits) == ["/hold", "/ok"]


def test_a_node_fails_with_the_workflow_that_it_runs_and_is_retried_with_it(api: httpx2.Client, target: Target) -> None:
    inner = defined(api, http("in", target.url("/flaky/1")))
    run = started(api, child("sub", inner), at_once("after", "sub"))
    nodes = ended(api, run, "FAILED")
    assert statuses(nodes) == {"sub": "FAILED", "after": "SKIPPED"}
    assert nodes["sub"]["lastError"]
    node_obeyed(api, run, "sub", "retry")
    ended(api, run)
    assert [item["status"] for item in runs_of(api, inner)].count("SUCCESS") == 1


def test_what_is_closed_ends_the_workflow_that_it_runs(api: httpx2.Client, target: Target) -> None:
    inner = defined(api, http("in", target.url("/hold")))
    run = started(api, child("sub", inner))
    hit = held(target, "/hold")
    obeyed(api, run, "close")
    target.wait_gone(hit)
    until_run(api, runs_of(api, inner)[0]["runId"], "STOPPED", "CLOSED")


def test_what_is_stopped_with_force_stops_the_workflow_that_it_runs(api: httpx2.Client, target: Target) -> None:
    inner = defined(api, http("in", target.url("/hold")))
    run = started(api, child("sub", inner))
    hit = held(target, "/hold")
    obeyed(api, run, "stop", force=True)
    ended(api, run, "STOPPED")
    target.wait_gone(hit)
    until_run(api, runs_of(api, inner)[0]["runId"], "STOPPED", "CLOSED")


def test_a_workflow_whose_other_workflow_is_gone_does_not_start(api: httpx2.Client) -> None:
    inner = defined(api, at_once("a"))
    outer = defined(api, child("sub", inner))
    if api.delete(f"{WORKFLOWS}/{inner}").status_code == 204:
        refused_dag(api.post(f"{WORKFLOWS}/{outer}:start", json={}), "sub", inner)
        assert runs_of(api, outer) == []


def test_workflows_that_run_each_other_are_refused(api: httpx2.Client) -> None:
    inner = create(api, dag(at_once("a")))
    middle = create(api, dag(child("sub", inner["workflowId"])))
    for graph in (dag(child("up", middle["workflowId"])), dag(child("self", inner["workflowId"]))):
        answer = api.put(f"{WORKFLOWS}/{inner['workflowId']}", json={"dag": graph})
        refused_dag(answer, graph["nodes"][0]["id"])
    assert api.get(f"{WORKFLOWS}/{inner['workflowId']}").json() == inner


# How many runs at a time


def two_runs(api: httpx2.Client, target: Target, overlap: str) -> tuple[str, str, Hit]:
    """Two runs of a workflow that allows one at a time; the first is under way."""
    workflow = defined(api, http("a", target.url("/hold")), maxActiveRuns=1, overlap=overlap)
    first = start(api, workflow)
    hit = held(target, "/hold")
    answer = api.post(f"{WORKFLOWS}/{workflow}:start", json={})
    return first, str(answer.json().get("runId") or ""), hit


def test_queue_lets_runs_wait_for_their_turn_in_order(api: httpx2.Client, target: Target) -> None:
    workflow = defined(
        api, http("a", target.url("/hold"), cfg={"body": "{{ params.n }}"}), maxActiveRuns=1, overlap="QUEUE"
    )
    runs = [start(api, workflow, params={"n": number}) for number in range(3)]
    for number, run in enumerate(runs):
        hit = held(target, "/hold")
        assert hit.text == str(number)
        assert [run_of(api, later)["status"] for later in runs[number + 1 :]] == ["PENDING"] * (2 - number)
        target.release(hit)
        ended(api, run)
    assert len(target.hits) == 3


def test_a_queued_run_can_be_closed_and_the_next_goes_on(api: httpx2.Client, target: Target) -> None:
    first, second, hit = two_runs(api, target, "QUEUE")
    third = start(api, run_of(api, first)["workflowId"])
    obeyed(api, second, "close")
    target.release(hit)
    ended(api, first)
    target.release(held(target, "/hold"))
    ended(api, third)
    assert run_of(api, second)["status"] == "CLOSED"
    assert len(target.hits) == 2


def test_skip_leaves_out_a_run_while_another_is_under_way(api: httpx2.Client, target: Target) -> None:
    first, second, hit = two_runs(api, target, "SKIP")
    target.release(hit)
    ended(api, first)
    if second:
        assert run_of(api, second)["status"] not in {"PENDING", "RUNNING", "SUCCESS"}
    assert len(target.hits) == 1
    again = start(api, run_of(api, first)["workflowId"])
    target.release(held(target, "/hold"))
    ended(api, again)


def test_replace_stops_the_run_that_is_under_way(api: httpx2.Client, target: Target) -> None:
    first, second, hit = two_runs(api, target, "REPLACE")
    target.wait_gone(hit)
    until_run(api, first, "STOPPED", "CLOSED")
    target.release(held(target, "/hold"))
    ended(api, second)
    assert len(target.hits) == 2


def test_parallel_lets_runs_overlap(api: httpx2.Client, target: Target) -> None:
    workflow = defined(api, http("a", target.url("/hold")), overlap="PARALLEL")
    runs = [start(api, workflow) for _ in range(3)]
    target.wait_held(3)
    target.release_all()
    for run in runs:
        ended(api, run)


def test_two_may_run_and_the_third_waits(api: httpx2.Client, target: Target) -> None:
    workflow = defined(api, http("a", target.url("/hold")), maxActiveRuns=2, overlap="QUEUE")
    runs = [start(api, workflow) for _ in range(3)]
    hits = target.wait_held(2)
    assert run_of(api, runs[2])["status"] == "PENDING"
    target.release(hits[0])
    target.wait_for(lambda seen: len(seen) == 3)
    target.wait_held(2)
    target.release_all()
    for run in runs:
        ended(api, run)


# Schedules


def test_a_schedule_starts_a_workflow(api: httpx2.Client, target: Target) -> None:
    workflow = defined(api, http("a", target.url("/ok/a"), cfg={"body": "{{ params.full }}"}), at_once("b", "a"))
    given = {"workflowId": workflow, "kind": "every", "every": "200ms", "input": {"full": "yes"}}
    answer = api.post(SCHEDULES, json=given)
    assert answer.status_code == 201, answer.text
    schedule = answer.json()
    assert schedule["workflowId"] == workflow
    assert [hit.text for hit in target.wait_hits(2, "/ok/a")[:2]] == ["yes", "yes"]
    done_runs = until(
        api, RUNS, lambda page: sum(item["status"] == "SUCCESS" for item in page["items"]) >= 2, workflowId=workflow
    )
    assert {item["workflowId"] for item in done_runs["items"]} == {workflow}
    assert api.delete(f"{SCHEDULES}/{schedule['id']}").status_code == 204


def test_a_schedule_of_a_workflow_that_is_not_there_is_refused(api: httpx2.Client) -> None:
    answer = api.post(SCHEDULES, json={"workflowId": "nobody", "kind": "every", "every": "1h"})
    assert_error(answer, 404)
    workflow = defined(api, at_once("a"))
    for wrong in ({"jobId": "nobody", "workflowId": workflow}, {}):
        assert_error(api.post(SCHEDULES, json={**wrong, "kind": "every", "every": "1h"}), 400)


def test_the_ledger_names_the_run_of_every_instant(api: httpx2.Client) -> None:
    workflow = defined(api, at_once("a"))
    given = {"workflowId": workflow, "kind": "every", "every": "200ms"}
    schedule = done(api.post(SCHEDULES, json=given))["id"]
    path = f"{SCHEDULES}/{schedule}/occurrences"
    rows = until(api, path, lambda page: sum(row["outcome"] == "FIRED" for row in page["items"]) >= 2)["items"]
    assert api.delete(f"{SCHEDULES}/{schedule}").status_code == 204
    runs = {item["runId"] for item in runs_of(api, workflow, size=100)}
    assert {str(row["runId"]) for row in rows if row["outcome"] == "FIRED"} <= runs


def test_an_instant_that_the_limit_leaves_out_is_in_the_ledger(api: httpx2.Client, target: Target) -> None:
    workflow = defined(api, http("a", target.url("/hold")), maxActiveRuns=1, overlap="SKIP")
    given = {"workflowId": workflow, "kind": "every", "every": "200ms"}
    schedule = done(api.post(SCHEDULES, json=given))["id"]
    held(target, "/hold")
    path = f"{SCHEDULES}/{schedule}/occurrences"
    rows = until(api, path, lambda page: len(page["items"]) >= 3)["items"]
    assert api.delete(f"{SCHEDULES}/{schedule}").status_code == 204
    assert len(target.hits) == 1
    assert all(row["outcome"] in {"FIRED", "SKIPPED"} for row in rows)


def test_a_disabled_workflow_is_not_started_by_its_schedule(api: httpx2.Client, target: Target) -> None:
    workflow = defined(api, http("a", target.url("/ok/a")))
    given = {"workflowId": workflow, "kind": "every", "every": "100ms"}
    schedule = done(api.post(SCHEDULES, json=given))["id"]
    target.wait_hits(1, "/ok/a")
    done(api.post(f"{WORKFLOWS}/{workflow}:disable"))
    until(api, RUNS, lambda page: all(item["status"] == "SUCCESS" for item in page["items"]), workflowId=workflow)
    seen = len(target.at("/ok/a"))
    other = defined(api, http("b", target.url("/ok/b")))
    beat = done(api.post(SCHEDULES, json={"workflowId": other, "kind": "every", "every": "100ms"}))["id"]
    target.wait_hits(4, "/ok/b")
    assert len(target.at("/ok/a")) == seen
    for each in (schedule, beat):
        assert api.delete(f"{SCHEDULES}/{each}").status_code == 204
