"""Checkpoints of tasks: looked at, added to, removed, and how long they are kept."""

from datetime import timedelta
from typing import Any

import httpx2
from tests.unit.api.plans.bench import AT, TENANTS, Json, PlanDesk, body, told

TASK, CHECKPOINT = f"{TENANTS}/a/task", f"{TENANTS}/a/checkpoint"


async def failed(desk: PlanDesk) -> Json:
    """A task that failed at its second stage."""
    desk.rollout.fails("a/migrate")
    await desk.run("a")
    return await desk.task()


async def put(desk: PlanDesk, **given: Any) -> httpx2.Response:
    return await desk.api.put(CHECKPOINT, json=given)


async def test_a_checkpoint_says_from_where_a_task_would_go_on(desk: PlanDesk) -> None:
    task = await failed(desk)
    shown = await desk.checkpoint()
    assert shown == {
        "taskId": task["taskId"],
        "tenantId": "a",
        "planId": "p",
        "version": 2,  # one for the stage, one for the failure
        "lastCompletedStageIndex": 0,
        "completedStages": ["prepare"],
        "contextData": {},
        "savedAt": AT,
        "expiresAt": "2026-01-08T00:00:00Z",
    }
    assert task["checkpoint"] == shown
    assert await desk.checkpoint(planId="p") == shown


async def test_the_checkpoint_of_a_failed_task_runs_out(desk: PlanDesk) -> None:
    await failed(desk)
    desk.clock.advance(timedelta(days=7) - timedelta(seconds=1))
    assert (await desk.task())["hasCheckpoint"]
    desk.clock.advance(timedelta(seconds=1))
    assert told(await desk.api.get(CHECKPOINT)) == (404, "CHECKPOINT_NOT_FOUND", {"tenantId": "a"})
    task = await desk.task()
    assert (task["hasCheckpoint"], task["checkpoint"]) == (False, None)


async def test_the_checkpoint_of_a_task_that_goes_on_does_not(desk: PlanDesk) -> None:
    desk.rollout.hold("a/migrate")
    await desk.run("a")
    desk.clock.advance(timedelta(days=8))
    assert (await desk.checkpoint())["expiresAt"] is None
    assert (await desk.task())["hasCheckpoint"]
    await desk.rollout.let_go("a/migrate")


async def test_keys_are_put_into_the_context(desk: PlanDesk) -> None:
    await failed(desk)
    desk.clock.advance(timedelta(minutes=1))
    first = body(await put(desk, contextData={"rows": 3, "at": "x"}, version=2))
    assert (first["version"], first["contextData"]) == (3, {"rows": 3, "at": "x"})
    assert (first["savedAt"], first["expiresAt"]) == ("2026-01-01T00:01:00Z", "2026-01-08T00:01:00Z")
    assert set(first) == set(await desk.checkpoint())
    second = body(await put(desk, contextData={"at": "y"}))
    assert (second["version"], second["contextData"]) == (4, {"rows": 3, "at": "y"})
    assert await desk.checkpoint() == second


async def test_a_task_that_has_not_begun_may_be_given_one(desk: PlanDesk) -> None:
    await desk.create("a")
    assert told(await desk.api.get(CHECKPOINT))[:2] == (404, "CHECKPOINT_NOT_FOUND")
    made = body(await put(desk, contextData={"rows": 3}, version=0))
    assert (made["version"], made["lastCompletedStageIndex"], made["completedStages"]) == (1, -1, [])


async def test_a_checkpoint_that_was_saved_since_is_not_changed(desk: PlanDesk) -> None:
    task = await failed(desk)
    versions = {"taskId": task["taskId"], "expected": 7, "actual": 2}
    assert told(await put(desk, contextData={}, version=7)) == (409, "CHECKPOINT_CONFLICT", versions)
    answer = await desk.api.delete(CHECKPOINT, params={"version": 7})
    assert told(answer) == (409, "CHECKPOINT_CONFLICT", versions)
    assert (await desk.checkpoint())["version"] == 2


async def test_a_checkpoint_is_removed_once(desk: PlanDesk) -> None:
    await failed(desk)
    answer = await desk.api.delete(CHECKPOINT, params={"version": 2, "planId": "p"})
    assert (answer.status_code, answer.content) == (204, b"")
    assert told(await desk.api.get(CHECKPOINT))[:2] == (404, "CHECKPOINT_NOT_FOUND")
    assert told(await desk.api.delete(CHECKPOINT)) == (404, "CHECKPOINT_NOT_FOUND", {"tenantId": "a"})
    desk.rollout.order.clear()
    await desk.order(f"{TASK}:retry")
    assert desk.rollout.order[0] == "a/prepare"


async def test_only_a_failed_task_loses_its_checkpoint(desk: PlanDesk) -> None:
    desk.rollout.hold("a/migrate")
    await desk.run("a")
    status, code, details = told(await desk.api.delete(CHECKPOINT))
    assert (status, code, details["status"]) == (409, "TASK_STATE_CONFLICT", "RUNNING")
    await desk.rollout.let_go("a/migrate")


async def test_a_task_that_is_done_or_cancelled_is_given_none(desk: PlanDesk) -> None:
    await desk.run("a")
    assert told(await put(desk, contextData={}))[:2] == (409, "TASK_STATE_CONFLICT")
    await desk.create("a", planId="q")
    await desk.order(f"{TASK}:cancel")
    assert told(await put(desk, contextData={}))[2]["status"] == "CANCELLED"


async def test_what_is_wrong_with_a_checkpoint_is_named(desk: PlanDesk) -> None:
    await desk.create("a")
    wrong: list[tuple[Json, str]] = [
        ({}, "contextData"),
        ({"contextData": []}, "contextData"),
        ({"contextData": {}, "version": "1"}, "version"),
        ({"contextData": {}, "version": -1}, "version"),
        ({"contextData": {}, "frob": 1}, "frob"),
        ({"contextData": {str(number): 1 for number in range(1_001)}}, "contextData"),
        ({"contextData": {"x": 10**30}}, "contextData"),
    ]
    for given, field in wrong:
        status, code, details = told(await put(desk, **given))
        assert (status, code, details["field"]) == (400, "VALIDATION_ERROR", field)
    for method in ("GET", "DELETE"):
        answer = await desk.api.request(method, CHECKPOINT, params={"frob": "1"})
        assert told(answer)[2]["field"] == "frob"
    assert told(await desk.api.delete(CHECKPOINT, params={"version": "x"}))[2]["field"] == "version"


async def test_a_checkpoint_of_nobody_is_not_found(desk: PlanDesk) -> None:
    for tenant in ("nobody", "7", "x" * 65, "%00"):
        path = f"{TENANTS}/{tenant}/checkpoint"
        answers = [
            await desk.api.get(path),
            await desk.api.put(path, json={"contextData": {}}),
            await desk.api.delete(path),
        ]
        for answer in answers:
            assert told(answer)[:2] == (404, "TASK_NOT_FOUND")
