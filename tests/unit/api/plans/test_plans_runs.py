"""A tenant's task is a run like others to whoever looks at it; only its plan steers it."""

from tests.unit.api.plans.bench import RUNS, STAGES, PlanDesk, told


async def run_of(desk: PlanDesk) -> str:
    """The run of a task that failed at its second stage."""
    desk.rollout.fails("a/migrate")
    await desk.run("a")
    return str((await desk.task())["runId"])


async def test_a_run_names_the_plan_and_the_tenant_that_it_is_for(desk: PlanDesk) -> None:
    run_id = await run_of(desk)
    run = await desk.get(f"{RUNS}/{run_id}")
    assert (run["planId"], run["tenantId"], run["workflowId"], run["status"]) == ("p", "a", "p", "FAILED")
    assert run["params"]["tenantId"] == "a"
    assert [node["nodeId"] for node in run["nodes"]] == list(STAGES)
    listed = (await desk.get(RUNS))["items"]
    assert [each["runId"] for each in listed] == [run_id]
    assert [each["runId"] for each in (await desk.get(RUNS, workflowId="p"))["items"]] == [run_id]
    [item] = (await desk.get("/api/v1/activity", tenantId="a"))["items"]
    assert (item["id"], item["planId"], item["tenantId"], item["trigger"]) == (run_id, "p", "a", "plan")
    assert (item["target"]["kind"], item["target"]["id"], item["target"]["name"]) == ("plan", "p", "rollout")


async def test_a_run_is_drawn_with_its_stages_in_a_row(desk: PlanDesk) -> None:
    run_id = await run_of(desk)
    graph = await desk.get(f"{RUNS}/{run_id}/graph")
    assert (graph["runId"], graph["workflowId"]) == (run_id, "p")
    assert [(node["nodeId"], node["state"]["status"]) for node in graph["nodes"]] == [
        ("prepare", "SUCCESS"),
        ("migrate", "FAILED"),
        ("verify", "SKIPPED"),
    ]
    assert [(edge["from"], edge["to"]) for edge in graph["edges"]] == [("prepare", "migrate"), ("migrate", "verify")]


async def test_the_nodes_events_and_logs_of_a_run_are_there(desk: PlanDesk) -> None:
    run_id = await run_of(desk)
    rows = (await desk.api.get(f"{RUNS}/{run_id}/nodes")).json()
    assert [row["nodeId"] for row in rows] == list(STAGES)
    node = await desk.get(f"{RUNS}/{run_id}/nodes/migrate")
    assert [attempt["error"] for attempt in node["attempts"]] == ["a/migrate failed"]
    assert (await desk.get(f"{RUNS}/{run_id}/events"))["items"]
    assert (await desk.api.get(f"{RUNS}/{run_id}/nodes/migrate/logs")).status_code == 200


async def test_a_run_of_a_plan_takes_no_orders(desk: PlanDesk) -> None:
    run_id = await run_of(desk)
    orders = [f":{order}" for order in ("stop", "close", "resume", "retry-failed", "retry")]
    orders += [f"/nodes/migrate:{order}" for order in ("retry", "complete", "skip")]
    details = {"runId": run_id, "planId": "p", "tenantId": "a"}
    for order in orders:
        assert told(await desk.post(f"{RUNS}/{run_id}{order}")) == (409, "RUN_OF_PLAN", details)
    for order in ("retry", "cancel"):
        refused = (await desk.order(f"/api/v1/activity:{order}", ids=[run_id]))["refused"]
        assert [each["code"] for each in refused] == ["RUN_OF_PLAN"]
    assert (await desk.task())["status"] == "FAILED"
