"""Workflows beyond document 001: their schedules, and reports on their nodes by ids."""

from datetime import timedelta

from tests.unit.api.jobchain.workflow_bench import CALLBACKS, RUNS, SCHEDULES, WORKFLOWS, Desk, node, told, waiting
from tests.unit.api.ksana_bench import Json, body

HOURLY = {"kind": "every", "every": "1h"}


async def scheduled(desk: Desk, **given: object) -> Json:
    answer = await desk.api.post(SCHEDULES, json={"workflowId": "w", **HOURLY, **given})
    assert answer.status_code == 201, answer.text
    return body(answer)


async def test_a_workflow_has_schedules(desk: Desk) -> None:
    await desk.create(node("a"), workflow_id="w", name="demo")
    schedule = await scheduled(desk, input={"day": 1})
    assert (schedule["workflowId"], schedule["workflowName"], schedule["jobId"]) == ("w", "demo", None)
    path = f"{SCHEDULES}/{schedule['id']}"
    assert await desk.get(path) == schedule
    assert (await desk.get(SCHEDULES, workflowId="w"))["items"] == [schedule]
    assert (await desk.get(SCHEDULES))["items"] == [schedule]
    assert body(await desk.api.put(path, json=schedule))["id"] == schedule["id"]
    await desk.create(node("a"), workflow_id="other")
    assert (await desk.get(SCHEDULES, workflowId="other"))["total"] == 0
    assert told(await desk.api.put(path, json={"workflowId": "other"}))[2]["field"] == "workflowId"


async def test_its_ledger_names_the_runs(desk: Desk) -> None:
    await desk.create(node("a"), workflow_id="w")
    schedule = await scheduled(desk)
    await desk.sim.advance(timedelta(hours=2, seconds=1))
    ledger = await desk.get(f"{SCHEDULES}/{schedule['id']}/occurrences")
    named = [row["runId"] for row in ledger["items"]]
    runs = (await desk.get(RUNS, workflowId="w"))["items"]
    assert len(named) == len(runs) >= 2
    assert set(named) == {run["runId"] for run in runs}
    run = await desk.run(named[0])
    assert (run["scheduleId"], run["trigger"], run["status"]) == (schedule["id"], "schedule", "SUCCESS")
    assert run["plannedFor"] == ledger["items"][0]["plannedFor"]


async def test_a_schedule_is_of_one_thing_that_is_there(desk: Desk) -> None:
    await desk.create(node("a"), workflow_id="w")
    both = await desk.api.post(SCHEDULES, json={"workflowId": "w", "jobId": "j", **HOURLY})
    assert told(both)[::2] == (400, {"field": "workflowId"})
    assert told(await desk.api.post(SCHEDULES, json=HOURLY))[::2] == (400, {"field": "jobId"})
    assert told(await desk.api.post(SCHEDULES, json={"workflowId": "nobody", **HOURLY}))[:2] == (404, "NOT_FOUND")
    assert told(await desk.api.get(SCHEDULES, params={"workflowId": "nobody"}))[:2] == (404, "NOT_FOUND")


async def test_a_schedule_shows_no_workflow_that_is_gone(desk: Desk) -> None:
    await desk.create(node("a"), workflow_id="w")
    schedule = await scheduled(desk)
    await desk.api.delete(f"{WORKFLOWS}/w")
    assert told(await desk.api.get(f"{SCHEDULES}/{schedule['id']}"))[:2] == (404, "NOT_FOUND")


async def test_a_node_is_reported_on_by_its_runs_id_and_its_own(desk: Desk) -> None:
    await desk.start(waiting("a"), node("b", "a"))
    report = {"run_id": "r", "node_id": "a", "status": "SUCCESS", "data": {"rows": 3}}
    answer = body(await desk.api.post(CALLBACKS, json=report))
    assert answer == {
        "run_id": "r",
        "node_id": "a",
        "status": "CALLBACK_SUCCESS",
        "final_status": "SUCCESS",
        "accepted": True,
    }
    await desk.sim.settle()
    nodes = await desk.nodes()
    assert (nodes["a"]["status"], nodes["a"]["artifact"], nodes["b"]["status"]) == ("SUCCESS", {"rows": 3}, "SUCCESS")
    assert body(await desk.api.post(CALLBACKS, json=report))["accepted"] is False


async def test_a_report_on_a_node_that_is_not_there_is_refused(desk: Desk) -> None:
    await desk.start(waiting("a"), node("b", "a"))
    for ids in (
        {"run_id": "nobody", "node_id": "a"},
        {"run_id": "r", "node_id": "nobody"},
        {"run_id": "r", "node_id": "b"},
    ):
        assert told(await desk.api.post(CALLBACKS, json={**ids, "status": "SUCCESS"}))[:2] == (404, "NOT_FOUND")
    wrong = await desk.api.post(CALLBACKS, json={"run_id": 1, "node_id": "a", "status": "SUCCESS"})
    assert told(wrong)[:2] == (400, "INVALID_ARGUMENT")
    assert told(wrong)[2]["field"] == "run_id"
