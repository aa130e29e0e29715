"""Who is served when there is too much: the dispatcher over a real store, with workers that only keep count."""

import asyncio
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from tests.contract.store.world import World
from tests.unit.engine.simulation import Simulation

from ksana.domain.execution import Claimed
from ksana.domain.lanes import lane_of
from ksana.engine.dispatcher import SPACING, Dispatcher, DispatcherOptions
from ksana.engine.loop import Round
from ksana.store.requests import ClaimRequest

CROWD = 120
MOMENT = timedelta(milliseconds=50)


class Places:
    """As `Workers`, but nothing is done: what is started stays until the test ends it."""

    size = 16

    def __init__(self) -> None:
        self.running: list[Claimed] = []
        self.order: list[int] = []

    @property
    def free(self) -> int:
        return self.size - len(self.running)

    @property
    def lanes(self) -> Counter[str]:
        return Counter(lane for each in self.running if (lane := lane_of(each.job.spec)) is not None)

    def slow_lanes(self, _: timedelta) -> set[str]:
        return set(self.lanes)

    def start(self, claimed: Claimed) -> None:
        self.running.append(claimed)
        self.order.append(claimed.job.id)


@pytest.fixture
def world(sim: Simulation) -> World:
    return World(sim.store, sim.clock)


async def place_of_the_latecomer(world: World, latecomer: dict[str, Any], **options: Any) -> int:
    """After how many others a job is served that comes when one has a backlog, each place being free in its turn."""
    crowd = await world.job(config={"url": "http://one.example/x"})
    await asyncio.gather(*(world.enqueue(crowd) for _ in range(CROWD)))
    world.clock.advance(timedelta(seconds=1))
    late = await world.job(**latecomer)
    await world.enqueue(late)
    places = Places()
    dispatcher = Dispatcher(world.store, places, lambda: "one", DispatcherOptions(**options))  # type: ignore[arg-type]
    while late.id not in places.order and len(places.order) <= CROWD:
        world.clock.advance(MOMENT)
        await dispatcher.run_once(world.clock.now())
        if places.running:
            await world.store.succeed(world.ending(places.running.pop(0)))
        dispatcher.expect_room()
    return places.order.index(late.id)


@pytest.mark.parametrize("per_lane", [None, 12])
async def test_a_backlog_delays_another_job_by_no_more_than_the_places_that_it_has(
    world: World, per_lane: int | None
) -> None:
    latecomer = {"config": {"url": "http://one.example/y"}}
    assert await place_of_the_latecomer(world, latecomer, per_lane=per_lane) <= Places.size + 2


@pytest.mark.parametrize("queues", [("default", "other"), ("other", "default")])
async def test_nor_does_a_backlog_in_one_queue_delay_another_queue(world: World, queues: tuple[str, ...]) -> None:
    latecomer = {"config": {"url": "http://two.example/y"}, "worker_queue": "other"}
    assert await place_of_the_latecomer(world, latecomer, queues=queues) <= Places.size + 2


async def crowded(world: World, ready: int, per_lane: int) -> tuple[Places, Dispatcher]:
    """So much ready of one host, and who is to serve it."""
    crowd = await world.job(config={"url": "http://one.example/x"})
    await asyncio.gather(*(world.enqueue(crowd) for _ in range(ready)))
    places = Places()
    options = DispatcherOptions(per_lane=per_lane)
    return places, Dispatcher(world.store, places, lambda: "one", options)  # type: ignore[arg-type]


async def test_places_that_become_free_while_a_claim_waits_for_its_turn_are_filled_by_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    places, dispatcher = await crowded(world, 40, per_lane=16)
    await dispatcher.run_once(world.clock.now())
    asked, turn, real = asyncio.Event(), asyncio.Event(), world.store.claim

    async def behind_others(request: ClaimRequest, now: Any) -> Any:
        asked.set()
        await turn.wait()
        return await real(request, now)

    monkeypatch.setattr(world.store, "claim", behind_others)
    ended = [places.running.pop()]
    world.clock.advance(MOMENT)
    dispatcher.expect_room()
    await dispatcher.run_once(world.clock.now())  # gathers: one place is not worth a claim yet
    world.clock.advance(MOMENT)
    claiming = asyncio.create_task(dispatcher.run_once(world.clock.now()))
    await asked.wait()
    ended += [places.running.pop() for _ in range(12)]
    turn.set()
    assert (await claiming).done == 13
    assert places.free == 0


async def test_a_place_that_becomes_free_while_a_claim_is_committed_is_not_left_empty(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    places, dispatcher = await crowded(world, 40, per_lane=32)
    real = world.store.claim

    async def while_one_ends(request: ClaimRequest, now: Any) -> Any:
        claimed = await real(request, now)
        places.size += 1  # a place more, and nobody knows yet that there is something for it
        assert not dispatcher.expect_room()
        return claimed

    monkeypatch.setattr(world.store, "claim", while_one_ends)
    now = world.clock.now()
    assert await dispatcher.run_once(now) == Round(16, now)
    assert places.free == 1
    monkeypatch.setattr(world.store, "claim", real)
    await dispatcher.run_once(now)
    world.clock.advance(MOMENT)
    assert (await dispatcher.run_once(world.clock.now())).done == 1


async def test_what_does_not_fit_is_asked_for_less_and_less_often(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    places, dispatcher = await crowded(world, 20, per_lane=4)
    dispatcher.look_by_itself()
    claims: list[ClaimRequest] = []
    real = world.store.claim

    async def counted(request: ClaimRequest, now: Any) -> Any:
        claims.append(request)
        return await real(request, now)

    monkeypatch.setattr(world.store, "claim", counted)
    for _ in range(200):  # ten seconds
        await dispatcher.run_once(world.clock.now())
        world.clock.advance(MOMENT)
    assert len(places.running) == 4
    assert len(claims) < 20
    await world.store.succeed(world.ending(places.running.pop()))
    dispatcher.expect_room()
    await dispatcher.run_once(world.clock.now())
    assert len(places.running) == 4, "a place that is free is used at once"


async def test_however_often_it_was_told_of_work_in_vain_it_looks_when_something_will_be_ready(world: World) -> None:
    ready_at = world.clock.now() + timedelta(seconds=30)
    await world.enqueue(await world.job(), ready_at=ready_at)
    dispatcher = Dispatcher(world.store, Places(), lambda: "one", DispatcherOptions())  # type: ignore[arg-type]
    for _ in range(20):  # such as fires that are skipped, or callbacks that nobody waits for
        dispatcher.expect_work()
        assert (await dispatcher.run_once(world.clock.now())).done == 0
        world.clock.advance(SPACING)
        found = await dispatcher.run_once(world.clock.now())
        assert found == Round(0, ready_at)
