"""An instance on simulated time: its services stepped by hand, its targets scripted, a real store below."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count
from typing import Any, ClassVar

from prometheus_client import CollectorRegistry
from tests.clock import FakeClock
from tests.contract.store.world import ANNA

from ksana.domain.execution import Execution
from ksana.domain.instance import LEADER, Lease
from ksana.domain.job import ConcurrencyPolicy, Contract, Job, JobSpec
from ksana.domain.ledger import Occurrence, Schedule
from ksana.domain.outcome import Outcome, Succeeded
from ksana.domain.schedule import ScheduleKind, ScheduleSpec
from ksana.domain.states import TERMINAL, ExecutionStatus
from ksana.engine.commands import (
    JobCommands,
    JobDraft,
    NodeDefaults,
    PlanCommands,
    PlanOptions,
    Resolver,
    RunCommands,
    RunRequest,
    ScheduleCommands,
    ScheduleDraft,
    WorkflowCommands,
    WorkflowRunCommands,
)
from ksana.engine.engine import Engine, EngineOptions, Shared
from ksana.engine.measures import MeasureOptions, Measures
from ksana.engine.plans.outside import Outside
from ksana.engine.queries import JobView, Queries
from ksana.engine.runner import CallbackOptions
from ksana.engine.signals import Signals
from ksana.engine.upkeep import Deadlines, RunDeadlines
from ksana.executors.base import ExecutionContext
from ksana.executors.registry import Executors
from ksana.executors.wait import WaitExecutor
from ksana.runtime.memory import MemoryRuntime
from ksana.store.base import Store
from ksana.store.requests import ExecutionFilter, NewInstance, PageRequest

Answer = Callable[[ExecutionContext], Outcome]


@dataclass
class Scripted:
    """An executor whose answers a test writes; it keeps what it was asked for."""

    type: ClassVar[str] = "scripted"
    answer: Answer = field(default=lambda _: Succeeded())
    asked: list[ExecutionContext] = field(default_factory=list)
    held: "asyncio.Event | None" = None
    """If there is one, nothing is answered before it is set."""

    def check(self, config: Any) -> Any:
        return config

    async def execute(self, context: ExecutionContext) -> Outcome:
        self.asked.append(context)
        if self.held is not None:
            await self.held.wait()
        return self.answer(context)

    async def close(self) -> None:
        return


class Simulation:
    def __init__(self, store: Store, clock: FakeClock, *, workers: int = 16, instance: str = "one") -> None:
        self.store = store
        self.clock = clock
        self.instance = instance
        self.target = Scripted()
        self.registry = CollectorRegistry()
        self.signals = Signals()
        executors = Executors([self.target, WaitExecutor()], plugins=[])
        self.measures = measures = Measures(self.registry, MeasureOptions(max_tasks=2))
        options = EngineOptions(callback=CallbackOptions("http://ksana/api/v1/callbacks"), workers=workers)
        self.resolver = resolver = Resolver(store, executors, NodeDefaults())
        self.workflows = WorkflowCommands(store, clock, resolver, self.signals)
        self.plans = PlanCommands(store, clock, resolver, self.signals, PlanOptions())
        self.outside = Outside(MemoryRuntime(options.lifetimes, clock=clock))
        self.workflow_runs = WorkflowRunCommands(store, clock, self.signals)
        self.engine = Engine(
            store, clock, executors, options, Shared(self.signals, measures, self.outside), self.workflows
        )
        self.run_deadlines = RunDeadlines(store, self.signals, timedelta(seconds=1))
        self.deadlines = Deadlines(store, self.signals, measures, timedelta(seconds=1))
        self.jobs = JobCommands(store, clock, executors, self.signals)
        self.schedules = ScheduleCommands(store, clock, self.signals)
        self.runs = RunCommands(store, clock, self.signals, measures)
        self.queries = Queries(store)
        self._names = count(1)

    async def join(self) -> None:
        # Its lease is a year: no thread beats for it here.
        await self.store.join(
            NewInstance(self.instance, self.instance, "0", ("all",), timedelta(days=365), ("default",))
        )
        self.engine.membership.instance_id = self.instance
        self.engine.leadership.assume(Lease(LEADER, self.instance, 1, self.clock.now()))

    # Time -------------------------------------------------------------------------------------------------------

    async def settle(self) -> None:
        """Everything that is due now, until nothing is left to do."""
        while True:
            now = self.clock.now()
            done = (await self.engine.scheduler.run_once(now)).done
            done += (await self.deadlines.run_once(now)).done
            done += (await self.run_deadlines.run_once(now)).done
            done += (await self.engine.plans.run_once(now)).done
            done += (await self.engine.projector.run_once(now)).done
            done += (await self.engine.dispatcher.run_once(now)).done
            if self.target.held is None:
                done += await self.idle()
            if not done:
                return

    async def idle(self) -> int:
        """Until nothing runs; how many did."""
        ran = 0
        while tasks := [task for task in asyncio.all_tasks() if task.get_name().startswith("run ")]:
            ran += len(tasks)
            await asyncio.wait(tasks)
        return ran

    async def asked(self) -> None:
        """Until the target has been asked for something."""
        while not self.target.asked:  # noqa: ASYNC110 - one turn of the loop at a time, not a wait
            await asyncio.sleep(0)

    async def advance(self, by: timedelta) -> None:
        """Lives through that time, stopping wherever something is due."""
        end = self.clock.now() + by
        await self.settle()
        while (next_at := await self._next_at()) is not None and next_at <= end:
            self.clock.advance(max(next_at - self.clock.now(), timedelta(0)))
            await self.settle()
        self.clock.advance(end - self.clock.now())
        await self.settle()

    async def _next_at(self) -> datetime | None:
        moments = [
            await self.store.next_fire_at(),
            await self.store.next_ready_at(["default"]),
            await self.store.next_deadline_at(),
            await self.store.next_run_deadline_at(),
        ]
        future = [moment for moment in moments if moment is not None and moment > self.clock.now()]
        return min(future) if future else None

    # Things -----------------------------------------------------------------------------------------------------

    async def job(self, schedule: ScheduleSpec | None = None, **changes: Any) -> JobView:
        name = changes.pop("name", f"job-{next(self._names)}")
        defaults: dict[str, Any] = {
            "type": "scripted",
            "config": {},
            "contract": Contract.CRONJOB,
            "concurrency": ConcurrencyPolicy.PARALLEL,
        }
        spec = JobSpec(name=name, **{**defaults, **changes})
        draft = None if schedule is None else ScheduleDraft(schedule)
        return await self.jobs.create(JobDraft(spec, draft), ANNA)

    def every(self, period: timedelta, **changes: Any) -> ScheduleSpec:
        return ScheduleSpec(kind=ScheduleKind.EVERY, every=period, anchor=self.clock.now(), **changes)

    async def run(self, job: Job, **inputs: Any) -> Execution:
        return (await self.jobs.run(job.id, RunRequest(input=inputs), ANNA)).execution

    async def ledger(self, schedule: Schedule | None) -> list[Occurrence]:
        assert schedule is not None
        since, until = self.clock.now() - timedelta(days=1000), self.clock.now() + timedelta(days=1000)
        return list(await self.store.occurrences(schedule.id, since, until, 100_000))

    async def executions(self, job: Job) -> list[Execution]:
        """Oldest first, at most 500."""
        page = await self.store.executions(ExecutionFilter(job_id=job.id), PageRequest(size=500))
        return list(page.items)[::-1]

    async def statuses(self, job: Job) -> list[ExecutionStatus]:
        return [execution.status for execution in await self.executions(job)]

    async def all_ended(self, job: Job) -> bool:
        return all(execution.status in TERMINAL for execution in await self.executions(job))

    def figure(self, name: str, **labels: str) -> float:
        return self.registry.get_sample_value(name, labels) or 0.0
