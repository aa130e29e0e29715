"""Two instances, or a person and a worker, at the same moment: one is first, the other is told, and the run comes out right."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from ksana.domain.errors import Conflict
from ksana.domain.execution import Claim
from ksana.domain.states import ExecutionStatus, RunStatus
from ksana.engine.commands import StartRequest
from ksana.store.requests import ClaimRequest, Ending
from ksana.store.sql import open_store
from ksana.store.sql.rows import Statement
from ksana.store.sql.statements import starting
from ksana.store.sql.store import SqlStore
from ksana.store.sql.tx import Tx
from ksana.store.workflow_requests import Complete, StartedRun, Stop
from tests.clock import FakeClock
from tests.contract.store.conftest import BACK_ENDS, OPTIONS
from tests.contract.store.world import ANNA
from tests.unit.engine.simulation import Simulation
from tests.unit.engine.workflow_world import Flow, node

ROUNDS = 10
PATIENCE_SECONDS = 30
IN_THE_TRANSACTION = 2
"""The question by which a start looks for its run once more, after one before it."""


@pytest.fixture(params=BACK_ENDS[1:3])
def back_end(request: pytest.FixtureRequest) -> str:
    """Those that several instances share."""
    return str(request.param)


@pytest.fixture
async def other(url: str, store: SqlStore, clock: FakeClock) -> AsyncIterator[SqlStore]:
    opened = open_store(url, options=OPTIONS, clock=clock)
    yield opened
    await opened.close()


async def claimed(store: SqlStore, clock: FakeClock, capacity: int = 10) -> dict[str, Claim]:
    """What can be claimed, by node."""
    found = await store.claim(ClaimRequest("one", capacity), clock.now())
    return {
        each.execution.node_id or "": Claim(each.execution.id, each.execution.epoch, each.execution.workflow_run_id)
        for each in found
    }


async def test_fifty_starts_with_one_run_id_make_one_run(
    flow: Flow, store: SqlStore, other: SqlStore, clock: FakeClock
) -> None:
    workflow = await flow.define([node("a")])
    elsewhere = Simulation(other, clock, instance="two")
    request = StartRequest(key="the-one", idempotency_key="k")
    started = await asyncio.gather(
        *(each.workflows.start(workflow.key, request, ANNA) for each in [flow.simulation, elsewhere] * 25)
    )
    assert len({each.run.id for each in started}) == 1
    assert sum(each.created for each in started) == 1
    assert await flow.statuses("the-one") == {"a": "PENDING"}


async def test_a_start_finds_the_run_that_another_instance_makes_while_it_looks(
    flow: Flow, store: SqlStore, other: SqlStore, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    workflow, elsewhere = await flow.define([node("a")]), Simulation(other, clock, instance="two")
    loop, query = asyncio.get_running_loop(), Tx.query
    questions: list[Statement] = []
    made: list[StartedRun] = []

    def start_elsewhere() -> StartedRun:
        asked = elsewhere.workflows.start(workflow.key, StartRequest(key="the-one"), ANNA)
        return asyncio.run_coroutine_threadsafe(asked, loop).result(PATIENCE_SECONDS)

    def answer_then_start_elsewhere(tx: Tx, statement: Statement, *rows: Any, **values: Any) -> Any:
        found = query(tx, statement, *rows, **values)
        if statement is starting._RUNS_BY_KEY:
            questions.append(statement)
            if len(questions) == IN_THE_TRANSACTION:
                made.append(start_elsewhere())
        return found

    monkeypatch.setattr(Tx, "query", answer_then_start_elsewhere)
    started = await flow.simulation.workflows.start(workflow.key, StartRequest(key="the-one"), ANNA)
    assert [each.created for each in made] == [True]
    assert (started.created, started.run.id) == (False, made[0].run.id)


async def test_two_instances_end_two_predecessors_at_once(
    flow: Flow, store: SqlStore, other: SqlStore, clock: FakeClock
) -> None:
    workflow = await flow.define([node("a"), node("b"), node("c", "a", "b"), node("d", "c")])
    for _ in range(ROUNDS):
        run = await flow.start_of(workflow)
        claims = await claimed(store, clock)
        ends = [(store, claims["a"]), (other, claims["b"])]
        assert await asyncio.gather(*(each.succeed(Ending(claim, clock.now())) for each, claim in ends)) == [True, True]
        after = await claimed(other, clock)
        assert set(after) == {"c"}
        assert await store.succeed(Ending(after["c"], clock.now()))
        last = await claimed(store, clock)
        assert await other.succeed(Ending(last["d"], clock.now()))
        found = await flow.reread(run)
        assert found.status is RunStatus.SUCCESS


async def test_a_person_completes_what_a_worker_just_ends(
    flow: Flow, store: SqlStore, other: SqlStore, clock: FakeClock
) -> None:
    workflow = await flow.define([node("a"), node("b", "a")])
    for _ in range(ROUNDS):
        run = await flow.reread(await flow.start_of(workflow))
        claim = (await claimed(store, clock))["a"]
        ended, ordered = await asyncio.gather(
            store.fail(Ending(claim, clock.now(), error="late")),
            other.order(Complete(run.id, "a", clock.now(), 1)),
            return_exceptions=True,
        )
        # Either it had failed, and then was completed; or it was completed, and the worker is told that it came too late.
        assert isinstance(ended, bool)
        assert not isinstance(ordered, BaseException)
        assert (await flow.node(run.key, "a")).execution.status is ExecutionStatus.SUCCESS
        after = await claimed(store, clock)
        assert set(after) == {"b"}
        await store.succeed(Ending(after["b"], clock.now()))
        assert (await flow.reread(run.key)).status is RunStatus.SUCCESS


async def test_a_stop_races_with_an_end_and_with_a_claim(
    flow: Flow, store: SqlStore, other: SqlStore, clock: FakeClock
) -> None:
    workflow = await flow.define([node("a"), node("b", "a"), node("x")])
    for _ in range(ROUNDS):
        run = await flow.reread(await flow.start_of(workflow))
        first = await claimed(store, clock, capacity=1)
        (claim,) = first.values()
        _, _, more = await asyncio.gather(
            other.order(Stop(run.id, clock.now(), force=True)),
            store.succeed(Ending(claim, clock.now())),
            claimed(store, clock),
            return_exceptions=True,
        )
        if isinstance(more, BaseException):
            raise more
        for left in more.values():
            await store.succeed(Ending(left, clock.now()))
        found = await flow.reread(run.key)
        assert found.status is RunStatus.STOPPED
        assert await claimed(store, clock) == {}


async def test_of_two_orders_one_is_told(flow: Flow, store: SqlStore, other: SqlStore, clock: FakeClock) -> None:
    workflow = await flow.define([node("a"), node("b", "a")])
    elsewhere = Simulation(other, clock, instance="two")
    for _ in range(ROUNDS):
        run = await flow.start_of(workflow)
        claim = (await claimed(store, clock))["a"]
        await store.fail(Ending(claim, clock.now(), error="no"))
        answers = await asyncio.gather(
            flow.orders.retry_node(run, "a", ANNA),
            elsewhere.workflow_runs.retry_node(run, "a", ANNA),
            return_exceptions=True,
        )
        assert sum(isinstance(each, Conflict) for each in answers) == 1
        again = await claimed(store, clock)
        assert set(again) == {"a"}
        await flow.orders.close(run, ANNA)
