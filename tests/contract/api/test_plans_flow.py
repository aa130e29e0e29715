"""Document 004 and the issue on every store: tenants go through stages, a few at a time, one task each; what is shown of it."""

from typing import Any

import httpx2
import pytest

from tests.contract.api.conftest import BACK_ENDS, ON_SQLITE, unique, until
from tests.contract.api.cronjob_world import assert_error, done
from tests.contract.api.jobchain_world import a_job, instant
from tests.contract.api.plans_world import (
    COUNTS,
    DETAIL,
    NOBODY,
    ON_STORES,
    PLANS,
    STAGE,
    TASK,
    TASK_DETAIL,
    TENANTS,
    WAVE,
    Json,
    a_plan,
    assert_refused,
    calls,
    counts,
    create,
    drive,
    each_seen,
    events_at,
    failing,
    fails,
    fetch,
    find,
    held,
    holds,
    obeyed,
    order,
    release,
    release_each,
    report,
    running,
    seen,
    some_tenants,
    stage,
    stages_of,
    states_in,
    task_obeyed,
    task_of,
    task_order,
    tasks_in,
    until_plan,
    until_task,
)
from tests.contract.api.witness import Target

ON_JSON = pytest.mark.parametrize("back_end", BACK_ENDS[3:], indirect=True, scope="module")
MISSING = object()
URL = "http://127.0.0.1:9/never-called"


# On every store


@ON_STORES
def test_a_plan_takes_every_tenant_through_every_stage_in_order(api: httpx2.Client, target: Target) -> None:
    first, second, third = tenants = some_tenants(3)
    names = ["drain", "move", "open"]
    plan = create(api, calls(target, *names), [first, {"tenantId": second, "params": {"region": "eu"}}, third])
    assert set(plan) == DETAIL
    assert (plan["status"], plan["stages"], plan["tenants"], plan["progress"]) == ("READY", names, 3, 0)
    assert (plan["maxConcurrency"], plan["onBusy"], plan["failureBudget"]) == (1, "REJECT", None)
    assert plan["tasks"] == counts(waiting=3)
    assert plan["startedAt"] is plan["endedAt"] is plan["pauseReason"] is plan["message"] is None
    assert set(states_in(api, plan["planId"]).values()) == {"CREATED"}
    assert target.hits == []
    assert obeyed(api, plan["planId"], "start")["status"] in {"RUNNING", "COMPLETED"}
    ended = until_plan(api, plan["planId"], "COMPLETED")
    assert (ended["progress"], ended["tasks"]) == (1, counts(completed=3))
    assert instant(ended["createdAt"]) <= instant(ended["startedAt"]) <= instant(ended["endedAt"])
    assert each_seen(target) == dict.fromkeys(tenants, names)
    (wave,) = ended["waves"]
    assert set(wave) >= WAVE - {"size", "percent"}
    assert (wave["wave"], wave["tenants"], wave["status"], wave["tasks"]) == (1, 3, "DONE", counts(completed=3))
    task = task_of(api, second)
    assert (task["status"], task["lastCompletedStageIndex"], task["completedStages"]) == ("COMPLETED", 2, 3)
    assert (task["totalStages"], task["progress"], task["currentStage"], task["attempt"]) == (3, 1, None, 1)
    assert task["params"]["region"] == "eu"
    assert [(each["index"], each["name"], each["attempts"]) for each in task["stages"]] == [
        (0, "drain", 1),
        (1, "move", 1),
        (2, "open", 1),
    ]
    assert all(set(each) == STAGE and each["status"] == "SUCCESS" for each in task["stages"])
    assert [task["tenantId"] for task in tasks_in(api, plan["planId"])] == tenants


@ON_STORES
def test_no_more_tenants_than_allowed_are_under_way_and_never_two_calls_of_one(
    api: httpx2.Client, target: Target
) -> None:
    tenants = some_tenants(5)
    plan = running(api, holds(target, "one", "two"), tenants, maxConcurrency=2)
    drive(target, dict.fromkeys(tenants, 2), most=2)
    until_plan(api, plan, "COMPLETED")
    assert each_seen(target) == {tenant: ["one", "two"] for tenant in tenants}


@ON_STORES
def test_a_tenant_pauses_at_the_stage_boundary_and_goes_on_from_there(api: httpx2.Client, target: Target) -> None:
    (tenant,) = some_tenants(1)
    plan = running(api, [*holds(target, "one"), *calls(target, "two", "three")], [tenant])
    held(target, tenant, "one")
    asked = task_obeyed(api, tenant, "pause", reason="lunch")
    assert (asked["status"], asked["pauseRequested"]) == ("RUNNING", True)
    assert task_of(api, tenant)["pauseRequested"] is True
    release(target, tenant, "one")
    paused = until_task(api, tenant, "PAUSED")
    assert (paused["pauseRequested"], paused["lastCompletedStageIndex"], paused["currentStage"]) == (False, 0, "two")
    assert seen(target, tenant) == ["one"]
    assert fetch(api, plan)["tasks"] == counts(paused=1)
    task_obeyed(api, tenant, "resume")
    until_plan(api, plan, "COMPLETED")
    assert seen(target, tenant) == ["one", "two", "three"]


@ON_STORES
def test_a_retry_from_the_checkpoint_skips_what_was_completed_and_one_from_the_start_does_not(
    api: httpx2.Client, target: Target
) -> None:
    first, second, other = some_tenants(3)
    stages = [*calls(target, "one"), fails(target, "two"), *calls(target, "three")]
    plan = running(api, stages, [failing(first, 1), failing(second, 1), other])
    ended = until_plan(api, plan, "FAILED")
    assert ended["tasks"] == counts(completed=1, failed=2)
    assert ended["progress"] == pytest.approx(1 / 3, abs=0.01)
    task = task_of(api, first)
    assert (task["status"], task["lastCompletedStageIndex"], task["currentStage"]) == ("FAILED", 0, "two")
    assert task["hasCheckpoint"] is True
    assert task["checkpoint"]["completedStages"] == ["one"]
    assert "503" in str(task["error"])
    assert stages_of(task) == {"one": "SUCCESS", "two": "FAILED", "three": task["stages"][2]["status"]}
    assert task["stages"][2]["status"] in {"PENDING", "SKIPPED", "STOPPED"}
    task_obeyed(api, first, "retry", fromCheckpoint=True)
    until_task(api, first, "COMPLETED")
    assert seen(target, first) == ["one", "two", "two", "three"]
    task_obeyed(api, second, "retry", fromCheckpoint=False)
    again = until_task(api, second, "COMPLETED")
    assert seen(target, second) == ["one", "two", "one", "two", "three"]
    assert (task_of(api, first)["attempt"], again["attempt"]) == (1, 2)
    assert seen(target, other) == ["one", "two", "three"]
    assert until_plan(api, plan, "COMPLETED")["tasks"] == counts(completed=3)


@ON_STORES
def test_a_tenant_has_one_active_task_and_a_second_is_refused_with_the_holder_or_waits(
    api: httpx2.Client, target: Target
) -> None:
    busy, idle = some_tenants(2)
    holder = running(api, holds(target, "one"), [busy])
    hit = held(target, busy, "one")
    task = task_of(api, busy)["taskId"]
    refused = a_plan(calls(target, "late"), [idle, busy], planId=unique("refused"))
    details = assert_error(api.post(PLANS, json=refused), 409, "TENANT_BUSY")
    assert (details["tenantId"], details["planId"], details["taskId"]) == (busy, holder, task)
    assert_error(api.get(f"{PLANS}/{refused['planId']}"), 404, "PLAN_NOT_FOUND")
    assert_error(api.get(f"{TENANTS}/{idle}/task"), 404, "TASK_NOT_FOUND")
    waits = running(api, calls(target, "late"), [busy, idle], onBusy="WAIT", maxConcurrency=2)
    until_task(api, idle, "COMPLETED")
    assert task_of(api, busy, planId=waits)["status"] in {"CREATED", "WAITING_FOR_LOCK"}
    assert fetch(api, waits)["tasks"] == counts(waiting=1, completed=1)
    assert seen(target, busy) == ["one"]
    target.release(hit)
    until_plan(api, waits, "COMPLETED")
    assert fetch(api, holder)["status"] == "COMPLETED"
    assert seen(target, busy) == ["one", "late"]


@ON_STORES
def test_a_cancelled_plan_begins_nothing_more(api: httpx2.Client, target: Target) -> None:
    first, second, third = some_tenants(3)
    plan = running(api, holds(target, "one", "two"), [first, second, third])
    release_each(target, [first], "one", "two")
    hit = held(target, second, "one")
    cancelled = obeyed(api, plan, "cancel", reason="no")
    assert cancelled["status"] in {"RUNNING", "CANCELLED"}
    target.wait_gone(hit)
    ended = until_plan(api, plan, "CANCELLED")
    assert ended["tasks"] == counts(completed=1, cancelled=2)
    assert obeyed(api, plan, "cancel")["status"] == "CANCELLED"
    assert states_in(api, plan) == {first: "COMPLETED", second: "CANCELLED", third: "CANCELLED"}
    assert each_seen(target) == {first: ["one", "two"], second: ["one"]}
    assert task_of(api, second)["hasCheckpoint"] is False


@ON_JSON
def test_a_json_file_keeps_no_plans(api: httpx2.Client, target: Target) -> None:
    (tenant,) = some_tenants(1)
    assert_error(api.post(PLANS, json=a_plan(calls(target, "one"), [tenant])), 501, "NOT_SUPPORTED")
    assert find(api)["total"] == 0  # as the list of workflows
    assert_error(api.post(f"{PLANS}/{NOBODY}:start"), 404, "PLAN_NOT_FOUND")
    assert_error(api.post(f"{TENANTS}/{tenant}/task:pause"), 404, "TASK_NOT_FOUND")
    assert done(api.post(f"{TENANTS}:query", json={"tenantIds": [tenant]})) == {"items": [], "missing": [tenant]}


# What stages may be


@ON_SQLITE
def test_stages_see_the_plan_the_tenant_and_what_came_before(api: httpx2.Client, target: Target) -> None:
    plain, own = some_tenants(2)
    body = "{{ params.planId }} {{ params.taskId }} {{ params.tenantId }} {{ params.version }} {{ params.fails }}"
    stages = [
        stage("one", target.url("/ok"), {"body": body}),
        stage("two", target.url("/ok"), {"body": "{{ nodes.one.artifact }}"}),
        stage("three", target.url("/ok"), {"body": "replaced"}, params={"body": "for {{ params.tenantId }}"}),
        stage("never", target.url("/ok"), when="params.version > 12"),
    ]
    tenants: list[str | Json] = [plain, {"tenantId": own, "params": {"version": 13}}]
    plan = running(api, stages, tenants, params={"version": 12, "fails": 0}, maxConcurrency=2)
    until_plan(api, plan, "COMPLETED")
    assert seen(target, plain) == ["one", "two", "three"]
    assert seen(target, own) == ["one", "two", "three", "never"]
    tasks = {tenant: task_of(api, tenant) for tenant in (plain, own)}
    (first, second, third) = (target.at(f"/ok/{plain}/{name}")[0].text for name in ("one", "two", "three"))
    assert first == f"{plan} {tasks[plain]['taskId']} {plain} 12 0"
    assert f"/ok/{plain}/one" in second
    assert third == f"for {plain}"
    assert target.at(f"/ok/{own}/one")[0].text.split()[3] == "13"
    assert stages_of(tasks[plain])["never"] == "SKIPPED"
    assert tasks[plain]["progress"] == 1


@ON_SQLITE
def test_a_stage_may_be_a_job_that_exists_but_no_other(api: httpx2.Client, target: Target) -> None:
    (tenant,) = some_tenants(1)
    url = target.url("/ok/{{ params.tenantId }}/job")
    job = a_job(api, "http", {"method": "POST", "url": url})["jobId"]
    plan = running(api, [{"name": "by-job", "jobId": job}], [tenant])
    until_plan(api, plan, "COMPLETED")
    assert seen(target, tenant) == ["job"]
    done(api.post(f"/api/v1/jobs/{job}:disable"))
    answer = api.post(PLANS, json=a_plan([{"name": "by-job", "jobId": job}], [tenant]))
    assert_error(answer, answer.status_code, "JOB_DISABLED")
    missing = api.post(PLANS, json=a_plan([{"name": "by-job", "jobId": NOBODY}], [tenant]))
    assert_error(missing, missing.status_code, "JOB_NOT_FOUND")
    assert {answer.status_code, missing.status_code} <= {400, 404}


@ON_SQLITE
def test_a_stage_is_tried_again_as_often_as_it_says_and_ends_in_time(api: httpx2.Client, target: Target) -> None:
    fine, bad, slow = some_tenants(3)
    retry = {"maxAttempts": 3, "backoffMillis": 10, "backoffMultiplier": 1}
    plan = running(api, [fails(target, "tries", retry=retry)], [failing(fine, 2), failing(bad)], maxConcurrency=2)
    until_plan(api, plan, "FAILED")
    assert (task_of(api, fine)["status"], task_of(api, bad)["status"]) == ("COMPLETED", "FAILED")
    assert (len(seen(target, fine)), len(seen(target, bad))) == (3, 3)
    assert task_of(api, bad)["stages"][0]["attempts"] == 3
    late = running(api, [stage("late", target.url("/never"), timeout="200ms")], [slow])
    until_plan(api, late, "FAILED")
    assert stages_of(task_of(api, slow)) == {"late": "FAILED"}
    assert "200ms" in str(task_of(api, slow)["error"])


@ON_SQLITE
def test_an_asynchronous_stage_ends_with_its_callback(api: httpx2.Client, target: Target) -> None:
    fine, bad = tenants = some_tenants(2)
    stages = [stage("far", target.url("/async"), {"mode": "async"}), *calls(target, "after")]
    plan = running(api, stages, tenants, maxConcurrency=2)
    hits = {hit.path.split("/")[2]: hit for hit in target.wait_hits(2)}
    report(hits[fine], data={"rows": 3})
    report(hits[bad], "FAILED", error="no room")
    until_plan(api, plan, "FAILED")
    assert each_seen(target) == {fine: ["far", "after"], bad: ["far"]}
    assert task_of(api, fine)["stages"][0]["output"] is not None
    assert task_of(api, bad)["status"] == "FAILED"


@ON_SQLITE
def test_the_recovery_of_a_stage_is_written_as_the_contract_has_it(api: httpx2.Client, target: Target) -> None:
    (tenant,) = some_tenants(1)
    until_plan(api, running(api, [stage("one", target.url("/ok"), recovery="RETRY")], [tenant]), "COMPLETED")


@ON_SQLITE
def test_a_stage_may_wait_for_a_person(api: httpx2.Client, target: Target) -> None:
    first, second = some_tenants(2)
    stages = [*calls(target, "one"), {"name": "ask", "type": "wait", "config": {}}, *calls(target, "two")]
    plan = running(api, stages, [first, second], maxConcurrency=2)
    for tenant, what in ((first, "complete"), (second, "skip")):
        until(api, f"{TENANTS}/{tenant}/task", lambda task: stages_of(task)["ask"] == "RUNNING")
        done(api.post(f"/api/v1/runs/{task_of(api, tenant)['runId']}/nodes/ask:{what}"))
    until_plan(api, plan, "COMPLETED")
    assert each_seen(target) == {first: ["one", "two"], second: ["one", "two"]}


# What is shown


@ON_SQLITE
def test_plans_are_listed_newest_first_by_status_and_name(api: httpx2.Client, target: Target) -> None:
    word = unique("listed")
    ready = create(api, calls(target, "one"), some_tenants(1), name=f"{word} first")
    ran = running(api, calls(target, "one"), some_tenants(1), name=f"{word} second")
    until_plan(api, ran, "COMPLETED")
    page = find(api, keyword=word)
    assert [item["planId"] for item in page["items"]] == [ran, ready["planId"]]
    assert set(page["items"][0]) >= {"planId", "name", "status", "createdAt", "updatedAt"}
    assert not {"stages", "waves", "params", "tasks"} & set(page["items"][0])
    done, not_begun = find(api, keyword=word, include="tasks")["items"]
    assert (done["tasks"], done["progress"], done["totalWaves"]) == (counts(completed=1), 1, 1)
    assert (not_begun["tasks"], not_begun["progress"]) == (counts(waiting=1), 0)
    assert [item["planId"] for item in find(api, keyword=word, status="READY")["items"]] == [ready["planId"]]
    second = find(api, keyword=word, size=1, page=2)
    assert (second["page"], second["size"], second["total"]) == (2, 1, 2)
    assert [item["planId"] for item in second["items"]] == [ready["planId"]]


@ON_SQLITE
def test_the_tasks_of_a_plan_are_listed_in_order_by_status_and_wave(api: httpx2.Client, target: Target) -> None:
    tenants = some_tenants(5)
    waves = [{"size": 2}]
    plan = running(api, holds(target, "one"), tenants, maxConcurrency=2, waves=waves)
    target.wait_held(2)
    assert [task["tenantId"] for task in tasks_in(api, plan)] == tenants
    assert all(set(task) == TASK for task in tasks_in(api, plan))
    assert [task["tenantId"] for task in tasks_in(api, plan, wave=2)] == tenants[2:]
    assert [task["tenantId"] for task in tasks_in(api, plan, keyword=tenants[3][-6:])] == tenants[3:4]
    assert tasks_in(api, plan, keyword="%") == []
    assert find(api, keyword=fetch(api, plan)["name"], include="tasks")["items"][0]["totalWaves"] == 2
    until(api, f"{PLANS}/{plan}", lambda body: body["tasks"]["running"] == 2)
    assert [task["tenantId"] for task in tasks_in(api, plan, status="RUNNING")] == tenants[:2]
    page = find(api, f"{PLANS}/{plan}/tasks", page=2, size=2)
    assert ([task["tenantId"] for task in page["items"]], page["total"]) == (tenants[2:4], 5)
    obeyed(api, plan, "cancel")


@ON_SQLITE
def test_progress_is_shown_while_it_is_made(api: httpx2.Client, target: Target) -> None:
    first, second = some_tenants(2)
    plan = running(api, holds(target, "one", "two"), [first, second])
    release(target, first, "one")
    held(target, first, "two")
    task = task_of(api, first)
    assert (task["status"], task["progress"], task["currentStage"]) == ("RUNNING", 0.5, "two")
    assert stages_of(task) == {"one": "SUCCESS", "two": "RUNNING"}
    assert (task["hasCheckpoint"], task["checkpoint"]["completedStages"]) == (True, ["one"])
    release(target, first, "two")
    held(target, second, "one")
    body = fetch(api, plan)
    assert (body["status"], body["progress"], body["tasks"]) == ("RUNNING", 0.5, counts(running=1, completed=1))
    assert set(body["tasks"]) == COUNTS
    assert stages_of(task_of(api, second)) == {"one": "RUNNING", "two": "PENDING"}
    release_each(target, [second], "one", "two")
    until_plan(api, plan, "COMPLETED")


@ON_SQLITE
def test_what_happened_is_told_in_order_and_from_any_place(api: httpx2.Client, target: Target) -> None:
    fine, bad = some_tenants(2)
    plan = running(api, [*calls(target, "one"), fails(target, "two")], [fine, failing(bad)])
    until_plan(api, plan, "FAILED")
    for path, words in (
        (f"{PLANS}/{plan}/events", ("plan", "started", "failed")),
        (f"{TENANTS}/{fine}/task/events", ("created", "started", "stage", "completed")),
        (f"{TENANTS}/{bad}/task/events", ("created", "started", "stage", "failed")),
    ):
        events = events_at(api, path)
        told = " ".join(str(event["type"]) for event in events).lower()
        for word in words:
            assert word in told, events
        ids = [event["id"] for event in events]
        assert ids == sorted(set(ids))
        assert events_at(api, path, after=ids[0]) == events[1:]
        assert events_at(api, path, limit=1) == events[:1]
        assert all(instant(event["at"]) for event in events)


@ON_SQLITE
def test_a_slow_stage_tells_that_it_is_still_under_way(api: httpx2.Client, target: Target) -> None:
    (tenant,) = some_tenants(1)
    running(api, holds(target, "slow"), [tenant])
    held(target, tenant, "slow")
    path = f"{TENANTS}/{tenant}/task/events"
    until(api, path, lambda body: any("progress" in event["type"].lower() for event in body["items"]))
    assert task_of(api, tenant)["status"] == "RUNNING"


@ON_SQLITE
def test_many_tenants_are_asked_for_at_once(api: httpx2.Client, target: Target) -> None:
    first, second, never, third = some_tenants(4)
    plan = running(api, [fails(target, "one")], [first, failing(second), third])
    until_plan(api, plan, "FAILED")
    body = done(api.post(f"{TENANTS}:query", json={"tenantIds": [third, never, second, first]}))
    assert set(body) == {"items", "missing"}
    assert [(task["tenantId"], task["status"]) for task in body["items"]] == [
        (third, "COMPLETED"),
        (second, "FAILED"),
        (first, "COMPLETED"),
    ]
    assert all(set(task) == TASK for task in body["items"])
    assert body["missing"] == [never]


@ON_SQLITE
def test_a_tenant_shows_its_active_task_or_else_its_latest_or_that_of_a_plan(
    api: httpx2.Client, target: Target
) -> None:
    (tenant,) = some_tenants(1)
    old = running(api, calls(target, "one"), [tenant])
    until_plan(api, old, "COMPLETED")
    assert task_of(api, tenant)["planId"] == old
    new = running(api, holds(target, "two"), [tenant])
    held(target, tenant, "two")
    assert task_of(api, tenant)["planId"] == new
    assert task_of(api, tenant, planId=old)["status"] == "COMPLETED"
    assert set(task_of(api, tenant)) == TASK_DETAIL
    obeyed(api, new, "cancel")
    until_task(api, tenant, "CANCELLED")
    assert_error(api.get(f"{TENANTS}/{tenant}/task", params={"planId": NOBODY}), 404)


# Refusals


def without(value: Json, *keys: str) -> Json:
    return {key: each for key, each in value.items() if key not in keys}


ONE = stage("one", URL)
WRONG: dict[str, tuple[Json, str]] = {
    "plan-id-blank": ({"planId": " "}, "planId"),
    "plan-id-with-a-slash": ({"planId": "a/b"}, "planId"),
    "plan-id-a-list": ({"planId": ["a"]}, "planId"),
    "name-missing": ({"name": MISSING}, "name"),
    "name-blank": ({"name": "  "}, "name"),
    "name-too-long": ({"name": "n" * 129}, "name"),
    "name-a-number": ({"name": 7}, "name"),
    "description-a-number": ({"description": 7}, "description"),
    "stages-missing": ({"stages": MISSING}, "stages"),
    "stages-none": ({"stages": []}, "stages"),
    "stages-too-many": ({"stages": [stage(f"s{number}", URL) for number in range(101)]}, "stages"),
    "stages-an-object": ({"stages": {"one": ONE}}, "stages"),
    "stage-a-text": ({"stages": ["one"]}, "stages"),
    "stage-twice": ({"stages": [ONE, ONE]}, "stages"),
    "stage-without-a-name": ({"stages": [without(ONE, "name")]}, "name"),
    "stage-name-blank": ({"stages": [{**ONE, "name": " "}]}, "name"),
    "stage-without-anything-to-do": ({"stages": [without(ONE, "type", "config")]}, "stages"),
    "stage-of-an-unknown-type": ({"stages": [{**ONE, "type": "pigeon"}]}, "type"),
    "stage-with-an-unknown-key": ({"stages": [{**ONE, "hue": 1}]}, "hue"),
    "stage-config-wrong": ({"stages": [{**ONE, "config": {"method": "GET"}}]}, "url"),
    "stage-config-a-text": ({"stages": [{**ONE, "config": "GET"}]}, "config"),
    "stage-template-wrong": ({"stages": [stage("one", URL + "/{{ params.")]}, "stages"),
    "stage-retry-none": ({"stages": [{**ONE, "retry": {"maxAttempts": 0}}]}, "maxAttempts"),
    "stage-retry-unknown": ({"stages": [{**ONE, "retry": {"max": 1}}]}, "max"),
    "stage-retry-backoff": ({"stages": [{**ONE, "retry": {"backoffMillis": -1}}]}, "backoffMillis"),
    "stage-retry-multiplier": ({"stages": [{**ONE, "retry": {"backoffMultiplier": 0}}]}, "backoffMultiplier"),
    "stage-timeout": ({"stages": [{**ONE, "timeout": "soon"}]}, "timeout"),
    "stage-when": ({"stages": [{**ONE, "when": "params.x >"}]}, "when"),
    "stage-params": ({"stages": [{**ONE, "params": [1]}]}, "params"),
    "stage-recovery": ({"stages": [{**ONE, "recovery": "perhaps"}]}, "recovery"),
    "tenants-missing": ({"tenants": MISSING}, "tenants"),
    "tenants-none": ({"tenants": []}, "tenants"),
    "tenants-a-text": ({"tenants": "t-1"}, "tenants"),
    "tenants-too-many": ({"tenants": [f"t{number}" for number in range(20_001)]}, "tenants"),
    "tenant-twice": ({"tenants": ["twice", {"tenantId": "twice"}]}, "tenants"),
    "tenant-blank": ({"tenants": [" "]}, "tenants"),
    "tenant-a-number": ({"tenants": [7]}, "tenants"),
    "tenant-with-a-slash": ({"tenants": ["a/b"]}, "tenants"),
    "tenant-without-id": ({"tenants": [{"params": {}}]}, "tenantId"),
    "tenant-with-an-unknown-key": ({"tenants": [{"tenantId": "t", "hue": 1}]}, "hue"),
    "tenant-params": ({"tenants": [{"tenantId": "t", "params": [1]}]}, "params"),
    "params-a-list": ({"params": [1]}, "params"),
    "concurrency-none": ({"maxConcurrency": 0}, "maxConcurrency"),
    "concurrency-a-text": ({"maxConcurrency": "5"}, "maxConcurrency"),
    "concurrency-a-truth": ({"maxConcurrency": True}, "maxConcurrency"),
    "concurrency-a-fraction": ({"maxConcurrency": 1.5}, "maxConcurrency"),
    "waves-an-object": ({"waves": {"size": 1}}, "waves"),
    "wave-of-nobody": ({"waves": [{"size": 0}]}, "size"),
    "wave-size-a-text": ({"waves": [{"size": "1"}]}, "size"),
    "wave-of-neither": ({"waves": [{"pauseAfter": True}]}, "waves"),
    "wave-of-both": ({"waves": [{"size": 1, "percent": 10}]}, "waves"),
    "wave-of-no-percent": ({"waves": [{"percent": 0}]}, "percent"),
    "wave-of-too-many-percent": ({"waves": [{"percent": 101}]}, "percent"),
    "wave-pause": ({"waves": [{"size": 1, "pauseAfter": "yes"}]}, "pauseAfter"),
    "wave-unknown-key": ({"waves": [{"size": 1, "hue": 1}]}, "hue"),
    "gate-negative": ({"waves": [{"size": 1, "gate": {"maxFailedPercent": -1}}]}, "maxFailedPercent"),
    "gate-over-100": ({"waves": [{"size": 1, "gate": {"maxFailedPercent": 101}}]}, "maxFailedPercent"),
    "gate-unknown-key": ({"waves": [{"size": 1, "gate": {"max": 1}}]}, "max"),
    "gate-a-number": ({"waves": [{"size": 1, "gate": 5}]}, "gate"),
    "budget-negative": ({"failureBudget": -1}, "failureBudget"),
    "budget-a-fraction": ({"failureBudget": 1.5}, "failureBudget"),
    "budget-a-word": ({"failureBudget": "some"}, "failureBudget"),
    "budget-over-100-percent": ({"failureBudget": "101%"}, "failureBudget"),
    "busy": ({"onBusy": "PERHAPS"}, "onBusy"),
    "start": ({"autoStart": "yes"}, "autoStart"),
    "unknown": ({"max_concurrency": 1}, "max_concurrency"),
}


@ON_SQLITE
@pytest.mark.parametrize(("given", "field"), list(WRONG.values()), ids=list(WRONG))
def test_a_plan_that_is_wrong_is_refused_with_the_field_and_nothing_is_stored(
    api: httpx2.Client, given: Json, field: str
) -> None:
    word = unique("wrong")
    body = {**a_plan([ONE], [unique("refused")]), "name": word, **given}
    body = {key: value for key, value in body.items() if value is not MISSING}
    assert_refused(api.post(PLANS, json=body), field)
    assert find(api, keyword=word)["total"] == 0


@ON_SQLITE
def test_a_body_that_is_not_json_and_an_id_that_is_taken_are_refused(api: httpx2.Client, target: Target) -> None:
    headers = {"content-type": "application/json"}
    assert_error(api.post(PLANS, content=b"{", headers=headers), 400, "JSON_PARSE_ERROR")
    plan = unique("taken")
    first = create(api, calls(target, "one"), some_tenants(1), planId=plan)
    assert first["planId"] == plan
    others = some_tenants(1)
    assert_error(api.post(PLANS, json=a_plan(calls(target, "one"), others, planId=plan)), 409, "PLAN_ID_CONFLICT")
    assert_error(api.get(f"{TENANTS}/{others[0]}/task"), 404, "TASK_NOT_FOUND")
    assert fetch(api, plan) == first


@ON_SQLITE
@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", PLANS + "/{}", "PLAN_NOT_FOUND"),
        ("GET", PLANS + "/{}/tasks", "PLAN_NOT_FOUND"),
        ("GET", PLANS + "/{}/events", "PLAN_NOT_FOUND"),
        *[("POST", PLANS + "/{}:" + what, "PLAN_NOT_FOUND") for what in ("start", "pause", "resume", "cancel")],
        ("POST", PLANS + "/{}:retry-failed", "PLAN_NOT_FOUND"),
        ("GET", TENANTS + "/{}/task", "TASK_NOT_FOUND"),
        ("GET", TENANTS + "/{}/task/events", "TASK_NOT_FOUND"),
        *[("POST", TENANTS + "/{}/task:" + what, "TASK_NOT_FOUND") for what in ("pause", "resume", "cancel", "retry")],
    ],
)
def test_what_is_not_there_is_not_found(api: httpx2.Client, method: str, path: str, code: str) -> None:
    assert_error(api.request(method, path.format(NOBODY)), 404, code)


@ON_SQLITE
@pytest.mark.parametrize(
    ("path", "query", "field"),
    [
        (PLANS, {"status": "PIGEON"}, "status"),
        (PLANS, {"page": "0"}, "page"),
        (PLANS, {"size": "0"}, "size"),
        (PLANS, {"hue": "1"}, "hue"),
        (PLANS, {"include": "hue"}, "include"),
        (PLANS + "/{plan}/tasks", {"status": "PIGEON"}, "status"),
        (PLANS + "/{plan}/tasks", {"wave": "first"}, "wave"),
        (PLANS + "/{plan}/tasks", {"hue": "1"}, "hue"),
        (PLANS + "/{plan}/events", {"limit": "0"}, "limit"),
        (TENANTS + "/{tenant}/task", {"hue": "1"}, "hue"),
        (TENANTS + "/{tenant}/task/events", {"limit": "many"}, "limit"),
        (TENANTS + "/{tenant}/checkpoint", {"hue": "1"}, "hue"),
    ],
)
def test_a_question_that_is_wrong_is_refused_with_the_parameter(
    api: httpx2.Client, asked: tuple[str, str], path: str, query: dict[str, str], field: str
) -> None:
    plan, tenant = asked
    assert_refused(api.get(path.format(plan=plan, tenant=tenant), params=query), field)


@ON_SQLITE
@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        *[(PLANS + "/{plan}:" + what, {"hue": 1}, "hue") for what in ("start", "pause", "resume", "cancel")],
        (PLANS + "/{plan}:pause", {"tasks": "yes"}, "tasks"),
        (PLANS + "/{plan}:pause", {"reason": 7}, "reason"),
        (PLANS + "/{plan}:resume", {"override": "yes"}, "override"),
        (PLANS + "/{plan}:retry-failed", {"fromCheckpoint": "yes"}, "fromCheckpoint"),
        *[(TENANTS + "/{tenant}/task:" + what, {"hue": 1}, "hue") for what in ("pause", "resume", "cancel", "retry")],
        (TENANTS + "/{tenant}/task:retry", {"fromCheckpoint": 1}, "fromCheckpoint"),
        (TENANTS + "/{tenant}/task:cancel", {"reason": 7}, "reason"),
        (TENANTS + ":query", {}, "tenantIds"),
        (TENANTS + ":query", {"tenantIds": []}, "tenantIds"),
        (TENANTS + ":query", {"tenantIds": [7]}, "tenantIds"),
        (TENANTS + ":query", {"tenantIds": [f"t{number}" for number in range(1001)]}, "tenantIds"),
        (TENANTS + ":query", {"tenantIds": ["a"], "hue": 1}, "hue"),
    ],
)
def test_an_order_that_is_wrong_is_refused_with_the_field_and_changes_nothing(
    api: httpx2.Client, asked: tuple[str, str], path: str, body: Json, field: str
) -> None:
    plan, tenant = asked
    before = [fetch(api, plan), task_of(api, tenant)]
    assert_refused(api.post(path.format(plan=plan, tenant=tenant), json=body), field)
    assert [fetch(api, plan), task_of(api, tenant)] == before


@pytest.fixture(scope="module")
def asked(api: httpx2.Client) -> Any:
    """A plan that is ready, and its tenant."""
    (tenant,) = some_tenants(1)
    return create(api, [ONE], [tenant])["planId"], tenant


@ON_SQLITE
def test_a_plan_with_many_tenants_may_be_larger_than_other_requests(api: httpx2.Client) -> None:
    tenants = some_tenants(1_200)
    plan = create(api, [ONE], [{"tenantId": tenant, "params": {"note": "x" * 1000}} for tenant in tenants])
    assert plan["tenants"] == 1_200
    assert order(api, plan["planId"], "cancel").status_code == 200
    until_plan(api, plan["planId"], "CANCELLED")
    assert task_order(api, tenants[0], "pause").status_code == 409
