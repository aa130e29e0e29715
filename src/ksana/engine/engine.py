"""The engine put together: which service wakes which, and in which order they start and stop."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from ksana.domain.clock import Clock
from ksana.domain.errors import StoreUnavailable
from ksana.domain.execution import Claimed
from ksana.domain.ledger import Schedule
from ksana.engine.commands.workflows import WorkflowCommands
from ksana.engine.dispatcher import Dispatcher, DispatcherOptions
from ksana.engine.loop import Loop
from ksana.engine.measures import Measures
from ksana.engine.membership import Membership
from ksana.engine.nodes import Nodes
from ksana.engine.plans.driver import PlanDriver, Progress
from ksana.engine.plans.keeper import Keeper
from ksana.engine.plans.locks import Locks
from ksana.engine.plans.outside import Outside
from ksana.engine.plans.projector import Projector, Turn
from ksana.engine.plans.showing import Shelf
from ksana.engine.runner import CallbackOptions, ExecutorSource, Result, Runner
from ksana.engine.scheduler import Scheduler, SchedulerOptions
from ksana.engine.signals import Signals
from ksana.engine.upkeep import Deadlines, Recovery, Retention, RetentionOptions, RunDeadlines, Watch
from ksana.engine.workers import Workers
from ksana.runtime.base import Lifetimes
from ksana.store.base import Store

DRIVE_PLANS = timedelta(seconds=5)
LOOK_AT_PLANS = timedelta(seconds=2)
"""How often to look for what other instances left undone; of what happens here, the services are told."""
LAST_WORDS = timedelta(seconds=3)
"""How long the store may take, after the grace, to hear what is handed back and who leaves."""


@dataclass(frozen=True, slots=True)
class EngineOptions:
    callback: CallbackOptions
    lifetimes: Lifetimes = field(default_factory=Lifetimes)
    workers: int = 16
    scheduler: SchedulerOptions = field(default_factory=SchedulerOptions)
    retention: RetentionOptions = field(default_factory=RetentionOptions)


@dataclass(frozen=True, slots=True)
class Shared:
    """What the engine shares with commands and the API."""

    signals: Signals
    measures: Measures
    outside: Outside


class Engine:
    """A Service: everything that works in the background."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        executors: ExecutorSource,
        options: EngineOptions,
        shared: Shared,
        workflows: WorkflowCommands,
    ) -> None:
        signals, measures, outside = shared.signals, shared.measures, shared.outside
        poll = options.scheduler.poll_interval
        locks = Locks(store, outside, options.lifetimes.lock)
        runner = Runner(store, clock, executors, options.callback, measures, Nodes(store, workflows), locks)
        self.workers = Workers(runner, store, clock, options.workers, measures)
        self.membership = Membership(store, clock, self.workers.abandon, self._work)
        self.scheduler = Scheduler(store, clock, options.scheduler, signals, measures, workflows)
        self.dispatcher = Dispatcher(store, self.workers, lambda: self.membership.instance_id, DispatcherOptions(poll))
        self.recovery = Recovery(store, signals)
        self.watch = Watch(store, self.workers, lambda: self.membership.instance_id)
        self._turn = turn = Turn(store, lambda: self.membership.instance_id)
        shelf = Shelf(options.lifetimes.checkpoint, options.lifetimes.projection, store.tasks_to_show)
        self.plans = PlanDriver(store, locks, signals, DRIVE_PLANS)
        self.progress = Progress(store, signals)
        self.projector = Projector(store, outside, turn, shelf, LOOK_AT_PLANS)
        self.keeper = Keeper(store, outside, locks, turn, signals, shelf)
        self._scheduling = Loop(self.scheduler, clock)
        self._dispatching = Loop(self.dispatcher, clock)
        self._upkeep = [
            Loop(self.recovery, clock),
            Loop(Deadlines(store, signals, measures, poll), clock),
            Loop(RunDeadlines(store, signals, poll), clock),
            Loop(self.watch, clock),
            Loop(Retention(store, options.retention), clock),
            Loop(self.progress, clock),
            Loop(self.keeper, clock),
        ]
        self._driving, self._showing = Loop(self.plans, clock), Loop(self.projector, clock)
        self._clock = clock
        self.workers.on_end = self._ended
        self.workers.on_free = self._room
        store.on_run_ended(measures.run_ended)
        signals.on_plans(self._driving.wake)
        signals.on_shown(self._showing.wake)
        signals.on_schedules_changed(self._schedules_changed)
        signals.on_work(self._work)
        signals.on_canceled(self.workers.cancel)

    async def start(self) -> None:
        """Joins, takes back what the last process of this instance left, then begins. StoreUnavailable."""
        await self.membership.start()
        await self.recovery.run_once(self._clock.now())
        for loop in (*self._upkeep, self._showing, self._driving, self._dispatching, self._scheduling):
            loop.start()

    async def stop(self, grace: timedelta) -> None:
        """Nothing new; what runs may end within `grace`; the rest is handed back, and others told that we are gone.

        Harmless if it never started; called again with a shorter grace, it ends the sooner. StoreUnavailable: the store did
        not take our last words, and others will find out by themselves.
        """
        try:
            async with asyncio.timeout((grace + LAST_WORDS).total_seconds()):
                await self._stop(grace)
        except TimeoutError:
            raise StoreUnavailable("the store did not answer while the engine stopped") from None

    async def _stop(self, grace: timedelta) -> None:
        await self._scheduling.stop()
        await self._dispatching.stop()
        await self._driving.stop()
        await self.workers.drain(grace)
        await self._showing.stop()
        for loop in self._upkeep:
            await loop.stop()
        await self._turn.end()
        await self.membership.stop()

    def _schedules_changed(self, schedules: Sequence[Schedule]) -> None:
        self.scheduler.changed(schedules)
        self._scheduling.wake()

    def _work(self) -> None:
        self.dispatcher.expect_work()
        self._dispatching.wake()

    def _ended(self, claimed: Claimed, _: Result) -> None:
        self._room()
        if claimed.node is not None and claimed.node.task is not None:
            self._driving.wake()
            self._showing.wake()

    def _room(self) -> None:
        """A place is free, or the job's next queued run may have been let in."""
        self.dispatcher.expect_room()
        self._dispatching.wake()
