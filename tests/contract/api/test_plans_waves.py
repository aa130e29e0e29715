"""The issue: waves, their pauses and gates; the failure budget. A tenant's failure never stops the others."""

import httpx2
import pytest

from tests.contract.api.conftest import ON_SQLITE, until
from tests.contract.api.cronjob_world import assert_error
from tests.contract.api.plans_world import (
    PLANS,
    Json,
    a_plan,
    assert_refused,
    calls,
    counts,
    create,
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
    states_in,
    tasks_in,
    tenant_of,
    until_plan,
    until_task,
)
from tests.contract.api.witness import Target

pytestmark = ON_SQLITE

STRICT = {"maxFailedPercent": 0}


def waves_of(plan: Json) -> list[tuple[int, int, str]]:
    """The number, the tenants and the status of each wave."""
    return [(wave["wave"], wave["tenants"], wave["status"]) for wave in plan["waves"]]


def test_waves_take_their_share_of_the_tenants_and_the_rest_is_the_last(api: httpx2.Client, target: Target) -> None:
    tenants = some_tenants(10)
    given = [{"size": 1, "pauseAfter": True, "gate": STRICT}, {"percent": 30, "gate": {"maxFailedPercent": 5}}]
    plan = create(api, calls(target, "one"), tenants, waves=given)
    assert waves_of(plan) == [(1, 1, "PENDING"), (2, 3, "PENDING"), (3, 6, "PENDING")]
    first, second, rest = plan["waves"]
    assert (first["size"], first["pauseAfter"], first["gate"]) == (1, True, STRICT)
    assert (second["percent"], second["pauseAfter"], second["gate"]) == (30, False, {"maxFailedPercent": 5})
    assert (rest.get("size"), rest.get("percent"), rest["pauseAfter"], rest["gate"]) == (None, None, False, None)
    assert [task["wave"] for task in tasks_in(api, plan["planId"])] == [1, *[2] * 3, *[3] * 6]
    obeyed(api, plan["planId"], "cancel")


def test_a_wave_of_a_small_part_has_somebody_and_one_of_too_many_has_all(api: httpx2.Client, target: Target) -> None:
    few = create(api, calls(target, "one"), some_tenants(3), waves=[{"percent": 1}, {"percent": 1}])
    assert waves_of(few) == [(1, 1, "PENDING"), (2, 1, "PENDING"), (3, 1, "PENDING")]
    answer = api.post(PLANS, json=a_plan(calls(target, "one"), some_tenants(3), waves=[{"size": 5}], autoStart=True))
    if answer.status_code == 400:
        assert_refused(answer, "waves")
    else:
        until_plan(api, answer.json()["planId"], "COMPLETED")
    assert order(api, few["planId"], "cancel").status_code == 200


def test_a_wave_begins_when_the_one_before_has_ended(api: httpx2.Client, target: Target) -> None:
    first, second, third = some_tenants(3)
    plan = running(api, holds(target, "one"), [first, second, third], maxConcurrency=3, waves=[{"size": 2}])
    target.wait_held(2)
    assert fetch(api, plan)["currentWave"] == 1
    assert waves_of(fetch(api, plan)) == [(1, 2, "RUNNING"), (2, 1, "PENDING")]
    release(target, first, "one")
    until_task(api, first, "COMPLETED")
    assert seen(target, third) == []
    release(target, second, "one")
    held(target, third, "one")
    assert waves_of(fetch(api, plan)) == [(1, 2, "DONE"), (2, 1, "RUNNING")]
    assert fetch(api, plan)["currentWave"] == 2
    release(target, third, "one")
    assert waves_of(until_plan(api, plan, "COMPLETED")) == [(1, 2, "DONE"), (2, 1, "DONE")]


def test_a_plan_pauses_after_its_canary_if_told_so(api: httpx2.Client, target: Target) -> None:
    canary, *others = some_tenants(3)
    waves = [{"size": 1, "pauseAfter": True, "gate": STRICT}]
    plan = running(api, calls(target, "one"), [canary, *others], maxConcurrency=3, waves=waves)
    paused = until_plan(api, plan, "PAUSED")
    assert paused["pauseReason"] == "wave_done"
    assert paused["message"]
    assert paused["tasks"] == counts(completed=1, waiting=2)
    assert paused["waves"][0]["status"] == "DONE"
    assert set(each_seen(target)) == {canary}
    obeyed(api, plan, "resume")
    until_plan(api, plan, "COMPLETED")
    assert each_seen(target) == {tenant: ["one"] for tenant in (canary, *others)}


def test_a_gate_that_is_not_met_pauses_the_plan_until_it_is_met_or_overridden(
    api: httpx2.Client, target: Target
) -> None:
    canary, second, rest = some_tenants(3)
    waves = [{"size": 2, "gate": {"maxFailedPercent": 49}}]
    plan = running(api, [fails(target, "one")], [failing(canary, 1), second, rest], maxConcurrency=3, waves=waves)
    paused = until_plan(api, plan, "PAUSED")
    assert (paused["pauseReason"], paused["tasks"]) == ("gate", counts(completed=1, failed=1, waiting=1))
    assert "49" in paused["message"]
    assert_error(order(api, plan, "resume"), 409, "GATE_NOT_MET")
    assert fetch(api, plan)["status"] == "PAUSED"
    assert seen(target, rest) == []
    assert obeyed(api, plan, "retry-failed")["retried"] == 1
    until_task(api, canary, "COMPLETED")
    found = until(api, f"{PLANS}/{plan}", lambda body: body["waves"][0]["tasks"]["completed"] == 2)
    if found["status"] == "PAUSED":
        obeyed(api, plan, "resume")
    until_plan(api, plan, "COMPLETED")
    assert seen(target, rest) == ["one"]


def test_a_gate_may_be_overridden(api: httpx2.Client, target: Target) -> None:
    canary, rest = some_tenants(2)
    waves = [{"size": 1, "gate": STRICT}]
    plan = running(api, [fails(target, "one")], [failing(canary), rest], waves=waves)
    assert until_plan(api, plan, "PAUSED")["pauseReason"] == "gate"
    assert_error(order(api, plan, "resume", override=False), 409, "GATE_NOT_MET")
    obeyed(api, plan, "resume", override=True, reason="known")
    ended = until_plan(api, plan, "FAILED")
    assert ended["tasks"] == counts(failed=1, completed=1)
    assert states_in(api, plan) == {canary: "FAILED", rest: "COMPLETED"}


def test_a_gate_that_is_just_met_lets_the_next_wave_begin(api: httpx2.Client, target: Target) -> None:
    bad, fine, rest = some_tenants(3)
    waves = [{"size": 2, "gate": {"maxFailedPercent": 50}}]
    plan = running(api, [fails(target, "one")], [failing(bad), fine, rest], waves=waves)
    until_plan(api, plan, "FAILED")
    assert states_in(api, plan) == {bad: "FAILED", fine: "COMPLETED", rest: "COMPLETED"}


def test_without_a_budget_no_failure_stops_the_others(api: httpx2.Client, target: Target) -> None:
    tenants = some_tenants(6)
    plan = running(api, [fails(target, "one")], [*map(failing, tenants[:5]), tenants[5]])
    ended = until_plan(api, plan, "FAILED")
    assert ended["tasks"] == counts(failed=5, completed=1)
    assert ended["pauseReason"] is None


@pytest.mark.parametrize(("budget", "allowed"), [(0, 0), (1, 1), ("20%", 2)])
def test_the_plan_pauses_when_more_tenants_have_failed_than_the_budget_allows(
    api: httpx2.Client, target: Target, budget: int | str, allowed: int
) -> None:
    tenants = some_tenants(10)
    bad = allowed + 1
    given: list[str | Json] = [*(failing(tenant, 1) for tenant in tenants[:bad]), *tenants[bad:]]
    plan = running(api, [fails(target, "one")], given, failureBudget=budget)
    paused = until_plan(api, plan, "PAUSED")
    assert paused["failureBudget"] == budget
    assert paused["pauseReason"] == "failure_budget"
    assert paused["tasks"] == counts(failed=bad, waiting=10 - bad)
    assert str(bad) in paused["message"]
    assert len(target.hits) == bad
    assert_error(order(api, plan, "resume"), 409, "FAILURE_BUDGET_EXCEEDED")
    assert obeyed(api, plan, "retry-failed")["retried"] == bad
    found = until(api, f"{PLANS}/{plan}", lambda body: body["tasks"]["completed"] >= bad)
    if found["status"] == "PAUSED":
        obeyed(api, plan, "resume")
    until_plan(api, plan, "COMPLETED")


def test_a_budget_may_be_overridden(api: httpx2.Client, target: Target) -> None:
    first, second, third = some_tenants(3)
    plan = running(api, [fails(target, "one")], [failing(first), second, third], failureBudget=0)
    until_plan(api, plan, "PAUSED")
    assert_error(order(api, plan, "resume"), 409, "FAILURE_BUDGET_EXCEEDED")
    obeyed(api, plan, "resume", override=True)
    ended = until_plan(api, plan, "FAILED")
    assert ended["tasks"] == counts(failed=1, completed=2)


def test_those_under_way_when_the_budget_is_exceeded_lose_nothing(api: httpx2.Client, target: Target) -> None:
    bad, busy, rest = some_tenants(3)
    stages = [*holds(target, "one"), fails(target, "two"), *calls(target, "three")]
    plan = running(api, stages, [failing(bad), busy, rest], failureBudget=0, maxConcurrency=2)
    held(target, busy, "one")
    release(target, bad, "one")
    until_task(api, bad, "FAILED")
    until_plan(api, plan, "PAUSED")
    release(target, busy, "one")
    until_task(api, busy, "PAUSED", "COMPLETED")
    assert rest not in {tenant_of(hit) for hit in target.hits}
    obeyed(api, plan, "resume", override=True)
    release(target, rest, "one")
    until_plan(api, plan, "FAILED")
    assert seen(target, busy) == ["one", "two", "three"]
    assert seen(target, rest) == ["one", "two", "three"]
