"""Short ways to the situations that the conformance suite is about."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import count
from typing import Any

from sqlalchemy import NullPool, Row, create_engine, make_url, text

from ksana.domain.events import Actor, Event, EventType
from ksana.domain.execution import Claim, Claimed, Execution
from ksana.domain.job import ConcurrencyPolicy, Contract, Job, JobSpec
from ksana.domain.ledger import Fired, Firing, Occurrence, Schedule
from ksana.domain.schedule import ScheduleKind, ScheduleSpec, decide_fire, next_instant
from ksana.domain.states import ExecutionStatus
from ksana.store.base import Store
from ksana.store.requests import (
    AuditEntry,
    ClaimRequest,
    Ending,
    ExecutionFilter,
    JobFilter,
    NewExecution,
    NewInstance,
    NewJob,
    NewSchedule,
    PageRequest,
    StoreOptions,
)
from ksana.store.sql import open_store
from tests.clock import FakeClock

ANNA = Actor(name="anna", address="127.0.0.1", request_id="req-1", reason="because")
ALL = PageRequest(size=500)
DRIVERS = {"sqlite": "sqlite+pysqlite", "postgresql": "postgresql+psycopg", "mysql": "mysql+pymysql"}


def http_spec(name: str, **changes: Any) -> JobSpec:
    defaults: dict[str, Any] = {
        "type": "http",
        "config": {"url": "http://127.0.0.1:1/"},
        "contract": Contract.CRONJOB,
        "concurrency": ConcurrencyPolicy.PARALLEL,
    }
    return JobSpec(name=name, **{**defaults, **changes})


class World:
    """A store, a clock, and the verbs with the arguments that a test does not care about."""

    def __init__(self, store: Store, clock: FakeClock) -> None:
        self.store = store
        self.clock = clock
        self._numbers = count(1)

    async def job(self, *, limit: int | None = None, **changes: Any) -> Job:
        """A job; `limit` makes it queue beyond so many at once."""
        number = next(self._numbers)
        if limit is not None:
            changes = {"concurrency": ConcurrencyPolicy.QUEUE, "max_concurrency": limit, **changes}
        spec = http_spec(changes.pop("name", f"job-{number}"), **changes)
        return await self.store.create_job(NewJob(key=f"key-{number}", spec=spec, actor=ANNA))

    async def every(self, job: Job, period: timedelta, **changes: Any) -> Schedule:
        """A schedule whose first instant is one period from now."""
        spec = ScheduleSpec(kind=ScheduleKind.EVERY, every=period, anchor=self.clock.now(), **changes)
        key = f"schedule-{next(self._numbers)}"
        new = NewSchedule(key=key, spec=spec, next_planned_for=next_instant(spec, self.clock.now()))
        return await self.store.create_schedule(job.id, new, ANNA)

    def firing(self, schedule: Schedule, now: datetime | None = None) -> Firing:
        """What is to be done about a schedule that is due."""
        assert schedule.next_planned_for is not None
        decision = decide_fire(schedule.spec, schedule.id, schedule.next_planned_for, now or self.clock.now())
        return Firing(schedule.id, schedule.version, schedule.next_planned_for, decision)

    async def fire_due(self) -> list[Fired]:
        """Fires whatever is due now."""
        due = await self.store.due_schedules(self.clock.now(), 10_000)
        firings = [self.firing(schedule) for schedule in due.schedules]
        return list(await self.store.fire(firings, self.clock.now()))

    async def enqueue(self, job: Job, **changes: Any) -> Execution:
        new = NewExecution(job_id=job.id, **{"ready_at": self.clock.now(), **changes})
        return (await self.store.enqueue(new)).execution

    async def claim(self, capacity: int = 100, instance: str = "one") -> list[Claimed]:
        return list(await self.store.claim(ClaimRequest(instance, capacity), self.clock.now()))

    async def running(self, job: Job | None = None) -> Claimed:
        """One execution that this instance runs."""
        await self.enqueue(job or await self.job())
        return (await self.claim(1))[0]

    def ending(self, claimed: Claimed | Claim, **changes: Any) -> Ending:
        claim = claimed if isinstance(claimed, Claim) else claim_of(claimed)
        return Ending(claim, self.clock.now(), **changes)

    async def schedules_of(self, job: Job) -> list[Schedule]:
        return list((await self.store.schedules_of([job.id])).get(job.id, []))

    async def status(self, execution_id: int) -> ExecutionStatus:
        return (await self.store.execution(execution_id)).status

    async def ledger(self, schedule: Schedule) -> list[Occurrence]:
        """Every row of a schedule's ledger."""
        since, until = self.clock.now() - timedelta(days=1_000), self.clock.now() + timedelta(days=1_000)
        return list(await self.store.occurrences(schedule.id, since, until, 10_000))

    async def executions(self, **filters: Any) -> list[Execution]:
        """The executions there are, oldest first; at most 500."""
        return list((await self.store.executions(ExecutionFilter(**filters), ALL)).items)[::-1]

    async def executions_of(self, schedule: Schedule) -> list[Execution]:
        """The executions of one schedule, oldest first."""
        found: list[Execution] = []
        page = list((await self.store.executions(ExecutionFilter(job_id=schedule.job_id), ALL)).items)
        while page:
            found += [execution for execution in page if execution.schedule_id == schedule.id]
            older = replace(ALL, before_id=page[-1].id)
            page = list((await self.store.executions(ExecutionFilter(job_id=schedule.job_id), older)).items)
        return found[::-1]

    async def events(self, after_id: int = 0) -> list[Event]:
        return list(await self.store.events(after_id, 10_000))

    async def event_types(self, after_id: int = 0) -> list[EventType | str]:
        return [event.type for event in await self.events(after_id)]

    async def audit(self) -> list[AuditEntry]:
        """The audit entries, newest first; at most 500."""
        return list((await self.store.audit_entries(ALL)).items)

    async def everything(self) -> list[object]:
        """All that lists show, to be compared before and after something that must change nothing."""
        jobs = await self.store.jobs(JobFilter(), ALL)
        schedules = await self.store.schedules(ALL)
        ledgers = [await self.ledger(schedule) for schedule in schedules.items]
        return [jobs, schedules, ledgers, await self.executions(), await self.events(), await self.audit()]

    async def join(self, instance: str, lease: timedelta = timedelta(seconds=15)) -> None:
        await self.store.join(NewInstance(instance, f"host:{instance}", "0.1.0", ("all",), lease))


def claim_of(claimed: Claimed) -> Claim:
    return Claim(claimed.execution.id, claimed.execution.epoch)


@asynccontextmanager
async def rivals(world: World, url: str) -> AsyncIterator[list[Store]]:
    """The stores of all instances that can share this database: two, but on SQLite one process has the file."""
    if url.startswith("sqlite"):
        yield [world.store]
        return
    second = open_store(url, options=StoreOptions(readers=1), clock=world.clock)
    try:
        yield [world.store, second]
    finally:
        await second.close()


def run_sql(url: str, statement: str, **values: Any) -> list[Row[Any]]:
    """What the port has no verb for: damage to a row, or a table that it does not show."""
    address = make_url(url)
    engine = create_engine(address.set(drivername=DRIVERS[address.get_backend_name()]), poolclass=NullPool)
    with engine.begin() as connection:
        result = connection.execute(text(statement), values)
        return list(result) if result.returns_rows else []
