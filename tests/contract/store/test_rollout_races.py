"""Two instances drive one plan, two plans want one tenant, a person pauses while a stage ends: it comes out right."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable
from datetime import timedelta

import pytest

from ksana.domain.errors import Conflict, TenantBusy
from ksana.store.requests import ClaimRequest
from ksana.store.sql import open_store
from ksana.store.sql.store import SqlStore
from tests.clock import FakeClock
from tests.contract.store.conftest import BACK_ENDS, OPTIONS
from tests.contract.store.world import ANNA
from tests.unit.engine.plan_world import Rollout
from tests.unit.engine.simulation import Simulation


@pytest.fixture(params=BACK_ENDS[1:3])
def back_end(request: pytest.FixtureRequest) -> str:
    """Those that several instances share."""
    return str(request.param)


@pytest.fixture
async def rollout(store: SqlStore, clock: FakeClock) -> AsyncIterator[Rollout]:
    simulation = Simulation(store, clock)
    await simulation.join()
    yield Rollout(simulation)
    await simulation.engine.workers.drain(timedelta(0))


@pytest.fixture
async def elsewhere(url: str, rollout: Rollout, clock: FakeClock) -> AsyncIterator[Simulation]:
    """Another instance on the same database. Its locks are its own: the store has to do."""
    other = open_store(url, options=OPTIONS, clock=clock)
    simulation = Simulation(other, clock, instance="two")
    await simulation.join()
    simulation.target.execute = rollout.simulation.target.execute  # type: ignore[method-assign]
    yield simulation
    await simulation.engine.workers.drain(timedelta(0))
    await other.close()


async def test_two_instances_that_drive_one_plan_never_begin_too_many(
    rollout: Rollout, elsewhere: Simulation, clock: FakeClock
) -> None:
    tenants = [f"t{number}" for number in range(12)]
    key = await rollout.plan(*tenants, maxConcurrency=3)
    for _ in range(60):
        both = (rollout.simulation, elsewhere)
        await asyncio.gather(*(each.engine.plans.run_once(clock.now()) for each in both))
        running = Counter((await rollout.tasks(key)).values())["RUNNING"]
        assert running <= 3
        await asyncio.gather(*(each.engine.dispatcher.run_once(clock.now()) for each in both))
        await rollout._idle()
        if await rollout.status(key) == "COMPLETED":
            break
    assert await rollout.tasks(key) == dict.fromkeys(tenants, "COMPLETED")
    assert Counter(rollout.order) == Counter(
        f"{tenant}/{stage}" for tenant in tenants for stage in ("prepare", "migrate", "verify")
    )


async def test_of_two_plans_that_want_one_tenant_at_once_one_is_refused(
    rollout: Rollout, elsewhere: Simulation
) -> None:
    document = {"name": "p", "stages": [{"name": "x", "type": "scripted"}], "maxConcurrency": 1}
    for number in range(5):
        tenants = [f"t{number}", f"u{number}"]
        answers = await asyncio.gather(
            rollout.plans.create({**document, "tenants": tenants}, ANNA),
            elsewhere.plans.create({**document, "tenants": tenants[::-1]}, ANNA),
            return_exceptions=True,
        )
        assert sorted(type(each).__name__ for each in answers) == ["Plan", "TenantBusy"], answers
        assert any(isinstance(each, TenantBusy) for each in answers)


async def test_a_pause_and_the_end_of_a_stage_at_once_lose_nothing(
    rollout: Rollout, elsewhere: Simulation, clock: FakeClock
) -> None:
    tenants = [f"t{number}" for number in range(6)]
    key = await rollout.plan(*tenants, maxConcurrency=6)
    await rollout.simulation.engine.plans.run_once(clock.now())
    for round_ in range(40):
        claimed = await rollout.simulation.store.claim(ClaimRequest("one", 6), clock.now())
        for each in claimed:
            rollout.simulation.engine.workers.start(each)
        # People ask while the stages end.
        asked = (elsewhere.plans.pause(key, ANNA), elsewhere.plans.pause_task(tenants[round_ % 6], None, ANNA))
        await asyncio.gather(*asked, return_exceptions=True)
        await rollout._idle()
        for tenant in tenants:
            await _harmless(elsewhere.plans.resume_task(tenant, None, ANNA))
        await _harmless(elsewhere.plans.resume(key, ANNA))
        await elsewhere.engine.plans.run_once(clock.now())
        if await rollout.status(key) == "COMPLETED":
            break
    assert await rollout.tasks(key) == dict.fromkeys(tenants, "COMPLETED")
    assert set(Counter(rollout.order).values()) == {1}


async def _harmless(order: Awaitable[object]) -> None:
    try:
        await order
    except Conflict:
        return
