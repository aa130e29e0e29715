"""Answers of the store that come late: what they say may no longer be so. (Found by tests/simulation.)"""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar, cast

import pytest
from tests.clock import FakeClock
from tests.contract.store.world import World
from tests.simulation.memory_store import Call, Direct, MemoryStore
from tests.simulation.memory_tables import Tables

from ksana.domain.execution import Claim, Claimed
from ksana.domain.instance import ALL_ROLES, LEADER, Lease, Pulse
from ksana.domain.states import ExecutionStatus
from ksana.engine.dispatcher import Dispatcher, DispatcherOptions
from ksana.engine.membership import SILENT, Events, Member, Membership
from ksana.engine.runner import claim_of
from ksana.engine.upkeep import Watch
from ksana.engine.workers import Workers
from ksana.store.base import Store

T = TypeVar("T")


class Holding(Direct):
    """A wire that keeps the answers to one verb until it is told to let them go."""

    def __init__(self) -> None:
        self.verb = ""
        self.release = asyncio.Event()

    async def ask(self, call: Call[T]) -> T:
        answer = call.apply()
        if call.name == self.verb:
            await self.release.wait()
        return answer


class Places:
    """Workers that do nothing."""

    def __init__(self) -> None:
        self.claims: list[Claim] = []
        self.size = self.free = 4
        self.draining = False

    def start(self, claimed: Claimed) -> None:
        self.claims.append(claim_of(claimed))


class Instance:
    """A dispatcher and a watch over the model of the store, and the lease that they work by."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.owner: str | None = "one"
        self.places = Places()
        workers = cast("Workers", self.places)
        owner: Callable[[], str | None] = lambda: self.owner  # noqa: E731
        self.dispatcher = Dispatcher(world.store, workers, owner, DispatcherOptions())
        self.watch = Watch(world.store, workers, owner, lambda: self.dispatcher.claim_under_way)

    async def look(self) -> None:
        await self.watch.run_once(self.world.clock.now())


@pytest.fixture
def wire() -> Holding:
    return Holding()


@pytest.fixture
def instance(wire: Holding) -> Instance:
    clock = FakeClock()
    return Instance(World(MemoryStore(Tables(clock.now), clock, wire).as_store(), clock))


async def claiming(instance: Instance) -> "asyncio.Task[object]":
    """A claim of one execution, made and not answered yet."""
    await instance.world.enqueue(await instance.world.job())
    task: asyncio.Task[object] = asyncio.ensure_future(instance.dispatcher.run_once(instance.world.clock.now()))
    while await instance.world.status(1) is not ExecutionStatus.RUNNING:  # noqa: ASYNC110 - one turn at a time
        await asyncio.sleep(0)
    return task


async def test_a_claim_whose_answer_is_slow_is_not_handed_back(instance: Instance, wire: Holding) -> None:
    wire.verb = "claim"
    claim = await claiming(instance)
    for _ in range(4):
        await instance.look()
    wire.release.set()
    await claim
    await instance.look()
    assert instance.places.claims == [Claim(1, 1)]
    assert await instance.world.status(1) is ExecutionStatus.RUNNING


async def test_a_claim_whose_answer_was_lost_is_handed_back(instance: Instance, wire: Holding) -> None:
    wire.verb = "claim"
    claim = await claiming(instance)
    await instance.look()
    wire.release.set()
    await claim
    instance.places.claims.clear()
    await instance.look()
    assert await instance.world.status(1) is ExecutionStatus.SCHEDULED


async def test_what_was_claimed_by_a_lease_that_is_over_is_not_begun(instance: Instance, wire: Holding) -> None:
    wire.verb = "claim"
    claim = await claiming(instance)
    instance.owner = "another"
    wire.release.set()
    await claim
    assert instance.places.claims == []


@pytest.mark.parametrize("why", ["its lease is over", "it stops"])
async def test_what_was_begun_and_dropped_is_not_handed_back_as_a_stray(
    instance: Instance, wire: Holding, why: str
) -> None:
    wire.verb = "claim"
    claim = await claiming(instance)
    await instance.look()  # seen once, while its claim is under way
    wire.release.set()
    await claim
    wire.verb, wire.release = "claims_of", asyncio.Event()
    looking = asyncio.ensure_future(instance.look())
    await asyncio.sleep(0)
    instance.places.claims.clear()
    if why == "it stops":
        instance.places.draining = True
    else:
        instance.owner = "another"
    wire.release.set()
    await looking
    assert await instance.world.status(1) is ExecutionStatus.RUNNING


# The leader's lease -----------------------------------------------------------------------------------------------------


class Listening:
    """A store that asks, while a heartbeat is under way, whether its instance leads."""

    def __init__(self) -> None:
        self.led: list[bool] = []
        self.membership: Membership | None = None

    def beat(self, *_: object, **__: object) -> Pulse:
        assert self.membership is not None
        self.led.append(self.membership.leadership.leads)
        return Pulse(leads=False, now=FakeClock().now(), read_at=0.0, doubt=0.0)


async def test_a_leader_whose_loop_hangs_leads_no_more_before_it_gives_its_lease_back() -> None:
    clock, store = FakeClock(), Listening()
    store.membership = membership = Membership(
        cast("Store", store), clock, Member("one", ALL_ROLES), Events(lambda: None, lambda: None)
    )
    membership.instance_id = "one"
    lease = Lease(LEADER, "one", 1, clock.now())
    membership.leadership.assume(lease)
    clock.advance(timedelta(seconds=SILENT + 1))
    assert membership.leadership.leads
    assert membership._beat_once("one", asyncio.get_running_loop())
    assert store.led == [False]
    # It does not stand again before it has heard what became of its lease: that might be given back only now.
    await membership.leadership.run_once(clock.now())
    leases = [membership.leadership.lease]
    await asyncio.sleep(0)
    assert [*leases, membership.leadership.lease] == [lease, None]
