"""What the only writer of a database knows of it: it asks less, and never believes what is not so.

`tests/knowing.py` compares what it believes with what is stored, in all tests; here is what makes it forget.
"""

import asyncio
import sqlite3
from datetime import timedelta
from typing import Any

import pytest

from ksana.domain.execution import Claim
from ksana.domain.states import ExecutionStatus as S
from ksana.domain.states import RunStatus
from ksana.engine.runner import claim_of
from ksana.store.requests import ClaimRequest, Ending
from ksana.store.sql import live as knowing
from ksana.store.sql.live import Live
from ksana.store.sql.rows import Statement, columns, insert_rows, keeping, update_by_id
from ksana.store.sql.statements import claiming, runs
from ksana.store.sql.statements.runs import RunNow
from ksana.store.sql.store import SqlStore
from ksana.store.sql.tx import Tx
from tests.contract.store.counting import counting
from tests.contract.store.world import ANNA, World
from tests.knowing import Checked
from tests.unit.engine.workflow_world import Flow, node

_STORED = Statement("SELECT t.* FROM workflow_runs t WHERE t.public_id = :key")
pytestmark = pytest.mark.parametrize("back_end", ["sqlite"], indirect=True)


def known(store: SqlStore) -> Live[RunNow]:
    assert store.writer._live is not None
    return store.writer._live


def test_what_is_believed_is_compared_in_tests(store: SqlStore) -> None:
    assert isinstance(known(store), Checked)


async def test_what_runs_is_not_asked_for_again(world: World, store: SqlStore) -> None:
    claimed = await world.running()
    with counting(store) as count:
        assert await store.succeed(world.ending(claimed))
    # Its attempt, where it went, that it happened, and whether its job has others waiting.
    assert count.statements <= 4
    assert known(store).running(claim_of(claimed)) is None
    assert not await store.succeed(world.ending(claimed))


async def test_a_run_that_goes_on_is_not_asked_for_again(flow: Flow, store: SqlStore) -> None:
    await flow.start([node("a"), node("b", "a"), node("c", "b"), node("d", "c")])
    now = flow.simulation.clock.now()
    [claimed] = await store.claim(ClaimRequest("one", 1), now)
    for of_the_run in (2, 0):
        with counting(store) as count:
            ended = asyncio.ensure_future(store.succeed(Ending(claim_of(claimed), now, output={})))
            [claimed] = await store.claim(ClaimRequest("one", 1), now)
            assert await ended
        # The attempt, its end, that it happened, what else is ready, that what comes after is ours. The run is read, and written
        # once: as one whose nodes are to be counted.
        assert count.statements <= 5 + of_the_run
        assert count.commits == 1


def waiting(store: SqlStore) -> set[str]:
    return {node_id for _, node_id in known(store)._waiting}


_READS_WAITING = "t.skipped_dependencies FROM"


@pytest.mark.parametrize("forgets", [False, True])
async def test_what_waits_for_others_is_asked_for_only_if_it_was_forgotten(
    flow: Flow, store: SqlStore, *, forgets: bool
) -> None:
    after_all = node("d", "c", triggerRule="ALL_DONE")
    run = await flow.start([node("a"), node("b"), node("c", "a", "b"), after_all])
    assert waiting(store) == {"c", "d"}
    with counting(store) as count:
        for error in (None, "no", None):  # of c, which waits for both and so is skipped; the last one is d
            if forgets:
                known(store).forget()
            await end_next(flow, store, error=error)
    assert await flow.statuses(run) == {"a": "SUCCESS", "b": "FAILED", "c": "SKIPPED", "d": "SUCCESS"}
    assert any(_READS_WAITING in each for each in count.sql) == forgets


async def test_nodes_of_a_run_that_stops_wait_no_more(flow: Flow, store: SqlStore) -> None:
    run = await flow.start([node("a"), node("b", "a")])
    await flow.orders.stop(run, ANNA)
    assert waiting(store) == set()
    assert await flow.statuses(run) == {"a": "STOPPED", "b": "STOPPED"}


async def test_no_more_nodes_that_wait_are_kept_than_fit(
    flow: Flow, store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(knowing, "MOST", 5)
    keys = [await flow.start([node("a"), node("b", "a"), node("c", "a")]) for _ in range(4)]
    assert 0 < len(known(store)._waiting) <= 5
    monkeypatch.setattr(knowing, "MOST", 1)
    keys.append(await flow.start([node("a"), node("b", "a"), node("c", "a")]))  # more at once than fit
    assert len(known(store)._waiting) <= 1
    for _ in range(5 * 3):
        await end_next(flow, store)
    assert {(await flow.reread(key)).status for key in keys} == {RunStatus.SUCCESS}


async def stored_run(store: SqlStore, key: str) -> Any:
    found = await store._read(lambda tx: tx.query(_STORED, key=key))
    return found[0]


async def end_next(flow: Flow, store: SqlStore, error: str | None = None) -> None:
    now = flow.simulation.clock.now()
    [claimed] = await store.claim(ClaimRequest("one", 1), now)
    ending = Ending(claim_of(claimed), now, output={}, error=error)
    assert await (store.succeed(ending) if error is None else store.fail(ending))


@pytest.mark.parametrize("forgets", [False, True])
async def test_counts_that_were_not_written_are_counted(flow: Flow, store: SqlStore, *, forgets: bool) -> None:
    run = await flow.start([node("a"), node("b"), node("c", "b"), node("d", "c")])
    await end_next(flow, store, error="no")
    for _ in range(3):
        assert (await flow.reread(run)).status is RunStatus.RUNNING
        if forgets:
            known(store).forget()
        await end_next(flow, store)
    assert (await flow.reread(run)).status is RunStatus.FAILED
    stored = await stored_run(store, run)
    assert (stored.open_nodes, stored.failed_nodes, stored.stopped_nodes) == (0, 1, 0)


async def test_of_a_small_run_they_are_not_written_while_it_goes_on(flow: Flow, store: SqlStore) -> None:
    run = await flow.start([node("a"), node("b", "a"), node("c", "b"), node("d", "c")])
    for _ in range(2):
        await end_next(flow, store)
        assert (await stored_run(store, run)).open_nodes == runs.UNTOLD
    changed = (await stored_run(store, run)).updated_at
    flow.simulation.clock.advance(timedelta(microseconds=runs.MICROS_BETWEEN))
    await end_next(flow, store)  # that it goes on is told now and then
    assert (await stored_run(store, run)).updated_at == changed + runs.MICROS_BETWEEN
    await end_next(flow, store)
    assert (await stored_run(store, run)).open_nodes == 0


async def test_of_a_large_one_they_are(flow: Flow, store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "SOON_COUNTED", 2)
    run = await flow.start([node("a"), node("b", "a"), node("c", "b")])
    for left in (2, 1, 0):
        await end_next(flow, store)
        assert (await stored_run(store, run)).open_nodes == left


async def test_nor_is_one_of_which_a_node_is_tried_again(flow: Flow, store: SqlStore) -> None:
    await flow.start([node("a"), node("b", "a"), node("c", "b")])
    now = flow.simulation.clock.now()
    [claimed] = await store.claim(ClaimRequest("one", 1), now)
    assert await store.succeed(Ending(claim_of(claimed), now, output={}))
    [claimed] = await store.claim(ClaimRequest("one", 1), now)
    with counting(store) as count:
        assert await store.retry(Ending(claim_of(claimed), now, error="no"), now)
        [claimed] = await store.claim(ClaimRequest("one", 1), now)
        assert await store.succeed(Ending(claim_of(claimed), now, output={}))
    assert not [each for each in count.sql if "FROM" in each and "workflow_runs t" in each and "open_nodes" in each]


async def test_what_somebody_else_writes_to_the_file_counts(world: World, store: SqlStore, url: str) -> None:
    job = await world.job()
    claimed, other = await world.running(job), await world.running(job)
    assert known(store).running(claim_of(claimed)) is not None
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        connection.execute("UPDATE executions SET epoch = epoch + 1 WHERE id = ?", (claimed.execution.id,))
    connection.close()
    assert not await store.succeed(world.ending(claimed))
    assert await world.status(claimed.execution.id) is S.RUNNING
    assert await store.succeed(world.ending(other))


async def test_what_was_taken_back_is_not_believed(world: World, store: SqlStore) -> None:
    execution = await world.enqueue(await world.job())
    request, now = ClaimRequest("one", 1), world.clock.now()
    wish = claiming.Wish(request, now, store._lane_lookup, store._known_jobs, store._known_runs)

    def claim_and_break(tx: Tx, payloads: list[Any]) -> list[Any]:
        [taken] = claiming.claim(tx, [wish])
        assert isinstance(taken, list)
        assert [each.execution.id for each in taken] == [execution.id]
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await store.writer.submit(claim_and_break, None)
    assert known(store).running(Claim(execution.id, 1)) is None
    [claimed] = await world.claim()
    assert await store.succeed(world.ending(claimed))


async def test_what_a_person_ends_does_not_run(world: World, store: SqlStore) -> None:
    claimed = await world.running()
    await store.cancel(claimed.execution.id, ANNA, world.clock.now())
    assert known(store).running(claim_of(claimed)) is None
    assert not await store.succeed(world.ending(claimed))


async def test_only_as_much_is_kept_as_fits(world: World, store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(knowing, "MOST", 2)
    monkeypatch.setattr(knowing, "SMALL", 20)
    job = await world.job()
    claimed = []
    for number in range(5):
        await world.enqueue(job, input={"text": "x" * 10 * number})
        claimed += await world.claim()
    assert sum(known(store).running(claim_of(each)) is not None for each in claimed) < 3
    assert all(await asyncio.gather(*(store.succeed(world.ending(each)) for each in claimed)))


_IDS = columns(id="int")
_KEPT = keeping(update_by_id("executions", _IDS, reason="'x'"))


@pytest.mark.parametrize(
    ("statement", "forgets"),
    [
        (update_by_id("executions", _IDS, reason="'x'"), True),
        (update_by_id("workflow_runs", _IDS, reason="'x'"), True),
        (Statement("DELETE FROM executions WHERE id = -1"), True),
        (
            Statement("UPDATE jobs SET name = name WHERE id IN (SELECT t.job_id FROM executions t WHERE t.id = -1)"),
            True,
        ),
        (_KEPT, False),
        (update_by_id("jobs", _IDS, name="name"), False),
        (Statement("SELECT t.id FROM executions t"), False),
        (Statement("WITH them AS (SELECT t.id FROM executions t) SELECT id FROM them"), False),
        (insert_rows("events", columns(type="text", at="int", subject="text", data="text")), False),
    ],
)
async def test_who_changes_such_rows_in_a_way_of_its_own_makes_all_be_forgotten(
    world: World, store: SqlStore, statement: Statement, forgets: bool
) -> None:
    rows = [tuple(-1 for _ in statement.rows)] if statement.rows else []

    def say(tx: Tx, payloads: list[Any]) -> list[Any]:
        if forgets or statement.rows:
            tx.run(statement, rows)
        else:
            tx.query(statement)
        return payloads

    claim: Claim = claim_of(await world.running())
    await store.writer.submit(say, None)
    assert (known(store).running(claim) is None) == forgets


async def test_what_is_said_in_another_language_makes_all_be_forgotten(world: World, store: SqlStore) -> None:
    claim = claim_of(await world.running())
    await world.job()  # by a statement of SQLAlchemy's, of which nobody looks at what it says
    assert known(store).running(claim) is None
