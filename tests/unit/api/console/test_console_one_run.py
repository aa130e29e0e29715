"""One run of either kind, with all that is known of it."""

from tests.unit.api.console.test_console_activity import ACTIVITY, job, ran, some_runs
from tests.unit.api.jobchain.workflow_bench import Desk, told

from ksana.api.contracts.console.one_run import RunDetail


async def test_both_kinds_are_shown_alone_as_in_the_list(desk: Desk) -> None:
    for run in await some_runs(desk):
        shown = await desk.get(f"{ACTIVITY}/{run}")
        [listed] = [each for each in (await desk.get(ACTIVITY))["items"] if each["id"] == run]
        assert {name: shown[name] for name in listed} == listed
        RunDetail.model_validate(shown)


async def test_a_jobs_run_has_what_it_was_given_and_its_attempts(desk: Desk) -> None:
    desk.failing.add("bad")
    run = await ran(desk, await job(desk, "bad"), input={"city": "Zurich"})
    shown = await desk.get(f"{ACTIVITY}/{run}")
    assert (shown["status"], shown["input"], shown["owner"]) == ("FAILED", {"city": "Zurich"}, None)
    [attempt] = shown["attempts"]
    assert (attempt["attempt"], attempt["epoch"], attempt["status"]) == (1, 1, "FAILED")
    assert attempt["owner"]


async def test_a_nodes_run_says_where_the_node_is(desk: Desk) -> None:
    *_, failed, _ = await some_runs(desk)
    run = await desk.store.workflow_run_by_key(failed)
    execution = (await desk.store.node_run(run.id, "n")).execution
    shown = await desk.get(f"{ACTIVITY}/{execution.id}")
    assert shown["parent"] == {"runId": failed, "nodeId": "n"}


async def test_one_that_is_not_there_is_not_found(desk: Desk) -> None:
    for name in ("99", "9" * 40, "nobody"):
        assert told(await desk.api.get(f"{ACTIVITY}/{name}"))[:2] == (404, "RUN_NOT_FOUND")
