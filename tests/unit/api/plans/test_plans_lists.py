"""Plans and their tasks in pages, and what happened to them."""

from datetime import timedelta
from typing import Any

from tests.unit.api.plans.bench import AT, PLANS, PlanDesk, told

SUMMARY = {
    *("planId", "name", "description", "status", "pauseReason", "message", "maxConcurrency", "onBusy", "failureBudget"),
    *("tenants", "currentWave", "createdAt", "startedAt", "endedAt", "updatedAt"),
}
TASK = {
    *("taskId", "tenantId", "planId", "status", "pauseRequested", "wave", "stageNames", "lastCompletedStageIndex"),
    *("completedStages", "totalStages", "currentStage", "progress", "attempt", "runId", "error", "reason"),
    *("hasCheckpoint", "createdAt", "startedAt", "endedAt", "updatedAt"),
}


async def ids(desk: PlanDesk, **query: Any) -> list[str]:
    return [each["planId"] for each in (await desk.get(PLANS, **query))["items"]]


async def tenants(desk: PlanDesk, **query: Any) -> list[str]:
    return [each["tenantId"] for each in (await desk.get(f"{PLANS}/p/tasks", **query))["items"]]


async def test_the_list_has_summaries_newest_first(desk: PlanDesk) -> None:
    for number in range(3):
        await desk.create(f"t{number}", planId=f"p{number}", name=f"plan {number}")
        desk.clock.advance(timedelta(seconds=1))
    page = await desk.get(PLANS, page=1, size=2)
    assert {key: page[key] for key in ("page", "size", "total")} == {"page": 1, "size": 2, "total": 3}
    assert [each["planId"] for each in page["items"]] == ["p2", "p1"]
    assert all(set(each) == SUMMARY for each in page["items"])
    assert await ids(desk, page=2, size=2) == ["p0"]
    assert await ids(desk, keyword="n 1") == ["p1"]
    assert await ids(desk, keyword="%") == []


async def test_the_list_is_asked_by_status(desk: PlanDesk) -> None:
    await desk.run("a")
    await desk.create("b", planId="q")
    assert await ids(desk, status="COMPLETED") == ["p"]
    assert await ids(desk, status="READY") == ["q"]
    assert await ids(desk, status="") == ["q", "p"]
    assert (await desk.get(PLANS, status="FAILED")) == {"page": 1, "size": 20, "total": 0, "items": []}


async def test_the_tasks_of_a_plan_are_in_its_order(desk: PlanDesk) -> None:
    desk.rollout.fails("c/migrate")
    await desk.run("b", "c", "a", "d", waves=[{"size": 2}, {"size": 1, "pauseAfter": True}])
    page = await desk.get(f"{PLANS}/p/tasks")
    assert [(each["tenantId"], each["status"], each["wave"]) for each in page["items"]] == [
        ("b", "COMPLETED", 1),
        ("c", "FAILED", 1),
        ("a", "COMPLETED", 2),
        ("d", "CREATED", 3),
    ]
    assert all(set(each) == TASK for each in page["items"])
    assert [each["hasCheckpoint"] for each in page["items"]] == [False, True, False, False]
    assert {key: page[key] for key in ("page", "size", "total")} == {"page": 1, "size": 20, "total": 4}
    assert await tenants(desk, page=2, size=3) == ["d"]
    assert await tenants(desk, status="COMPLETED") == ["b", "a"]
    assert await tenants(desk, wave=1) == ["b", "c"]
    assert await tenants(desk, wave=1, status="FAILED") == ["c"]
    assert await tenants(desk, wave=9, status="") == []


async def test_what_is_asked_wrongly_is_named(desk: PlanDesk) -> None:
    await desk.create("a")
    wrong = [
        ("", "page", "0"),
        ("", "size", "501"),
        ("", "size", "x"),
        ("", "status", "ready"),
        ("", "keyword", "x" * 129),
        ("", "keyword", "\x00"),
        ("", "name", "x"),
        ("/p", "frob", "1"),
        ("/p/tasks", "status", "READY"),
        ("/p/tasks", "wave", "0"),
        ("/p/tasks", "wave", "x"),
        ("/p/tasks", "tenantId", "a"),
        ("/p/events", "after", "-1"),
        ("/p/events", "limit", "1001"),
        ("/p/events", "page", "1"),
    ]
    for path, name, value in wrong:
        status, code, details = told(await desk.api.get(f"{PLANS}{path}", params={name: value}))
        assert (status, code, details["field"]) == (400, "VALIDATION_ERROR", name), (path, value)
    answer = await desk.api.get(PLANS, params={"page": 9_999, "size": 500})
    assert told(answer)[:2] == (400, "VALIDATION_ERROR")


async def test_what_happened_to_a_plan_is_told_in_order(desk: PlanDesk) -> None:
    await desk.run("a")
    items = (await desk.get(f"{PLANS}/p/events"))["items"]
    assert [each["type"] for each in items] == ["plan.created", "plan.started", "plan.completed"]
    assert set(items[0]) == {"id", "type", "at", "data"}
    assert (items[0]["at"], items[0]["data"]["tenants"]) == (AT, 1)
    rest = await desk.get(f"{PLANS}/p/events", after=items[0]["id"], limit=1)
    assert [each["type"] for each in rest["items"]] == ["plan.started"]


async def test_a_plan_that_is_not_there_is_not_found(desk: PlanDesk) -> None:
    for plan_id in ("nobody", "7", "x" * 65, "%00", "\N{SNOWMAN}", "-"):
        for path in ("", "/tasks", "/events"):
            status, code, details = told(await desk.api.get(f"{PLANS}/{plan_id}{path}"))
            assert (status, code, set(details)) == (404, "PLAN_NOT_FOUND", {"planId"})
        for order in ("start", "pause", "resume", "cancel", "retry-failed"):
            answer = await desk.post(f"{PLANS}/{plan_id}:{order}")
            assert told(answer)[:2] == (404, "PLAN_NOT_FOUND")
