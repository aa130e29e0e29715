"""What must never happen to a run: done again unasked, left hanging, counted wrongly. Each was possible once."""

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text

from ksana.domain.errors import InvalidDag, NodeNotRetryable, RunTerminal, WorkflowInUse
from ksana.domain.execution import Claim
from ksana.domain.schedule import ScheduleKind, ScheduleSpec
from ksana.domain.states import TERMINAL, ExecutionStatus, OccurrenceOutcome, RunStatus
from ksana.domain.workflow import Workflow
from ksana.engine.commands import WorkflowEdit
from ksana.store.requests import ClaimRequest, Ending, PurgeRequest
from ksana.store.sql.codec_workflows import SNAPSHOTS
from ksana.store.sql.store import SqlStore
from tests.clock import FakeClock
from tests.contract.store.conftest import BACK_ENDS
from tests.contract.store.world import ANNA
from tests.unit.engine.workflow_world import Flow, node

MONTH = timedelta(days=30)


@pytest.fixture(params=BACK_ENDS[:3])
def back_end(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def child(key: str, workflow: Workflow, *depends_on: str, **more: Any) -> dict[str, Any]:
    config = {"workflowId": workflow.key}
    return {"id": key, "type": "workflow", "cfg": config, "dependsOn": list(depends_on), **more}


def wait(key: str) -> dict[str, Any]:
    return {"id": key, "type": "wait", "cfg": {}}


async def test_items_that_succeeded_are_not_done_again_when_their_node_had_to_wait_for_another(flow: Flow) -> None:
    flow.fails("a", "l[1]")
    run = await flow.run([node("a"), node("l", "a", triggerRule="all_done", forEach=[10, 20])])
    flow.recovers("a", "l[1]")
    await flow.orders.resume(run, ANNA)
    await flow.simulation.settle()
    assert flow.order.count("l[0]") == 1
    assert (await flow.node(run, "l")).execution.output == [None, None]
    assert (await flow.reread(run)).status is RunStatus.SUCCESS


async def test_nor_is_a_run_that_works_for_a_node(flow: Flow) -> None:
    inner = await flow.define([node("x"), node("y", "x")])
    flow.fails("a", "y")
    run = await flow.run([node("a"), child("c", inner, "a", triggerRule="all_done")])
    flow.recovers("a", "y")
    await flow.orders.resume(run, ANNA)
    await flow.simulation.settle()
    assert (flow.order.count("x"), flow.order.count("y")) == (1, 2)
    assert (await flow.reread(run)).status is RunStatus.SUCCESS


async def test_items_that_are_workflows_go_on_where_they_were(flow: Flow) -> None:
    inner = await flow.define([node("x"), node("y", "x")])
    flow.fails("y")
    run = await flow.run([child("c", inner, forEach=[1, 2]), node("after", "c")])
    flow.recovers("y")
    first = (await flow.node(run, "c[0]")).child_run or ""
    await flow.orders.resume(first, ANNA)
    await flow.simulation.settle()
    assert (await flow.statuses(run))["c[0]"] == "SUCCESS"
    await flow.orders.retry_node(run, "c", ANNA)
    await flow.simulation.settle()
    assert flow.order.count("x") == 2
    assert (await flow.reread(run)).status is RunStatus.SUCCESS


async def test_completing_the_last_node_of_a_run_ends_the_node_that_it_works_for(flow: Flow) -> None:
    inner = await flow.define([node("x"), node("y")])
    flow.fails("y")
    run = await flow.run([child("c", inner), node("after", "c")])
    await flow.orders.complete_node((await flow.node(run, "c")).child_run or "", "y", ANNA, 1, None)
    await flow.simulation.settle()
    assert flow.order.count("x") == 1
    assert await flow.statuses(run) == {"c": "SUCCESS", "after": "SUCCESS"}


async def test_a_run_and_its_child_can_take_too_long_at_once(flow: Flow) -> None:
    inner = await flow.define([node("x"), node("y", "x")], timeout="60s")
    flow.hold()
    run = await flow.run([child("c", inner)], timeout="60s")
    below = (await flow.node(run, "c")).child_run or ""
    flow.simulation.clock.advance(timedelta(seconds=61))
    await flow.simulation.settle()
    assert {(await flow.reread(key)).status for key in (run, below)} <= {RunStatus.FAILED, RunStatus.STOPPED}
    assert {(await flow.node(below, each)).execution.status for each in "xy"} <= TERMINAL


async def test_failing_fast_does_not_wait_for_a_person_nor_for_a_child_that_does(flow: Flow) -> None:
    inner = await flow.define([wait("w"), node("y", "w")])
    flow.fails("b")
    run = await flow.run([wait("w"), child("c", inner), node("a"), node("b", "a")], failFast=True)
    assert (await flow.reread(run)).status is RunStatus.FAILED
    assert (await flow.reread((await flow.node(run, "c")).child_run or "")).status is RunStatus.STOPPED


async def test_a_wait_does_not_begin_in_a_run_that_stops(flow: Flow, store: SqlStore, clock: FakeClock) -> None:
    run = await flow.start([wait("w")])
    (claimed,) = await store.claim(ClaimRequest("one", 5), clock.now())
    await flow.orders.stop(run, ANNA)
    execution = claimed.execution
    claim = Claim(execution.id, execution.epoch, execution.workflow_run_id)
    assert await store.await_callback(Ending(claim, clock.now()), None)
    assert (await flow.reread(run)).status is RunStatus.STOPPED


async def test_an_item_of_a_node_that_was_completed_by_hand_is_not_asked_for(flow: Flow) -> None:
    flow.hold()
    run = await flow.run([node("l", forEach=[1, 2]), node("n", "l")])
    await flow.orders.complete_node(run, "l", ANNA, "by hand", None)
    await flow.let_go()
    with pytest.raises(NodeNotRetryable):
        await flow.orders.retry_node(run, "l[0]", ANNA)
    assert (await flow.reread(run)).status is RunStatus.SUCCESS


async def test_no_more_items_at_once_after_a_retry_either(flow: Flow) -> None:
    flow.fails(*(f"l[{place}]" for place in range(5)))
    run = await flow.run([node("l", forEach={"items": list(range(10)), "maxParallel": 2})])
    for place in range(5):
        flow.recovers(f"l[{place}]")
    flow.hold()
    await flow.orders.retry_node(run, "l", ANNA)
    await flow.simulation.settle()
    seen = [await flow.running(run)]
    while seen[-1]:
        await flow.end_one()
        seen.append(await flow.running(run))
    assert seen == [2, 2, 2, 2, 1, 0]
    assert (await flow.reread(run)).status is RunStatus.SUCCESS


async def test_a_run_that_nobody_can_read_keeps_no_other_from_running(flow: Flow, store: SqlStore) -> None:
    broken = await flow.start([node("a")])
    with store._writing.begin() as connection:
        connection.execute(text("UPDATE snapshots SET document = '{}'"))
    SNAPSHOTS._snapshots.clear()
    sound = await flow.start([node("b")])
    await flow.simulation.settle()
    assert (await flow.reread(sound)).status is RunStatus.SUCCESS
    failed = (await flow.node(broken, "a")).execution
    assert (failed.status, failed.error) == (ExecutionStatus.FAILED, "what its run started with cannot be read")


async def test_a_time_that_is_waited_for_begins_anew_with_the_node(flow: Flow) -> None:
    run = await flow.run([node("a"), {"id": "w", "type": "wait", "cfg": {"for": "1h"}, "dependsOn": ["a"]}])
    await flow.orders.stop(run, ANNA)
    flow.simulation.clock.advance(timedelta(hours=5))
    await flow.orders.resume(run, ANNA)
    await flow.simulation.settle()
    assert (await flow.reread(run)).status is RunStatus.RUNNING
    await flow.simulation.advance(timedelta(hours=1, seconds=1))
    assert (await flow.reread(run)).status is RunStatus.SUCCESS


async def test_a_run_that_is_being_removed_does_not_go_on(flow: Flow, clock: FakeClock) -> None:
    flow.fails("n0")
    run = await flow.run([node(f"n{place}") for place in range(8)])
    clock.advance(2 * MONTH)
    await flow.simulation.store.purge(PurgeRequest(clock.now() - MONTH, 100_000, limit=5))
    with pytest.raises(RunTerminal):
        await flow.orders.resume(run, ANNA)


async def test_what_a_node_made_and_nobody_can_keep_is_its_failure(flow: Flow) -> None:
    deep: dict[str, Any] = {}
    for _ in range(300):
        deep = {"a": deep}
    flow.gives("a", deep)
    run = await flow.run([node("a")])
    failed = (await flow.node(run, "a")).execution
    assert failed.status is ExecutionStatus.FAILED
    assert (failed.error or "").startswith("its result cannot be kept")


async def test_items_that_make_too_much_together_fail_their_node_and_nothing_else(flow: Flow) -> None:
    flow.computes("l", lambda _: "x" * 900_000)
    run = await flow.run([node("l", forEach=list(range(6))), node("after", "l", triggerRule="all_done")])
    assert (await flow.statuses(run))["after"] == "SUCCESS"
    assert "too much for one artifact" in ((await flow.node(run, "l")).execution.error or "")


async def test_a_graph_that_no_row_could_hold_is_refused_when_it_is_saved(flow: Flow) -> None:
    nodes = [{**node(f"n{place}"), "cfg": {"text": "x" * 1_000}} for place in range(7_000)]
    with pytest.raises(InvalidDag, match="larger than"):
        await flow.define(nodes)


async def test_a_workflow_that_another_names_cannot_be_deleted(flow: Flow) -> None:
    inner = await flow.define([node("x")])
    outer = await flow.define([child("c", inner)], name="outer")
    with pytest.raises(WorkflowInUse, match="outer"):
        await flow.simulation.workflows.delete(inner.key, ANNA)
    await flow.simulation.workflows.delete(outer.key, ANNA)
    await flow.simulation.workflows.delete(inner.key, ANNA)


async def test_a_schedule_whose_parameters_no_longer_fit_is_skipped_with_the_reason(flow: Flow) -> None:
    workflow = await flow.define([node("a")])
    spec = ScheduleSpec(ScheduleKind.EVERY, every=timedelta(seconds=10), anchor=flow.simulation.clock.now())
    schedule = await flow.simulation.schedules.create(None, spec, ANNA, workflow_id=workflow.id, inputs={"n": 1})
    stricter = {"nodes": [node("a")], "paramsSchema": {"type": "object", "required": ["region"]}}
    await flow.simulation.workflows.change(workflow.key, lambda _: WorkflowEdit(dag=stricter), ANNA)
    await flow.simulation.advance(timedelta(seconds=11))
    last = (await flow.simulation.store.last_occurrences([schedule.id]))[schedule.id]
    assert (last.outcome, last.reason) == (OccurrenceOutcome.SKIPPED, "params_invalid")


async def test_a_failed_run_says_which_node_failed_first_and_why(flow: Flow) -> None:
    flow.fails("a")
    run = await flow.run([node("a"), node("b", "a"), node("c")])
    assert (await flow.reread(run)).error == "node a: a failed"
