"""Runs asked for by hand: idempotency keys, limits, lists and pages."""

import asyncio
from datetime import timedelta

import pytest

from ksana.domain.clock import EPOCH
from ksana.domain.errors import ConcurrencyLimit, InvalidInput, NotFound
from ksana.domain.events import EventType
from ksana.domain.job import ConcurrencyPolicy, Job
from ksana.domain.states import ExecutionStatus
from ksana.store.requests import Enqueued, ExecutionFilter, NewExecution, PageRequest
from ksana.store.sql.store import SqlStore
from tests.contract.store.world import ANNA, World


def asked(world: World, job: Job, **changes: object) -> NewExecution:
    return NewExecution(**{"job_id": job.id, "ready_at": world.clock.now(), "actor": ANNA, **changes})  # type: ignore[arg-type]


async def test_a_request_keeps_all_it_was_asked_with(world: World) -> None:
    job = await world.job()
    new = asked(world, job, input={"override_body": "刹那"}, trace_id="trace-1")
    made = await world.store.enqueue(new)
    assert made.created
    execution = await world.store.execution(made.execution.id)
    assert execution == made.execution
    assert (execution.input, execution.trace_id) == ({"override_body": "刹那"}, "trace-1")
    assert (execution.planned_for, execution.ready_at) == (world.clock.now(), world.clock.now())
    assert execution.status is ExecutionStatus.SCHEDULED


async def test_a_request_is_in_the_journal_with_who_made_it(world: World) -> None:
    made = await world.store.enqueue(asked(world, await world.job()))
    [entry] = (await world.store.audit_entries(PageRequest(size=1))).items
    assert (entry.action, entry.subject) == (EventType.EXECUTION_REQUESTED, f"execution/{made.execution.id}")
    assert entry.actor == ANNA


async def test_a_key_makes_one_execution_however_often_it_comes(world: World) -> None:
    job = await world.job()
    first = await world.store.enqueue(asked(world, job, idempotency_key="k"))
    again = await world.store.enqueue(asked(world, job, idempotency_key="k", input={"other": 1}))
    assert (again.execution, again.created) == (first.execution, False)
    assert sum((await world.store.active_counts(job.id)).values()) == 1


async def test_a_key_at_once_from_many_makes_one_execution(world: World) -> None:
    job = await world.job()
    requests = [asked(world, job, idempotency_key=f"k{n}") for n in range(3)]
    answers = await asyncio.gather(*(world.store.enqueue(requests[n % 3]) for n in range(60)))
    assert len({answer.execution.id for answer in answers}) == 3
    assert sum(answer.created for answer in answers) == 3


async def test_a_key_belongs_to_its_job(world: World) -> None:
    one, other = await world.job(), await world.job()
    made = [await world.store.enqueue(asked(world, job, idempotency_key="k")) for job in (one, other)]
    assert made[0].execution.id != made[1].execution.id


@pytest.mark.parametrize("key", ["", "  ", "x" * 129])
async def test_a_key_that_cannot_be_kept_is_refused_by_name(world: World, key: str) -> None:
    job = await world.job()
    with pytest.raises(InvalidInput) as refused:
        await world.store.enqueue(asked(world, job, idempotency_key=key))
    assert refused.value.field == "idempotency_key"
    assert await world.store.active_counts(job.id) == {}


async def test_a_job_that_skips_refuses_what_it_has_no_room_for(world: World) -> None:
    job = await world.job(concurrency=ConcurrencyPolicy.SKIP, max_concurrency=2)
    answers = await asyncio.gather(*(world.store.enqueue(asked(world, job)) for _ in range(5)), return_exceptions=True)
    assert sum(isinstance(answer, Enqueued) for answer in answers) == 2
    assert sum(isinstance(answer, ConcurrencyLimit) for answer in answers) == 3
    assert sum((await world.store.active_counts(job.id)).values()) == 2


async def test_a_full_queue_refuses_and_a_disabled_job_can_still_be_run(world: World) -> None:
    full = await world.job(limit=1, queue_limit=1)
    for _ in range(2):
        await world.enqueue(full)
    with pytest.raises(ConcurrencyLimit):
        await world.enqueue(full)
    assert (await world.enqueue(await world.job(enabled=False))).status is ExecutionStatus.SCHEDULED


async def test_a_job_that_is_not_there_cannot_be_run(world: World) -> None:
    job = await world.job()
    await world.store.delete_job(job.id, ANNA)
    with pytest.raises(NotFound):
        await world.enqueue(job)


async def test_lists_are_newest_first_in_pages_and_by_filter(world: World) -> None:
    job, other = await world.job(), await world.job()
    made = []
    for _ in range(7):
        made.append((await world.enqueue(job)).id)
        await world.enqueue(other)
        world.clock.advance(timedelta(seconds=1))
    await world.store.cancel(made[0], ANNA, world.clock.now())
    of_job = ExecutionFilter(job_id=job.id)
    page = await world.store.executions(of_job, PageRequest(page=2, size=3))
    assert ([item.id for item in page.items], page.total) == (made[::-1][3:6], 7)
    after = await world.store.executions(of_job, PageRequest(size=3, before_id=made[4]))
    assert [item.id for item in after.items] == made[::-1][3:6]
    canceled = ExecutionFilter(job_id=job.id, statuses=frozenset({ExecutionStatus.CANCELED}))
    assert [item.id for item in (await world.store.executions(canceled, PageRequest())).items] == [made[0]]
    start = world.clock.now() - timedelta(seconds=7)
    span = ExecutionFilter(
        job_id=job.id, planned_from=start + timedelta(seconds=2), planned_to=start + timedelta(seconds=5)
    )
    spanned = await world.store.executions(span, PageRequest())
    assert ([item.id for item in spanned.items], spanned.total) == (made[2:5][::-1], 3)
    assert (await world.store.executions(ExecutionFilter(), PageRequest())).total == 14


async def test_a_page_that_reaches_too_far_is_refused_by_name() -> None:
    for wrong in ({"page": 0}, {"size": 0}, {"size": 501}, {"page": 1_001, "size": 100}):
        with pytest.raises(InvalidInput):
            PageRequest(**wrong)
    with pytest.raises(InvalidInput):
        ExecutionFilter(planned_from=EPOCH)


async def test_the_store_tells_how_it_is(store: SqlStore, world: World) -> None:
    health = await store.ping()
    assert health.reachable
    findings = {finding.name: finding.level for finding in await store.diagnose()}
    assert {"durability", "version", "clock"} <= set(findings)
