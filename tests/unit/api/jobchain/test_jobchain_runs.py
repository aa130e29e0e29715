"""Runs of workflows (document 001 §6) beside runs of tasks (document 003), at one path."""

from datetime import timedelta

import pytest
from tests.unit.api.jobchain.workflow_bench import RUNS, WORKFLOWS, Desk, dag, node, told, waiting
from tests.unit.api.ksana_bench import Json

AT = "2026-01-01T00:00:00Z"
TASK = {"name": "t", "cron_expr": "0 0 1 1 *", "target_url": "http://127.0.0.1:9/"}
SUMMARY = {"runId", "workflowId", "status", "createdAt", "updatedAt", "startedAt", "endedAt", "kind"}


async def task_run(desk: Desk) -> int:
    """A run of a task that waits to be run."""
    job = (await desk.sim.job()).job
    return (await desk.sim.run(job)).id


async def test_a_run_is_shown_with_its_dag_and_nodes(desk: Desk) -> None:
    await desk.start(node("a"), node("b", "a"))
    job = {"jobId": None, "type": "scripted", "enabled": True, "description": ""}
    ended = {"status": "SUCCESS", "attempt": 1, "lastError": None, "startedAt": AT, "endedAt": AT, "reason": None}
    plain = {"checkpoint": None, "readyAt": None, "deadlineAt": None, "parentNodeId": None, "childRunId": None}
    assert await desk.run() == {
        "runId": "r",
        "workflowId": "w-r",
        "status": "SUCCESS",
        "createdAt": AT,
        "updatedAt": AT,
        "startedAt": AT,
        "endedAt": AT,
        "kind": "workflow",
        "workflowVersion": 1,
        "trigger": "manual",
        "params": {},
        "error": None,
        "reason": None,
        "plannedFor": AT,
        "scheduleId": None,
        "planId": None,
        "tenantId": None,
        "parent": None,
        "dag": dag(node("a"), node("b", "a")),
        "nodes": [
            {"nodeId": name, **ended, "artifact": {"made": name}, **plain, "job": {**job, "name": name}}
            for name in ("a", "b")
        ],
    }


async def test_a_run_keeps_the_jobs_and_the_dag_that_it_started_with(desk: Desk) -> None:
    job = (await desk.sim.job(name="demo-job")).job
    await desk.start({"id": "a", "jobId": job.key})
    await desk.api.put(f"{WORKFLOWS}/w-r", json={"dag": dag(node("z"))})
    run = await desk.run()
    assert [each["nodeId"] for each in run["nodes"]] == ["a"]
    assert run["nodes"][0]["job"]["name"] == "demo-job"
    assert (await desk.api.delete(f"/api/v1/jobs/{job.key}")).status_code == 204
    gone = (await desk.run())["nodes"][0]["job"]
    assert (gone["jobId"], gone["name"], gone["enabled"]) == (job.key, "demo-job", False)


async def test_a_run_within_a_run_names_its_parent_and_is_named(desk: Desk) -> None:
    await desk.create(node("inner"), workflow_id="child")
    await desk.start({"id": "outer", "type": "workflow", "cfg": {"workflowId": "child"}})
    child = (await desk.nodes())["outer"]["childRunId"]
    assert (await desk.run(child))["parent"] == {"runId": "r", "nodeId": "outer"}
    assert (await desk.run(child))["trigger"] == "workflow"


async def test_items_follow_their_node(desk: Desk) -> None:
    await desk.start(node("z", forEach=[1, 2]), node("a", "z"))
    nodes = (await desk.run())["nodes"]
    assert [(each["nodeId"], each["parentNodeId"]) for each in nodes] == [
        ("z", None),
        ("z[0]", "z"),
        ("z[1]", "z"),
        ("a", None),
    ]


async def test_the_graph_of_a_run_has_states(desk: Desk) -> None:
    desk.failing = {"b"}
    await desk.start(node("a"), node("b", "a"), node("c", "b"))
    graph = await desk.get(f"{RUNS}/r/graph")
    assert {key: graph[key] for key in ("runId", "workflowId", "status")} == {
        "runId": "r",
        "workflowId": "w-r",
        "status": "FAILED",
    }
    a, b, c = graph["nodes"]
    state = {"status": "SUCCESS", "attempt": 1, "lastError": None, "startedAt": AT, "endedAt": AT}
    assert (a["state"], a["artifact"], a["checkpoint"]) == (state, {"made": "a"}, None)
    assert (b["state"]["status"], b["state"]["lastError"]) == ("FAILED", "b failed")
    assert (c["state"]["status"], c["state"]["startedAt"], c["state"]["attempt"]) == ("SKIPPED", None, 0)
    assert [(edge["from"], edge["to"]) for edge in graph["edges"]] == [("a", "b"), ("b", "c")]


async def test_the_list_has_both_kinds_newest_first_and_no_nodes(desk: Desk) -> None:
    first = await task_run(desk)
    desk.clock.advance(timedelta(seconds=1))
    await desk.start(waiting("a"), run="r1")
    desk.clock.advance(timedelta(seconds=1))
    second = await task_run(desk)
    page = await desk.get(RUNS)
    assert {key: page[key] for key in ("page", "page_size", "size", "total")} == {
        "page": 1,
        "page_size": 20,
        "size": 20,
        "total": 3,
    }
    assert [(each["kind"], each.get("id") or each["runId"]) for each in page["items"]] == [
        ("task", second),
        ("workflow", "r1"),
        ("task", first),
    ]
    assert set(page["items"][1]) == SUMMARY
    pages = [(await desk.get(RUNS, page=number, size=2))["items"] for number in (1, 2, 3)]
    assert pages == [page["items"][:2], page["items"][2:], []]
    assert [each["id"] for each in (await desk.get(RUNS, before_id=second))["items"]] == [first]


async def test_the_list_is_filtered_by_workflow_and_by_job(desk: Desk) -> None:
    number = await task_run(desk)
    for run in ("r1", "r2"):
        await desk.start(waiting("a"), run=run)
    assert [each["runId"] for each in (await desk.get(RUNS, workflowId="w-r1"))["items"]] == ["r1"]
    task = (await desk.store.execution(number)).job_id
    assert [each["id"] for each in (await desk.get(RUNS, task_id=task))["items"]] == [number]
    assert (await desk.get(RUNS, task_id=task, workflowId="w-r1"))["total"] == 0
    assert (await desk.get(RUNS, workflowId="nobody"))["items"] == []


async def test_a_status_asks_for_the_kinds_that_have_it(desk: Desk) -> None:
    number = await task_run(desk)
    await desk.api.post(f"{RUNS}/{number}/cancel")
    await desk.start(waiting("a"), run="runs")
    await desk.start(node("a"), run="done")

    async def found(**query: str) -> list[object]:
        return [each.get("id") or each["runId"] for each in (await desk.get(RUNS, **query))["items"]]

    assert await found(status="RUNNING") == ["runs"]
    assert await found(status="CANCELED") == [number]
    assert await found(status="SUCCESS") == ["done"]
    assert await found(status="CLOSED") == []
    assert await found(status="") == await found()
    assert await found(status="RUNNING", workflowId="w-done") == []


@pytest.mark.parametrize(
    ("query", "code", "field"),
    [
        ("page=0", "INVALID_ARGUMENT", "page"),
        ("status=DONE", "INVALID_ARGUMENT", "status"),
        ("from=2026-01-01", "INVALID_ARGUMENT", "from"),
        ("page_size=501", "INVALID_ARGUMENT", "page_size"),
        ("page=1000&page_size=500", "INVALID_ARGUMENT", "page"),
        ("size=0", "VALIDATION_ERROR", "size"),
        ("page=1&size=x", "VALIDATION_ERROR", "size"),
        ("size=2&page_size=3", "VALIDATION_ERROR", "size"),
        ("workflowId=w&page=0", "VALIDATION_ERROR", "page"),
        ("workflowId=w&status=TIMEOUT", "VALIDATION_ERROR", "status"),
        ("workflowId=w&from=2026-01-01", "VALIDATION_ERROR", "from"),
        ("workflowId=a%20b", "VALIDATION_ERROR", "workflowId"),
    ],
)
async def test_a_wrong_query_is_told_in_the_words_of_its_document(
    desk: Desk, query: str, code: str, field: str
) -> None:
    status, found, details = told(await desk.api.get(f"{RUNS}?{query}"))
    assert (status, found, details["field"]) == (400, code, field)


async def test_a_run_that_is_not_there_is_told_in_the_words_of_its_document(desk: Desk) -> None:
    gets = ("", "/nodes", "/graph", "/events", "/nodes/a", "/nodes/a/logs")
    posts = (":stop", ":close", ":resume", ":retry-failed", "/nodes/a:retry", "/nodes/a:complete", "/nodes/a:skip")
    for method, paths in (("GET", gets), ("POST", posts)):
        for path in paths:
            answer = await desk.api.request(method, f"{RUNS}/nobody{path}")
            assert told(answer) == (404, "RUN_NOT_FOUND", {"runId": "nobody"})
    for path in ("", "/explain", "/logs"):
        assert told(await desk.api.get(f"{RUNS}/77{path}")) == (404, "NOT_FOUND", {"kind": "run", "id": 77})
    assert told(await desk.api.get(f"{RUNS}/77/nodes"))[:2] == (404, "RUN_NOT_FOUND")


@pytest.mark.parametrize("text", ["_x", "a b", "0", "9" * 20, "x" * 65, "%00"])
async def test_what_can_be_no_id_is_told_so(desk: Desk, text: str) -> None:
    assert told(await desk.api.get(f"{RUNS}/{text}"))[:2] == (400, "INVALID_ID")


async def test_a_run_is_stopped_and_goes_on(desk: Desk) -> None:
    await desk.start(waiting("a"), node("b", "a"))
    assert await desk.order(f"{RUNS}/r:stop", reason="wrong day") == {"runId": "r", "status": "STOPPING"}
    run = await desk.run()
    assert (run["status"], run["reason"]) == ("STOPPED", "wrong day")
    assert {each["status"] for each in run["nodes"]} == {"STOPPED"}
    assert told(await desk.api.post(f"{RUNS}/r:stop"))[:2] == (409, "RUN_NOT_RUNNING")
    assert await desk.order(f"{RUNS}/r:resume") == {"runId": "r", "status": "RUNNING", "reopened": 2}
    assert told(await desk.api.post(f"{RUNS}/r:resume"))[:2] == (409, "RUN_NOT_STOPPED")


async def test_failed_nodes_are_retried_together(desk: Desk) -> None:
    desk.failing = {"a", "b"}
    await desk.start(node("a"), node("b"))
    desk.failing = set()
    assert (await desk.order(f"{RUNS}/r:retry-failed"))["reopened"] == 2
    assert (await desk.run())["status"] == "SUCCESS"


async def test_a_closed_run_takes_no_orders(desk: Desk) -> None:
    await desk.start(waiting("a"))
    for _ in range(2):
        assert await desk.order(f"{RUNS}/r:close") == {"runId": "r", "status": "CLOSED"}
    for path in (":resume", ":retry-failed", "/nodes/a:retry", "/nodes/a:complete", "/nodes/a:skip"):
        assert told(await desk.api.post(f"{RUNS}/r{path}"))[:2] == (409, "RUN_TERMINAL")


async def test_what_happened_is_told_in_order(desk: Desk) -> None:
    await desk.start(node("a"))
    events = (await desk.get(f"{RUNS}/r/events"))["items"]
    assert (events[0]["type"], events[-1]["type"]) == ("run.requested", "run.ended")
    assert set(events[0]) == {"id", "type", "at", "data"}
    after = events[0]["id"]
    assert (await desk.get(f"{RUNS}/r/events", after=after, limit=1))["items"] == events[1:2]


@pytest.mark.parametrize(
    ("path", "sent", "field"),
    [
        (":stop", {"force": "yes"}, "force"),
        (":stop", {"hue": 1}, "hue"),
        (":close", {"reason": 7}, "reason"),
        (":close", {"reason": "x" * 1001}, "reason"),
    ],
)
async def test_a_wrong_order_is_named(desk: Desk, path: str, sent: Json, field: str) -> None:
    await desk.start(waiting("a"))
    assert told(await desk.api.post(f"{RUNS}/r{path}", json=sent))[2]["field"] == field
    assert (await desk.run())["status"] == "RUNNING"


async def test_a_body_that_is_not_json_is_told_so(desk: Desk) -> None:
    await desk.start(waiting("a"))
    for path in (f"{RUNS}/r:stop", f"{RUNS}/r/nodes/a:complete", f"{WORKFLOWS}/w-r:start"):
        assert told(await desk.api.post(path, content=b"{"))[:2] == (400, "JSON_PARSE_ERROR")
