"""Document 004 and the issue: pause, resume, retry, cancel, of a plan and of one tenant; checkpoints and their versions."""

from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import httpx2
import pytest

from tests.contract.api.conftest import ON_SQLITE, unique, until
from tests.contract.api.cronjob_world import assert_error, done
from tests.contract.api.jobchain_world import instant
from tests.contract.api.plans_world import (
    NOBODY,
    PLANS,
    RUNS,
    TENANTS,
    a_plan,
    assert_refused,
    calls,
    checkpoint_of,
    counts,
    create,
    drive,
    each_seen,
    failing,
    fails,
    fetch,
    held,
    holds,
    obeyed,
    order,
    release,
    running,
    seen,
    some_tenants,
    stages_of,
    states_in,
    task_obeyed,
    task_of,
    task_order,
    until_plan,
    until_task,
)
from tests.contract.api.witness import Target

pytestmark = ON_SQLITE


# Plans


def test_a_plan_pauses_with_its_tasks_at_their_stage_boundary_and_goes_on(api: httpx2.Client, target: Target) -> None:
    first, second, third = some_tenants(3)
    plan = running(api, holds(target, "one", "two"), [first, second, third], maxConcurrency=2)
    held(target, second, "one")
    paused = obeyed(api, plan, "pause", reason="look first")
    assert (paused["status"], paused["pauseReason"]) == ("PAUSED", "paused")
    assert "look first" in str(paused["message"])
    assert task_of(api, first)["pauseRequested"] is True
    release(target, first, "one")
    until_task(api, first, "PAUSED")
    assert states_in(api, plan) == {first: "PAUSED", second: "RUNNING", third: "CREATED"}
    release(target, second, "one")
    until_task(api, second, "PAUSED")
    assert each_seen(target) == {first: ["one"], second: ["one"]}
    assert fetch(api, plan)["tasks"] == counts(waiting=1, paused=2)
    resumed = obeyed(api, plan, "resume")
    assert (resumed["status"], resumed["pauseReason"]) == ("RUNNING", None)
    for tenant in (first, second):
        release(target, tenant, "two")
    for name in ("one", "two"):
        release(target, third, name)
    until_plan(api, plan, "COMPLETED")
    assert each_seen(target) == {tenant: ["one", "two"] for tenant in (first, second, third)}


def test_a_plan_may_pause_and_let_its_running_tenants_finish(api: httpx2.Client, target: Target) -> None:
    first, second = some_tenants(2)
    plan = running(api, holds(target, "one", "two"), [first, second])
    held(target, first, "one")
    obeyed(api, plan, "pause", tasks=False)
    assert task_of(api, first)["pauseRequested"] is False
    release(target, first, "one")
    release(target, first, "two")
    until_task(api, first, "COMPLETED")
    assert fetch(api, plan)["status"] == "PAUSED"
    assert states_in(api, plan)[second] == "CREATED"
    obeyed(api, plan, "resume")
    release(target, second, "one")
    release(target, second, "two")
    until_plan(api, plan, "COMPLETED")


def test_a_pause_that_is_taken_back_before_the_boundary_does_not_happen(api: httpx2.Client, target: Target) -> None:
    (tenant,) = some_tenants(1)
    plan = running(api, [*holds(target, "one"), *calls(target, "two")], [tenant])
    held(target, tenant, "one")
    task_obeyed(api, tenant, "pause")
    resumed = task_obeyed(api, tenant, "resume")
    assert (resumed["status"], resumed["pauseRequested"]) == ("RUNNING", False)
    release(target, tenant, "one")
    until_plan(api, plan, "COMPLETED")
    assert seen(target, tenant) == ["one", "two"]


def test_a_pause_asked_for_in_the_last_stage_does_not_keep_the_task_from_ending(
    api: httpx2.Client, target: Target
) -> None:
    (tenant,) = some_tenants(1)
    plan = running(api, holds(target, "one"), [tenant])
    held(target, tenant, "one")
    task_obeyed(api, tenant, "pause")
    release(target, tenant, "one")
    until_plan(api, plan, "COMPLETED")
    assert task_of(api, tenant)["pauseRequested"] is False


def test_a_paused_tenant_does_not_stop_the_others(api: httpx2.Client, target: Target) -> None:
    first, second = some_tenants(2)
    plan = running(api, [*holds(target, "one"), *calls(target, "two")], [first, second], maxConcurrency=2)
    held(target, first, "one")
    task_obeyed(api, first, "pause")
    release(target, first, "one")
    release(target, second, "one")
    until_task(api, second, "COMPLETED")
    until_task(api, first, "PAUSED")
    assert fetch(api, plan)["status"] == "RUNNING"
    task_obeyed(api, first, "resume")
    until_plan(api, plan, "COMPLETED")


def test_the_failed_tenants_of_a_plan_are_retried_and_only_those(api: httpx2.Client, target: Target) -> None:
    fine, first, second = some_tenants(3)
    stages = [*calls(target, "one"), fails(target, "two"), *calls(target, "three")]
    plan = running(api, stages, [fine, failing(first, 1), failing(second, 1)], maxConcurrency=3)
    until_plan(api, plan, "FAILED")
    answer = obeyed(api, plan, "retry-failed", reason="repaired")
    assert (answer["retried"], answer["busyTenants"], answer["endedAt"]) == (2, [], None)
    until_plan(api, plan, "COMPLETED")
    assert seen(target, fine) == ["one", "two", "three"]
    for tenant in (first, second):
        assert seen(target, tenant) == ["one", "two", "two", "three"]


def test_failed_tenants_are_retried_from_the_start_if_told_so(api: httpx2.Client, target: Target) -> None:
    (tenant,) = some_tenants(1)
    plan = running(api, [*calls(target, "one"), fails(target, "two")], [failing(tenant, 1)])
    until_plan(api, plan, "FAILED")
    assert obeyed(api, plan, "retry-failed", fromCheckpoint=False)["retried"] == 1
    until_plan(api, plan, "COMPLETED")
    assert seen(target, tenant) == ["one", "two", "one", "two"]
    assert task_of(api, tenant)["attempt"] == 2


def test_a_tenant_that_another_plan_has_meanwhile_is_not_retried(api: httpx2.Client, target: Target) -> None:
    first, busy = some_tenants(2)
    plan = running(api, [fails(target, "one")], [failing(first, 1), failing(busy, 1)])
    until_plan(api, plan, "FAILED")
    other = running(api, holds(target, "held"), [busy])
    held(target, busy, "held")
    holder = task_of(api, busy)
    details = assert_error(task_retry(api, busy, plan), 409, "TENANT_BUSY")
    assert details == {**details, "tenantId": busy, "planId": other, "taskId": holder["taskId"]}
    answer = obeyed(api, plan, "retry-failed")
    assert (answer["retried"], answer["busyTenants"]) == (1, [busy])
    until_task(api, first, "COMPLETED")
    release(target, busy, "held")
    until_plan(api, other, "COMPLETED")
    assert seen(target, busy) == ["one", "held"]


def task_retry(api: httpx2.Client, tenant: str, plan: str) -> httpx2.Response:
    return api.post(f"{TENANTS}/{tenant}/task:retry", params={"planId": plan})


def test_orders_that_do_not_fit_the_state_of_the_plan_are_refused(api: httpx2.Client, target: Target) -> None:
    def refused(*orders: str) -> None:
        for what in orders:
            assert_error(order(api, plan, what), 409, "PLAN_STATE_CONFLICT")

    (tenant,) = some_tenants(1)
    plan = create(api, holds(target, "one", "two"), [tenant])["planId"]
    refused("pause", "resume")
    obeyed(api, plan, "start")
    held(target, tenant, "one")
    refused("start", "resume")
    obeyed(api, plan, "pause")
    refused("start")
    obeyed(api, plan, "resume")
    release(target, tenant, "one")
    release(target, tenant, "two")
    until_plan(api, plan, "COMPLETED")
    refused("start", "pause", "resume", "cancel")
    assert fetch(api, plan)["status"] == "COMPLETED"


def test_a_plan_is_cancelled_before_it_starts_while_it_pauses_and_as_it_runs(
    api: httpx2.Client, target: Target
) -> None:
    ready, paused, running_one = some_tenants(3)
    first = create(api, calls(target, "one"), [ready])["planId"]
    second = running(api, holds(target, "one", "two"), [paused])
    third = running(api, holds(target, "one", "two"), [running_one])
    held(target, running_one, "one")
    held(target, paused, "one")
    obeyed(api, second, "pause")
    release(target, paused, "one")
    until_task(api, paused, "PAUSED")
    for plan, tenant in ((first, ready), (second, paused), (third, running_one)):
        obeyed(api, plan, "cancel", reason="enough")
        ended = until_plan(api, plan, "CANCELLED")
        assert (ended["tasks"], ended["endedAt"] is None) == (counts(cancelled=1), False)
        assert task_of(api, tenant)["status"] == "CANCELLED"
        assert_error(order(api, plan, "start"), 409, "PLAN_STATE_CONFLICT")
        assert_error(order(api, plan, "resume"), 409, "PLAN_STATE_CONFLICT")
    assert each_seen(target) == {paused: ["one"], running_one: ["one"]}


# One tenant


def test_a_cancelled_tenant_ends_at_once_and_the_others_go_on(api: httpx2.Client, target: Target) -> None:
    first, second = some_tenants(2)
    plan = running(api, holds(target, "one", "two"), [first, second])
    hit = held(target, first, "one")
    task_obeyed(api, first, "cancel", reason="wrong one")
    target.wait_gone(hit)
    cancelled = until_task(api, first, "CANCELLED")
    assert "wrong one" in str(cancelled["reason"])
    assert cancelled["endedAt"] is not None
    release(target, second, "one")
    release(target, second, "two")
    until_task(api, second, "COMPLETED")
    ended = until(api, f"{PLANS}/{plan}", lambda body: body["endedAt"])
    assert ended["tasks"] == counts(completed=1, cancelled=1)
    assert seen(target, first) == ["one"]


def test_orders_that_do_not_fit_the_state_of_the_task_are_refused(api: httpx2.Client, target: Target) -> None:
    def refused(tenant: str, *orders: str) -> None:
        for what in orders:
            assert_error(task_order(api, tenant, what), 409, "TASK_STATE_CONFLICT")

    fine, bad, gone = some_tenants(3)
    stages = [*holds(target, "one"), fails(target, "two")]
    plan = running(api, stages, [fine, failing(bad), gone], maxConcurrency=3)
    held(target, fine, "one")
    refused(fine, "retry")
    held(target, gone, "one")
    task_obeyed(api, gone, "cancel")
    until_task(api, gone, "CANCELLED")
    release(target, fine, "one")
    release(target, bad, "one")
    until_task(api, fine, "COMPLETED")
    until_task(api, bad, "FAILED")
    refused(fine, "pause", "resume", "cancel", "retry")
    refused(bad, "pause", "resume")
    refused(gone, "pause", "resume")
    until(api, f"{PLANS}/{plan}", lambda body: body["endedAt"])


def test_the_run_of_a_task_takes_orders_only_through_the_plan(api: httpx2.Client, target: Target) -> None:
    (tenant,) = some_tenants(1)
    plan = running(api, holds(target, "one"), [tenant])
    held(target, tenant, "one")
    run = task_of(api, tenant)["runId"]
    assert run is not None
    for what in ("stop", "close", "resume", "retry-failed"):
        assert_error(api.post(f"{RUNS}/{run}:{what}"), 409, "RUN_OF_PLAN")
    node = api.get(f"{RUNS}/{run}").json()["nodes"][0]["nodeId"]
    assert_error(api.post(f"{RUNS}/{run}/nodes/{node}:retry"), 409, "RUN_OF_PLAN")
    release(target, tenant, "one")
    until_plan(api, plan, "COMPLETED")
    assert_error(api.post(f"{RUNS}/{run}:close"), 409)


# Checkpoints


def test_a_checkpoint_grows_with_the_stages_and_goes_with_the_end(api: httpx2.Client, target: Target) -> None:
    (tenant,) = some_tenants(1)
    plan = running(api, holds(target, "one", "two", "three"), [tenant])
    held(target, tenant, "one")
    assert_error(api.get(f"{TENANTS}/{tenant}/checkpoint"), 404, "CHECKPOINT_NOT_FOUND")
    assert task_of(api, tenant)["hasCheckpoint"] is False
    release(target, tenant, "one")
    held(target, tenant, "two")
    first = checkpoint_of(api, tenant)
    assert (first["lastCompletedStageIndex"], first["completedStages"], first["contextData"]) == (0, ["one"], {})
    assert (first["planId"], first["tenantId"], first["expiresAt"]) == (plan, tenant, None)
    assert first["taskId"] == task_of(api, tenant)["taskId"]
    release(target, tenant, "two")
    held(target, tenant, "three")
    second = checkpoint_of(api, tenant)
    assert (second["lastCompletedStageIndex"], second["completedStages"]) == (1, ["one", "two"])
    assert second["version"] > first["version"]
    assert instant(second["savedAt"]) >= instant(first["savedAt"])
    release(target, tenant, "three")
    until_plan(api, plan, "COMPLETED")
    assert_error(api.get(f"{TENANTS}/{tenant}/checkpoint"), 404, "CHECKPOINT_NOT_FOUND")


def test_a_checkpoint_takes_data_of_ones_own_and_refuses_a_stale_writer(api: httpx2.Client, target: Target) -> None:
    (tenant,) = some_tenants(1)
    plan = running(api, [*calls(target, "one"), *holds(target, "two")], [tenant])
    held(target, tenant, "two")
    path = f"{TENANTS}/{tenant}/checkpoint"
    before = checkpoint_of(api, tenant)
    first = api.put(path, json={"contextData": {"customKey": "customValue", "n": 1}, "version": before["version"]})
    assert first.status_code == 200, first.text
    assert first.json()["contextData"] == {"customKey": "customValue", "n": 1}
    assert first.json()["version"] > before["version"]
    assert_error(
        api.put(path, json={"contextData": {"n": 3}, "version": before["version"]}), 409, "CHECKPOINT_CONFLICT"
    )
    merged = api.put(path, json={"contextData": {"n": 2}})
    assert merged.json()["contextData"] == {"customKey": "customValue", "n": 2}
    assert merged.json()["completedStages"] == ["one"]
    assert checkpoint_of(api, tenant) == merged.json()
    assert_error(api.delete(path), 409, "TASK_STATE_CONFLICT")
    release(target, tenant, "two")
    until_plan(api, plan, "COMPLETED")
    assert_error(api.put(path, json={"contextData": {}}), 409, "TASK_STATE_CONFLICT")
    assert api.delete(path).status_code in {404, 409}


def test_the_data_of_a_checkpoint_stays_as_stages_are_added(api: httpx2.Client, target: Target) -> None:
    (tenant,) = some_tenants(1)
    plan = running(api, [*calls(target, "one"), *holds(target, "two", "three")], [tenant])
    held(target, tenant, "two")
    assert api.put(f"{TENANTS}/{tenant}/checkpoint", json={"contextData": {"kept": True}}).status_code == 200
    release(target, tenant, "two")
    held(target, tenant, "three")
    found = checkpoint_of(api, tenant)
    assert (found["completedStages"], found["contextData"]) == (["one", "two"], {"kept": True})
    obeyed(api, plan, "cancel")
    until_plan(api, plan, "CANCELLED")
    assert_error(api.get(f"{TENANTS}/{tenant}/checkpoint"), 404, "CHECKPOINT_NOT_FOUND")


def test_without_its_checkpoint_a_failed_task_begins_from_the_start(api: httpx2.Client, target: Target) -> None:
    (tenant,) = some_tenants(1)
    plan = running(api, [*calls(target, "one"), fails(target, "two")], [failing(tenant, 1)])
    until_plan(api, plan, "FAILED")
    found = checkpoint_of(api, tenant)
    assert found["completedStages"] == ["one"]
    assert instant(found["expiresAt"]) > instant(found["savedAt"])
    path = f"{TENANTS}/{tenant}/checkpoint"
    assert_error(api.delete(path, params={"version": found["version"] + 1}), 409, "CHECKPOINT_CONFLICT")
    assert api.delete(path, params={"version": found["version"]}).status_code == 204
    assert_error(api.get(path), 404, "CHECKPOINT_NOT_FOUND")
    assert_error(api.delete(path), 404, "CHECKPOINT_NOT_FOUND")
    assert task_of(api, tenant)["hasCheckpoint"] is False
    task_obeyed(api, tenant, "retry", fromCheckpoint=True)
    until_plan(api, plan, "COMPLETED")
    assert seen(target, tenant) == ["one", "two", "one", "two"]


def test_a_task_that_never_completed_a_stage_has_no_checkpoint(api: httpx2.Client, target: Target) -> None:
    (tenant,) = some_tenants(1)
    plan = running(api, [fails(target, "one"), *calls(target, "two")], [failing(tenant, 1)])
    until_plan(api, plan, "FAILED")
    assert task_of(api, tenant)["checkpoint"] is None
    task_obeyed(api, tenant, "retry")
    until_plan(api, plan, "COMPLETED")
    assert seen(target, tenant) == ["one", "one", "two"]
    assert set(stages_of(task_of(api, tenant)).values()) == {"SUCCESS"}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "contextData"),
        ({"contextData": [1]}, "contextData"),
        ({"contextData": {}, "version": "1"}, "version"),
        ({"contextData": {}, "hue": 1}, "hue"),
    ],
)
def test_a_checkpoint_that_is_wrong_is_refused(
    api: httpx2.Client, target: Target, body: dict[str, object], field: str
) -> None:
    (tenant,) = some_tenants(1)
    create(api, calls(target, "one"), [tenant])
    assert_refused(api.put(f"{TENANTS}/{tenant}/checkpoint", json=body), field)


def test_a_tenant_without_a_task_has_no_checkpoint(api: httpx2.Client) -> None:
    path = f"{TENANTS}/{NOBODY}/checkpoint"
    assert api.get(path).status_code == 404
    assert api.put(path, json={"contextData": {}}).status_code == 404
    assert api.delete(path).status_code == 404


# Many at once


def test_of_many_plans_for_one_tenant_at_once_one_is_taken(api: httpx2.Client, target: Target) -> None:
    (tenant,) = some_tenants(1)
    plans = [a_plan(holds(target, "one"), [tenant], autoStart=True) for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda plan: api.post(PLANS, json=plan), plans))
    assert sorted(answer.status_code for answer in answers) == [201, *[409] * 7]
    (taken,) = (done(answer)["planId"] for answer in answers if answer.status_code == 201)
    for answer in answers:
        if answer.status_code == 409:
            assert assert_error(answer, 409, "TENANT_BUSY")["planId"] == taken
    release(target, tenant, "one")
    until_plan(api, taken, "COMPLETED")
    assert seen(target, tenant) == ["one"]


def test_of_many_equal_orders_at_once_one_is_obeyed(api: httpx2.Client, target: Target) -> None:
    first, second = some_tenants(2)
    stages = [*calls(target, "one"), fails(target, "two")]
    plan = create(api, stages, [failing(first, 1), second])["planId"]

    def at_once(*paths: str) -> list[int]:
        with ThreadPoolExecutor(8) as pool:
            return sorted(answer.status_code for answer in pool.map(api.post, paths))

    assert at_once(*[f"{PLANS}/{plan}:start"] * 6) == [200, *[409] * 5]
    until_plan(api, plan, "FAILED")
    retried = at_once(*[f"{TENANTS}/{first}/task:retry"] * 4, *[f"{PLANS}/{plan}:retry-failed"] * 4)
    assert retried.count(200) >= 1
    until_plan(api, plan, "COMPLETED")
    assert each_seen(target) == {first: ["one", "two", "two"], second: ["one", "two"]}


def test_of_many_writers_of_one_version_one_wins(api: httpx2.Client, target: Target) -> None:
    (tenant,) = some_tenants(1)
    plan = running(api, [*calls(target, "one"), *holds(target, "two")], [tenant])
    held(target, tenant, "two")
    path = f"{TENANTS}/{tenant}/checkpoint"
    version = checkpoint_of(api, tenant)["version"]

    def write(number: int) -> int:
        return api.put(path, json={"contextData": {f"k{number}": number}, "version": version}).status_code

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(write, range(8))) == [200, *[409] * 7]
    assert len(checkpoint_of(api, tenant)["contextData"]) == 1
    release(target, tenant, "two")
    until_plan(api, plan, "COMPLETED")


def test_those_who_come_back_wait_for_a_place_like_the_others(api: httpx2.Client, target: Target) -> None:
    paused, bad, third, fourth = some_tenants(4)
    stages = [*holds(target, "one"), fails(target, "two"), *holds(target, "three")]
    plan = running(api, stages, [paused, failing(bad, 1), third, fourth], maxConcurrency=2)
    held(target, paused, "one")
    task_obeyed(api, paused, "pause")
    release(target, paused, "one")
    until_task(api, paused, "PAUSED")
    release(target, bad, "one")
    until_task(api, bad, "FAILED")
    held(target, third, "one")
    held(target, fourth, "one")
    task_obeyed(api, paused, "resume")
    task_obeyed(api, bad, "retry")
    left = {paused: 1, bad: 1, third: 2, fourth: 2}
    drive(target, left, most=2)
    until_plan(api, plan, "COMPLETED")
    assert each_seen(target) == {
        paused: ["one", "two", "three"],
        bad: ["one", "two", "two", "three"],
        third: ["one", "two", "three"],
        fourth: ["one", "two", "three"],
    }


def test_a_tenant_that_has_not_begun_can_be_paused_resumed_and_cancelled(api: httpx2.Client, target: Target) -> None:
    first, second, third, fourth = some_tenants(4)
    plan = running(api, holds(target, "one"), [first, second, third, fourth])
    held(target, first, "one")
    waits = task_obeyed(api, second, "pause")
    assert waits["pauseRequested"] or waits["status"] == "PAUSED"
    assert task_obeyed(api, third, "cancel")["status"] == "CANCELLED"
    release(target, first, "one")
    release(target, fourth, "one")
    until_task(api, fourth, "COMPLETED")
    assert set(each_seen(target)) == {first, fourth}
    assert fetch(api, plan)["status"] == "RUNNING"
    task_obeyed(api, second, "resume")
    release(target, second, "one")
    ended = until(api, f"{PLANS}/{plan}", lambda body: body["endedAt"])
    assert ended["tasks"] == counts(completed=3, cancelled=1)
    assert seen(target, third) == []


def test_tasks_that_wait_for_a_busy_tenant_come_one_after_the_other_and_can_be_cancelled(
    api: httpx2.Client, target: Target
) -> None:
    (tenant,) = some_tenants(1)
    first = running(api, holds(target, "first"), [tenant])
    held(target, tenant, "first")
    second, third, fourth = (
        running(api, holds(target, name), [tenant], onBusy="WAIT") for name in ("second", "third", "fourth")
    )
    assert api.post(f"{TENANTS}/{tenant}/task:cancel", params={"planId": third}).status_code == 200
    until_task(api, tenant, "CANCELLED", planId=third)
    release(target, tenant, "first")
    drive(target, {tenant: 2}, most=2)
    for plan in (first, second, fourth):
        until_plan(api, plan, "COMPLETED")
    assert seen(target, tenant)[0] == "first"
    assert sorted(seen(target, tenant)) == ["first", "fourth", "second"]


@pytest.mark.parametrize("tenant", ["{}", "{}.a_b-c", "{}:x", "{}%41"])
def test_a_tenant_may_be_named_as_other_things_are(api: httpx2.Client, target: Target, tenant: str) -> None:
    name = tenant.format(unique("1").replace("-", ""))
    answer = api.post(PLANS, json=a_plan(calls(target, "one"), [name], autoStart=True))
    if answer.status_code == 400:
        assert_refused(answer, "tenants")
        return
    plan = done(answer)["planId"]
    until_plan(api, plan, "COMPLETED")
    assert task_of(api, quote(name, safe=""))["tenantId"] == name
