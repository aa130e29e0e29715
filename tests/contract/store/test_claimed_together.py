"""What this instance makes ready it claims in the transaction that writes it: one commit before the work begins, not two."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from ksana.domain.errors import NotFound
from ksana.domain.job import ExecutionMode
from ksana.domain.outcome import AwaitingCallback, Outcome, Succeeded
from ksana.engine.commands import CallbackMessage, RunRequest, StartRequest, WorkflowDraft
from ksana.engine.dispatcher import SPACING
from ksana.executors.base import ExecutionContext
from ksana.store.sql import writer
from ksana.store.sql.statements import firing
from ksana.store.sql.store import SqlStore
from ksana.store.sql.writer import Writer
from tests.clock import FakeClock
from tests.contract.store.conftest import BACK_ENDS
from tests.contract.store.world import ANNA
from tests.unit.engine.simulation import Simulation
from tests.unit.engine.workflow_world import node

MINUTE = timedelta(minutes=1)


@pytest.fixture(params=BACK_ENDS[:3])
def back_end(request: pytest.FixtureRequest) -> str:
    """All but the JSON file, which keeps no workflows."""
    return str(request.param)


@pytest.fixture
async def dispatching(store: SqlStore, clock: FakeClock) -> AsyncIterator[Simulation]:
    """The dispatcher looks by itself, as in an engine that has started, and has looked once."""
    sim = Simulation(store, clock)
    await sim.join()
    loop = sim.engine._dispatching
    loop.start()
    await sim.run((await sim.job()).job)
    await sim.asked()
    await sim.idle()
    sim.target.asked.clear()
    try:
        yield sim
    finally:
        await loop.stop()
        await sim.engine.workers.drain(timedelta(0))


@asynccontextmanager
async def transactions(sim: Simulation) -> AsyncIterator[list[list[str]]]:
    """The verbs that each transaction applies, in their order, from when the writer's thread and the dispatcher wait for more: a
    thread that is just done with another takes what there is at once, and a dispatcher that is just asking for what is ready will
    have its answer first; then the claim goes with the next."""
    thread: Writer = sim.store.writer  # type: ignore[attr-defined]
    dispatcher, woken = sim.engine.dispatcher, sim.engine._dispatching._woken
    while not (  # noqa: ASYNC110 - nobody tells
        thread._wake._waiters  # type: ignore[attr-defined]
        and woken._waiters
        and dispatcher._just_looked(sim.clock.now())
    ):
        await asyncio.sleep(0)
    found: list[list[str]] = []
    apply = writer._apply

    def noted(tx: Any, batch: list[Any]) -> Any:
        found.append([command.handler.__name__ for command in sorted(batch, key=lambda command: command.last)])
        return apply(tx, batch)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer, "_apply", noted)
        yield found


async def test_a_run_that_is_asked_for(dispatching: Simulation) -> None:
    view = await dispatching.job()
    async with transactions(dispatching) as found:
        await dispatching.run(view.job)
        await dispatching.asked()
    assert found[0] == ["enqueue", "claim"]


async def test_the_first_nodes_of_a_run_that_is_started(dispatching: Simulation) -> None:
    draft = WorkflowDraft("two", {"nodes": [node("a"), node("b", "a")]})
    workflow = await dispatching.workflows.create(draft, ANNA)
    async with transactions(dispatching) as found:
        await dispatching.workflows.start(workflow.key, StartRequest(), ANNA)
        await dispatching.asked()
    assert found[0] == ["start", "claim"]


async def test_what_is_due(dispatching: Simulation) -> None:
    await dispatching.job(dispatching.every(MINUTE))
    dispatching.clock.advance(MINUTE)
    async with transactions(dispatching) as found:
        await dispatching.engine.scheduler.run_once(dispatching.clock.now())
        await dispatching.asked()
    assert found[0] == ["fire", "claim"]


async def test_what_is_due_beside_one_that_cannot_be_fired(
    dispatching: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, good = [await dispatching.job(dispatching.every(MINUTE)) for _ in range(2)]
    fire = firing.fire

    def broken(tx: Any, rounds: list[firing.Round]) -> Any:
        if any(each.schedule_id == bad.schedules[0].id for round_ in rounds for each in round_.firings):
            raise RuntimeError("nobody knows why")
        return fire(tx, rounds)

    monkeypatch.setattr(firing, "fire", broken)
    dispatching.clock.advance(MINUTE)
    await dispatching.engine.scheduler.run_once(dispatching.clock.now())
    dispatching.clock.advance(
        SPACING
    )  # fired by itself after the claim that was to go with it, it is found by the next look
    await dispatching.asked()
    assert dispatching.target.asked[0].job.id == good.job.id


async def test_the_node_after_one_that_is_called_back_for(dispatching: Simulation) -> None:
    dispatching.target.answer = lambda _: AwaitingCallback(MINUTE)
    later = await dispatching.job(name="later", mode=ExecutionMode.ASYNC)
    nodes = [{"id": "a", "jobId": later.job.key}, node("b", "a")]
    workflow = await dispatching.workflows.create(WorkflowDraft("called", {"nodes": nodes}), ANNA)
    await dispatching.workflows.start(workflow.key, StartRequest(), ANNA)
    await dispatching.asked()
    await dispatching.idle()
    [context] = dispatching.target.asked
    assert context.callback is not None
    dispatching.target.asked.clear()
    async with transactions(dispatching) as found:
        await dispatching.runs.report(CallbackMessage(succeeded=True, token=context.callback.token))
        await dispatching.asked()
    assert found[0] == ["report", "claim"]


async def test_the_next_of_a_backlog_as_those_before_end_though_not_all_in_one_turn_of_the_event_loop(
    dispatching: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    places, target = dispatching.engine.workers.size, dispatching.target
    gates = [asyncio.Event(), asyncio.Event()]

    async def answered_by_halves(context: ExecutionContext) -> Outcome:
        target.asked.append(context)
        await gates[len(target.asked) % 2].wait()
        return Succeeded()

    monkeypatch.setattr(target, "execute", answered_by_halves)
    view = await dispatching.job()
    await asyncio.gather(*(dispatching.run(view.job) for _ in range(2 * places)))
    await _until_asked(dispatching, places)
    async with transactions(dispatching) as found:
        gates[0].set()
        await asyncio.sleep(0)
        gates[1].set()
        await _until_asked(dispatching, 2 * places)
    assert found[0] == ["settle"] * places + ["claim"]


async def _until_asked(sim: Simulation, times: int) -> None:
    while len(sim.target.asked) < times:  # noqa: ASYNC110 - one turn of the loop at a time
        await asyncio.sleep(0)


async def test_what_is_refused_is_looked_for_in_vain_and_no_harm_is_done(dispatching: Simulation) -> None:
    with pytest.raises(NotFound):
        await dispatching.jobs.run(1_000, RunRequest(), ANNA)
    view = await dispatching.job()
    await dispatching.run(view.job)
    await dispatching.asked()
    await dispatching.idle()
    assert await dispatching.all_ended(view.job)


async def test_others_hear_of_it_only_when_it_is_there(dispatching: Simulation) -> None:
    view = await dispatching.job()
    told: list[str] = []
    dispatching.signals.tell_others = told.append
    with pytest.raises(NotFound):
        await dispatching.jobs.run(1_000, RunRequest(), ANNA)
    assert told == []
    await dispatching.run(view.job)
    assert told == ["work"]
