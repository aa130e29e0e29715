"""Why a run is not running yet: every reason there is."""

import asyncio
from datetime import timedelta

from tests.contract.store.world import ANNA
from tests.unit.engine.simulation import Simulation

from ksana.domain.job import ConcurrencyPolicy, ExecutionMode
from ksana.domain.outcome import AwaitingCallback, Failed
from ksana.domain.retry import RetryPolicy
from ksana.engine.queries import Explanation

MINUTE = timedelta(minutes=1)


async def why(sim: Simulation, run_id: int) -> Explanation:
    return await sim.queries.explain(run_id, sim.clock.now())


async def test_it_is_due_and_nobody_has_taken_it(sim: Simulation) -> None:
    run = await sim.run((await sim.job()).job)
    assert (await why(sim, run.id)).code == "NO_CAPACITY"


async def test_it_waits_for_its_retry(sim: Simulation) -> None:
    sim.target.answer = lambda _: Failed("answered 503")
    run = await sim.run((await sim.job(retry=RetryPolicy(max_attempts=2, delay=MINUTE))).job)
    await sim.settle()
    told = await why(sim, run.id)
    assert (told.code, told.until) == ("RETRY_WAITING", sim.clock.now() + MINUTE)
    assert "answered 503" in told.message


async def test_it_waits_for_its_callback(sim: Simulation) -> None:
    sim.target.answer = lambda _: AwaitingCallback(MINUTE)
    run = await sim.run((await sim.job(mode=ExecutionMode.ASYNC)).job)
    await sim.settle()
    told = await why(sim, run.id)
    assert (told.code, told.until) == ("WAITING_FOR_CALLBACK", sim.clock.now() + MINUTE)


async def test_it_runs_and_it_has_ended(sim: Simulation) -> None:
    sim.target.held = asyncio.Event()
    run = await sim.run((await sim.job()).job)
    await sim.settle()
    assert (await why(sim, run.id)).code == "RUNNING"
    sim.target.held.set()
    await sim.idle()
    assert (await why(sim, run.id)).code == "ENDED"


async def test_it_was_skipped_and_why(sim: Simulation) -> None:
    sim.target.held = asyncio.Event()
    view = await sim.job(sim.every(MINUTE), concurrency=ConcurrencyPolicy.SKIP)
    await sim.advance(2 * MINUTE)
    [_, skipped] = await sim.executions(view.job)
    told = await why(sim, skipped.id)
    assert (told.code, "concurrency_limit" in told.message) == ("SKIPPED", True)


async def test_its_schedule_is_paused_or_gone(sim: Simulation) -> None:
    view = await sim.job(sim.every(MINUTE))
    await sim.advance(MINUTE)
    [run] = await sim.executions(view.job)
    assert "paused" not in (await why(sim, run.id)).message
    await sim.jobs.switch(view.job.id, ANNA, enabled=False)
    assert "its schedule is paused" in (await why(sim, run.id)).message
    await sim.jobs.delete(view.job.id, ANNA)
    assert "its schedule was deleted" in (await why(sim, run.id)).message
