"""What a node makes ready is claimed before it is written; nobody can tell, but by the number of statements."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any

import pytest
from sqlalchemy import select

from ksana.domain.execution import Claimed
from ksana.domain.job import ConcurrencyPolicy, JobSpec
from ksana.domain.states import ExecutionStatus as S
from ksana.engine.commands import JobDraft
from ksana.engine.runner import claim_of
from ksana.store.requests import ClaimRequest, Ending
from ksana.store.sql import schema
from ksana.store.sql.rows import Statement, columns, update_by_id
from ksana.store.sql.store import SqlStore
from ksana.store.sql.tx import Held, Tx
from tests.contract.store.conftest import BACK_ENDS
from tests.contract.store.counting import counting
from tests.contract.store.world import ANNA, World, run_sql
from tests.unit.engine.workflow_world import Flow, node

DIAMOND = [node("a"), node("b", "a"), node("c", "a"), node("d", "b", "c")]


@pytest.fixture(params=BACK_ENDS[:3])
def back_end(request: pytest.FixtureRequest) -> str:
    """The databases that keep workflows."""
    return str(request.param)


class Instance:
    """Claims and ends, one step at a time."""

    def __init__(self, flow: Flow, store: SqlStore) -> None:
        self._flow, self.store = flow, store

    async def claim(self, places: int = 10, **wishes: Any) -> list[Claimed]:
        return list(await self.store.claim(ClaimRequest("one", places, **wishes), self._flow.simulation.clock.now()))

    async def end(self, *claimed: Claimed, failed: bool = False) -> None:
        verb = self.store.fail if failed else self.store.succeed
        now = self._flow.simulation.clock.now()
        assert all(await asyncio.gather(*(verb(Ending(claim_of(each), now)) for each in claimed)))

    async def end_and_claim(self, *claimed: Claimed, places: int = 10, **wishes: Any) -> list[Claimed]:
        """In one transaction."""
        return await self.with_claim(self.end(*claimed), places=places, **wishes)

    async def with_claim(self, *ends: Coroutine[Any, Any, None], places: int = 10, **wishes: Any) -> list[Claimed]:
        entered, gate = threading.Event(), threading.Event()

        def block(tx: Tx, payloads: list[Any]) -> list[Any]:
            entered.set()
            return [gate.wait() for _ in payloads]

        blocked = self.store.writer.submit(block, None)
        await asyncio.to_thread(entered.wait)
        asked = [asyncio.ensure_future(each) for each in ends]
        claiming = asyncio.ensure_future(self.claim(places, **wishes))
        for _ in range(4):
            await asyncio.sleep(0)  # until all have asked
        gate.set()
        await asyncio.gather(blocked, *asked)
        return await claiming


@pytest.fixture
def one(flow: Flow, store: SqlStore) -> Instance:
    return Instance(flow, store)


def names(claimed: list[Claimed]) -> list[str]:
    return [each.node.node_id for each in claimed if each.node is not None]


async def status(flow: Flow, key: str, name: str) -> S:
    return (await flow.node(key, name)).execution.status


ROWS = (
    "SELECT id, job_id, workflow_run_id, node_id, status, ready_at, owner, epoch, attempt, open_dependencies,"
    " failed_dependencies, skipped_dependencies, reason, started_at, ended_at, updated_at, share FROM executions ORDER BY id"
)


async def test_it_becomes_what_it_would_have_become_step_by_step(flow: Flow, one: Instance, url: str) -> None:
    workflow = await flow.define(DIAMOND)
    found = []
    for together in (False, True):
        await flow.start_of(workflow)
        claimed = await one.claim()
        for _ in range(2):
            if together:
                claimed = await one.end_and_claim(*claimed)
            else:
                await one.end(*claimed)
                claimed = await one.claim()
        rows = [dict(row._mapping) for row in run_sql(url, ROWS)][-len(DIAMOND) :]
        first, run_id = rows[0]["id"], rows[0]["workflow_run_id"]
        found.append(
            [{**row, "id": row["id"] - first, "workflow_run_id": row["workflow_run_id"] - run_id} for row in rows]
        )
        await one.end(*claimed)
    assert found[0] == found[1]
    assert [row["status"] for row in found[0]] == ["SUCCESS", "SUCCESS", "SUCCESS", "RUNNING"]


async def test_it_is_not_written_as_ready(flow: Flow, one: Instance) -> None:
    await flow.start([node("a"), node("b", "a")])
    claimed = await one.claim()
    with counting(one.store) as count:
        assert names(await one.end_and_claim(*claimed)) == ["b"]
    assert count.commits == 2  # with that of what kept the writer busy until all had asked
    assert not [sql for sql in count.sql if "ready_at" in sql and not sql.startswith("SELECT")]


async def test_what_there_is_no_place_for_is_ready_for_the_next_claim(flow: Flow, one: Instance) -> None:
    key = await flow.start([node("a"), node("b", "a"), node("c", "a"), node("d", "a")])
    claimed = await one.end_and_claim(*await one.claim(), places=2)
    assert names(claimed) == ["b", "c"]
    assert await status(flow, key, "d") is S.SCHEDULED
    assert names(await one.claim()) == ["d"]


async def test_what_was_ready_before_goes_first(flow: Flow, one: Instance) -> None:
    later = await flow.start([node("a"), node("b", "a")])
    [first] = await one.claim(1)
    await flow.start([node("x")])
    assert names(await one.end_and_claim(first, places=1)) == ["x"]
    assert await status(flow, later, "b") is S.SCHEDULED


async def test_with_room_for_both_it_goes_with_what_was_ready_before(flow: Flow, one: Instance) -> None:
    await flow.start([node("a"), node("b", "a")])
    [first] = await one.claim(1)
    await flow.start([node("x"), node("y", "x")])
    claimed = await one.end_and_claim(first)
    assert names(claimed) == ["x", "b"]
    assert names(await one.end_and_claim(*claimed)) == ["y"]


async def test_those_of_one_node_go_in_the_order_in_which_they_stand(flow: Flow, one: Instance) -> None:
    await flow.start([node("a"), node("z", "a"), node("m", "a"), node("b", "a")])
    assert names(await one.end_and_claim(*await one.claim(), places=1)) == ["z"]
    assert names(await one.claim()) == ["m", "b"]


async def test_shares_in_turn_are_told_by_what_is_written(flow: Flow, one: Instance) -> None:
    await flow.start([node("a"), node("b", "a")])
    assert names(await one.end_and_claim(*await one.claim(), in_turn_after="")) == ["b"]


async def test_one_of_another_queue_is_left_to_those_who_serve_it(flow: Flow, one: Instance) -> None:
    key = await flow.start([node("a"), node("b", "a", workerQueue="elsewhere")])
    assert await one.end_and_claim(*await one.claim()) == []
    assert await status(flow, key, "b") is S.SCHEDULED
    assert names(await one.claim(queues=("elsewhere",))) == ["b"]


async def test_the_limit_of_its_job_is_kept(flow: Flow, one: Instance) -> None:
    spec = JobSpec("narrow", "scripted", {}, concurrency=ConcurrencyPolicy.QUEUE, max_concurrency=1)
    job = await flow.simulation.jobs.create(JobDraft(spec), ANNA)
    key = await flow.start([node("a"), *({"id": name, "jobId": job.job.key, "dependsOn": ["a"]} for name in "bc")])
    [taken] = await one.end_and_claim(*await one.claim())
    assert names([taken]) == ["b"]
    assert await status(flow, key, "c") is S.QUEUED
    assert names(await one.end_and_claim(taken)) == ["c"]


async def test_those_that_wait_for_the_limit_of_their_job_hide_no_others(flow: Flow, one: Instance) -> None:
    spec = JobSpec("narrow", "scripted", {}, concurrency=ConcurrencyPolicy.QUEUE, max_concurrency=1)
    job = await flow.simulation.jobs.create(JobDraft(spec), ANNA)
    limited = [{"id": name, "jobId": job.job.key, "dependsOn": ["a"]} for name in "bcd"]
    await flow.start([node("a"), *limited, node("e", "a")])
    assert names(await one.end_and_claim(*await one.claim(), places=3)) == ["b", "e"]


async def test_a_lane_that_is_full_is_passed_over(flow: Flow, one: Instance, world: World) -> None:
    calling = await world.job(config={"url": "http://slow.example/"})
    key = await flow.start([node("a"), {"id": "b", "jobId": calling.key, "dependsOn": ["a"]}, node("c", "a")])
    claimed = await one.end_and_claim(*await one.claim(), per_lane=1, lanes={"slow.example": 1})
    assert names(claimed) == ["c"]
    assert await status(flow, key, "b") is S.SCHEDULED


async def test_nothing_of_a_run_that_halts_in_the_same_transaction_is_taken(flow: Flow, one: Instance) -> None:
    key = await flow.start([node("a"), node("b"), node("c", "a")], failFast=True)
    [first, second] = await one.claim()
    assert await one.with_claim(one.end(first), one.end(second, failed=True)) == []
    assert await status(flow, key, "c") is S.STOPPED


_SAY = update_by_id("executions", columns(id="int", reason="text"), reason="r.reason")
_SAID = Statement("SELECT t.reason FROM executions t ORDER BY t.id")
_SAID_ELSEWHERE = Statement("SELECT count(*) FROM workflow_runs")


async def test_what_is_held_back_is_written_before_anybody_asks_about_executions(world: World, store: SqlStore) -> None:
    row_id = (await world.enqueue(await world.job())).id
    with store._writing.begin() as connection:
        tx = Tx(connection, store._dialect, 0)
        for word in ("first", "second"):
            tx.hold(Held(_SAY, {row_id: (row_id, word)}, {}, {}))
            tx.query(_SAID_ELSEWHERE)
            assert tx.held is not None
            assert [row.reason for row in tx.query(_SAID)] == [word]
            assert tx.held is None
        tx.hold(Held(_SAY, {row_id: (row_id, "third")}, {}, {}))
        assert [row.reason for row in tx.core(select(schema.executions.c.reason))] == ["third"]
        tx.hold(Held(_SAY, {row_id: (row_id, "fourth")}, {}, {}))
        tx.flush()
    assert [row.reason for row in await world.executions()] == ["fourth"]
