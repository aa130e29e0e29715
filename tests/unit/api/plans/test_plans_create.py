"""A plan as it is sent, and as it is shown."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.unit.api.jobchain.workflow_bench import CURRENT
from tests.unit.api.ksana_bench import OPTIONS
from tests.unit.api.plans.bench import AT, PLANS, STAGES, TENANTS, Json, PlanDesk, a_plan, body, stage, told
from tests.unit.engine.simulation import Simulation

from ksana.api.contracts.jobchain import MAX_DEFINITION
from ksana.api.middleware import MAX_BODY
from ksana.store.jsonfile import open_json_store

JSON = {"Content-Type": "application/json"}
NOBODY_YET = {"waiting": 0, "running": 0, "paused": 0, "completed": 0, "failed": 0, "cancelled": 0}


async def test_a_plan_is_shown_with_its_waves_and_counts(desk: PlanDesk) -> None:
    waves = [{"size": 1, "pauseAfter": True, "gate": {"maxFailedPercent": 0}}, {"percent": 25}]
    sent = a_plan("a", {"tenantId": "42", "params": {"region": "eu"}}, "c", "d", waves=waves, failureBudget="5%")
    answer = await desk.api.post(PLANS, json={**sent, "description": "why", "params": {"version": 12}})
    assert answer.status_code == 201
    assert answer.headers["Location"] == f"{PLANS}/p"
    assert body(answer) == {
        "planId": "p",
        "name": "rollout",
        "description": "why",
        "status": "READY",
        "pauseReason": None,
        "message": None,
        "stages": list(STAGES),
        "maxConcurrency": 1,
        "onBusy": "REJECT",
        "failureBudget": "5%",
        "params": {"version": 12},
        "tenants": 4,
        "progress": 0.0,
        "tasks": {**NOBODY_YET, "waiting": 4},
        "waves": [
            _wave(1, 1, size=1, pauseAfter=True, gate={"maxFailedPercent": 0}),
            _wave(2, 1, percent=25),
            _wave(3, 2),
        ],
        "currentWave": 1,
        "createdAt": AT,
        "startedAt": None,
        "endedAt": None,
        "updatedAt": AT,
    }
    assert await desk.plan() == body(answer)


def _wave(number: int, tenants: int, **given: Any) -> Json:
    parts = {"size": None, "percent": None, "pauseAfter": False, "gate": None}
    counts = {**NOBODY_YET, "waiting": tenants}
    return {"wave": number, **parts, "tenants": tenants, "status": "PENDING", "tasks": counts, **given}


async def test_a_plan_without_waves_has_one_and_one_without_an_id_gets_one(desk: PlanDesk) -> None:
    made = await desk.create(planId=None)
    assert len(made["planId"]) == 36
    assert [(wave["wave"], wave["tenants"]) for wave in made["waves"]] == [(1, 1)]
    assert (made["failureBudget"], made["params"], made["maxConcurrency"]) == (None, {}, 1)


async def test_waves_that_have_all_tenants_leave_none_for_another(desk: PlanDesk) -> None:
    made = await desk.run("a", "b", waves=[{"percent": 50}, {"size": 1}], failureBudget=2)
    assert [(wave["wave"], wave["status"]) for wave in made["waves"]] == [(1, "DONE"), (2, "DONE")]
    assert (made["failureBudget"], made["currentWave"], made["progress"]) == (2, 2, 1.0)


async def test_a_plan_may_begin_at_once(desk: PlanDesk) -> None:
    made = await desk.create(autoStart=True)
    assert (made["status"], made["startedAt"]) == ("RUNNING", AT)
    await desk.rollout.settle()
    done = await desk.plan()
    assert (done["status"], done["endedAt"], done["progress"]) == ("COMPLETED", AT, 1.0)
    assert done["tasks"] == {**NOBODY_YET, "completed": 1}


async def test_a_stage_may_be_a_job_that_there_is(desk: PlanDesk) -> None:
    job = (await desk.sim.job(name="drain")).job
    stages = [{"name": "drain", "jobId": job.key}, {"name": "again", "jobId": str(job.id)}]
    assert (await desk.run(stages=stages))["status"] == "COMPLETED"


WRONG: list[tuple[Json, str]] = [
    ({"name": " "}, "name"),
    ({"name": "x" * 129}, "name"),
    ({"name": None}, "name"),
    ({"planId": "7"}, "planId"),
    ({"planId": 7}, "planId"),
    ({"stages": []}, "stages"),
    ({"stages": None}, "stages"),
    ({"stages": [stage("s"), stage("s")]}, "stages[1].name"),
    ({"stages": [stage("s", frob=1)]}, "stages[0].frob"),
    ({"stages": [stage("s", retry={"maxAttempts": 0})]}, "stages[0].retry.maxAttempts"),
    ({"stages": [stage("s", timeout="x")]}, "stages[0].timeout"),
    ({"stages": [stage("s", config=3)]}, "stages[0].config"),
    ({"stages": [stage("s", jobId="j")]}, "stages[0].jobId"),
    ({"stages": [stage("s", when="((")]}, "stages[0].when"),
    ({"stages": [stage("a b")]}, "stages[0].name"),
    ({"tenants": []}, "tenants"),
    ({"tenants": ["a", "a"]}, "tenants[1]"),
    ({"tenants": ["a", {"tenantId": "a"}]}, "tenants[1].tenantId"),
    ({"tenants": [{"tenantId": "a", "frob": 1}]}, "tenants[0].frob"),
    ({"tenants": ["a/b"]}, "tenants[0]"),
    ({"tenants": [7]}, "tenants[0]"),
    ({"maxConcurrency": 0}, "maxConcurrency"),
    ({"maxConcurrency": "2"}, "maxConcurrency"),
    ({"waves": [{}]}, "waves[0].size"),
    ({"waves": [{"size": 1, "gate": {"maxFailedPercent": 101}}]}, "waves[0].gate.maxFailedPercent"),
    ({"waves": [{"percent": 60}, {"percent": 60}]}, "waves"),
    ({"failureBudget": "many"}, "failureBudget"),
    ({"onBusy": "PUSH"}, "onBusy"),
    ({"autoStart": 1}, "autoStart"),
    ({"params": []}, "params"),
    ({"frob": 1}, "frob"),
]


async def test_what_is_wrong_with_a_plan_is_named(desk: PlanDesk) -> None:
    for given, field in WRONG:
        status, code, details = told(await desk.api.post(PLANS, json=a_plan(**given)))
        assert (status, code, details["field"]) == (400, "VALIDATION_ERROR", field), given
    assert (await desk.get(PLANS))["total"] == 0


async def test_a_plan_is_a_json_object(desk: PlanDesk) -> None:
    for content in (b"", b"[]", b"7", b"null"):
        answer = await desk.api.post(PLANS, content=content, headers=JSON)
        assert told(answer)[:2] == (400, "VALIDATION_ERROR"), content
    assert told(await desk.api.post(PLANS, content=b"{", headers=JSON))[:2] == (400, "JSON_PARSE_ERROR")


async def test_a_plan_must_be_sent_as_json(desk: PlanDesk) -> None:
    status, code, details = told(await desk.api.post(PLANS, content=b"{}"))
    assert (status, code, details["field"]) == (400, "VALIDATION_ERROR", "body")


async def test_what_cannot_be_kept_is_refused(desk: PlanDesk) -> None:
    for value in ('"\\ud800"', "123456789012345678901234567890", "[" * 300 + "]" * 300):
        content = f'{{"name": "n", "stages": [], "tenants": [], "params": {{"x": {value}}}}}'
        status, code, details = told(await desk.api.post(PLANS, content=content, headers=JSON))
        assert (status, code, details["field"]) == (400, "VALIDATION_ERROR", "body")


async def test_a_stage_names_a_job_that_is_there_and_enabled(desk: PlanDesk) -> None:
    answer = await desk.api.post(PLANS, json=a_plan(stages=[{"name": "s", "jobId": "nobody"}]))
    status, code, details = told(answer)
    assert (status, code, details["field"], details["jobId"]) == (400, "JOB_NOT_FOUND", "stages[0].jobId", "nobody")
    job = (await desk.sim.job(enabled=False)).job
    status, code, details = told(await desk.api.post(PLANS, json=a_plan(stages=[{"name": "s", "jobId": job.key}])))
    assert (status, code, details["field"]) == (400, "JOB_DISABLED", "stages[0].jobId")


async def test_an_id_is_given_once(desk: PlanDesk) -> None:
    await desk.create("a")
    answer = await desk.api.post(PLANS, json=a_plan("b"))
    assert told(answer) == (409, "PLAN_ID_CONFLICT", {"planId": "p", "field": "planId"})


async def test_a_tenant_has_one_task(desk: PlanDesk) -> None:
    await desk.create("a", "b", "c")
    task = (await desk.task("a"))["taskId"]
    answer = await desk.api.post(PLANS, json=a_plan("b", "a", "z", planId="q"))
    status, code, details = told(answer)
    assert (status, code) == (409, "TENANT_BUSY")
    assert {key: details[key] for key in ("tenantId", "planId", "taskId")} == {
        "tenantId": "a",
        "planId": "p",
        "taskId": task,
    }
    assert [(each["tenantId"], each["planId"]) for each in details["others"]] == [("b", "p")]
    assert told(await desk.api.get(f"{PLANS}/q"))[:2] == (404, "PLAN_NOT_FOUND")
    assert told(await desk.api.get(f"{TENANTS}/z/task"))[:2] == (404, "TASK_NOT_FOUND")


async def test_a_plan_may_wait_for_a_tenant(desk: PlanDesk) -> None:
    await desk.create("a")
    made = await desk.run("a", planId="q", onBusy="WAIT")
    assert (made["onBusy"], made["status"], made["tasks"]["waiting"]) == ("WAIT", "RUNNING", 1)
    assert (await desk.task(planId="q"))["status"] == "WAITING_FOR_LOCK"
    assert (await desk.task())["planId"] == "p"


async def test_plans_may_be_as_large_as_workflows(desk: PlanDesk) -> None:
    padded = a_plan(
        *({"tenantId": f"t{number}", "params": {"x": "x" * 700_000}} for number in range(1 + MAX_BODY // 700_000))
    )
    assert (await desk.api.post(PLANS, json=padded)).status_code == 201
    answer = await desk.api.post(PLANS, content=b" " * (MAX_DEFINITION + 1))
    assert told(answer)[:2] == (413, "BODY_TOO_LARGE")
    answer = await desk.api.post(f"{TENANTS}:query", content=b" " * (MAX_BODY + 1))
    assert told(answer)[:2] == (413, "BODY_TOO_LARGE")


async def test_a_query_that_is_not_known_is_named(desk: PlanDesk) -> None:
    status, code, details = told(await desk.api.post(PLANS, params={"dryRun": "1"}, json=a_plan()))
    assert (status, code, details["field"]) == (400, "VALIDATION_ERROR", "dryRun")


async def test_a_json_file_keeps_no_plans(desk: PlanDesk, tmp_path: Path) -> None:
    store = open_json_store(f"json://{tmp_path / 'jobs.json'}", options=OPTIONS, clock=desk.clock)
    try:
        sim = Simulation(store, desk.clock)
        CURRENT.services = replace(CURRENT.services, store=store, plans=sim.plans)
        assert told(await desk.api.post(PLANS, json=a_plan()))[:2] == (501, "NOT_SUPPORTED")
        assert (await desk.get(PLANS))["total"] == 0
    finally:
        await store.close()
