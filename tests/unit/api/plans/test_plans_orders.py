"""Plans started, paused, resumed, cancelled, and their failed tenants tried again."""

import pytest
from tests.unit.api.plans.bench import PLANS, RUNS, TENANTS, PlanDesk, told

DETAIL = {
    *("planId", "name", "description", "status", "pauseReason", "message", "stages", "maxConcurrency", "onBusy"),
    *("failureBudget", "params", "tenants", "progress", "tasks", "waves", "currentWave"),
    *("createdAt", "startedAt", "endedAt", "updatedAt"),
}
START, PAUSE, RESUME = f"{PLANS}/p:start", f"{PLANS}/p:pause", f"{PLANS}/p:resume"
CANCEL, RETRY = f"{PLANS}/p:cancel", f"{PLANS}/p:retry-failed"


async def refused(desk: PlanDesk, path: str, code: str = "PLAN_STATE_CONFLICT") -> dict[str, object]:
    status, told_code, details = told(await desk.post(path))
    assert (status, told_code, details["planId"]) == (409, code, "p")
    return details


async def test_a_plan_is_started_once(desk: PlanDesk) -> None:
    await desk.create("a")
    started = await desk.order(START, reason="it is time")
    assert (set(started), started["status"]) == (DETAIL, "RUNNING")
    assert (await desk.plan())["status"] == "COMPLETED"
    assert (await refused(desk, START))["status"] == "COMPLETED"


async def test_a_plan_pauses_with_its_tenants_and_goes_on_with_them(desk: PlanDesk) -> None:
    desk.rollout.hold("a/prepare")
    await desk.run("a", "b", maxConcurrency=1)
    paused = await desk.order(PAUSE, reason="lunch")
    assert (set(paused), paused["status"]) == (DETAIL, "PAUSED")
    assert (paused["pauseReason"], paused["message"]) == ("paused", "lunch")
    assert (await desk.task())["pauseRequested"]
    await desk.rollout.let_go("a/prepare")
    assert (await desk.plan())["tasks"] | {"paused": 1, "waiting": 1} == (await desk.plan())["tasks"]
    assert (await desk.order(PAUSE))["status"] == "PAUSED"
    resumed = await desk.order(RESUME)
    assert (resumed["status"], resumed["pauseReason"], resumed["message"]) == ("RUNNING", None, None)
    assert (await desk.plan())["status"] == "COMPLETED"


async def test_a_plan_may_pause_without_its_tenants(desk: PlanDesk) -> None:
    desk.rollout.hold("a/prepare")
    await desk.run("a", "b", maxConcurrency=1)
    await desk.order(PAUSE, tasks=False)
    await desk.rollout.let_go("a/prepare")
    assert (await desk.task())["status"] == "COMPLETED"
    assert (await desk.task("b"))["status"] == "CREATED"


async def test_only_a_plan_that_goes_on_pauses_and_only_a_paused_one_resumes(desk: PlanDesk) -> None:
    await desk.create("a")
    assert (await refused(desk, PAUSE))["status"] == "READY"
    await refused(desk, RESUME)
    await refused(desk, RETRY)
    await desk.order(START)
    for path in (PAUSE, RESUME, CANCEL):
        assert (await refused(desk, path))["status"] == "COMPLETED"


async def test_a_gate_is_met_or_overridden(desk: PlanDesk) -> None:
    desk.rollout.fails("a/migrate")
    plan = await desk.run("a", "b", waves=[{"size": 1, "gate": {"maxFailedPercent": 0}}])
    assert (plan["status"], plan["pauseReason"]) == ("PAUSED", "gate")
    assert plan["message"] == "wave 1: 1 of 1 tenants failed; at most 0 % may"
    assert [wave["status"] for wave in plan["waves"]] == ["DONE", "PENDING"]
    await refused(desk, RESUME, "GATE_NOT_MET")
    await desk.order(RESUME, override=True, reason="known")
    done = await desk.plan()
    assert (done["status"], done["currentWave"], done["progress"]) == ("FAILED", 2, 0.5)


async def test_a_wave_may_end_with_a_pause(desk: PlanDesk) -> None:
    plan = await desk.run("a", "b", waves=[{"size": 1, "pauseAfter": True}])
    assert (plan["status"], plan["pauseReason"]) == ("PAUSED", "wave_done")
    await desk.order(RESUME)
    assert (await desk.plan())["status"] == "COMPLETED"


async def test_a_failure_budget_is_kept_or_overridden(desk: PlanDesk) -> None:
    desk.rollout.fails("a/prepare")
    plan = await desk.run("a", "b", "c", failureBudget=0, maxConcurrency=1)
    assert (plan["status"], plan["pauseReason"], plan["failureBudget"]) == ("PAUSED", "failure_budget", 0)
    await refused(desk, RESUME, "FAILURE_BUDGET_EXCEEDED")
    await desk.order(RESUME, override=True)
    assert (await desk.plan())["tasks"]["completed"] == 2


async def test_a_plan_is_cancelled_with_what_runs(desk: PlanDesk) -> None:
    desk.rollout.hold("a/prepare")
    await desk.run("a", "b", maxConcurrency=1)
    answer = await desk.post(CANCEL, reason="wrong version")
    assert (answer.status_code, answer.json()["status"]) == (200, "CANCELLED")
    await desk.rollout.let_go("a/prepare")
    assert (await desk.plan())["tasks"]["cancelled"] == 2
    assert (await desk.task("b"))["reason"] == "wrong version"
    assert (await desk.order(CANCEL))["status"] == "CANCELLED"
    await refused(desk, START)
    await refused(desk, RETRY)


async def test_failed_tenants_are_tried_again_from_where_they_were(desk: PlanDesk) -> None:
    desk.rollout.fails("a/migrate", "b/prepare")
    assert (await desk.run("a", "b", "c"))["status"] == "FAILED"
    await desk.create("b", planId="q")
    desk.rollout.recovers("a/migrate", "b/prepare")
    desk.rollout.order.clear()
    again = await desk.order(RETRY, reason="fixed")
    assert set(again) == DETAIL | {"retried", "busyTenants"}
    assert (again["status"], again["retried"], again["busyTenants"]) == ("RUNNING", 1, ["b"])
    assert desk.rollout.order == ["a/migrate", "a/verify"]
    assert (await desk.plan())["tasks"]["failed"] == 1


async def test_failed_tenants_may_begin_again(desk: PlanDesk) -> None:
    desk.rollout.fails("a/migrate", times=1)
    await desk.run("a")
    desk.rollout.order.clear()
    assert (await desk.order(RETRY, fromCheckpoint=False))["retried"] == 1
    assert desk.rollout.order == ["a/prepare", "a/migrate", "a/verify"]
    assert (await desk.order(RETRY))["retried"] == 0


@pytest.mark.parametrize("order", ["start", "pause", "resume", "cancel", "retry-failed"])
async def test_an_order_says_only_what_it_knows(desk: PlanDesk, order: str) -> None:
    await desk.create("a")
    path = f"{PLANS}/p:{order}"
    wrong = [({"frob": 1}, "frob"), ({"reason": 7}, "reason"), ({"reason": "x" * 1_001}, "reason")]
    for given, field in wrong:
        status, code, details = told(await desk.api.post(path, json=given))
        assert (status, code, details["field"]) == (400, "VALIDATION_ERROR", field)
    status, _, details = told(await desk.api.post(path, params={"force": "1"}))
    assert (status, details["field"]) == (400, "force")
    assert told(await desk.api.post(path, content=b"{"))[:2] == (400, "JSON_PARSE_ERROR")


async def test_the_flags_of_orders_are_flags(desk: PlanDesk) -> None:
    await desk.create("a")
    for path, name in ((PAUSE, "tasks"), (RESUME, "override"), (RETRY, "fromCheckpoint")):
        assert told(await desk.api.post(path, json={name: 1}))[2]["field"] == name
    assert told(await desk.api.post(f"{TENANTS}/a/task:retry", json={"fromCheckpoint": "no"}))[:2] == (
        400,
        "VALIDATION_ERROR",
    )
    assert told(await desk.api.post(f"{RUNS}/nobody:stop", json={"tasks": True}))[0] == 400
