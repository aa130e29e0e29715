"""Two instances on one database, steps chosen by Hypothesis: nobody claims twice, nothing ends twice, limits hold."""

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ksana.domain.execution import Claim
from ksana.domain.job import Job
from ksana.domain.states import HOLDS_SLOT, ExecutionStatus
from ksana.store.requests import ClaimRequest
from ksana.store.sql import open_store
from tests.clock import FakeClock
from tests.contract.store.conftest import OPTIONS
from tests.contract.store.world import ANNA, World, claim_of
from tests.prepared import prepare

LIMIT = 2
QUEUES = count(1)
actions = st.sampled_from(["enqueue", "claim", "claim", "succeed", "succeed_again", "retry", "hand_back", "cancel"])
steps = st.lists(
    st.lists(st.tuples(actions, st.integers(0, 1), st.integers(0, 9)), min_size=1, max_size=6), max_size=12
)


@dataclass
class Model:
    """What has been seen of one job's executions from outside."""

    job: Job
    queue: str
    made: list[int] = field(default_factory=list)
    held: list[Claim] = field(default_factory=list)
    seen: set[Claim] = field(default_factory=set)
    ended: set[int] = field(default_factory=set)
    broken: list[str] = field(default_factory=list)

    def pick(self, number: int) -> Claim | None:
        return self.held[number % len(self.held)] if self.held else None


async def act(world: World, model: Model, action: str, number: int) -> None:
    if action == "enqueue":
        model.made.append((await world.enqueue(model.job)).id)
    elif action == "claim":
        await claim(world, model, number)
    elif action == "cancel" and model.made:
        execution_id = model.made[number % len(model.made)]
        await world.store.cancel(execution_id, ANNA, world.clock.now())
        model.ended.add(execution_id)
    elif (held := model.pick(number)) is not None:
        await end(world, model, action, held)


async def claim(world: World, model: Model, number: int) -> None:
    request = ClaimRequest(f"instance-{number % 2}", 1 + number % 4, (model.queue,))
    for claimed in await world.store.claim(request, world.clock.now()):
        mine = claim_of(claimed)
        if mine in model.seen:
            model.broken.append(f"claimed twice: {mine}")
        model.seen.add(mine)
        model.held.append(mine)


async def end(world: World, model: Model, action: str, held: Claim) -> None:
    ending = world.ending(held)
    if action in {"succeed", "succeed_again"}:
        done = await world.store.succeed(ending)
        if done and held.execution_id in model.ended:
            model.broken.append(f"ended twice: {held}")
        if done:
            model.ended.add(held.execution_id)
    elif action == "retry":
        done = await world.store.retry(ending, world.clock.now())
    else:
        done = await world.store.hand_back(held, world.clock.now())
    # `succeed_again` keeps its claim, so that a later step comes with a stale one.
    if action != "succeed_again" and held in model.held:
        model.held.remove(held)


async def check(world: World, model: Model) -> None:
    assert model.broken == []
    counts = await world.store.active_counts(model.job.id)
    assert sum(number for status, number in counts.items() if status in HOLDS_SLOT) <= LIMIT
    assert len(model.made) - len(model.ended) == sum(counts.values())


async def drained(world: World, model: Model) -> None:
    """Whatever is left can be claimed and ended: nothing waits for a wake-up that was lost."""
    for _ in range(len(model.made) + 1):
        for held in model.held:
            await world.store.succeed(world.ending(held))
        model.held.clear()
        await claim(world, model, 1)
    assert await world.store.active_counts(model.job.id) == {}
    for execution_id in model.made:
        status = (await world.store.execution(execution_id)).status
        assert status in {ExecutionStatus.SUCCESS, ExecutionStatus.CANCELED}


async def play(worlds: list[World], plan: list[list[tuple[str, int, int]]]) -> None:
    queue = f"queue-{next(QUEUES)}"
    model = Model(await worlds[0].job(limit=LIMIT, worker_queue=queue, name=queue), queue)
    for together in plan:
        await asyncio.gather(*(act(worlds[who], model, action, number) for action, who, number in together))
        await check(worlds[0], model)
        worlds[0].clock.advance(timedelta(milliseconds=1))
    await drained(worlds[0], model)


def test_whatever_the_order_of_things_the_invariants_hold(url: str, back_end: str) -> None:
    prepare(url)
    clock = FakeClock()
    # On SQLite, where there can be only one instance, it is the same one twice.
    stores = [open_store(url, options=OPTIONS, clock=clock) for _ in range(1 if back_end == "sqlite" else 2)]
    worlds = [World(stores[0], clock), World(stores[-1], clock)]
    with asyncio.Runner() as runner:

        @settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
        @given(plan=steps)
        def run(plan: list[list[tuple[str, int, int]]]) -> None:
            runner.run(play(worlds, plan))

        try:
            run()
        finally:
            for store in stores:
                runner.run(store.close())
