"""What the console's pages ask of workflows and plans, many at a time: nothing is left out, and nothing is there that is gone."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from ksana.domain.errors import NotFound
from ksana.domain.plan import TaskStatus, WaveTally
from ksana.domain.schedule import ScheduleKind, ScheduleSpec
from ksana.engine.commands import StartRequest
from ksana.store.plan_requests import TaskFilter
from ksana.store.requests import PageRequest, ScheduleFilter
from ksana.store.sql.store import SqlStore
from ksana.store.view_requests import TargetKind
from tests.clock import FakeClock
from tests.contract.store.conftest import BACK_ENDS
from tests.contract.store.world import ALL, ANNA
from tests.unit.engine.plan_world import Rollout
from tests.unit.engine.simulation import Simulation
from tests.unit.engine.workflow_world import Flow, node

NOBODY = range(1_000_000, 1_002_500)
"""Ids that nothing has, more of them than one statement is given."""
HOUR = timedelta(hours=1)


@pytest.fixture(params=BACK_ENDS[:3])
def back_end(request: pytest.FixtureRequest) -> str:
    """All but the JSON file, which keeps neither."""
    return str(request.param)


@pytest.fixture
async def simulation(store: SqlStore, clock: FakeClock) -> AsyncIterator[Simulation]:
    simulation = Simulation(store, clock)
    await simulation.join()
    yield simulation
    await simulation.engine.workers.drain(timedelta(0))


@pytest.fixture
def flow(simulation: Simulation) -> Flow:
    return Flow(simulation)


@pytest.fixture
def rollout(simulation: Simulation) -> Rollout:
    return Rollout(simulation)


async def test_of_each_workflow_so_many_of_its_newest_runs(flow: Flow, store: SqlStore) -> None:
    often, once, never = [await flow.define([node("a")]) for _ in range(3)]
    # All at the same instant: the one that was made last is the newest.
    for workflow, key in ((often, "r1"), (once, "x"), (often, "r2"), (often, "r3")):
        await flow.simulation.workflows.start(workflow.key, StartRequest(key=key), ANNA)

    async def newest(keys: list[str], each: int) -> dict[str, list[str]]:
        return {key: [run.key for run in runs] for key, runs in (await store.newest_runs(keys, each)).items()}

    keys = [often.key, once.key, never.key, often.key, "nobody's"]
    assert await newest(keys, 2) == {often.key: ["r3", "r2"], once.key: ["x"]}
    assert await newest(keys, 3) == {often.key: ["r3", "r2", "r1"], once.key: ["x"]}
    assert await newest([*map(str, NOBODY[:500]), once.key], 1) == {once.key: ["x"]}
    assert await newest([], 2) == {}


async def test_the_schedules_of_workflows_are_told_and_found_by_their_names(flow: Flow, store: SqlStore) -> None:
    nightly, odd, gone = [await flow.define([node("a")], name=name) for name in ("nightly", "100%_odd", "nightly too")]
    spec = ScheduleSpec(ScheduleKind.EVERY, every=HOUR, anchor=flow.simulation.clock.now())
    owners = (nightly, odd, nightly, gone)
    made = [await flow.simulation.schedules.create(None, spec, ANNA, workflow_id=each.id) for each in owners]
    await flow.simulation.workflows.delete(gone.key, ANNA)
    found = await store.schedules_of_workflows([odd.id, gone.id, nightly.id, *NOBODY, nightly.id])
    assert {owner: [each.id for each in its] for owner, its in found.items()} == {
        nightly.id: [made[0].id, made[2].id],
        odd.id: [made[1].id],
    }
    assert await store.schedules_of_workflows([]) == {}
    for keyword, numbers in {"night": (0, 2), "%_": (1,), "__": (), "too": ()}.items():
        page = await store.schedules(ALL, ScheduleFilter(keyword))
        assert [each.id for each in page.items] == [made[number].id for number in numbers], keyword


async def test_workflows_and_plans_are_called_by_their_names_while_there_are_any(flow: Flow, store: SqlStore) -> None:
    kept, gone = await flow.define([node("a")], name="kept"), await flow.define([node("a")], name="gone")
    plan = await Rollout(flow.simulation).plan("acme", name="四月", autoStart=False)
    await flow.simulation.workflows.delete(gone.key, ANNA)
    keys = [kept.key, gone.key, plan, *map(str, NOBODY)]
    assert await store.names_of(TargetKind.WORKFLOW, keys) == {kept.key: "kept"}
    assert await store.names_of(TargetKind.PLAN, keys) == {plan: "四月"}
    for kind in TargetKind:
        assert await store.names_of(kind, []) == {}


async def test_the_tasks_of_plans_are_counted_together(rollout: Rollout, store: SqlStore) -> None:
    rollout.fails("a/migrate")
    done = await rollout.reread(await rollout.run("a", "b", "c"))
    waiting = await rollout.reread(await rollout.plan("x", "y", autoStart=False))
    counts = await store.plan_counts([waiting.id, done.id, done.id])
    assert counts == {waiting.id: WaveTally(waiting=2), done.id: WaveTally(completed=2, failed=1)}
    assert await store.plan_counts([]) == {}
    many = await store.plan_counts([*NOBODY, done.id])
    assert (len(many), many[NOBODY[0]], many[done.id]) == (len(NOBODY) + 1, WaveTally(), counts[done.id])


async def test_tasks_are_found_by_a_part_of_their_tenant_and_by_their_key(rollout: Rollout, store: SqlStore) -> None:
    names = ["acme-1", "acme_2", "ACME-3", "acme-4", "acme-5"]
    rollout.fails("acme-4/prepare")
    plan = await rollout.reread(await rollout.run(*names))
    await rollout.plan("acme-other", autoStart=False)

    async def found(keyword: str, page: PageRequest = ALL, **filters: object) -> tuple[list[str], int | None]:
        tasks = await store.tasks(TaskFilter(plan.id, keyword=keyword, **filters), page)  # type: ignore[arg-type]
        return [task.tenant_id for task in tasks.items], tasks.total

    assert await found("acme") == (["acme-1", "acme_2", "acme-4", "acme-5"], 4)
    assert await found("acme", PageRequest(2, 3)) == (["acme-5"], 4)
    assert await found("acme", PageRequest(2, 2)) == (["acme-4", "acme-5"], 4)
    assert await found("_") == (["acme_2"], 1)
    assert await found("%") == ([], 0)
    assert await found("/") == ([], 0)
    assert await found("", statuses=frozenset({TaskStatus.FAILED})) == (["acme-4"], 1)
    ended = frozenset({TaskStatus.FAILED, TaskStatus.COMPLETED})
    assert await found("acme-", statuses=ended) == (["acme-1", "acme-4", "acme-5"], 3)
    task = await rollout.task("acme-4")
    by_key = await store.task_by_key(task.key)
    assert (by_key.id, by_key.tenant_id, by_key.status) == (task.id, "acme-4", TaskStatus.FAILED)
    with pytest.raises(NotFound):
        await store.task_by_key("nobody")
