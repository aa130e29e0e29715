"""How all of it stands, on every database: queues, what ended lately, what failed and nobody has acknowledged."""

from datetime import timedelta

import pytest

from ksana.domain.events import Actor, EventType
from ksana.domain.job import Job
from ksana.store.console_requests import Acknowledgement, AuditFilter, QueueFigures, Target, TargetKind
from ksana.store.requests import ClaimRequest, PageRequest, PurgeRequest
from ksana.store.sql import reads_failures, reads_overview
from tests.contract.store.conftest import BACK_ENDS
from tests.contract.store.world import ANNA, World
from tests.unit.engine.workflow_world import Flow, node

SECOND, MINUTE, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(days=1)
BERT = Actor(name="bert")


@pytest.fixture(params=BACK_ENDS[:3])
def back_end(request: pytest.FixtureRequest) -> str:
    """All but the JSON file, which is SQLite inside and keeps no workflows."""
    return str(request.param)


async def failed(world: World, job: Job, error: str = "no") -> int:
    claimed = await world.running(job)
    await world.store.fail(world.ending(claimed, error=error))
    return claimed.execution.id


def of(job: Job) -> Target:
    return Target(TargetKind.JOB, job.id)


async def counts(world: World) -> dict[Target, int]:
    return {each.target: each.count for each in (await world.store.failures(100)).items}


async def test_queues_tell_what_is_ready_and_what_runs(world: World) -> None:
    plain, gpu, later = await world.job(), await world.job(worker_queue="gpu"), await world.job(worker_queue="late")
    for _ in range(3):
        await world.enqueue(plain)
    await world.store.claim(ClaimRequest("one", 1), world.clock.now())
    await world.enqueue(gpu)
    await world.store.succeed(world.ending(await world.running()))
    waiting = await world.enqueue(later)
    [claimed] = await world.store.claim(ClaimRequest("one", 1, ("late",)), world.clock.now())
    assert claimed.execution.id == waiting.id
    await world.store.retry(world.ending(claimed, error="no"), world.clock.now() + MINUTE)
    figures = await world.store.queue_figures(world.clock.now())
    assert figures == [QueueFigures("default", 2, 1), QueueFigures("gpu", 1, 0)]
    figures = await world.store.queue_figures(world.clock.now() + MINUTE)
    assert QueueFigures("late", 1, 0) in figures


async def test_history_counts_ends_by_steps_and_how_late_scheduled_runs_began(world: World) -> None:
    job = await world.job()
    await world.every(job, MINUTE)
    begun = world.clock.now()
    world.clock.advance(MINUTE)
    await world.fire_due()
    world.clock.advance(timedelta(milliseconds=7, microseconds=900))
    [claimed] = await world.claim()
    await world.store.succeed(world.ending(claimed))
    await failed(world, job)
    canceled = await world.enqueue(job)
    await world.store.cancel(canceled.id, ANNA, world.clock.now())
    found = await world.store.run_history(begun, MINUTE)
    cells = [(each.at, each.succeeded, each.late_millis, each.number) for each in found.cells]
    assert sorted(cells) == [(begun + MINUTE, False, None, 1), (begun + MINUTE, True, 7, 1)]
    assert found.since is None
    assert (await world.store.run_history(begun + 2 * MINUTE, MINUTE)).cells == []


async def test_a_history_that_does_not_reach_back_says_so(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reads_overview, "MOST_HISTORY", 2)
    job, begun = await world.job(), world.clock.now()
    for _ in range(3):
        world.clock.advance(MINUTE)
        await failed(world, job)
    found = await world.store.run_history(begun, MINUTE)
    assert found.since == begun + 2 * MINUTE
    assert sorted(each.at for each in found.cells) == [begun + 2 * MINUTE, begun + 3 * MINUTE]


async def test_failures_are_told_by_target_newest_first(world: World) -> None:
    one, two, gone = await world.job(), await world.job(), await world.job()
    first = world.clock.now()
    for job in (one, gone, one, two):
        last = await failed(world, job, error=f"{job.spec.name} broke")
        world.clock.advance(MINUTE)
    await world.store.succeed(world.ending(await world.running(one)))
    await world.store.delete_job(gone.id, ANNA)
    found = await world.store.failures(100)
    assert [(each.target, each.count, each.whole) for each in found.items] == [(of(two), 1, True), (of(one), 2, True)]
    assert (found.items[0].last.id, found.items[0].last.error) == (last, f"{two.spec.name} broke")
    assert (found.items[1].made_since, found.items[1].first_at, found.items[1].last_at) == (
        first,
        first,
        first + 2 * MINUTE,
    )
    assert (found.total, found.whole) == (2, True)
    assert (await world.store.failures(1)).total == 2


async def test_what_was_acknowledged_is_not_told_again_but_what_fails_later_is(world: World) -> None:
    one, two = await world.job(), await world.job()
    for job in (one, two):
        await failed(world, job)
    until = world.clock.now()
    assert await world.store.acknowledge(Acknowledgement(until, of(one), BERT)) == until
    assert await counts(world) == {of(two): 1}
    world.clock.advance(SECOND)
    await failed(world, one)
    assert await counts(world) == {of(two): 1, of(one): 1}
    assert await world.store.acknowledge(Acknowledgement(until - DAY, of(one), BERT)) == until
    assert await counts(world) == {of(two): 1, of(one): 1}
    await world.store.acknowledge(Acknowledgement(world.clock.now(), actor=BERT))
    assert await counts(world) == {}


async def test_an_acknowledgement_is_an_event_and_says_who_in_the_audit(world: World) -> None:
    job, until = await world.job(), world.clock.now()
    before = (await world.events())[-1].id
    await world.store.acknowledge(Acknowledgement(until, of(job), ANNA))
    await world.store.acknowledge(Acknowledgement(until, actor=ANNA))
    events = await world.events(before)
    assert [each.type for each in events] == [EventType.FAILURES_ACKNOWLEDGED] * 2
    assert [each.subject for each in events] == [f"job/{job.id}", "failures/all"]
    entry = (await world.audit())[0]
    assert (entry.actor, entry.action, entry.subject) == (ANNA, EventType.FAILURES_ACKNOWLEDGED, "failures/all")
    assert entry.data["until"] == until.isoformat()


async def test_more_failures_than_are_looked_at_are_not_said_to_be_all(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reads_failures, "MOST_FAILURES", 2)
    job = await world.job()
    for _ in range(3):
        await failed(world, job)
        world.clock.advance(SECOND)
    found = await world.store.failures(100)
    assert [(each.count, each.whole) for each in found.items] == [(2, False)]
    assert not found.whole


async def test_retention_forgets_what_was_acknowledged_with_the_runs(world: World) -> None:
    job = await world.job()
    await failed(world, job)
    await world.store.acknowledge(Acknowledgement(world.clock.now(), of(job)))
    world.clock.advance(DAY)
    kept = await failed(world, job)
    await world.store.acknowledge(Acknowledgement(world.clock.now(), of(job)))
    await world.store.purge(PurgeRequest(world.clock.now() - SECOND, 100))
    assert [run.id for run in await world.executions()] == [kept]
    assert await counts(world) == {}


async def test_a_workflow_fails_as_a_whole_and_its_nodes_and_inner_runs_do_not(flow: Flow, world: World) -> None:
    flow.fails("bad")
    since = world.clock.now()
    inner = await flow.define([node("bad")])
    sub = {"id": "sub", "type": "workflow", "cfg": {"workflowId": inner.key}}
    run = await flow.reread(await flow.run([sub, node("well")]))
    found = await world.store.failures(100)
    assert [(each.target, each.last.id) for each in found.items] == [
        (Target(TargetKind.WORKFLOW, run.workflow_id), run.id)
    ]
    history = await world.store.run_history(since, MINUTE)
    assert [(each.succeeded, each.number) for each in history.cells] == [(False, 1)]
    await world.store.acknowledge(Acknowledgement(world.clock.now(), found.items[0].target))
    assert (await world.store.failures(100)).total == 0


async def test_the_last_run_of_a_job_that_workflows_use_is_one_of_its_own(flow: Flow, world: World) -> None:
    job = await world.job(type="scripted", config={"says": "x"})
    own = await world.running(job)
    await world.store.succeed(world.ending(own))
    world.clock.advance(MINUTE)
    await flow.run([{"id": "a", "jobId": job.key}])
    [as_node] = (await world.store.last_ended([job.id])).values()
    assert as_node.node_id == "a"
    [alone] = (await world.store.last_ended([job.id], nodes=False)).values()
    assert alone.id == own.execution.id


async def test_audit_entries_of_one_subject_or_one_person(world: World) -> None:
    one, two = await world.job(), await world.job()
    for actor in (BERT, ANNA, BERT):
        await world.store.acknowledge(Acknowledgement(world.clock.now(), of(one), actor))
    page = PageRequest(size=2)
    of_one = await world.store.audit_entries(page, AuditFilter(subject=f"job/{one.id}"))
    assert ([each.actor.name for each in of_one.items], of_one.total) == (["bert", "anna"], 4)
    older = PageRequest(size=2, before_id=of_one.items[-1].id)
    rest = await world.store.audit_entries(older, AuditFilter(subject=f"job/{one.id}"))
    assert [each.action for each in rest.items] == [EventType.FAILURES_ACKNOWLEDGED, EventType.JOB_CREATED]
    by_bert = await world.store.audit_entries(page, AuditFilter(actor="bert"))
    assert by_bert.total == 2
    assert (await world.store.audit_entries(page, AuditFilter(f"job/{two.id}", "bert"))).items == []
