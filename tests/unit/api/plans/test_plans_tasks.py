"""One tenant's task: looked at, paused, resumed, cancelled, tried again."""

from datetime import timedelta

from tests.unit.api.plans.bench import AT, PLANS, RUNS, STAGES, TENANTS, PlanDesk, body, stage, told

TASK = f"{TENANTS}/a/task"


async def test_a_task_that_waits_has_stages_that_have_not_begun(desk: PlanDesk) -> None:
    await desk.create({"tenantId": "a", "params": {"region": "eu"}}, params={"version": 12})
    task = await desk.task()
    assert len(task.pop("taskId")) == 36
    pending = {"status": "PENDING", "attempts": 0, "output": None, "error": None, "startedAt": None, "endedAt": None}
    assert task == {
        "tenantId": "a",
        "planId": "p",
        "status": "CREATED",
        "pauseRequested": False,
        "wave": 1,
        "stageNames": list(STAGES),
        "lastCompletedStageIndex": -1,
        "completedStages": 0,
        "totalStages": 3,
        "currentStage": None,
        "progress": 0.0,
        "attempt": 0,
        "runId": None,
        "error": None,
        "reason": None,
        "hasCheckpoint": False,
        "createdAt": AT,
        "startedAt": None,
        "endedAt": None,
        "updatedAt": AT,
        "params": {"region": "eu"},
        "stages": [{"name": name, "index": index, **pending} for index, name in enumerate(STAGES)],
        "checkpoint": None,
    }


async def test_a_task_that_failed_says_where_and_why(desk: PlanDesk) -> None:
    desk.rollout.fails("a/migrate")
    await desk.run("a")
    task = await desk.task()
    assert (task["status"], task["currentStage"], task["attempt"]) == ("FAILED", "migrate", 1)
    assert (task["lastCompletedStageIndex"], task["completedStages"], task["progress"]) == (0, 1, 0.3333)
    assert (task["startedAt"], task["endedAt"], task["hasCheckpoint"]) == (AT, AT, True)
    assert "a/migrate failed" in task["error"]
    prepare, migrate, verify = task["stages"]
    assert prepare == {
        "name": "prepare",
        "index": 0,
        "status": "SUCCESS",
        "attempts": 1,
        "output": {"did": "a/prepare"},
        "error": None,
        "startedAt": AT,
        "endedAt": AT,
    }
    assert (migrate["status"], migrate["attempts"], migrate["error"]) == ("FAILED", 1, "a/migrate failed")
    assert (verify["status"], verify["startedAt"]) == ("SKIPPED", None)
    assert task["checkpoint"]["completedStages"] == ["prepare"]
    assert (await desk.get(f"{RUNS}/{task['runId']}"))["status"] == "FAILED"


async def test_a_stage_that_waits_for_its_next_attempt_is_retrying(desk: PlanDesk) -> None:
    desk.rollout.flaky("a/s", times=1)
    await desk.run("a", stages=[stage("s", retry={"maxAttempts": 2, "backoffMillis": 60_000}), stage("t")])
    task = await desk.task()
    assert (task["status"], task["currentStage"]) == ("RUNNING", "s")
    assert [(each["status"], each["attempts"]) for each in task["stages"]] == [("RETRYING", 1), ("PENDING", 0)]
    await desk.sim.advance(timedelta(minutes=2))
    assert [each["status"] for each in (await desk.task())["stages"]] == ["SUCCESS", "SUCCESS"]


async def test_a_task_that_is_done_has_no_current_stage(desk: PlanDesk) -> None:
    await desk.run("a", stages=[stage("s"), stage("t", when="false")])
    task = await desk.task()
    assert (task["status"], task["currentStage"], task["progress"]) == ("COMPLETED", None, 1.0)
    assert [each["status"] for each in task["stages"]] == ["SUCCESS", "SKIPPED"]
    assert (task["checkpoint"], task["hasCheckpoint"]) == (None, False)


async def test_of_several_tasks_the_active_one_is_shown_else_the_last(desk: PlanDesk) -> None:
    await desk.run("a")
    desk.clock.advance(timedelta(seconds=1))
    await desk.create("a", planId="q")
    assert (await desk.task())["planId"] == "q"
    assert (await desk.task(planId="p"))["status"] == "COMPLETED"
    assert (await desk.task(planId=""))["planId"] == "q"
    await desk.order(f"{TASK}:cancel")
    assert (await desk.task())["planId"] == "q"


async def test_a_task_pauses_at_its_next_stage_and_goes_on(desk: PlanDesk) -> None:
    desk.rollout.hold("a/prepare")
    await desk.run("a")
    asked = await desk.order(f"{TASK}:pause", reason="wait")
    assert (asked["status"], asked["pauseRequested"], asked["currentStage"]) == ("RUNNING", True, "prepare")
    await desk.rollout.let_go("a/prepare")
    paused = await desk.task()
    assert (paused["status"], paused["pauseRequested"], paused["currentStage"]) == ("PAUSED", False, "migrate")
    assert paused["reason"] == "pause"
    resumed = await desk.order(f"{TASK}:resume")
    assert (resumed["status"], resumed["currentStage"]) == ("CREATED", None)
    assert (await desk.task())["status"] == "COMPLETED"


async def test_a_task_is_cancelled_and_tried_again_in_its_plan(desk: PlanDesk) -> None:
    await desk.create("a")
    cancelled = await desk.order(f"{TASK}:cancel?planId=p", reason="not this one")
    assert (cancelled["status"], cancelled["reason"], cancelled["endedAt"]) == ("CANCELLED", "not this one", AT)
    assert (await desk.order(f"{TASK}:cancel"))["status"] == "CANCELLED"
    retried = await desk.order(f"{TASK}:retry")
    assert (retried["status"], retried["endedAt"]) == ("CREATED", None)


async def test_a_task_is_tried_again_from_its_checkpoint_or_not(desk: PlanDesk) -> None:
    desk.rollout.fails("a/migrate", times=2)
    await desk.run("a")
    desk.rollout.order.clear()
    await desk.order(f"{TASK}:retry", reason="fixed")
    assert desk.rollout.order == ["a/migrate"]
    retried = await desk.order(f"{TASK}:retry", fromCheckpoint=False)
    assert (retried["lastCompletedStageIndex"], retried["runId"]) == (-1, None)
    assert desk.rollout.order[1:] == ["a/prepare", "a/migrate", "a/verify"]
    assert (await desk.task())["attempt"] == 2


async def test_what_a_task_cannot_take_is_refused(desk: PlanDesk) -> None:
    await desk.run("a")
    task = await desk.task()
    for order in ("pause", "resume", "cancel", "retry"):
        status, code, details = told(await desk.post(f"{TASK}:{order}"))
        assert (status, code) == (409, "TASK_STATE_CONFLICT")
        assert details == {"tenantId": "a", "taskId": task["taskId"], "status": "COMPLETED"}


async def test_a_tenant_that_has_another_task_is_busy(desk: PlanDesk) -> None:
    desk.rollout.fails("a/prepare")
    await desk.run("a")
    await desk.create("a", planId="q")
    answer = await desk.api.post(f"{TASK}:retry", params={"planId": "p"})
    other = await desk.task()
    assert told(answer) == (409, "TENANT_BUSY", {"tenantId": "a", "planId": "q", "taskId": other["taskId"]})


async def test_what_happened_to_a_task_is_told_in_order(desk: PlanDesk) -> None:
    await desk.run("a", stages=[stage("s")])
    items = (await desk.get(f"{TASK}/events"))["items"]
    expected = ["task.created", "task.started", "task.stage_completed", "task.completed"]
    assert [each["type"] for each in items] == expected
    rest = await desk.get(f"{TASK}/events", planId="p", after=items[0]["id"], limit=2)
    assert [each["type"] for each in rest["items"]] == expected[1:3]
    assert told(await desk.api.get(f"{TASK}/events", params={"limit": 0}))[2]["field"] == "limit"


async def test_a_tenant_without_a_task_is_not_found(desk: PlanDesk) -> None:
    await desk.create("b")
    for tenant in ("nobody", "7", "x" * 65, "9" * 65, "%00", "\N{SNOWMAN}", "%20b", "-"):
        for path in ("", "/events"):
            status, code, details = told(await desk.api.get(f"{TENANTS}/{tenant}/task{path}"))
            assert (status, code, set(details)) == (404, "TASK_NOT_FOUND", {"tenantId"})
        for order in ("pause", "resume", "cancel", "retry"):
            answer = await desk.post(f"{TENANTS}/{tenant}/task:{order}")
            assert told(answer)[:2] == (404, "TASK_NOT_FOUND")


async def test_a_plan_that_a_tenant_is_not_in_is_told_from_one_that_is_not_there(desk: PlanDesk) -> None:
    await desk.create("a")
    await desk.create("b", planId="q")
    assert told(await desk.api.get(TASK, params={"planId": "q"}))[:2] == (404, "TASK_NOT_FOUND")
    for plan_id in ("nobody", "7", "\x00"):
        assert told(await desk.api.get(TASK, params={"planId": plan_id}))[:2] == (404, "PLAN_NOT_FOUND")


async def test_a_task_is_asked_only_for_what_is_known(desk: PlanDesk) -> None:
    await desk.create("a")
    answers = [
        await desk.api.get(TASK, params={"frob": "1"}),
        await desk.api.get(f"{TASK}/events", params={"frob": "1"}),
        await desk.api.post(f"{TASK}:pause", params={"frob": "1"}),
        *[await desk.api.post(f"{TASK}:{order}", json={"frob": 1}) for order in ("pause", "resume", "cancel", "retry")],
    ]
    for answer in answers:
        status, code, details = told(answer)
        assert (status, code, details["field"]) == (400, "VALIDATION_ERROR", "frob")


async def test_many_tenants_are_asked_for_at_once(desk: PlanDesk) -> None:
    await desk.run("a", "42")
    await desk.create("b", planId="q")
    asked = ["b", "nobody", "42", "a", "b", "not an id"]
    answer = body(await desk.api.post(f"{TENANTS}:query", json={"tenantIds": asked}))
    assert set(answer) == {"items", "missing"}
    assert [(each["tenantId"], each["planId"]) for each in answer["items"]] == [("b", "q"), ("42", "p"), ("a", "p")]
    assert answer["missing"] == ["nobody", "not an id"]
    listed = (await desk.get(f"{PLANS}/p/tasks"))["items"]
    assert answer["items"][2] == listed[0]


async def test_which_tenants_are_asked_for_is_checked(desk: PlanDesk) -> None:
    path = f"{TENANTS}:query"
    wrong = [
        ({}, "tenantIds"),
        ({"tenantIds": []}, "tenantIds"),
        ({"tenantIds": ["a"] * 1_001}, "tenantIds"),
        ({"tenantIds": "a"}, "tenantIds"),
        ({"tenantIds": [7]}, "tenantIds[0]"),
        ({"tenantIds": ["a"], "planId": "p"}, "planId"),
    ]
    for given, field in wrong:
        status, code, details = told(await desk.api.post(path, json=given))
        assert (status, code, details["field"]) == (400, "VALIDATION_ERROR", field)
    assert told(await desk.api.post(f"{path}?x=1", json={"tenantIds": ["a"]}))[2]["field"] == "x"
