"""Plans on every database: what follows from the ends of stages, from waves, gates and budgets, and from what people ask for."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import text

from ksana.domain.errors import (
    BudgetSpent,
    CheckpointStale,
    GateShut,
    IdTaken,
    InvalidInput,
    PlanRefused,
    RunOfPlan,
    TaskRefused,
    TenantBusy,
    UnknownJob,
)
from ksana.domain.events import EventType
from ksana.domain.plan import TaskStatus
from ksana.domain.states import RunStatus
from ksana.runtime.base import Lifetimes
from ksana.runtime.sql import SqlRuntime
from ksana.store.requests import PurgeRequest
from ksana.store.sql.store import SqlStore
from tests.clock import FakeClock
from tests.contract.store.conftest import BACK_ENDS
from tests.contract.store.world import ANNA
from tests.unit.engine.plan_world import Rollout, stage
from tests.unit.engine.simulation import Simulation

WEEK = timedelta(days=7)


@pytest.fixture(params=BACK_ENDS[:3])
def back_end(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def rollout(store: SqlStore, clock: FakeClock) -> AsyncIterator[Rollout]:
    simulation = Simulation(store, clock)
    await simulation.join()
    yield Rollout(simulation)
    await simulation.engine.workers.drain(timedelta(0))


# Stages and tenants -----------------------------------------------------------------------------------------------------


async def test_every_tenant_goes_through_every_stage_in_order(rollout: Rollout) -> None:
    key = await rollout.run("a", "b", "c")
    assert await rollout.status(key) == "COMPLETED"
    assert await rollout.tasks(key) == {"a": "COMPLETED", "b": "COMPLETED", "c": "COMPLETED"}
    for tenant in "abc":
        mine = [name for name in rollout.order if name.startswith(tenant)]
        assert mine == [f"{tenant}/prepare", f"{tenant}/migrate", f"{tenant}/verify"]


async def test_no_more_tenants_than_it_says_are_under_way(rollout: Rollout) -> None:
    names = [f"t{number}" for number in range(6)]
    rollout.hold(*(f"{name}/prepare" for name in names))
    key = await rollout.run(*names)
    assert sorted((await rollout.tasks(key)).values()) == ["CREATED"] * 4 + ["RUNNING"] * 2
    assert rollout.most_at_once == 2
    await rollout.let_go("t0/prepare")
    assert (await rollout.tasks(key))["t2"] == "RUNNING"
    await rollout.let_go(*(f"{name}/prepare" for name in names))
    assert rollout.most_at_once == 2
    assert await rollout.status(key) == "COMPLETED"


async def test_a_plan_that_does_not_start_by_itself_waits_for_its_start(rollout: Rollout) -> None:
    key = await rollout.run("a", autoStart=False)
    assert (await rollout.status(key), rollout.order) == ("READY", [])
    await rollout.plans.start(key, ANNA)
    await rollout.settle()
    assert await rollout.status(key) == "COMPLETED"
    with pytest.raises(PlanRefused):
        await rollout.plans.start(key, ANNA)


async def test_a_tenant_that_fails_stops_no_other(rollout: Rollout) -> None:
    rollout.fails("a/migrate")
    key = await rollout.run("a", "b", "c")
    assert await rollout.tasks(key) == {"a": "FAILED", "b": "COMPLETED", "c": "COMPLETED"}
    assert await rollout.status(key) == "FAILED"
    task = await rollout.task("a")
    assert task.last_completed == 0
    assert "a/migrate failed" in (task.error or "")


async def test_stages_see_their_tenant_and_what_the_plan_gives_them(rollout: Rollout) -> None:
    key = await rollout.run(
        "a", params={"version": 12, "region": "us"}, tenants=["x", {"tenantId": "y", "params": {"region": "eu"}}]
    )
    seen = {each.params["tenantId"]: each.params for each in rollout.asked}
    assert {name: (given["version"], given["region"]) for name, given in seen.items()} == {
        "x": (12, "us"),
        "y": (12, "eu"),
    }
    assert {given["planId"] for given in seen.values()} == {key}
    assert seen["x"]["taskId"] == (await rollout.task("x")).key


async def test_a_stage_retries_as_its_policy_says(rollout: Rollout) -> None:
    rollout.flaky("a/migrate", times=2)
    stages = [stage("prepare"), stage("migrate", retry={"maxAttempts": 3}), stage("verify")]
    key = await rollout.run("a", stages=stages)
    assert await rollout.status(key) == "COMPLETED"
    assert rollout.order.count("a/migrate") == 3


# One task a tenant ------------------------------------------------------------------------------------------------------


async def test_a_tenant_that_has_a_task_is_refused_and_told_whose(rollout: Rollout) -> None:
    rollout.hold("a/prepare")
    first = await rollout.run("a")
    task = await rollout.task("a")
    with pytest.raises(TenantBusy) as refused:
        await rollout.plan("z", "a")
    assert refused.value.details == {"tenantId": "a", "planId": first, "taskId": task.key}
    assert await rollout.simulation.store.tasks_of(["z"]) == {}
    await rollout.let_go("a/prepare")
    second = await rollout.run("a")
    assert await rollout.status(second) == "COMPLETED"


async def test_or_waits_for_the_tenant_if_its_plan_says_so(rollout: Rollout) -> None:
    rollout.hold("a/prepare")
    first = await rollout.run("a")
    second = await rollout.run("a", "b", onBusy="WAIT")
    assert await rollout.tasks(second) == {"a": "WAITING_FOR_LOCK", "b": "COMPLETED"}
    assert (await rollout.task("a")).plan_key == first
    await rollout.let_go("a/prepare")
    assert await rollout.tasks(second) == {"a": "COMPLETED", "b": "COMPLETED"}
    assert await rollout.status(second) == "COMPLETED"


async def test_a_busy_tenant_takes_no_place_from_the_others(rollout: Rollout) -> None:
    rollout.hold("a/prepare", "b/prepare")
    await rollout.run("a", "b")
    second = await rollout.run("a", "b", "c", "d", "e", onBusy="WAIT")
    assert await rollout.tasks(second) == {
        **dict.fromkeys("ab", "WAITING_FOR_LOCK"),
        **dict.fromkeys("cde", "COMPLETED"),
    }
    await rollout.let_go("a/prepare", "b/prepare")
    assert await rollout.status(second) == "COMPLETED"


async def test_each_time_that_a_tenant_is_taken_its_token_grows(rollout: Rollout) -> None:
    fences = []
    for _ in range(3):
        await rollout.run("a")
        fences.append((await rollout.task("a")).fence)
    assert fences == [1, 2, 3]


async def test_a_stage_whose_lock_is_gone_does_not_count(rollout: Rollout, store: SqlStore) -> None:
    rollout.hold("a/migrate")
    key = await rollout.run("a")
    with store._writing.begin() as connection:
        connection.execute(text("UPDATE tenants SET fence = fence + 1 WHERE tenant_id = 'a'"))
    await rollout.let_go("a/migrate")
    assert (await rollout.task("a")).last_completed == 0
    assert await rollout.tasks(key) == {"a": "RUNNING"}


async def test_a_task_that_loses_its_lock_waits_for_it_and_goes_on(rollout: Rollout, store: SqlStore) -> None:
    rollout.hold("a/migrate")
    key = await rollout.run("a")
    task = await rollout.task("a")
    broken_off = await store.lose_lock(task.id, rollout.simulation.clock.now())
    for each in broken_off:
        rollout.simulation.signals.canceled(each)
    assert len(broken_off) == 1
    assert await rollout.tasks(key) == {"a": "WAITING_FOR_LOCK"}
    await rollout.let_go("a/migrate")
    assert await rollout.status(key) == "COMPLETED"
    assert [name for name in rollout.order if "prepare" in name] == ["a/prepare"]


# Pausing a task -----------------------------------------------------------------------------------------------------------


async def test_a_task_pauses_at_its_next_stage_boundary(rollout: Rollout) -> None:
    rollout.hold("a/migrate")
    key = await rollout.run("a", "b")
    asked = await rollout.plans.pause_task("a", None, ANNA)
    assert (asked.status, asked.pause_requested) == (TaskStatus.RUNNING, True)
    await rollout.let_go("a/migrate")
    task = await rollout.task("a")
    assert (task.status, task.pause_requested, task.last_completed) == (TaskStatus.PAUSED, False, 1)
    assert await rollout.status(key) == "RUNNING"
    await rollout.plans.resume_task("a", None, ANNA)
    await rollout.settle()
    assert await rollout.status(key) == "COMPLETED"
    assert [name for name in rollout.order if name.startswith("a/")] == ["a/prepare", "a/migrate", "a/verify"]


async def test_a_paused_task_takes_no_place(rollout: Rollout) -> None:
    rollout.hold("a/prepare", "b/prepare")
    key = await rollout.run("a", "b", "c")
    await rollout.plans.pause_task("a", None, ANNA)
    await rollout.let_go("a/prepare")
    assert await rollout.tasks(key) == {"a": "PAUSED", "b": "RUNNING", "c": "COMPLETED"}
    # And has to wait for one again.
    rollout.hold("d/prepare")
    await rollout.let_go("b/prepare")
    assert await rollout.status(key) == "RUNNING"
    await rollout.plans.resume_task("a", None, ANNA)
    await rollout.settle()
    assert await rollout.status(key) == "COMPLETED"


async def test_a_task_asked_to_pause_during_its_last_stage_is_completed(rollout: Rollout) -> None:
    rollout.hold("a/verify")
    key = await rollout.run("a")
    await rollout.plans.pause_task("a", None, ANNA)
    await rollout.let_go("a/verify")
    assert await rollout.tasks(key) == {"a": "COMPLETED"}
    assert await rollout.status(key) == "COMPLETED"


async def test_a_task_whose_stage_fails_while_it_is_to_pause_has_failed(rollout: Rollout) -> None:
    rollout.hold("a/migrate")
    rollout.fails("a/migrate")
    key = await rollout.run("a")
    await rollout.plans.pause_task("a", None, ANNA)
    await rollout.let_go("a/migrate")
    assert await rollout.tasks(key) == {"a": "FAILED"}
    rollout.recovers("a/migrate")
    await rollout.plans.retry_task("a", None, ANNA)
    await rollout.settle()
    assert await rollout.status(key) == "COMPLETED"


async def test_a_task_that_is_resumed_before_it_paused_goes_on(rollout: Rollout) -> None:
    rollout.hold("a/migrate")
    key = await rollout.run("a")
    await rollout.plans.pause_task("a", None, ANNA)
    resumed = await rollout.plans.resume_task("a", None, ANNA)
    assert (resumed.status, resumed.pause_requested) == (TaskStatus.RUNNING, False)
    await rollout.let_go("a/migrate")
    assert await rollout.status(key) == "COMPLETED"
    assert rollout.order == ["a/prepare", "a/migrate", "a/verify"]


async def test_a_task_that_has_not_begun_can_be_paused_too(rollout: Rollout) -> None:
    key = await rollout.plan("a", "b", autoStart=False)
    await rollout.plans.pause_task("a", None, ANNA)
    await rollout.plans.start(key, ANNA)
    await rollout.settle()
    assert await rollout.tasks(key) == {"a": "PAUSED", "b": "COMPLETED"}
    await rollout.plans.resume_task("a", None, ANNA)
    await rollout.settle()
    assert await rollout.status(key) == "COMPLETED"


async def test_what_has_ended_can_be_neither_paused_nor_resumed(rollout: Rollout) -> None:
    await rollout.run("a")
    for order in (rollout.plans.pause_task, rollout.plans.resume_task, rollout.plans.cancel_task):
        with pytest.raises(TaskRefused):
            await order("a", None, ANNA)
    with pytest.raises(TaskRefused):
        await rollout.plans.retry_task("a", None, ANNA)


# Retrying and cancelling a task -------------------------------------------------------------------------------------------


async def test_a_retry_from_the_checkpoint_does_no_stage_again_that_was_done(rollout: Rollout) -> None:
    rollout.fails("a/verify")
    key = await rollout.run("a")
    rollout.recovers("a/verify")
    await rollout.plans.retry_task("a", None, ANNA)
    await rollout.settle()
    assert await rollout.status(key) == "COMPLETED"
    assert rollout.order == ["a/prepare", "a/migrate", "a/verify", "a/verify"]
    assert (await rollout.task("a")).generation == 1


async def test_a_retry_from_the_start_does_all_of_them(rollout: Rollout) -> None:
    rollout.fails("a/verify")
    key = await rollout.run("a")
    rollout.recovers("a/verify")
    await rollout.plans.retry_task("a", None, ANNA, from_checkpoint=False)
    await rollout.settle()
    assert await rollout.status(key) == "COMPLETED"
    assert rollout.order == ["a/prepare", "a/migrate", "a/verify"] * 2
    assert (await rollout.task("a")).generation == 2


async def test_a_retry_may_try_a_stage_as_often_as_the_first_time(rollout: Rollout) -> None:
    stages = [stage("prepare"), stage("migrate", retry={"maxAttempts": 2})]
    rollout.flaky("a/migrate", times=3)
    key = await rollout.run("a", stages=stages)
    assert await rollout.status(key) == "FAILED"
    await rollout.plans.retry_task("a", None, ANNA)
    await rollout.settle()
    assert await rollout.status(key) == "COMPLETED"
    assert rollout.order.count("a/migrate") == 4


async def test_a_checkpoint_that_is_too_old_is_not_gone_on_from(rollout: Rollout, clock: FakeClock) -> None:
    rollout.fails("a/verify")
    key = await rollout.run("a")
    clock.advance(WEEK + timedelta(seconds=1))
    rollout.recovers("a/verify")
    await rollout.plans.retry_task("a", None, ANNA)
    await rollout.settle()
    assert await rollout.status(key) == "COMPLETED"
    assert rollout.order.count("a/prepare") == 2


async def test_a_retry_of_a_tenant_that_has_another_task_is_refused(rollout: Rollout) -> None:
    rollout.fails("a/verify")
    first = await rollout.run("a")
    rollout.hold("a/prepare")
    second = await rollout.run("a")
    with pytest.raises(TenantBusy) as refused:
        await rollout.plans.retry_task("a", first, ANNA)
    assert refused.value.details["planId"] == second
    _, steered = await rollout.plans.retry_failed(first, ANNA)
    assert (steered.retried, steered.busy) == (0, ("a",))


async def test_a_cancelled_task_is_broken_off(rollout: Rollout) -> None:
    rollout.hold("a/migrate")
    key = await rollout.run("a", "b")
    cancelled = await rollout.plans.cancel_task("a", None, ANNA)
    assert cancelled.status is TaskStatus.CANCELLED
    assert (await rollout.plans.cancel_task("a", None, ANNA)).status is TaskStatus.CANCELLED
    await rollout.settle()
    assert await rollout.tasks(key) == {"a": "CANCELLED", "b": "COMPLETED"}
    assert await rollout.status(key) == "COMPLETED"
    assert "a/verify" not in rollout.order


async def test_a_cancelled_task_can_be_retried_from_the_start(rollout: Rollout) -> None:
    rollout.hold("a/migrate")
    key = await rollout.run("a")
    await rollout.plans.cancel_task("a", None, ANNA)
    rollout.release("a/migrate")
    await rollout.settle()
    assert await rollout.status(key) == "COMPLETED"
    await rollout.plans.retry_task("a", None, ANNA)
    assert await rollout.status(key) == "RUNNING"
    await rollout.settle()
    assert await rollout.tasks(key) == {"a": "COMPLETED"}
    assert rollout.order.count("a/prepare") == 2


# The plan as a whole -------------------------------------------------------------------------------------------------------


async def test_a_paused_plan_begins_no_tenant_and_pauses_those_that_run(rollout: Rollout) -> None:
    rollout.hold("a/prepare", "b/prepare")
    key = await rollout.run("a", "b", "c")
    await rollout.plans.pause(key, ANNA)
    await rollout.let_go("a/prepare", "b/prepare")
    assert await rollout.tasks(key) == {"a": "PAUSED", "b": "PAUSED", "c": "CREATED"}
    plan = await rollout.reread(key)
    assert (plan.status, plan.reason) == ("PAUSED", "paused")
    await rollout.plans.resume(key, ANNA)
    await rollout.settle()
    assert await rollout.status(key) == "COMPLETED"
    assert len(rollout.order) == 9


async def test_or_lets_them_end_if_asked_to(rollout: Rollout) -> None:
    rollout.hold("a/prepare")
    key = await rollout.run("a", "b", "c", maxConcurrency=1)
    await rollout.plans.pause(key, ANNA, tasks=False)
    await rollout.let_go("a/prepare")
    assert await rollout.tasks(key) == {"a": "COMPLETED", "b": "CREATED", "c": "CREATED"}


async def test_a_task_that_was_paused_by_itself_stays_so_when_its_plan_goes_on(rollout: Rollout) -> None:
    rollout.hold("a/prepare", "b/prepare")
    key = await rollout.run("a", "b")
    await rollout.plans.pause_task("a", None, ANNA)
    await rollout.plans.pause(key, ANNA)
    await rollout.let_go("a/prepare", "b/prepare")
    await rollout.plans.resume(key, ANNA)
    await rollout.settle()
    assert await rollout.tasks(key) == {"a": "PAUSED", "b": "COMPLETED"}


async def test_a_plan_resumed_before_its_tasks_have_paused_loses_nothing(rollout: Rollout) -> None:
    rollout.hold("a/prepare")
    key = await rollout.run("a")
    await rollout.plans.pause(key, ANNA)
    await rollout.plans.resume(key, ANNA)
    await rollout.let_go("a/prepare")
    assert await rollout.status(key) == "COMPLETED"
    assert rollout.order == ["a/prepare", "a/migrate", "a/verify"]


async def test_a_cancelled_plan_begins_nothing_any_more(rollout: Rollout) -> None:
    rollout.hold("a/prepare", "b/prepare")
    key = await rollout.run("a", "b", "c")
    await rollout.plans.cancel(key, ANNA)
    assert await rollout.tasks(key) == dict.fromkeys("abc", "CANCELLED")
    await rollout.let_go("a/prepare", "b/prepare")
    assert rollout.order == ["a/prepare", "b/prepare"]
    assert await rollout.status(key) == "CANCELLED"
    for order in (rollout.plans.resume, rollout.plans.pause, rollout.plans.start):
        with pytest.raises(PlanRefused):
            await order(key, ANNA)
    with pytest.raises(PlanRefused):
        await rollout.plans.retry_task("a", None, ANNA)
    # And its tenants are free.
    assert await rollout.status(await rollout.plan("a", "b", "c")) == "RUNNING"


async def test_those_that_failed_can_be_retried_all_at_once(rollout: Rollout) -> None:
    rollout.fails("a/verify", "c/prepare")
    key = await rollout.run("a", "b", "c")
    assert await rollout.status(key) == "FAILED"
    rollout.recovers("a/verify", "c/prepare")
    plan, steered = await rollout.plans.retry_failed(key, ANNA)
    assert (plan.status, steered.retried) == ("RUNNING", 2)
    await rollout.settle()
    assert await rollout.status(key) == "COMPLETED"
    assert (rollout.order.count("a/prepare"), rollout.order.count("b/prepare"), rollout.order.count("c/prepare")) == (
        1,
        1,
        2,
    )


# Waves, gates and budgets -------------------------------------------------------------------------------------------------


async def test_a_wave_begins_when_the_one_before_it_is_done(rollout: Rollout) -> None:
    rollout.hold("a/verify")
    key = await rollout.run("a", "b", "c", "d", waves=[{"size": 1}, {"percent": 50}], maxConcurrency=4)
    assert {name.partition("/")[0] for name in rollout.order} == {"a"}
    rollout.hold("b/verify")
    await rollout.let_go("a/verify")
    assert {name.partition("/")[0] for name in rollout.order} == {"a", "b", "c"}
    await rollout.let_go("b/verify")
    assert await rollout.status(key) == "COMPLETED"
    assert (await rollout.reread(key)).wave == 2


async def test_a_wave_can_end_with_a_pause(rollout: Rollout) -> None:
    key = await rollout.run("a", "b", waves=[{"size": 1, "pauseAfter": True}])
    plan = await rollout.reread(key)
    assert (plan.status, plan.reason) == ("PAUSED", "wave_done")
    assert await rollout.tasks(key) == {"a": "COMPLETED", "b": "CREATED"}
    await rollout.plans.resume(key, ANNA)
    await rollout.settle()
    assert await rollout.status(key) == "COMPLETED"


async def test_a_gate_that_is_not_met_stops_the_rollout_before_the_next_wave(rollout: Rollout) -> None:
    rollout.fails("a/migrate")
    key = await rollout.run("a", "b", "c", waves=[{"size": 2, "gate": {"maxFailedPercent": 40}}])
    plan = await rollout.reread(key)
    assert (plan.status, plan.reason) == ("PAUSED", "gate")
    assert "1 of 2 tenants failed" in (plan.message or "")
    with pytest.raises(GateShut):
        await rollout.plans.resume(key, ANNA)
    rollout.recovers("a/migrate")
    await rollout.plans.retry_failed(key, ANNA)
    await rollout.settle()
    assert (await rollout.tasks(key))["a"] == "COMPLETED"
    assert await rollout.status(key) == "PAUSED"
    await rollout.plans.resume(key, ANNA)
    await rollout.settle()
    assert await rollout.status(key) == "COMPLETED"


async def test_a_person_can_open_a_gate(rollout: Rollout) -> None:
    rollout.fails("a/migrate")
    key = await rollout.run("a", "b", waves=[{"size": 1, "gate": {"maxFailedPercent": 0}}])
    await rollout.plans.resume(key, ANNA, override=True)
    await rollout.settle()
    assert await rollout.tasks(key) == {"a": "FAILED", "b": "COMPLETED"}
    assert await rollout.status(key) == "FAILED"


async def test_a_gate_that_is_met_is_passed(rollout: Rollout) -> None:
    rollout.fails("a/migrate")
    key = await rollout.run("a", "b", "c", waves=[{"size": 2, "gate": {"maxFailedPercent": 50}}])
    assert await rollout.tasks(key) == {"a": "FAILED", "b": "COMPLETED", "c": "COMPLETED"}


async def test_too_many_failures_pause_the_plan_and_it_says_so(rollout: Rollout) -> None:
    rollout.fails("a/prepare", "b/prepare")
    key = await rollout.run(*"abcd", maxConcurrency=1, failureBudget=1)
    plan = await rollout.reread(key)
    assert (plan.status, plan.reason) == ("PAUSED", "failure_budget")
    assert "2 of 4 tenants failed; 1 may" in (plan.message or "")
    assert await rollout.tasks(key) == {"a": "FAILED", "b": "FAILED", "c": "CREATED", "d": "CREATED"}
    with pytest.raises(BudgetSpent):
        await rollout.plans.resume(key, ANNA)
    await rollout.plans.resume(key, ANNA, override=True)
    await rollout.settle()
    assert await rollout.tasks(key) == {"a": "FAILED", "b": "FAILED", "c": "COMPLETED", "d": "COMPLETED"}


async def test_those_that_run_when_the_budget_is_spent_run_on(rollout: Rollout) -> None:
    rollout.hold("b/prepare")
    rollout.fails("a/prepare")
    key = await rollout.run(*"abc", failureBudget="10%")
    assert await rollout.status(key) == "PAUSED"
    await rollout.let_go("b/prepare")
    assert await rollout.tasks(key) == {"a": "FAILED", "b": "COMPLETED", "c": "CREATED"}


# Checkpoints ----------------------------------------------------------------------------------------------------------------


async def test_each_stage_adds_to_the_checkpoint_and_the_end_removes_it(rollout: Rollout, store: SqlStore) -> None:
    rollout.hold("a/verify")
    await rollout.run("a")
    task = await rollout.task("a")
    saved = (await store.task_stages(task.id)).task.checkpoint
    assert saved is not None
    assert (saved.version, saved.last_completed, saved.completed) == (2, 1, ("prepare", "migrate"))
    await rollout.let_go("a/verify")
    assert (await store.task_stages(task.id)).task.checkpoint is None


async def test_a_checkpoint_is_kept_when_a_task_fails(rollout: Rollout, store: SqlStore) -> None:
    rollout.fails("a/migrate")
    await rollout.run("a")
    saved = (await store.task_stages((await rollout.task("a")).id)).task.checkpoint
    assert saved is not None
    assert saved.completed == ("prepare",)


async def test_what_a_stage_saves_is_in_the_checkpoint_and_makes_it_a_new_one(
    rollout: Rollout, store: SqlStore
) -> None:
    rollout.saves("a/migrate", {"rows": 7})
    rollout.fails("a/migrate")
    await rollout.run("a")
    saved = (await store.task_stages((await rollout.task("a")).id)).task.checkpoint
    assert saved is not None
    assert (saved.version, saved.completed, saved.context) == (3, ("prepare",), {"rows": 7})
    task = await rollout.task("a")
    shown = await rollout.simulation.outside.now.checkpoints.get(task.key)
    assert shown is not None
    assert (shown.version, shown.context_data) == (3, {"rows": 7})


async def test_a_late_writer_of_a_checkpoint_is_refused(rollout: Rollout) -> None:
    rollout.fails("a/migrate")
    await rollout.run("a")
    seen = (await rollout.task("a")).checkpoint_version
    task = await rollout.plans.save_context("a", None, {"customKey": "customValue"}, seen, ANNA)
    assert task.checkpoint is not None
    assert (task.checkpoint.version, task.checkpoint.context) == (seen + 1, {"customKey": "customValue"})
    with pytest.raises(CheckpointStale):
        await rollout.plans.save_context("a", None, {"customKey": "older"}, seen, ANNA)
    with pytest.raises(CheckpointStale):
        await rollout.plans.remove_checkpoint("a", None, seen, ANNA)


async def test_without_its_checkpoint_a_retry_begins_anew(rollout: Rollout) -> None:
    rollout.fails("a/verify")
    key = await rollout.run("a")
    await rollout.plans.remove_checkpoint("a", None, None, ANNA)
    rollout.recovers("a/verify")
    await rollout.plans.retry_task("a", None, ANNA)
    await rollout.settle()
    assert rollout.order.count("a/prepare") == 2
    assert await rollout.status(key) == "COMPLETED"


# What is told, kept and refused --------------------------------------------------------------------------------------------


async def test_a_task_that_runs_tells_how_far_it_is_every_ten_seconds(
    rollout: Rollout, store: SqlStore, clock: FakeClock
) -> None:
    rollout.hold("a/migrate")
    await rollout.run("a")
    task = await rollout.task("a")
    told = []
    for _ in range(4):
        clock.advance(timedelta(seconds=5))
        told.append((await rollout.simulation.engine.progress.run_once(clock.now())).done)
    assert told == [0, 1, 0, 1]
    events = await store.task_events(task.id, 0, 100)
    progress = [event.data for event in events if event.type is EventType.TASK_PROGRESSED]
    assert [(each["completed"], each["stages"]) for each in progress] == [(1, 3), (1, 3)]


async def test_what_happens_to_a_task_is_told_in_order(rollout: Rollout, store: SqlStore) -> None:
    rollout.fails("a/migrate", times=1)
    await rollout.run("a")
    await rollout.plans.retry_task("a", None, ANNA)
    await rollout.settle()
    events = await store.task_events((await rollout.task("a")).id, 0, 100)
    assert [str(event.type).removeprefix("task.") for event in events] == [
        *("created", "started", "stage_completed", "failed"),
        *("retried", "started", "stage_completed", "stage_completed", "completed"),
    ]


async def test_every_change_is_in_the_outbox_until_it_is_shown(rollout: Rollout, store: SqlStore) -> None:
    await rollout.plan("a", "b")
    rows = await store.outbox(100)
    assert [row.type for row in rows] == ["plan.created", "task.created", "task.created", "plan.started"]
    assert await store.shown([row.id for row in rows[:2]]) == 2
    assert [row.id for row in await store.outbox(100)] == [row.id for row in rows[2:]]


async def test_the_run_of_a_task_is_steered_by_its_plan_alone(rollout: Rollout) -> None:
    rollout.hold("a/prepare")
    await rollout.run("a")
    run = (await rollout.task("a")).run_key or ""
    orders = rollout.simulation.workflow_runs
    for order in (orders.close, orders.resume, orders.retry_failed):
        with pytest.raises(RunOfPlan):
            await order(run, ANNA)
    with pytest.raises(RunOfPlan):
        await orders.stop(run, ANNA, force=True)


async def test_a_stage_can_be_completed_and_left_out_by_hand_while_its_task_runs(
    rollout: Rollout, store: SqlStore
) -> None:
    rollout.hold("a/prepare", "a/migrate")
    key = await rollout.run("a")
    run = (await rollout.task("a")).run_key or ""
    await rollout.simulation.workflow_runs.skip_node(run, "verify", ANNA)
    await rollout.simulation.workflow_runs.complete_node(run, "prepare", ANNA, None, None)
    await rollout.settle()
    await rollout.let_go("a/prepare", "a/migrate")
    assert await rollout.status(key) == "COMPLETED"
    assert (await rollout.task("a")).last_completed == 2
    assert (await store.workflow_run_by_key(run)).status is RunStatus.SUCCESS


async def test_what_is_wrong_with_a_plan_is_named(rollout: Rollout) -> None:
    with pytest.raises(UnknownJob) as unknown:
        await rollout.plan("a", stages=[{"name": "x", "jobId": "nobody"}])
    assert unknown.value.field == "stages[0].jobId"
    with pytest.raises(InvalidInput) as wrong:
        await rollout.plan("a", stages=[stage("x"), stage("y", retry={"maxAttempts": 0})])
    assert wrong.value.field == "stages[1].retry.maxAttempts"
    key = await rollout.plan("a", autoStart=False)
    with pytest.raises(IdTaken):
        await rollout.plan("b", planId=key)


async def test_plans_are_kept_for_as_long_as_other_history(rollout: Rollout, store: SqlStore, clock: FakeClock) -> None:
    rollout.fails("b/prepare")
    ended = await rollout.run("a", "b")
    rollout.hold("c/prepare")
    going_on = await rollout.run("c")
    unstarted = await rollout.plan("d", autoStart=False, stages=("alone",))
    clock.advance(timedelta(days=40))
    for _ in range(3):
        await store.purge(PurgeRequest(clock.now() - timedelta(days=30), 100_000))
    assert set(await store.tasks_of(["a", "b", "c", "d"])) == {"c", "d"}
    assert await rollout.status(going_on) == "RUNNING"
    with pytest.raises(KeyError):
        (await rollout.tasks_by_plan())[ended]
    await rollout.plans.start(unstarted, ANNA)
    await rollout.let_go("c/prepare")
    assert await rollout.status(unstarted) == "COMPLETED"
    with store._writing.begin() as connection:
        left = connection.execute(text("SELECT count(*) FROM workflow_runs")).scalar_one()
    assert left == 2


async def test_a_removed_checkpoint_does_not_come_back_with_its_stages(rollout: Rollout) -> None:
    rollout.fails("a/verify")
    await rollout.run("a")
    await rollout.plans.remove_checkpoint("a", None, None, ANNA)
    task = await rollout.plans.save_context("a", None, {"k": 1}, None, ANNA)
    assert task.checkpoint is not None
    assert task.checkpoint.completed == ()
    rollout.recovers("a/verify")
    await rollout.plans.retry_task("a", None, ANNA)
    await rollout.settle()
    assert rollout.order.count("a/prepare") == 2


async def test_nor_does_one_that_is_too_old(rollout: Rollout, clock: FakeClock) -> None:
    rollout.fails("a/verify")
    await rollout.run("a")
    clock.advance(WEEK)
    task = await rollout.plans.save_context("a", None, {"k": 1}, None, ANNA)
    assert task.checkpoint is not None
    assert task.checkpoint.completed == ()


@pytest.mark.parametrize("reason", ["timeout", "fail_fast", "pause_requested"])
async def test_a_cancelled_task_is_cancelled_whatever_the_reason_is_called(rollout: Rollout, reason: str) -> None:
    rollout.hold("a/migrate")
    await rollout.run("a")
    cancelled = await rollout.plans.cancel_task("a", None, replace(ANNA, reason=reason))
    assert cancelled.status is TaskStatus.CANCELLED


async def test_two_plans_that_wait_for_tenants_do_not_wait_for_each_other(rollout: Rollout) -> None:
    waves = [{"size": 1}]
    first = await rollout.plan("y", "x", onBusy="WAIT", waves=waves, autoStart=False)
    second = await rollout.plan("x", "y", onBusy="WAIT", waves=waves, autoStart=False)
    for key in (first, second):
        await rollout.plans.start(key, ANNA)
    await rollout.settle()
    assert (await rollout.status(first), await rollout.status(second)) == ("COMPLETED", "COMPLETED")


async def test_a_pause_is_kept_to_when_the_lock_is_lost(rollout: Rollout, store: SqlStore) -> None:
    rollout.hold("a/migrate")
    await rollout.run("a")
    await rollout.plans.pause_task("a", None, ANNA)
    for each in await store.lose_lock((await rollout.task("a")).id, rollout.simulation.clock.now()):
        rollout.simulation.signals.canceled(each)
    rollout.release("a/migrate")
    await rollout.settle()
    assert (await rollout.task("a")).status is TaskStatus.PAUSED


async def test_a_checkpoint_lives_from_the_failure_on(rollout: Rollout, clock: FakeClock) -> None:
    rollout.hold("a/migrate")
    await rollout.run("a")
    await rollout.plans.pause_task("a", None, ANNA)
    await rollout.let_go("a/migrate")
    clock.advance(timedelta(days=8))
    rollout.fails("a/verify", times=1)
    await rollout.plans.resume_task("a", None, ANNA)
    await rollout.settle()
    await rollout.plans.retry_task("a", None, ANNA)
    await rollout.settle()
    assert (await rollout.task("a")).status is TaskStatus.COMPLETED
    assert rollout.order.count("a/prepare") == 1


async def test_what_the_first_stage_saved_is_there_when_it_is_tried_again(rollout: Rollout) -> None:
    rollout.saves("a/prepare", {"cursor": 500})
    rollout.fails("a/prepare", times=1)
    await rollout.run("a")
    await rollout.plans.retry_task("a", None, ANNA)
    await rollout.settle()
    seen = [each.checkpoint for each in rollout.asked if each.place is not None and each.place.node_id == "prepare"]
    assert seen == [None, {"cursor": 500}]


async def test_a_failure_that_was_accepted_and_put_right_does_not_widen_the_budget(rollout: Rollout) -> None:
    rollout.fails("a/prepare", times=1)
    key = await rollout.run(*"abcde", failureBudget=0, maxConcurrency=1)
    rollout.hold("b/prepare")
    await rollout.plans.resume(key, ANNA, override=True)
    await rollout.plans.retry_failed(key, ANNA)
    assert (await rollout.reread(key)).forgiven == 0
    rollout.fails("b/prepare")
    await rollout.let_go("b/prepare")
    assert (await rollout.reread(key)).reason == "failure_budget"


async def test_a_stage_that_is_cancelled_by_its_number_fails_its_task(rollout: Rollout, store: SqlStore) -> None:
    rollout.hold("a/migrate")
    key = await rollout.run("a")
    (stage_,) = [each for each in rollout.asked if each.place is not None and each.place.node_id == "migrate"]
    await rollout.simulation.runs.cancel(stage_.execution.id, ANNA)
    await rollout.settle()
    assert await rollout.status(key) == "FAILED"
    assert rollout.order.count("a/migrate") == 1


async def test_why_a_task_was_cancelled_is_told_although_it_was_to_pause(rollout: Rollout) -> None:
    rollout.hold("a/migrate")
    await rollout.run("a")
    await rollout.plans.pause_task("a", None, ANNA)
    await rollout.plans.cancel_task("a", None, replace(ANNA, reason="wrong tenant"))
    assert (await rollout.task("a")).reason == "wrong tenant"


async def test_a_run_that_cannot_go_on_is_begun_anew(rollout: Rollout, store: SqlStore) -> None:
    rollout.fails("a/migrate", times=1)
    await rollout.run("a")
    with store._writing.begin() as connection:
        connection.execute(text("UPDATE workflow_runs SET status = 'CLOSED'"))
    await rollout.plans.retry_task("a", None, ANNA)
    await rollout.settle()
    assert (await rollout.task("a")).status is TaskStatus.COMPLETED


async def test_a_plan_of_which_a_part_is_gone_cannot_be_begun_again(
    rollout: Rollout, store: SqlStore, clock: FakeClock
) -> None:
    tenants = [f"t{number}" for number in range(8)]
    rollout.fails(*(f"{tenant}/prepare" for tenant in tenants))
    key = await rollout.run(*tenants)
    clock.advance(timedelta(days=40))
    await store.purge(PurgeRequest(clock.now() - timedelta(days=30), 1_000, limit=5))
    assert len(await rollout.tasks(key)) == 3
    with pytest.raises(PlanRefused):
        await rollout.plans.retry_failed(key, ANNA)


async def test_a_plan_that_cannot_be_driven_holds_up_no_other(rollout: Rollout, store: SqlStore) -> None:
    broken = await rollout.plan("a")
    with store._writing.begin() as connection:
        connection.execute(text("UPDATE tenant_tasks SET params = 'nonsense'"))
    assert await rollout.status(await rollout.run("b")) == "COMPLETED"
    assert await rollout.tasks(broken) == {"a": "CREATED"}


async def test_what_a_tenant_is_given_is_bounded(rollout: Rollout) -> None:
    with pytest.raises(InvalidInput) as wrong:
        await rollout.plan(
            "a", params={"x": "y" * 600_000}, tenants=[{"tenantId": "a", "params": {"z": "y" * 600_000}}]
        )
    assert wrong.value.field == "tenants[0].params"
    rollout.fails("a/prepare")
    await rollout.run("a")
    with pytest.raises(InvalidInput) as large:
        await rollout.plans.save_context("a", None, {"x": "y" * 1_100_000}, None, ANNA)
    assert large.value.field == "contextData"


async def test_a_checkpoint_that_is_too_large_is_shown_in_part_and_stops_nobody(
    rollout: Rollout, store: SqlStore
) -> None:
    rollout.simulation.outside.chosen = SqlRuntime(store, Lifetimes())
    rollout.saves("a/prepare", {"x": "x" * 4_000_000})
    rollout.saves("a/migrate", {"y": "y" * 4_000_000})
    rollout.fails("a/verify")
    await rollout.run("a", "b")
    assert await store.outbox(10) == []
    shown = await rollout.simulation.outside.now.checkpoints.get((await rollout.task("a")).key)
    assert shown is not None
    assert shown.completed_stages == ("prepare", "migrate")
    assert "are not shown here" in shown.context_data["ksana"]


async def test_what_is_shown_keeps_up_when_the_clock_goes_back(rollout: Rollout, clock: FakeClock) -> None:
    rollout.hold("a/migrate")
    await rollout.run("a")
    clock.advance(timedelta(hours=-2))
    await rollout.let_go("a/migrate")
    task = await rollout.task("a")
    shown = (await rollout.simulation.outside.now.tasks.get([task.key]))[task.key]
    assert (shown.status, shown.updated_at) == ("COMPLETED", task.updated_at)
