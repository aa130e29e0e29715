"""Nodes of runs: looked at, retried, completed, left out (document 001 §7, document 000 §B2)."""

from datetime import timedelta

import pytest
from tests.unit.api.jobchain.workflow_bench import RUNS, WORKFLOWS, Desk, node, told, waiting
from tests.unit.api.ksana_bench import Json

from ksana.domain.outcome import Failed

ROW = {
    *("nodeId", "status", "attempt", "lastError", "artifact", "artifactJson", "checkpoint", "startedAt", "endedAt"),
    *("reason", "readyAt", "deadlineAt", "parentNodeId", "childRunId"),
}
RETRY = {"maxAttempts": 2, "backoffMillis": 60000}


async def test_all_nodes_are_there_from_the_start(desk: Desk) -> None:
    await desk.start(waiting("a"), node("b", "a"))
    answer = await desk.api.get(f"{RUNS}/r/nodes")
    rows = answer.json()
    assert [(row["nodeId"], row["status"]) for row in rows] == [("a", "RUNNING"), ("b", "PENDING")]
    assert all(set(row) == ROW for row in rows)


async def test_a_node_is_shown_with_its_attempts(desk: Desk) -> None:
    desk.failing = {"刹那"}
    await desk.start(node("刹那"))
    shown = await desk.get(f"{RUNS}/r/nodes/刹那")
    assert set(shown) == ROW | {"attempts"}
    assert (shown["status"], shown["lastError"], shown["artifactJson"]) == ("FAILED", "刹那 failed", None)
    (attempt,) = shown["attempts"]
    assert (attempt["attempt"], attempt["status"], attempt["error"]) == (1, "FAILED", "刹那 failed")
    desk.failing = set()
    await desk.order(f"{RUNS}/r/nodes/刹那:retry")
    again = await desk.get(f"{RUNS}/r/nodes/刹那")
    assert (again["artifact"], again["artifactJson"]) == ({"made": "刹那"}, '{"made":"刹那"}')
    assert [each["attempt"] for each in again["attempts"]] == [1, 2]


async def test_an_item_is_a_node_percent_encoded_or_not(desk: Desk) -> None:
    await desk.start(node("load", forEach=["x", "y"]))
    for path in ("load[1]", "load%5B1%5D"):
        shown = await desk.get(f"{RUNS}/r/nodes/{path}")
        assert (shown["nodeId"], shown["parentNodeId"]) == ("load[1]", "load")


@pytest.mark.parametrize("name", ["nobody", "a[9]", "x" * 200, "%00", "\N{SNOWMAN}"])
async def test_a_node_that_is_not_there_is_not_found(desk: Desk, name: str) -> None:
    await desk.start(node("a"))
    for method, suffix in (("GET", ""), ("GET", "/logs"), ("POST", ":retry"), ("POST", ":complete"), ("POST", ":skip")):
        answer = await desk.api.request(method, f"{RUNS}/r/nodes/{name}{suffix}")
        assert told(answer)[:2] == (404, "NODE_NOT_FOUND")


async def test_a_node_that_waits_for_its_next_attempt_is_retrying(desk: Desk) -> None:
    await desk.create(node("a", retry=RETRY), workflow_id="w")
    desk.sim.target.answer = lambda _: Failed("not now")
    await desk.api.post(f"{WORKFLOWS}/w:start", json={"runId": "r"})
    await desk.sim.settle()
    shown = (await desk.nodes())["a"]
    assert (shown["status"], shown["attempt"], shown["lastError"]) == ("RETRYING", 1, "not now")


async def test_a_node_whose_work_is_to_wait_runs(desk: Desk) -> None:
    await desk.start({"id": "a", "type": "wait", "cfg": {"for": "1h"}})
    assert (await desk.nodes())["a"]["status"] == "RUNNING"
    await desk.sim.advance(timedelta(hours=1))
    assert (await desk.nodes())["a"]["status"] == "SUCCESS"


async def test_a_retry_tells_the_attempt_that_is_to_be(desk: Desk) -> None:
    desk.failing = {"a"}
    await desk.start(node("a"), node("b", "a"))
    assert told(await desk.api.post(f"{RUNS}/r/nodes/b:retry"))[:2] == (409, "NODE_NOT_RETRYABLE")
    desk.failing = set()
    answer = await desk.api.post(f"{RUNS}/r/nodes/a:retry", json={"reason": "again", "artifactJson": "{}"})
    assert answer.json() == {"runId": "r", "nodeId": "a", "status": "RETRYING", "attempt": 2}
    shown = (await desk.nodes())["a"]
    assert (shown["status"], shown["attempt"]) == ("RETRYING", 1)
    await desk.sim.settle()
    assert {name: (each["status"], each["attempt"]) for name, each in (await desk.nodes()).items()} == {
        "a": ("SUCCESS", 2),
        "b": ("SUCCESS", 1),
    }
    assert told(await desk.api.post(f"{RUNS}/r/nodes/a:retry"))[:2] == (409, "NODE_NOT_RETRYABLE")


async def test_what_was_stopped_before_it_began_is_retried_for_the_first_time(desk: Desk) -> None:
    await desk.create(node("a"), workflow_id="w")
    await desk.api.post(f"{WORKFLOWS}/w:start", json={"runId": "r"})
    await desk.order(f"{RUNS}/r:stop")
    shown = (await desk.nodes())["a"]
    assert (shown["status"], shown["attempt"]) == ("STOPPED", 0)
    answer = await desk.order(f"{RUNS}/r/nodes/a:retry")
    assert answer == {"runId": "r", "nodeId": "a", "status": "RETRYING", "attempt": 1}
    assert (await desk.nodes())["a"]["attempt"] == 1


@pytest.mark.parametrize(
    ("sent", "artifact"),
    [
        ({}, None),
        ({"artifact": {"rows": 3}}, {"rows": 3}),
        ({"artifactJson": '{"rows": 3}'}, {"rows": 3}),
        ({"artifactJson": {"rows": 3}}, {"rows": 3}),
        ({"artifactJson": "7"}, 7),
    ],
)
async def test_a_node_is_completed_by_hand(desk: Desk, sent: Json, artifact: object) -> None:
    desk.failing = {"a"}
    await desk.start(node("a"), node("b", "a"))
    done = await desk.order(f"{RUNS}/r/nodes/a:complete", **sent, checkpoint={"at": 1}, reason="manual override")
    assert done == {"runId": "r", "nodeId": "a", "status": "SUCCESS", "attempt": 1}
    nodes = await desk.nodes()
    assert (nodes["a"]["artifact"], nodes["a"]["checkpoint"], nodes["a"]["lastError"]) == (artifact, {"at": 1}, None)
    assert (nodes["b"]["status"], (await desk.run())["status"]) == ("SUCCESS", "SUCCESS")


@pytest.mark.parametrize(
    ("sent", "field"),
    [
        ({"artifactJson": "{"}, "artifactJson"),
        ({"artifactJson": "{}", "artifact": {}}, "artifactJson"),
        ({"reason": 1}, "reason"),
        ({"hue": 1}, "hue"),
    ],
)
async def test_a_wrong_completion_is_named(desk: Desk, sent: Json, field: str) -> None:
    await desk.start(waiting("a"))
    answer = await desk.api.post(f"{RUNS}/r/nodes/a:complete", json=sent)
    assert (told(answer)[0], told(answer)[2]["field"]) == (400, field)
    assert (await desk.nodes())["a"]["status"] == "RUNNING"


async def test_what_cannot_be_kept_is_refused(desk: Desk) -> None:
    await desk.start(waiting("a"))
    deep = b"[" * 300 + b"]" * 300
    for field in (b"artifact", b"checkpoint", b"artifactJson"):
        answer = await desk.api.post(f"{RUNS}/r/nodes/a:complete", content=b'{"%s": %s}' % (field, deep))
        assert (answer.status_code, told(answer)[2]["field"]) == (400, field.decode())


async def test_what_has_not_begun_is_not_completed_but_skipped(desk: Desk) -> None:
    await desk.start(waiting("a"), node("b", "a"))
    status, code, details = told(await desk.api.post(f"{RUNS}/r/nodes/b:complete"))
    assert (status, code) == (409, "NODE_NOT_COMPLETABLE")
    assert details == {"runId": "r", "nodeId": "b", "status": "PENDING"}
    skipped = await desk.order(f"{RUNS}/r/nodes/b:skip", reason="not today")
    assert skipped == {"runId": "r", "nodeId": "b", "status": "SKIPPED", "attempt": 0}
    shown = (await desk.nodes())["b"]
    assert (shown["startedAt"], shown["reason"]) == (None, "skipped_by_hand")
    # One that only waits can be left out as well; what has been left out is not asked for.
    assert (await desk.order(f"{RUNS}/r/nodes/a:skip"))["status"] == "SKIPPED"
    assert told(await desk.api.post(f"{RUNS}/r/nodes/a:complete"))[:2] == (409, "NODE_NOT_COMPLETABLE")


async def test_what_has_succeeded_is_not_left_out(desk: Desk) -> None:
    await desk.start(node("a"))
    assert told(await desk.api.post(f"{RUNS}/r/nodes/a:skip"))[:2] == (409, "NODE_NOT_SKIPPABLE")


async def test_a_run_stands_as_its_nodes_do_with_its_items_counted_and_nothing_of_what_they_made(desk: Desk) -> None:
    desk.failing = {"load"}
    await desk.start(node("load", forEach=["x", "y", "z"]), node("last", "load"))
    await desk.order(f"{RUNS}/r/nodes/load[1]:complete")
    stands = await desk.get(f"{RUNS}/r/standing")
    load, last = stands["nodes"]
    assert (load["items"], last["items"]) == ({"SUCCESS": 1, "FAILED": 2}, None)
    drawn = await desk.get(f"{RUNS}/r/graph")
    bare = [
        {name: value for name, value in each.items() if name not in {"reason", "items"}} for each in stands["nodes"]
    ]
    without = [
        {name: value for name, value in each.items() if name not in {"artifact", "checkpoint"}}
        for each in drawn["nodes"]
    ]
    assert {**stands, "nodes": bare} == {**drawn, "nodes": without}


async def test_items_are_listed_a_page_at_a_time_and_by_state(desk: Desk) -> None:
    desk.failing = {"load"}
    await desk.start(node("load", forEach=["x", "y", "z"]))
    await desk.order(f"{RUNS}/r/nodes/load[1]:complete")
    second = await desk.get(f"{RUNS}/r/nodes/load/items", page=2, size=2)
    assert (second["total"], [each["nodeId"] for each in second["items"]]) == (3, ["load[2]"])
    (done,) = (await desk.get(f"{RUNS}/r/nodes/load/items", status="SUCCESS"))["items"]
    assert (done["nodeId"], done["status"], done["reason"]) == ("load[1]", "SUCCESS", "completed_by_hand")
    for wrong, status in (("load/items?status=GONE", 400), ("nobody/items", 404)):
        assert (await desk.api.get(f"{RUNS}/r/nodes/{wrong}")).status_code == status


async def test_items_that_wait_for_their_next_attempt_are_counted_and_found_as_retrying(desk: Desk) -> None:
    await desk.create(node("load", forEach=["x", "y"], retry=RETRY), workflow_id="w")
    desk.sim.target.answer = lambda _: Failed("not now")
    await desk.api.post(f"{WORKFLOWS}/w:start", json={"runId": "r"})
    await desk.sim.settle()
    (load,) = (await desk.get(f"{RUNS}/r/standing"))["nodes"]
    assert load["items"] == {"RETRYING": 2}
    assert (await desk.get(f"{RUNS}/r/nodes/load/items", status="RETRYING"))["total"] == 2
    assert (await desk.get(f"{RUNS}/r/nodes/load/items", status="PENDING"))["total"] == 0
