"""Plans from start to end: concurrency, pauses, retries, waves, gates, budgets."""

from collections.abc import AsyncIterator

import pytest
from tests.unit.engine.plan_world import Rollout
from tests.unit.engine.simulation import Simulation


@pytest.fixture
async def rollout(sim: Simulation) -> AsyncIterator[Rollout]:
    yield Rollout(sim)


async def test_every_tenant_goes_through_every_stage_in_order(rollout: Rollout) -> None:
    key = await rollout.run("a", "b", "c")
    assert await rollout.status(key) == "COMPLETED"
    assert await rollout.tasks(key) == {"a": "COMPLETED", "b": "COMPLETED", "c": "COMPLETED"}
    for tenant in "abc":
        mine = [name for name in rollout.order if name.startswith(tenant)]
        assert mine == [f"{tenant}/prepare", f"{tenant}/migrate", f"{tenant}/verify"]
    assert rollout.most_at_once == 2
