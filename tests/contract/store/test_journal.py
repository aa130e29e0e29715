"""What happened is a row, and so is who asked for it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta

from ksana.domain.events import SYSTEM, Actor, EventType
from ksana.domain.execution import Execution
from ksana.domain.job import ConcurrencyPolicy, Job
from ksana.domain.ledger import Schedule
from ksana.store.base import Store
from ksana.store.requests import (
    JobChange,
    NewJob,
    NewSchedule,
    PageRequest,
    Resumption,
    ScheduleChange,
)
from tests.contract.store.world import ANNA, World, http_spec

MINUTE = timedelta(minutes=1)
BERT = Actor(name="bert ü", address="2001:db8::1", request_id="req-2", reason="刹那 'why' \U0001f600")


@dataclass
class Scene:
    """What a person may change."""

    store: Store
    job: Job
    schedule: Schedule
    execution: Execution


Asked = Callable[[Scene], Awaitable[object]]
CHANGES: dict[EventType, Asked] = {
    EventType.JOB_CREATED: lambda it: it.store.create_job(NewJob("new", http_spec("new"), actor=BERT)),
    EventType.JOB_CHANGED: lambda it: it.store.change_job(JobChange(it.job.id, http_spec("changed"), 1, BERT)),
    EventType.SCHEDULE_CREATED: lambda it: it.store.create_schedule(
        it.job.id, NewSchedule("new", it.schedule.spec, it.schedule.next_planned_for), BERT
    ),
    EventType.SCHEDULE_CHANGED: lambda it: it.store.change_schedule(
        ScheduleChange(it.schedule.id, it.schedule.spec, it.schedule.next_planned_for, actor=BERT)
    ),
    EventType.SCHEDULE_PAUSED: lambda it: it.store.pause_schedule(it.schedule.id, BERT),
    EventType.SCHEDULE_RESUMED: lambda it: it.store.resume_schedule(
        Resumption(it.schedule.id, it.schedule.version, it.schedule.next_planned_for, actor=BERT)
    ),
    EventType.SCHEDULE_DELETED: lambda it: it.store.delete_schedule(it.schedule.id, BERT),
    EventType.EXECUTION_CANCELED: lambda it: it.store.cancel(it.execution.id, BERT, it.execution.updated_at),
    EventType.JOB_DELETED: lambda it: it.store.delete_job(it.job.id, BERT),
}
BESIDES = {EventType.EXECUTION_CANCELED: [EventType.EXECUTION_ENDED]}
"""What a change tells of besides itself."""


async def test_every_change_by_a_person_has_its_event_and_one_audit_entry_that_says_who(world: World) -> None:
    job = await world.job()
    schedule = await world.every(job, MINUTE)
    execution = await world.enqueue(job)
    for action, ask in CHANGES.items():
        world.clock.advance(MINUTE)
        if action is EventType.SCHEDULE_RESUMED:
            schedule = await world.store.schedule(schedule.id)
        if action is EventType.EXECUTION_CANCELED:
            execution = await world.enqueue(job)
        last = (await world.events())[-1].id
        entries = len(await world.audit())
        await ask(Scene(world.store, job, schedule, execution))
        events = await world.events(last)
        assert sorted(event.type for event in events) == sorted([action, *BESIDES.get(action, [])])
        [event] = [event for event in events if event.type is action]
        assert event.at == world.clock.now()
        audit = await world.audit()
        assert len(audit) == entries + 1
        assert (audit[0].actor, audit[0].action, audit[0].at) == (BERT, action, world.clock.now())
        assert audit[0].subject == event.subject


async def test_an_event_names_what_it_happened_to(world: World) -> None:
    job = await world.job()
    schedule = await world.every(job, MINUTE)
    world.clock.advance(MINUTE)
    await world.fire_due()
    [claimed] = await world.claim()
    await world.store.fail(world.ending(claimed))
    await world.store.delete_job(job.id, ANNA)
    assert [(event.type, event.subject) for event in await world.events()] == [
        (EventType.JOB_CREATED, f"job/{job.id}"),
        (EventType.SCHEDULE_CREATED, f"schedule/{schedule.id}"),
        (EventType.EXECUTION_ENDED, f"execution/{claimed.execution.id}"),
        (EventType.JOB_DELETED, f"job/{job.id}"),
    ]


async def test_what_happens_by_itself_is_told_too_and_is_nobodys_doing(world: World) -> None:
    job = await world.job()
    skipping = await world.job(concurrency=ConcurrencyPolicy.SKIP)
    await world.enqueue(skipping)
    skipped, parked = await world.every(skipping, MINUTE), await world.every(job, timedelta(hours=1))
    await world.join("gone", lease=timedelta(0))
    for _ in range(3):
        await world.enqueue(job)
    entries = await world.audit()
    [last] = (await world.events())[-1:]
    _, retrying, pending, lost = await world.claim(10, "gone")
    later = world.clock.now() + MINUTE
    await world.store.retry(world.ending(retrying), later)
    await world.store.await_callback(world.ending(pending), later)
    world.clock.advance(MINUTE)
    await world.fire_due()
    await world.store.recover(world.clock.now(), 10)
    await world.store.park_schedule(parked.id, parked.version, "unreadable")
    told = [(event.type, event.subject) for event in await world.events(last.id)]
    assert told[:3] == [
        (EventType.EXECUTION_RETRYING, f"execution/{retrying.execution.id}"),
        (EventType.EXECUTION_AWAITING_CALLBACK, f"execution/{pending.execution.id}"),
        (EventType.OCCURRENCE_SKIPPED, f"schedule/{skipped.id}"),
    ]
    assert (EventType.INSTANCE_LOST, "instance/gone") in told
    assert (EventType.EXECUTION_RECOVERED, f"execution/{lost.execution.id}") in told
    assert told[-1] == (EventType.SCHEDULE_PARKED, f"schedule/{parked.id}")
    assert [entry.actor for entry in (await world.audit())[: -len(entries)]] in ([], [SYSTEM])


async def test_an_actor_is_recorded_however_much_it_says(world: World) -> None:
    wordy = Actor(name="n" * 1_000, address="a" * 1_000, request_id="r" * 1_000, reason="why\0 " * 10_000)
    job = await world.job()
    assert await world.store.delete_job(job.id, wordy)
    entry = (await world.audit())[0]
    for said, kept in (
        (wordy.name, entry.actor.name),
        (wordy.address, entry.actor.address),
        (wordy.request_id, entry.actor.request_id),
        (wordy.reason.replace("\0", "\ufffd"), entry.actor.reason),
    ):
        assert kept
        assert said.startswith(kept)


async def test_events_are_read_on_from_the_last_one_seen(world: World) -> None:
    jobs = [await world.job() for _ in range(7)]
    every = await world.events()
    assert [event.subject for event in every] == [f"job/{job.id}" for job in jobs]
    assert [event.id for event in every] == sorted({event.id for event in every})
    seen: list[object] = []
    after = 0
    while portion := await world.store.events(after, 3):
        assert len(portion) <= 3
        seen += portion
        after = portion[-1].id
    assert seen == every
    assert await world.store.events(every[-1].id, 10) == []


async def test_audit_entries_come_newest_first_by_page_or_from_the_last_one_seen(world: World) -> None:
    for _ in range(5):
        await world.job()
    every = await world.audit()
    assert len(every) == 5
    assert [entry.id for entry in every] == sorted((entry.id for entry in every), reverse=True)
    pages = [await world.store.audit_entries(PageRequest(page=page, size=2)) for page in (1, 2, 3)]
    assert [page.items for page in pages] == [every[:2], every[2:4], every[4:]]
    assert {page.total for page in pages} == {5}
    older = await world.store.audit_entries(PageRequest(size=2, before_id=every[1].id))
    assert older.items == every[2:4]
