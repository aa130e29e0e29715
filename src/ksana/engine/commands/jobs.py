"""Jobs with their schedules: made, changed, switched on and off, deleted, run at once."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Protocol
from weakref import WeakValueDictionary

from ksana.domain.clock import Clock
from ksana.domain.errors import NotFound
from ksana.domain.events import Actor
from ksana.domain.execution import Trigger
from ksana.domain.ids import checked_key, new_key
from ksana.domain.job import Job, JobSpec
from ksana.domain.ledger import Schedule
from ksana.domain.schedule import MisfirePolicy, ScheduleKind, ScheduleSpec, SkippedRange, next_instant, passed_over
from ksana.domain.states import OccurrenceOutcome, ScheduleStatus
from ksana.engine.commands.anew import until_it_fits
from ksana.engine.queries import JobView, Queries
from ksana.engine.signals import Signals
from ksana.store.base import Store
from ksana.store.requests import (
    Basis,
    Enqueued,
    JobChange,
    NewExecution,
    NewJob,
    NewSchedule,
    Pausing,
    Resumption,
    ScheduleChange,
    ScheduleStep,
)


class Checks(Protocol):
    """Knows which configs can be run. (`ksana.executors.registry`)"""

    def check(self, job_type: str, config: Mapping[str, Any]) -> Mapping[str, Any]:
        """The config with its defaults. InvalidInput."""


@dataclass(frozen=True, slots=True)
class ScheduleDraft:
    spec: ScheduleSpec
    input: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JobDraft:
    spec: JobSpec
    schedule: ScheduleDraft | None = None
    key: str | None = None
    """The client's own id."""


@dataclass(frozen=True, slots=True)
class JobEdit:
    """What a job becomes. A schedule of None leaves its own as it is."""

    spec: JobSpec
    schedule: ScheduleSpec | None = None
    expected_version: int | None = None


@dataclass(frozen=True, slots=True)
class RunRequest:
    input: Mapping[str, Any] = field(default_factory=dict)
    idempotency_key: str | None = None
    trace_id: str | None = None
    retry_of: int | None = None
    """The run of which this is another try."""


class JobCommands:
    def __init__(self, store: Store, clock: Clock, checks: Checks, signals: Signals) -> None:
        self._store = store
        self._clock = clock
        self._checks = checks
        self._signals = signals
        self._queries = Queries(store)
        self._turns: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()

    async def create(self, draft: JobDraft, actor: Actor) -> JobView:
        """InvalidInput, NameTaken, IdTaken."""
        now = self._clock.now()
        key = new_key(now) if draft.key is None else checked_key(draft.key)
        spec = self._checked(draft.spec)
        schedule = None
        if draft.schedule is not None:
            schedule = new_schedule(draft.schedule, now, paused=not spec.enabled)
        job = await self._store.create_job(NewJob(key, spec, schedule, actor))
        view = await self._queries.of(job)
        self._signals.schedules_changed(view.schedules)
        return view

    async def change(self, job_id: int, edit: JobEdit, actor: Actor) -> JobView:
        """All of it or nothing. InvalidInput, NotFound, NameTaken, VersionMismatch."""
        checked = replace(edit, spec=self._checked(edit.spec))

        async def attempt() -> Job:
            view = await self._queries.job(job_id)
            steps = schedule_steps(view, checked, self._clock.now(), actor)
            return await self._store.change_job(JobChange(job_id, checked.spec, edit.expected_version, actor, steps))

        # A schedule that fired or changed meanwhile is ours to look at again; the job's own version is the caller's business.
        job = await until_it_fits(attempt, lambda error: error.kind == "schedule")
        view = await self._queries.of(job)
        self._signals.schedules_changed(view.schedules)
        self._signals.work()
        return view

    async def amend(self, job_id: int, amendment: Callable[[JobView], JobEdit], actor: Actor) -> JobView:
        """A change that follows from what the job is; worked out anew if somebody else changes it first. As `change`; an edit
        with a version of its own is tried once."""
        given: int | None = None

        async def attempt() -> JobView:
            nonlocal given
            view = await self._queries.job(job_id)
            edit = amendment(view)
            given = edit.expected_version
            fenced = edit if given is not None else replace(edit, expected_version=view.job.version)
            return await self.change(job_id, fenced, actor)

        # One at a time in this process: else most of many at once would fail, and be tried again, and fail.
        async with self._turns.setdefault(job_id, asyncio.Lock()):
            return await until_it_fits(attempt, lambda _: given is None)

    async def switch(self, job_id: int, actor: Actor, *, enabled: bool) -> JobView:
        """Enabled, its schedule goes on from now; disabled, it pauses, and what passes is recorded. NotFound."""
        return await self.amend(job_id, lambda view: JobEdit(replace(view.job.spec, enabled=enabled)), actor)

    async def delete(self, job_id: int, actor: Actor) -> None:
        """NotFound."""
        if not await self._store.delete_job(job_id, actor):
            raise NotFound("job", job_id)

    async def run(self, job_id: int, request: RunRequest, actor: Actor) -> Enqueued:
        """One run, now; its schedules stay as they are. NotFound, ConcurrencyLimit, InvalidInput."""
        new = NewExecution(
            job_id=job_id,
            ready_at=self._clock.now(),
            trigger=Trigger.MANUAL,
            input=request.input,
            idempotency_key=request.idempotency_key,
            trace_id=request.trace_id,
            retry_of=request.retry_of,
            actor=actor,
        )
        self._signals.work_coming()
        enqueued = await self._store.enqueue(new)
        self._signals.work_came()
        return enqueued

    def _checked(self, spec: JobSpec) -> JobSpec:
        return replace(spec, config=self._checks.check(spec.type, spec.config))


def new_schedule(draft: ScheduleDraft, now: datetime, *, paused: bool) -> NewSchedule:
    """A schedule's first instant is the first from now on; that of a `once` may be over already."""
    spec = draft.spec
    overdue = spec.kind is ScheduleKind.ONCE and spec.run_at is not None and spec.run_at <= now
    if overdue and spec.run_at is not None and spec.misfire is MisfirePolicy.SKIP:
        missed = SkippedRange(spec.run_at, spec.run_at, 1, OccurrenceOutcome.MISSED, "once_missed")
        return NewSchedule(new_key(now), spec, None, paused=paused, input=draft.input, passed=missed, at=now)
    first = spec.run_at if overdue else next_instant(spec, now)
    return NewSchedule(new_key(now), spec, first, paused=paused, input=draft.input, at=now)


def schedule_steps(view: JobView, edit: JobEdit, now: datetime, actor: Actor) -> tuple[ScheduleStep, ...]:
    """What a job's edit means for its schedules: another definition, a pause, or going on."""
    steps: list[ScheduleStep] = []
    versions = {schedule.id: schedule.version for schedule in view.schedules}
    if edit.schedule is not None:
        if view.schedule is None:
            steps.append(new_schedule(ScheduleDraft(edit.schedule), now, paused=not edit.spec.enabled))
        elif edit.schedule != view.schedule.spec:
            steps.append(changed(view.schedule, edit.schedule, now, actor))
            versions[view.schedule.id] += 1
    if not edit.spec.enabled and (view.job.spec.enabled or steps):
        steps += [Pausing(schedule.id) for schedule in view.schedules]
    elif edit.spec.enabled and not view.job.spec.enabled:
        for schedule in view.schedules:
            spec = edit.schedule if edit.schedule is not None and schedule is view.schedule else schedule.spec
            replaced = versions[schedule.id] != schedule.version
            resumed = resumption(schedule, spec, now, actor, recorded=replaced)
            steps.append(replace(resumed, expected_version=versions[schedule.id]))
    return tuple(steps)


def changed(schedule: Schedule, spec: ScheduleSpec, now: datetime, actor: Actor) -> ScheduleChange:
    """The new definition holds from now on; what the old one had planned by now and nobody ran is recorded."""
    reason = "paused" if schedule.status is ScheduleStatus.PAUSED else "schedule_changed"
    passed = passed_over(schedule.spec, schedule.next_planned_for, now, reason)
    new = new_schedule(ScheduleDraft(spec), now, paused=False)
    parts = tuple(part for part in (passed, new.passed) if part is not None)
    basis = Basis(now, schedule.next_planned_for)
    return ScheduleChange(schedule.id, spec, new.next_planned_for, schedule.version, actor, parts, basis=basis)


def resumption(
    schedule: Schedule, spec: ScheduleSpec, now: datetime, actor: Actor, *, recorded: bool = False
) -> Resumption:
    """It goes on with the first instant after now; what passed meanwhile is recorded, unless a change has done so."""
    reason = "parked" if schedule.status is ScheduleStatus.PARKED else "paused"
    passed = None if recorded else passed_over(spec, schedule.next_planned_for, now, reason)
    # After a change in the same transaction nothing can have moved it.
    basis = None if recorded else Basis(now, schedule.next_planned_for)
    return Resumption(schedule.id, schedule.version, next_instant(spec, now), passed, actor, basis)
