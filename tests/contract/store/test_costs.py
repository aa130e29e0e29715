"""What the way of a run through the store costs, in counts that no machine can change: statements, rows and commits.

A round trip more in one of these is a decision, and changes a figure here.
"""

import asyncio
import tracemalloc
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Connection

from ksana.domain.execution import Claimed
from ksana.domain.ledger import Firing
from ksana.domain.states import ExecutionStatus as S
from ksana.domain.workflow import Ended
from ksana.engine.runner import claim_of
from ksana.store.requests import ClaimRequest, Ending
from ksana.store.sql.statements.node_claims import _RUNS
from ksana.store.sql.store import SqlStore
from ksana.store.sql.tx import Tx
from tests.contract.store.conftest import BACK_ENDS
from tests.contract.store.counting import counting
from tests.contract.store.world import World
from tests.unit.engine.workflow_world import Flow, node

FEW, MANY = 5, 60
MARK = 1
"""Where a COMMIT can be ambiguous, each transaction writes its number."""
ABORT = 2
"""SQLite's word for it in a program."""


@pytest.fixture(params=BACK_ENDS[:3])
def back_end(request: pytest.FixtureRequest) -> str:
    """The databases alone: the JSON file is written whole each time."""
    return str(request.param)


async def ready(world: World, number: int) -> None:
    """So many executions of three jobs that can be claimed."""
    jobs = [await world.job() for _ in range(3)]
    await asyncio.gather(*(world.enqueue(jobs[each % 3]) for each in range(number)))


async def claimed(world: World, number: int) -> list[Claimed]:
    return list(await world.store.claim(ClaimRequest("one", number), world.clock.now()))


def marked(store: SqlStore) -> int:
    return MARK if store.shared else 0


@pytest.mark.parametrize("number", [FEW, MANY])
async def test_a_claim_is_three_statements_and_one_commit_however_much_it_takes(
    world: World, store: SqlStore, number: int
) -> None:
    await ready(world, number)
    with counting(store) as count:
        assert len(await claimed(world, number)) == number
    assert count.statements <= 3 + marked(store)  # what is ready, their jobs, that they are ours
    assert count.trips <= 3
    assert count.rows <= number + 3
    assert count.commits == 1


async def test_a_claim_reads_no_more_than_it_takes_whatever_else_is_ready(world: World, store: SqlStore) -> None:
    await ready(world, MANY)
    with counting(store) as count:
        assert len(await claimed(world, FEW)) == FEW
    assert count.rows <= FEW + 3


@pytest.mark.parametrize("number", [FEW, MANY])
async def test_ends_are_five_statements_and_one_commit_however_many_they_are(
    world: World, store: SqlStore, number: int
) -> None:
    await ready(world, number)
    mine = await claimed(world, number)
    with counting(store) as count:
        assert all(await asyncio.gather(*(store.succeed(world.ending(each)) for each in mine)))
    # Ours still, their attempts, where they went, that it happened, and whether any of their jobs has others waiting.
    assert count.statements <= (5 + MARK if store.shared else 4)  # who alone writes knows what is its own
    assert count.trips <= (3 if store.shared else 4)
    assert count.rows <= number
    assert count.commits == 1


async def test_what_ends_and_what_is_claimed_next_is_one_commit(world: World, store: SqlStore) -> None:
    await ready(world, 2 * FEW)
    mine = await claimed(world, FEW)
    with counting(store) as count:
        ends = [asyncio.ensure_future(store.succeed(world.ending(each))) for each in mine]
        assert len(await claimed(world, FEW)) == FEW
        assert all(await asyncio.gather(*ends))
    assert count.commits == 1
    assert count.statements <= (8 + MARK if store.shared else 7)
    assert count.trips <= (5 if store.shared else 7)


async def firings(world: World, number: int) -> list[Firing]:
    jobs = [await world.job() for _ in range(3)]
    schedules = [await world.every(jobs[each % 3], timedelta(seconds=10)) for each in range(number)]
    world.clock.advance(timedelta(seconds=10))
    return [world.firing(each) for each in schedules]


@pytest.mark.parametrize("number", [FEW, MANY])
async def test_a_fire_is_a_handful_of_statements_and_one_commit(world: World, store: SqlStore, number: int) -> None:
    due = await firings(world, number)
    with counting(store) as count:
        fired = await store.fire(due, world.clock.now())
    assert sum(len(each.execution_ids) for each in fired) == number
    # Due still, their jobs, the executions (with their ids), the ledger, the cursors.
    assert count.statements <= 6 + marked(store)
    assert count.trips <= (5 if store.shared else 6)
    assert count.rows <= number + 3 + 1  # the last id that was given
    assert count.commits == 1
    assert count.foreign == set()


@pytest.mark.parametrize("back_end", ["sqlite"], indirect=True)
async def test_no_write_of_many_rows_copies_what_it_changes(world: World, store: SqlStore) -> None:
    due = await firings(world, MANY)
    with counting(store) as count:
        await store.fire(due, world.clock.now())
        mine = await claimed(world, MANY)
        assert all(await asyncio.gather(*(store.succeed(world.ending(each)) for each in mine)))
    writes = {each for each in count.sql if each.startswith(("INSERT", "UPDATE"))}
    assert len(writes) >= 6  # the executions, the ledger, the cursors, that they are ours, their attempts, their ends
    with store._reading.connect() as connection:
        taken_back = {each for each in writes if _may_be_taken_back(connection, each)}
    assert not taken_back


def _may_be_taken_back(connection: Connection, sql: str) -> bool:
    """Whether a row that cannot be written ends the statement and undoes what it has done, and not its transaction."""
    steps = connection.exec_driver_sql(f"EXPLAIN {sql}", (None,) * sql.count("?")).all()
    return any(step.opcode in {"Halt", "HaltIfNull"} and step.p1 and step.p2 == ABORT for step in steps)


async def test_what_a_fire_takes_of_memory_is_bounded_for_each_schedule(world: World, store: SqlStore) -> None:
    due = await firings(world, MANY)
    tracemalloc.start()
    try:
        await store.fire(due, world.clock.now())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak / MANY < 12_000


SMALL, LARGE = {"text": "刹那"}, {"text": "x" * 5_000}


@pytest.mark.parametrize(
    ("output", "seen"),
    [
        pytest.param(SMALL, {"a": Ended(S.SUCCESS, SMALL)}, id="small"),
        pytest.param(None, {"a": Ended(S.SUCCESS, None)}, id="nothing"),
        pytest.param(LARGE, None, id="large"),
    ],
)
async def test_a_node_that_another_makes_ready_is_claimed_with_what_it_sees(
    flow: Flow, store: SqlStore, output: Any, seen: dict[str, Ended] | None
) -> None:
    await flow.start([node("a"), node("b", "a"), node("c", "b")])
    now = flow.simulation.clock.now()
    [first] = await store.claim(ClaimRequest("one", 1), now)
    with counting(store) as count:
        ended = asyncio.ensure_future(store.succeed(Ending(claim_of(first), now, output=output)))
        [second] = await store.claim(ClaimRequest("one", 1), now)
        assert await ended
    assert second.node is not None
    assert (second.node.node_id, second.node.seen) == ("b", seen)
    assert count.commits == 1
    asks_for_it = 0 if output is SMALL else 1
    # The run, the claim, the attempt, its end, that it happened, what comes after, the run, what else is ready, that it is ours;
    # who alone writes knows the claim and what comes after.
    assert count.statements <= (9 + MARK if store.shared else 7) + asks_for_it
    assert count.trips <= (5 if store.shared else 7) + asks_for_it


GRAPH, VALUES = 10, 45
"""Nodes of a graph, and the values that a run takes that begins: its own row, that of its nodes, what is told of it."""


@pytest.mark.parametrize("number", [FEW, MANY])
async def test_a_start_gives_each_run_and_each_node_once(flow: Flow, store: SqlStore, number: int) -> None:
    nodes = [node("0"), *(node(str(each), str(each - 1)) for each in range(1, GRAPH))]
    workflow, now = await flow.define(nodes), flow.simulation.clock.now()
    await flow.start_of(workflow)
    beginning = flow.simulation.workflows.beginning
    news = [await beginning(workflow, now, remembered=True) for _ in range(number)]
    with counting(store) as count:
        started = await asyncio.gather(*(store.start_run(new) for new in news))
    assert all(each.created for each in started)
    # The workflow, that its graph is in use, the runs, their nodes, what happened and who asked for it; and the last ids that were
    # given, or on MySQL the first of the runs.
    assert count.statements <= (7 + MARK if store.shared else 8)
    assert count.trips <= (5 if store.shared else 8)
    assert count.commits == 1
    if not store.shared:  # room for a third more at the most
        assert count.values <= 4 / 3 * VALUES * number + 30
    assert count.foreign == set()
    assert len(await flow.nodes(started[-1].run.key)) == GRAPH


@pytest.mark.parametrize("back_end", ["sqlite"], indirect=True)
async def test_a_run_with_the_number_of_one_that_was_rolled_back_is_not_taken_for_it(
    flow: Flow, store: SqlStore
) -> None:
    now = flow.simulation.clock.now()
    await flow.start([node("a"), node("b", "a")], {"large": "x" * 5_000})
    [first] = await store.claim(ClaimRequest("one", 1), now)
    assert first.node is not None
    run_id, known = first.node.run_id, store._known_runs._known
    with store._writing.begin() as connection:
        [other] = Tx(connection, store._dialect, 0).query(_RUNS, [(run_id,)])
    known[run_id] = other._replace(params='{"of": "another"}')  # as a claim left it whose transaction was taken back
    await store.hand_back(claim_of(first), now)
    [again] = await store.claim(ClaimRequest("one", 1), now)
    ended = asyncio.ensure_future(store.succeed(Ending(claim_of(again), now, output=SMALL)))
    [second] = await store.claim(ClaimRequest("one", 1), now)
    assert await ended
    assert second.node is not None
    assert second.node.params == first.node.params
