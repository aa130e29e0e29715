"""The recovery flow of document 004, §7.3, as the example has it, and the facade that it uses, against a running Ksana."""

import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from ksana.client import FacadeError, PlanFacade, PlanStatus, TaskStatus
from tests.contract.api.conftest import ON_SQLITE
from tests.contract.api.plans_world import (
    calls,
    failing,
    fails,
    held,
    holds,
    release,
    running,
    seen,
    some_tenants,
    until_plan,
    until_task,
)
from tests.contract.api.witness import Target
from tests.process.conftest import Ended, Serving, environment

pytestmark = ON_SQLITE
EXAMPLE = Path(__file__).parents[3] / "examples" / "recovery" / "recover.py"


def recover(*words: str) -> Ended:
    """The script, as a person would run it."""
    command = [sys.executable, str(EXAMPLE), *words]
    done = subprocess.run(command, env=environment({}), capture_output=True, text=True, timeout=20, check=False)
    return Ended(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def facade(server: Serving) -> PlanFacade:
    return PlanFacade(server.base)


def test_a_task_that_failed_goes_on_from_its_checkpoint(api: httpx2.Client, server: Serving, target: Target) -> None:
    [tenant] = some_tenants(1)
    stages = [*calls(target, "drain"), fails(target, "switch"), *calls(target, "verify")]
    running(api, stages, [failing(tenant, times=1)])
    until_task(api, tenant, "FAILED")
    told = recover(server.base, tenant)
    assert (told.code, told.err) == (0, "")
    assert "is FAILED, 1 of 3 stages done, in switch" in told.out
    assert "goes on with switch" in told.out
    until_task(api, tenant, "COMPLETED")
    assert seen(target, tenant) == ["drain", "switch", "switch", "verify"]
    assert "is COMPLETED, 3 of 3 stages done" in recover(server.base, tenant).out


def test_one_without_a_checkpoint_is_left_to_people(api: httpx2.Client, server: Serving, target: Target) -> None:
    [tenant] = some_tenants(1)
    running(api, [fails(target, "switch")], [failing(tenant, times=1)])
    until_task(api, tenant, "FAILED")
    told = recover(server.base, tenant)
    assert told.code == 1
    assert "it has no checkpoint" in told.out
    assert until_task(api, tenant, "FAILED")["attempt"] == 1


def test_the_facade_tells_what_there_is_and_gives_orders(
    api: httpx2.Client, facade: PlanFacade, target: Target
) -> None:
    first, second = some_tenants(2)
    plan = running(api, holds(target, "drain", "switch"), [first, second], maxConcurrency=2)
    held(target, second, "drain")
    held(target, first, "drain")
    asked = facade.pause_task_by_tenant(first, reason="the night shift is short")
    assert (asked.status, asked.pause_requested, asked.current_stage) == (TaskStatus.RUNNING, True, "drain")
    release(target, first, "drain")
    until_task(api, first, "PAUSED")
    found = facade.query_tasks_by_tenants([second, first, "never-had-one"])
    assert {tenant: task.status for tenant, task in found.items()} == {first: "PAUSED", second: "RUNNING"}
    assert (found[first].progress, found[first].current_stage) == (0.5, "switch")
    assert facade.has_checkpoint(first)
    with pytest.raises(FacadeError) as caught:
        facade.retry_task_by_tenant(first, from_checkpoint=True)
    assert caught.value.code == "TASK_STATE_CONFLICT"
    assert facade.cancel_task_by_tenant(second).status is TaskStatus.CANCELLED
    facade.resume_task_by_tenant(first)
    release(target, first, "switch")
    until_plan(api, plan, "COMPLETED")
    told = facade.query_plan_status(plan)
    assert told is not None
    assert (told.status, told.progress, told.tenants) == (PlanStatus.COMPLETED, 0.5, 2)


def test_who_never_had_a_task_has_none(facade: PlanFacade) -> None:
    assert facade.query_task_status_by_tenant("nobody") is None
    assert facade.query_plan_status("nothing") is None
    assert not facade.has_checkpoint("nobody")
