"""Workflows on simulated time, on every database: what starts when, what is skipped, and what a person's orders do."""

import asyncio
from datetime import timedelta

import pytest

from ksana.domain.errors import (
    InvalidDag,
    InvalidInput,
    JobInUse,
    NodeNotCompletable,
    NodeNotRetryable,
    NodeNotSkippable,
    NotFound,
    RunNotRunning,
    RunNotStopped,
    RunTerminal,
    WorkflowDisabled,
)
from ksana.domain.job import JobSpec
from ksana.domain.outcome import AwaitingCallback
from ksana.domain.schedule import ScheduleKind, ScheduleSpec
from ksana.domain.states import ExecutionStatus, OccurrenceOutcome, RunStatus
from ksana.engine.commands import (
    CallbackMessage,
    JobDraft,
    StartRequest,
    WorkflowCommands,
    WorkflowEdit,
)
from ksana.engine.signals import Signals
from ksana.engine.upkeep import RetentionOptions, purge_all
from ksana.store.requests import PageRequest
from ksana.store.sql.statements import starting
from ksana.store.view_requests import Origin, TargetKind
from ksana.store.workflow_requests import RunFilter
from tests.contract.store.conftest import BACK_ENDS
from tests.contract.store.world import ANNA
from tests.unit.engine.simulation import Simulation
from tests.unit.engine.workflow_world import Flow, node

SECOND = timedelta(seconds=1)


@pytest.fixture(params=BACK_ENDS[:3])
def back_end(request: pytest.FixtureRequest) -> str:
    """All but the JSON file, which keeps no workflows."""
    return str(request.param)


async def test_nodes_run_in_the_order_of_the_graph_and_the_run_succeeds(flow: Flow) -> None:
    run = await flow.run([node("a"), node("b", "a"), node("c", "a"), node("d", "b", "c")])
    assert flow.order[0] == "a"
    assert flow.order[-1] == "d"
    assert sorted(flow.order) == ["a", "b", "c", "d"]
    assert (await flow.reread(run)).status is RunStatus.SUCCESS
    assert set((await flow.statuses(run)).values()) == {"SUCCESS"}


async def test_what_a_start_answers_is_what_is_stored(flow: Flow) -> None:
    workflow = await flow.define([node("a"), node("b", "a")], timeout="1h")
    request = StartRequest(params={"depth": [1, {"ü": None}]}, trace_id="a" * 32)
    started = await flow.simulation.workflows.start(workflow.key, request, ANNA)
    assert started.created
    assert started.run == await flow.reread(started.run.key)


async def test_nodes_of_runs_that_start_together_lie_together_each_after_what_it_depends_on(flow: Flow) -> None:
    short = await flow.define([node("a"), node("b", "a")])
    long = await flow.define([node("a"), node("b", "a"), node("c", "b")])
    store, now = flow.simulation.store, flow.simulation.clock.now()
    news = [await flow.simulation.workflows.beginning(each, now) for each in (short, long, long)]
    started = await asyncio.gather(*(store.start_run(new) for new in news))
    nodes = [each for run in started for each in await flow.nodes(run.run.key)]
    by_id = [each.node_id for each in sorted(nodes, key=lambda each: each.execution.id)]
    assert by_id == ["a", "a", "a", "b", "b", "b", "c", "c"]


@pytest.mark.parametrize(("runs", "nodes"), [(2, 10_000), (128, 3), (128, 4)])
async def test_however_many_start_together_all_have_their_nodes(
    flow: Flow, monkeypatch: pytest.MonkeyPatch, *, runs: int, nodes: int
) -> None:
    monkeypatch.setattr(starting, "TOGETHER", runs)
    monkeypatch.setattr(starting, "MOST_NODES", nodes)
    graphs = [[node("a")], [node("a"), node("b", "a"), node("c", "b")], [node("x"), node("y", "x")]]
    workflows = [await flow.define(each) for each in graphs]
    store, now = flow.simulation.store, flow.simulation.clock.now()
    news = [await flow.simulation.workflows.beginning(workflows[each % 3], now) for each in range(7)]
    started = await asyncio.gather(*(store.start_run(new) for new in news))
    await flow.simulation.settle()
    for each, run in enumerate(started):
        assert await flow.statuses(run.run.key) == dict.fromkeys([node["id"] for node in graphs[each % 3]], "SUCCESS")


async def test_branches_run_side_by_side(flow: Flow) -> None:
    flow.hold()
    run = await flow.start([node("a"), node("b"), node("c", "a", "b")])
    await flow.simulation.settle()
    assert await flow.statuses(run) == {"a": "RUNNING", "b": "RUNNING", "c": "PENDING"}
    assert (await flow.reread(run)).status is RunStatus.RUNNING
    await flow.let_go()
    assert (await flow.reread(run)).status is RunStatus.SUCCESS


async def test_figures_count_the_nodes_of_runs_that_go_on_with_other_runs(flow: Flow) -> None:
    simulation = flow.simulation
    await flow.run([node("x"), node("y", "x")])
    job = await simulation.job()
    flow.hold()
    await flow.start([node("a"), node("b"), node("c", "a", "b")])
    await simulation.settle()
    await simulation.run(job.job)
    figures = await simulation.store.figures()
    states = ExecutionStatus
    assert dict(figures.active) == {states.RUNNING: 2, states.PENDING: 1, states.SCHEDULED: 1}
    assert dict(figures.workflow_runs) == {RunStatus.RUNNING: 1}


async def test_a_failure_skips_only_what_depends_on_it(flow: Flow) -> None:
    flow.fails("a")
    run = await flow.run([node("a"), node("b", "a"), node("c", "b"), node("x"), node("y", "x")])
    assert await flow.statuses(run) == {
        "a": "FAILED",
        "b": "SKIPPED",
        "c": "SKIPPED",
        "x": "SUCCESS",
        "y": "SUCCESS",
    }
    assert (await flow.reread(run)).status is RunStatus.FAILED
    assert (await flow.node(run, "b")).execution.reason == "upstream_failed"


async def test_fail_fast_stops_the_rest(flow: Flow) -> None:
    flow.fails("a")
    flow.hold("slow")
    run = await flow.start([node("a"), node("slow"), node("after", "slow"), node("b", "a")], failFast=True)
    await flow.simulation.settle()
    await flow.let_go("a")
    assert await flow.statuses(run) == {"a": "FAILED", "slow": "RUNNING", "after": "STOPPED", "b": "STOPPED"}
    assert (await flow.reread(run)).status is RunStatus.STOPPING
    await flow.let_go()
    assert (await flow.reread(run)).status is RunStatus.FAILED
    assert (await flow.reread(run)).error == "node a: a failed"


async def test_a_node_is_tried_again_as_its_own_retry_says(flow: Flow) -> None:
    flow.fails("a", times=2)
    retry = {"maxAttempts": 3, "backoffMillis": 1000, "backoffMultiplier": 2.0}
    run = await flow.start([node("a", retry=retry), node("b", "a")])
    await flow.simulation.settle()
    assert await flow.statuses(run) == {"a": "RETRYING", "b": "PENDING"}
    await flow.simulation.advance(3 * SECOND)
    assert await flow.statuses(run) == {"a": "SUCCESS", "b": "SUCCESS"}
    assert (await flow.node(run, "a")).execution.attempt == 3


async def test_every_rule_decides_as_documented(flow: Flow) -> None:
    flow.fails("bad")
    run = await flow.run(
        [
            node("good"),
            node("bad"),
            node("all_done", "good", "bad", triggerRule="all_done"),
            node("one_success", "good", "bad", triggerRule="one_success"),
            node("one_failed", "good", "bad", triggerRule="one_failed"),
            node("all_failed", "bad", triggerRule="all_failed"),
            node("none_failed", "good", "bad", triggerRule="none_failed"),
            node("all_success", "good", "bad"),
        ]
    )
    statuses = await flow.statuses(run)
    ran = {key for key, status in statuses.items() if status == "SUCCESS"}
    assert ran == {"good", "all_done", "one_success", "one_failed", "all_failed"}
    assert statuses["none_failed"] == statuses["all_success"] == "SKIPPED"


async def test_a_false_condition_leaves_a_node_out(flow: Flow) -> None:
    flow.gives("a", {"n": 3})
    nodes = [
        node("a"),
        node("big", "a", when="nodes.a.artifact.n > 10"),
        node("small", "a", when="nodes.a.artifact.n <= 10 && params.go"),
        node("after", "big"),
    ]
    run = await flow.run(nodes, params={"go": True})
    assert await flow.statuses(run) == {"a": "SUCCESS", "big": "SKIPPED", "small": "SUCCESS", "after": "SKIPPED"}
    big = (await flow.node(run, "big")).execution
    assert (big.reason, big.attempt) == ("condition_false", 0)
    assert (await flow.reread(run)).status is RunStatus.SUCCESS


async def test_a_condition_that_cannot_be_worked_out_fails_its_node(flow: Flow) -> None:
    run = await flow.run([node("a"), node("b", "a", when="nodes.a.artifact.missing > 1")])
    failed = (await flow.node(run, "b")).execution
    assert failed.status is ExecutionStatus.FAILED
    assert failed.error is not None
    assert failed.error.startswith("when: ")


# Items ------------------------------------------------------------------------------------------------------------------


async def test_one_execution_for_each_item_and_the_results_in_order(flow: Flow) -> None:
    flow.computes("each", lambda context: context.place.item * 10 if context.place else None)
    run = await flow.run([node("each", forEach="params.list"), node("sum", "each")], params={"list": [3, 1, 2]})
    assert (await flow.node(run, "each")).execution.output == [30, 10, 20]
    statuses = await flow.statuses(run)
    assert statuses == {
        "each": "SUCCESS",
        "sum": "SUCCESS",
        "each[0]": "SUCCESS",
        "each[1]": "SUCCESS",
        "each[2]": "SUCCESS",
    }


async def test_an_empty_list_succeeds(flow: Flow) -> None:
    run = await flow.run([node("each", forEach=[]), node("after", "each")])
    assert await flow.statuses(run) == {"each": "SUCCESS", "after": "SUCCESS"}
    assert (await flow.node(run, "each")).execution.output == []


async def test_no_more_items_at_once_than_it_says(flow: Flow) -> None:
    flow.hold()
    run = await flow.start([node("each", forEach={"items": [1, 2, 3, 4, 5], "maxParallel": 2})])
    await flow.simulation.settle()
    seen = [await flow.running(run)]
    for _ in range(5):
        await flow.end_one()
        seen.append(await flow.running(run))
    assert seen == [2, 2, 2, 2, 1, 0]
    assert (await flow.reread(run)).status is RunStatus.SUCCESS


async def test_a_failed_item_fails_its_node_when_all_have_ended_and_only_it_is_done_again(flow: Flow) -> None:
    flow.fails("each[1]")
    run = await flow.run([node("each", forEach=[1, 2, 3]), node("after", "each")])
    each = (await flow.node(run, "each")).execution
    assert (each.status, each.error) == (ExecutionStatus.FAILED, "1 of 3 items failed")
    assert (await flow.reread(run)).status is RunStatus.FAILED
    flow.recovers("each[1]")
    flow.order.clear()
    await flow.orders.retry_node(run, "each", ANNA)
    await flow.simulation.settle()
    assert flow.order == ["each[1]", "after"]
    assert (await flow.reread(run)).status is RunStatus.SUCCESS


async def test_one_item_can_be_retried_or_completed_by_hand(flow: Flow) -> None:
    flow.fails("each[0]", "each[2]")
    run = await flow.run([node("each", forEach=[1, 2, 3]), node("after", "each")])
    await flow.orders.complete_node(run, "each[0]", ANNA, "by hand", None)
    assert (await flow.statuses(run))["each"] == "FAILED"
    flow.recovers("each[2]")
    await flow.orders.retry_node(run, "each[2]", ANNA)
    await flow.simulation.settle()
    assert (await flow.node(run, "each")).execution.output == ["by hand", None, None]
    assert (await flow.statuses(run))["after"] == "SUCCESS"
    assert (await flow.reread(run)).status is RunStatus.SUCCESS


async def test_items_share_the_slots_of_their_job(flow: Flow) -> None:
    job = await flow.simulation.jobs.create(JobDraft(JobSpec("narrow", "scripted", {}, max_concurrency=1)), ANNA)
    flow.hold()
    run = await flow.start([{"id": "each", "jobId": job.job.key, "forEach": [1, 2, 3]}])
    await flow.simulation.settle()
    assert await flow.running(run) == 1
    await flow.let_go()
    assert (await flow.reread(run)).status is RunStatus.SUCCESS


# Workflows in workflows -------------------------------------------------------------------------------------------------


async def test_a_node_can_be_another_workflow(flow: Flow) -> None:
    inner = await flow.define([node("x"), node("y", "x")], name="inner")
    flow.gives("y", {"rows": 2})
    outer = [{"id": "sub", "type": "workflow", "cfg": {"workflowId": inner.key, "params": {"n": "{{ params.n }}"}}}]
    run = await flow.run([*outer, node("after", "sub")], params={"n": [1, 2]})
    sub = await flow.node(run, "sub")
    assert sub.execution.output["artifacts"] == {"y": {"rows": 2}}
    child = await flow.simulation.store.workflow_run_by_key(sub.child_run or "")
    assert child.params == {"n": [1, 2]}
    assert child.parent_execution_id == sub.execution.id
    assert (await flow.reread(run)).status is RunStatus.SUCCESS


async def test_a_failed_child_fails_its_node_and_resuming_does_only_what_is_left(flow: Flow) -> None:
    inner = await flow.define([node("x"), node("y", "x")], name="inner")
    flow.fails("y")
    run = await flow.run([{"id": "sub", "type": "workflow", "cfg": {"workflowId": inner.key}}, node("after", "sub")])
    assert (await flow.reread(run)).status is RunStatus.FAILED
    flow.recovers("y")
    flow.order.clear()
    await flow.orders.resume(run, ANNA)
    await flow.simulation.settle()
    assert flow.order == ["y", "after"]
    assert (await flow.reread(run)).status is RunStatus.SUCCESS


async def test_retrying_within_a_child_opens_what_it_works_for(flow: Flow) -> None:
    inner = await flow.define([node("x")], name="inner")
    flow.fails("x")
    run = await flow.run([{"id": "sub", "type": "workflow", "cfg": {"workflowId": inner.key}}, node("after", "sub")])
    child = (await flow.node(run, "sub")).child_run or ""
    flow.recovers("x")
    await flow.orders.retry_node(child, "x", ANNA)
    assert (await flow.reread(run)).status is RunStatus.RUNNING
    await flow.simulation.settle()
    assert (await flow.reread(run)).status is RunStatus.SUCCESS
    assert (await flow.statuses(run))["after"] == "SUCCESS"


async def test_stopping_stops_the_child_too(flow: Flow) -> None:
    inner = await flow.define([node("x"), node("y", "x")], name="inner")
    flow.hold()
    run = await flow.start([{"id": "sub", "type": "workflow", "cfg": {"workflowId": inner.key}}, node("after", "sub")])
    await flow.simulation.settle()
    child = (await flow.node(run, "sub")).child_run or ""
    await flow.orders.stop(run, ANNA)
    assert (await flow.reread(child)).status is RunStatus.STOPPING
    await flow.let_go()
    assert (await flow.reread(child)).status is RunStatus.STOPPED
    assert (await flow.reread(run)).status is RunStatus.STOPPED


async def test_the_time_of_a_node_is_that_of_the_run_that_works_for_it(flow: Flow) -> None:
    inner = await flow.define([{"id": "x", "type": "wait", "cfg": {}}], name="inner")
    sub = {"id": "sub", "type": "workflow", "cfg": {"workflowId": inner.key}, "timeout": "5s"}
    run = await flow.run([sub])
    await flow.simulation.advance(6 * SECOND)
    failed = (await flow.node(run, "sub")).execution
    assert failed.status is ExecutionStatus.FAILED
    assert "took longer" in (failed.error or "")


async def test_cancelling_a_node_with_helpers_ends_them(flow: Flow) -> None:
    flow.hold()
    inner = await flow.define([node("x")], name="inner")
    sub = {"id": "sub", "type": "workflow", "cfg": {"workflowId": inner.key}}
    run = await flow.run([sub, node("each", forEach=[1, 2])])
    child = (await flow.node(run, "sub")).child_run or ""
    for key in ("sub", "each"):
        await flow.simulation.runs.cancel((await flow.node(run, key)).execution.id, ANNA)
    assert (await flow.reread(child)).status is RunStatus.CLOSED
    assert set((await flow.statuses(run)).values()) == {"STOPPED"}
    assert (await flow.reread(run)).status is RunStatus.STOPPED


async def test_workflows_must_not_run_in_circles(flow: Flow) -> None:
    first = await flow.define([node("x")], name="first")
    second = await flow.define([{"id": "s", "type": "workflow", "cfg": {"workflowId": first.key}}], name="second")
    back = {"nodes": [{"id": "s", "type": "workflow", "cfg": {"workflowId": second.key}}]}
    with pytest.raises(InvalidDag, match="circles"):
        await flow.simulation.workflows.change(first.key, lambda _: WorkflowEdit(dag=back), ANNA)
    itself = {"nodes": [{"id": "s", "type": "workflow", "cfg": {"workflowId": first.key}}]}
    with pytest.raises(InvalidDag, match="circles"):
        await flow.simulation.workflows.change(first.key, lambda _: WorkflowEdit(dag=itself), ANNA)


# Waiting ----------------------------------------------------------------------------------------------------------------


async def test_waiting_for_a_while_keeps_nobody_busy(flow: Flow) -> None:
    run = await flow.start([{"id": "nap", "type": "wait", "cfg": {"for": "10s"}}, node("after", "nap")])
    await flow.simulation.settle()
    assert await flow.statuses(run) == {"nap": "PENDING", "after": "PENDING"}
    assert flow.simulation.engine.workers.claims == []
    await flow.simulation.advance(9 * SECOND)
    assert (await flow.statuses(run))["nap"] == "PENDING"
    await flow.simulation.advance(2 * SECOND)
    assert (await flow.reread(run)).status is RunStatus.SUCCESS


async def test_waiting_for_a_person(flow: Flow) -> None:
    run = await flow.start([{"id": "ok", "type": "wait", "cfg": {}}, node("after", "ok")])
    await flow.simulation.settle()
    assert await flow.statuses(run) == {"ok": "RUNNING", "after": "PENDING"}
    await flow.orders.complete_node(run, "ok", ANNA, {"by": "anna"}, None)
    await flow.simulation.settle()
    assert (await flow.node(run, "ok")).execution.output == {"by": "anna"}
    assert (await flow.reread(run)).status is RunStatus.SUCCESS


async def test_a_wait_that_nobody_ends_times_out(flow: Flow) -> None:
    run = await flow.start([{"id": "ok", "type": "wait", "cfg": {"timeout": "5s"}}])
    await flow.simulation.advance(6 * SECOND)
    assert await flow.statuses(run) == {"ok": "FAILED"}
    assert (await flow.reread(run)).status is RunStatus.FAILED


async def test_a_stop_does_not_wait_for_a_person(flow: Flow) -> None:
    run = await flow.start([{"id": "ok", "type": "wait", "cfg": {}}])
    await flow.simulation.settle()
    await flow.orders.stop(run, ANNA)
    assert (await flow.reread(run)).status is RunStatus.STOPPED


async def test_an_asynchronous_node_is_ended_by_its_callback(flow: Flow) -> None:
    spec = JobSpec("later", "scripted", {})
    job = await flow.simulation.job(name=spec.name)
    flow.simulation.target.answer = lambda _: AwaitingCallback(timedelta(seconds=60))
    run = await flow.start([{"id": "a", "jobId": job.job.key}])
    await flow.simulation.settle()
    assert (await flow.node(run, "a")).execution.status is ExecutionStatus.CALLBACK_PENDING
    await flow.simulation.advance(61 * SECOND)
    assert await flow.statuses(run) == {"a": "FAILED"}
    assert (await flow.node(run, "a")).execution.status is ExecutionStatus.FAILED_TIMEOUT
    with pytest.raises(NotFound):
        await flow.simulation.runs.report(CallbackMessage(succeeded=True, token="guess"))


# Orders -----------------------------------------------------------------------------------------------------------------


async def test_a_soft_stop_lets_what_runs_end(flow: Flow) -> None:
    flow.hold()
    run = await flow.start([node("a"), node("b", "a")])
    await flow.simulation.settle()
    stopped = await flow.orders.stop(run, ANNA)
    assert stopped.status is RunStatus.STOPPING
    assert await flow.statuses(run) == {"a": "RUNNING", "b": "STOPPED"}
    await flow.let_go()
    assert await flow.statuses(run) == {"a": "SUCCESS", "b": "STOPPED"}
    assert (await flow.reread(run)).status is RunStatus.STOPPED
    with pytest.raises(RunNotRunning):
        await flow.orders.stop(run, ANNA)


async def test_a_node_that_fails_while_its_run_stops_is_not_tried_again(flow: Flow) -> None:
    flow.fails("a")
    flow.hold()
    run = await flow.start([node("a", retry={"maxAttempts": 5, "backoffMillis": 0})])
    await flow.simulation.settle()
    await flow.orders.stop(run, ANNA)
    await flow.let_go()
    assert await flow.statuses(run) == {"a": "STOPPED"}
    assert (await flow.reread(run)).status is RunStatus.STOPPED


async def test_a_forced_stop_breaks_off_what_runs(flow: Flow) -> None:
    flow.hold()
    run = await flow.start([node("a"), node("b", "a")])
    await flow.simulation.settle()
    stopped = await flow.orders.stop(run, ANNA, force=True)
    assert stopped.status is RunStatus.STOPPED
    assert await flow.statuses(run) == {"a": "STOPPED", "b": "STOPPED"}
    await flow.simulation.idle()
    assert flow.simulation.engine.workers.claims == []


async def test_resume_goes_on_with_what_is_not_done(flow: Flow) -> None:
    flow.hold("b")
    run = await flow.start([node("a"), node("b", "a"), node("c", "b"), node("x")])
    await flow.simulation.settle()
    await flow.let_go("a", "x")
    await flow.orders.stop(run, ANNA, force=True)
    flow.order.clear()
    flow.free()
    with pytest.raises(NotFound):
        await flow.orders.resume("none", ANNA)
    await flow.orders.resume(run, ANNA)
    await flow.simulation.settle()
    assert flow.order == ["b", "c"]
    assert (await flow.reread(run)).status is RunStatus.SUCCESS
    with pytest.raises(RunNotStopped):
        await flow.orders.resume(run, ANNA)


async def test_a_closed_run_never_moves_again(flow: Flow) -> None:
    flow.hold()
    run = await flow.start([node("a"), node("b", "a")])
    await flow.simulation.settle()
    assert (await flow.orders.close(run, ANNA)).status is RunStatus.CLOSED
    assert (await flow.orders.close(run, ANNA)).status is RunStatus.CLOSED
    assert await flow.statuses(run) == {"a": "STOPPED", "b": "STOPPED"}
    await flow.let_go()
    assert await flow.statuses(run) == {"a": "STOPPED", "b": "STOPPED"}
    for order in (
        flow.orders.retry_node(run, "a", ANNA),
        flow.orders.complete_node(run, "a", ANNA, None, None),
        flow.orders.skip_node(run, "a", ANNA),
        flow.orders.resume(run, ANNA),
        flow.orders.retry_failed(run, ANNA),
    ):
        with pytest.raises(RunTerminal):
            await order


async def test_retrying_a_node_opens_its_run_and_what_was_skipped_because_of_it(flow: Flow) -> None:
    flow.fails("a")
    run = await flow.run([node("a"), node("b", "a"), node("c", "b"), node("x")])
    flow.recovers("a")
    flow.order.clear()
    await flow.orders.retry_node(run, "a", ANNA)
    assert (await flow.reread(run)).status is RunStatus.RUNNING
    assert await flow.statuses(run) == {"a": "PENDING", "b": "PENDING", "c": "PENDING", "x": "SUCCESS"}
    await flow.simulation.settle()
    assert flow.order == ["a", "b", "c"]
    assert (await flow.node(run, "a")).execution.attempt == 2
    assert (await flow.reread(run)).status is RunStatus.SUCCESS
    with pytest.raises(NodeNotRetryable):
        await flow.orders.retry_node(run, "a", ANNA)


async def test_completing_a_failed_node_lets_the_rest_go_on_with_its_artifact(flow: Flow) -> None:
    flow.fails("a")
    run = await flow.run([node("a"), node("b", "a", when="nodes.a.artifact.n == 7")])
    await flow.orders.complete_node(run, "a", ANNA, {"n": 7}, {"at": 1})
    await flow.simulation.settle()
    assert await flow.statuses(run) == {"a": "SUCCESS", "b": "SUCCESS"}
    assert (await flow.node(run, "a")).checkpoint == {"at": 1}
    assert (await flow.reread(run)).status is RunStatus.SUCCESS
    # Said once more, it is as it was; of a node that succeeded by itself it cannot be said.
    await flow.orders.complete_node(run, "a", ANNA, None, None)
    with pytest.raises(NodeNotCompletable):
        await flow.orders.complete_node(run, "b", ANNA, None, None)


async def test_completing_a_running_node_breaks_its_work_off(flow: Flow) -> None:
    flow.hold()
    run = await flow.start([node("a"), node("b", "a")])
    await flow.simulation.settle()
    with pytest.raises(NodeNotCompletable):
        await flow.orders.complete_node(run, "b", ANNA, None, None)
    await flow.orders.complete_node(run, "a", ANNA, 1, None)
    flow.free()
    await flow.simulation.idle()
    await flow.simulation.settle()
    assert await flow.statuses(run) == {"a": "SUCCESS", "b": "SUCCESS"}
    assert (await flow.node(run, "a")).execution.output == 1


async def test_skipping_a_failed_node_by_hand(flow: Flow) -> None:
    flow.fails("a")
    run = await flow.run([node("a"), node("b", "a", triggerRule="none_failed"), node("c", "a")])
    await flow.orders.skip_node(run, "a", ANNA)
    await flow.simulation.settle()
    assert await flow.statuses(run) == {"a": "SKIPPED", "b": "SUCCESS", "c": "SKIPPED"}
    assert (await flow.reread(run)).status is RunStatus.SUCCESS
    with pytest.raises(NodeNotSkippable):
        await flow.orders.skip_node(run, "b", ANNA)


async def test_all_failed_nodes_at_once(flow: Flow) -> None:
    flow.fails("a", "b")
    run = await flow.run([node("a"), node("b"), node("c", "a", "b"), node("x")])
    flow.recovers("a", "b")
    flow.order.clear()
    ordered = await flow.orders.retry_failed(run, ANNA)
    assert ordered.reopened == 2
    await flow.simulation.settle()
    assert sorted(flow.order) == ["a", "b", "c"]
    assert (await flow.reread(run)).status is RunStatus.SUCCESS


async def test_a_run_that_takes_too_long_fails(flow: Flow) -> None:
    flow.hold()
    run = await flow.start([node("a"), node("b", "a")], timeout="5s")
    await flow.simulation.settle()
    await flow.simulation.advance(6 * SECOND)
    found = await flow.reread(run)
    assert (found.status, found.reason) == (RunStatus.FAILED, "timeout")
    assert await flow.statuses(run) == {"a": "STOPPED", "b": "STOPPED"}


# Overlap ----------------------------------------------------------------------------------------------------------------


async def test_runs_queue_in_order(flow: Flow) -> None:
    workflow = await flow.define([node("a")], maxActiveRuns=1)
    flow.hold()
    runs = [await flow.start_of(workflow) for _ in range(3)]
    await flow.simulation.settle()
    assert [(await flow.reread(run)).status for run in runs] == [
        RunStatus.RUNNING,
        RunStatus.QUEUED,
        RunStatus.QUEUED,
    ]
    await flow.end_one()
    assert [(await flow.reread(run)).status for run in runs] == [
        RunStatus.SUCCESS,
        RunStatus.RUNNING,
        RunStatus.QUEUED,
    ]
    await flow.orders.stop(runs[2], ANNA)
    assert (await flow.reread(runs[2])).status is RunStatus.STOPPED
    await flow.let_go()
    assert (await flow.reread(runs[1])).status is RunStatus.SUCCESS


async def test_a_new_run_replaces_the_one_that_runs(flow: Flow) -> None:
    workflow = await flow.define([node("a")], maxActiveRuns=1, overlap="REPLACE")
    flow.hold()
    first = await flow.start_of(workflow)
    await flow.simulation.settle()
    second = await flow.start_of(workflow)
    await flow.simulation.settle()
    assert (await flow.reread(first)).status is RunStatus.STOPPED
    assert (await flow.reread(first)).reason == "replaced"
    assert (await flow.reread(second)).status is RunStatus.RUNNING
    await flow.let_go()


# Definitions ------------------------------------------------------------------------------------------------------------


async def test_a_run_keeps_what_it_started_with(flow: Flow) -> None:
    job = await flow.simulation.job(name="kept", config={"v": 1})
    workflow = await flow.define(
        [{"id": "a", "type": "wait", "cfg": {}}, {"id": "b", "jobId": job.job.key, "dependsOn": ["a"]}]
    )
    run = await flow.start_of(workflow)
    await flow.simulation.settle()
    await flow.change_job(job.job.id, {"v": 2})
    await flow.simulation.workflows.change(workflow.key, lambda _: WorkflowEdit(dag={"nodes": [node("z")]}), ANNA)
    await flow.orders.complete_node(run, "a", ANNA, None, None)
    await flow.simulation.settle()
    assert [context.job.spec.config for context in flow.simulation.target.asked] == [{"v": 1}]
    again = await flow.start_of(workflow)
    await flow.simulation.settle()
    assert await flow.statuses(again) == {"z": "SUCCESS"}


def elsewhere(flow: Flow) -> WorkflowCommands:
    """The commands of another instance."""
    simulation = flow.simulation
    return WorkflowCommands(simulation.store, simulation.clock, simulation.resolver, Signals())


async def test_a_run_starts_with_what_its_workflow_is_now_whoever_has_changed_it(flow: Flow) -> None:
    workflow, others = await flow.define([node("a")]), elsewhere(flow)
    await flow.start_of(workflow)
    await others.change(workflow.key, lambda _: WorkflowEdit(dag={"nodes": [node("b")]}), ANNA)
    started = await flow.simulation.workflows.start(workflow.key, StartRequest(), ANNA)
    assert started.run.workflow_version == 2
    assert set(await flow.statuses(started.run.key)) == {"b"}


async def test_what_was_known_of_a_workflow_refuses_nothing_that_it_is_now(flow: Flow) -> None:
    workflows, others = flow.simulation.workflows, elsewhere(flow)
    workflow = await flow.define([node("a")], paramsSchema={"type": "object", "required": ["x"]})
    with pytest.raises(InvalidInput):
        await workflows.start(workflow.key, StartRequest(), ANNA)
    await others.change(workflow.key, lambda _: WorkflowEdit(dag={"nodes": [node("a")]}), ANNA)
    assert (await workflows.start(workflow.key, StartRequest(), ANNA)).created
    await others.switch(workflow.key, ANNA, enabled=False)
    with pytest.raises(WorkflowDisabled):
        await workflows.start(workflow.key, StartRequest(), ANNA)
    await others.switch(workflow.key, ANNA, enabled=True)
    assert (await workflows.start(workflow.key, StartRequest(), ANNA)).created
    await others.delete(workflow.key, ANNA)
    with pytest.raises(NotFound):
        await workflows.start(workflow.key, StartRequest(), ANNA)


async def test_the_same_run_id_is_the_same_run(flow: Flow) -> None:
    workflow = await flow.define([node("a")])
    first = await flow.simulation.workflows.start(workflow.key, StartRequest(key="mine"), ANNA)
    second = await flow.simulation.workflows.start(workflow.key, StartRequest(key="mine"), ANNA)
    assert (first.created, second.created) == (True, False)
    assert first.run.id == second.run.id
    keyed = [
        await flow.simulation.workflows.start(workflow.key, StartRequest(idempotency_key="k"), ANNA) for _ in range(2)
    ]
    assert [each.created for each in keyed] == [True, False]
    assert keyed[0].run.id == keyed[1].run.id


async def test_what_a_node_uses_it_must_depend_on(flow: Flow) -> None:
    with pytest.raises(InvalidDag, match="does not depend on it"):
        await flow.define([node("a"), node("b", when="nodes.a.artifact.n > 1")])


async def test_a_lost_instance_loses_no_node(flow: Flow) -> None:
    flow.hold()
    run = await flow.start([node("a"), node("b", "a")])
    await flow.simulation.settle()
    other = Simulation(flow.simulation.store, flow.simulation.clock, instance="two")
    await flow.simulation.store.leave("one")
    flow.simulation.engine.workers.abandon()
    await other.join()
    await other.engine.recovery.run_once(flow.simulation.clock.now())
    await other.settle()
    assert (await flow.reread(run)).status is RunStatus.SUCCESS
    assert (await flow.node(run, "a")).execution.attempt == 2


# Keeping and removing -----------------------------------------------------------------------------------------------------


async def test_retention_removes_a_run_with_all_its_nodes_and_nothing_that_goes_on(flow: Flow) -> None:
    store, clock = flow.simulation.store, flow.simulation.clock
    inner = await flow.define([node("x")], name="inner")
    old = await flow.run([{"id": "sub", "type": "workflow", "cfg": {"workflowId": inner.key}}, node("a")])
    child = (await flow.node(old, "sub")).child_run or ""
    waiting = await flow.run([node("before"), {"id": "ok", "type": "wait", "cfg": {}, "dependsOn": ["before"]}])
    clock.advance(timedelta(days=40))
    options = RetentionOptions(max_age=timedelta(days=30), batch=1)
    await purge_all(store, options, clock.now())
    await purge_all(store, options, clock.now())
    for key in (old, child):
        with pytest.raises(NotFound):
            await flow.reread(key)
    # What has not ended keeps also the nodes that have, however old they are.
    assert await flow.statuses(waiting) == {"before": "SUCCESS", "ok": "RUNNING"}
    await flow.orders.complete_node(waiting, "ok", ANNA, None, None)
    assert (await flow.reread(waiting)).status is RunStatus.SUCCESS


async def test_a_job_that_a_workflow_names_cannot_be_deleted(flow: Flow) -> None:
    job = await flow.simulation.job(name="used")
    workflow = await flow.define([{"id": "a", "jobId": job.job.key}], name="user of it")
    with pytest.raises(JobInUse, match="user of it"):
        await flow.simulation.jobs.delete(job.job.id, ANNA)
    await flow.simulation.workflows.delete(workflow.key, ANNA)
    await flow.simulation.jobs.delete(job.job.id, ANNA)


async def test_a_workflow_has_schedules_and_each_instant_is_a_run(flow: Flow) -> None:
    workflow = await flow.define([node("a")])
    spec = ScheduleSpec(ScheduleKind.EVERY, every=timedelta(seconds=10), anchor=flow.simulation.clock.now())
    schedule = await flow.simulation.schedules.create(None, spec, ANNA, workflow_id=workflow.id, inputs={"n": 1})
    await flow.simulation.advance(timedelta(seconds=35))
    runs = (await flow.simulation.store.workflow_runs(RunFilter(workflow.key), PageRequest())).items
    assert [run.status for run in runs] == [RunStatus.SUCCESS] * 3
    assert {tuple(run.params.items()) for run in runs} == {(("n", 1),)}
    ledger = await flow.simulation.store.occurrences(
        schedule.id, flow.simulation.clock.now() - timedelta(minutes=1), flow.simulation.clock.now(), 10
    )
    assert sorted(each.workflow_run_id or 0 for each in ledger) == sorted(run.id for run in runs)
    await flow.simulation.workflows.switch(workflow.key, ANNA, enabled=False)
    await flow.simulation.advance(timedelta(seconds=10))
    last = (await flow.simulation.store.last_occurrences([schedule.id]))[schedule.id]
    assert (last.outcome, last.reason) == (OccurrenceOutcome.SKIPPED, "workflow_disabled")


async def test_an_unchanged_definition_makes_no_new_version(flow: Flow) -> None:
    workflow = await flow.define([node("a")])
    same = await flow.simulation.workflows.change(
        workflow.key, lambda now: WorkflowEdit(dag=now.spec.dag.document), ANNA
    )
    assert same.version == 1
    other = await flow.simulation.workflows.change(workflow.key, lambda _: WorkflowEdit(description="new"), ANNA)
    assert other.version == 2
    kept = await flow.simulation.store.workflow_versions(workflow.id, PageRequest())
    assert [(each.version, each.spec.description) for each in kept.items] == [(2, "new"), (1, "")]


async def test_the_nodes_of_several_runs_are_told_together_without_items_and_only_so_many(flow: Flow) -> None:
    flow.fails("last")
    nodes = [node("list"), node("each", "list", forEach=[1, 2, 3]), node("last", "each")]
    ids = [(await flow.reread(await flow.run(nodes))).id for _ in range(2)]
    found = await flow.simulation.store.node_cells(ids, 100)
    assert list(found) == ids
    for cells in found.values():
        assert {cell.node_id: cell.status for cell in cells} == {"list": "SUCCESS", "each": "SUCCESS", "last": "FAILED"}
        assert all(cell.attempt == 1 and cell.started_at and cell.ended_at for cell in cells)
    assert list(await flow.simulation.store.node_cells(ids, 5)) == ids[:1]
    cut = await flow.simulation.store.node_cells(ids, 2)
    assert {run_id: len(cells) for run_id, cells in cut.items()} == {ids[0]: 2}


async def test_items_are_counted_by_how_far_they_are_and_found_by_it(flow: Flow) -> None:
    flow.fails("each[1]")
    run, store = await flow.reread(await flow.run([node("each", forEach=[1, 2, 3])])), flow.simulation.store
    standing = await store.run_standing(run.id)
    assert [(each.node_id, each.status) for each in standing.nodes] == [("each", "FAILED")]
    counts = {each.status: count for each, count in standing.items["each"].items()}
    assert counts == {ExecutionStatus.SUCCESS: 2, ExecutionStatus.FAILED: 1}
    bad = [each for each in standing.items["each"] if each.status is ExecutionStatus.FAILED]
    page = await store.node_items(run.id, "each", bad, PageRequest())
    assert (page.total, [item.node_id for item in page.items]) == (1, ["each[1]"])
    rest = await store.node_items(run.id, "each", None, PageRequest(page=2, size=2))
    assert (rest.total, [item.node_id for item in rest.items]) == (3, ["each[2]"])
    with pytest.raises(NotFound):
        await store.node_items(run.id, "nobody", None, PageRequest())


async def test_what_happens_to_a_run_is_told_of_it_and_its_workflow(flow: Flow) -> None:
    run, store = await flow.reread(await flow.run([node("a")])), flow.simulation.store
    [execution] = (await store.run_nodes(run.id)).nodes
    subjects = [f"run/{run.id}", f"workflow/{run.workflow_id}", f"execution/{execution.execution.id}"]
    workflow = Origin(run.key, TargetKind.WORKFLOW, run.workflow_key)
    assert list((await store.origins(subjects)).values()) == [
        workflow,
        Origin(None, TargetKind.WORKFLOW, run.workflow_key),
        workflow,
    ]
