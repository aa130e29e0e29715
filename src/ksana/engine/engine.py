"""The engine put together: which service wakes which, and in which order they start and stop."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from ksana.domain.clock import Clock
from ksana.domain.errors import StoreUnavailable
from ksana.domain.execution import Claimed
from ksana.domain.instance import ALL_ROLES, Role
from ksana.domain.job import ConcurrencyPolicy
from ksana.domain.ledger import Schedule
from ksana.engine.commands.workflows import WorkflowCommands
from ksana.engine.dispatcher import Dispatcher, DispatcherOptions
from ksana.engine.leadership import Led
from ksana.engine.loop import Loop, Periodic
from ksana.engine.measures import Measures
from ksana.engine.membership import Events, Member, Membership
from ksana.engine.nodes import Nodes
from ksana.engine.plans.driver import PlanDriver, Progress
from ksana.engine.plans.keeper import Keeper
from ksana.engine.plans.locks import Locks
from ksana.engine.plans.outside import Outside
from ksana.engine.plans.projector import Projector
from ksana.engine.plans.showing import Shelf
from ksana.engine.runner import CallbackOptions, ExecutorSource, Result, Runner
from ksana.engine.scheduler import Scheduler, SchedulerOptions
from ksana.engine.signals import Hint, Signals
from ksana.engine.upkeep import Deadlines, Recovery, Retention, RetentionOptions, RunDeadlines, Watch
from ksana.engine.workers import Workers
from ksana.runtime.base import Lifetimes
from ksana.store.base import Store

DRIVE_PLANS = timedelta(seconds=5)
LOOK_AT_PLANS = timedelta(seconds=2)
"""How often to look for what other instances left undone; of what happens here, the services are told."""
PURGE_AFTER = timedelta(minutes=1)
"""A start has more urgent things to do than to remove what is old."""
LAST_WORDS = timedelta(seconds=3)
"""How long the store may take, after the grace, to hear what is handed back and who leaves."""


@dataclass(frozen=True, slots=True)
class EngineOptions:
    callback: CallbackOptions
    member: Member = field(default_factory=lambda: Member("ksana", ALL_ROLES, ("default",)))
    lifetimes: Lifetimes = field(default_factory=Lifetimes)
    workers: int = 16
    per_host: int | None = None
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
        roles, poll = frozenset(options.member.roles), options.scheduler.poll_interval
        self._store, self._clock, self._signals = store, clock, signals
        locks = Locks(store, outside, options.lifetimes.lock)
        runner = Runner(store, clock, executors, options.callback, measures, Nodes(store, workflows), locks)
        self.workers = Workers(runner, store, clock, options.workers, measures)
        self.membership = Membership(store, clock, options.member, Events(self.workers.abandon, self._joined))
        self.leadership = leadership = self.membership.leadership
        self.scheduler = Scheduler(
            store, clock, options.scheduler, signals, measures, workflows, lambda: leadership.headstart
        )
        dispatching = DispatcherOptions(poll, options.member.queues, options.per_host)
        self.dispatcher = Dispatcher(store, self.workers, self._owner, dispatching, self._ask_for_help)
        self.recovery = Recovery(store, signals, measures, lambda: leadership.headstart)
        self.watch = Watch(store, self.workers, self._owner, lambda: self.dispatcher.claim_under_way)
        shelf = Shelf(options.lifetimes.checkpoint, options.lifetimes.projection, store.tasks_to_show)
        self.plans = PlanDriver(store, locks, signals, DRIVE_PLANS)
        self.progress = Progress(store, signals)
        self.projector = Projector(store, outside, lambda: leadership.leads, shelf, LOOK_AT_PLANS)
        self.keeper = Keeper(store, outside, locks, lambda: leadership.leads, signals, shelf)
        self._scheduling = Loop(self.scheduler, clock)
        self._dispatching = Loop(self.dispatcher, clock)
        self._watching = Loop(self.watch, clock)
        self._electing = Loop(leadership, clock)
        self._recovering = Loop(self.recovery, clock)
        self._driving, self._showing = Loop(self.plans, clock), Loop(self.projector, clock)
        of_scheduler: list[Periodic] = [
            Deadlines(store, signals, measures, poll),
            RunDeadlines(store, signals, poll),
            Led(self.progress, leadership),
            self.keeper,
        ]
        self._purging = Loop(Led(Retention(store, options.retention), leadership), clock, PURGE_AFTER)
        self._of_scheduler = [Loop(each, clock) for each in of_scheduler] + [self._electing, self._recovering]
        self._roles = roles
        self._wire(store, measures)

    def _wire(self, store: Store, measures: Measures) -> None:
        """Who is told what. A role that this instance does not have listens in vain: its loop never starts."""
        signals = self._signals
        self.leadership.on_elected = self._elected
        self.workers.on_end = self._ended
        self.workers.on_free = self._free
        store.on_run_ended(measures.run_ended)
        signals.on_plans(self._driving.wake)
        signals.on_shown(self._showing.wake)
        signals.on_schedules_changed(self._schedules_changed)
        signals.on_work(self._work)
        signals.on_canceled(self.workers.cancel)
        signals.on_hint(Hint.WORK, self._work)
        signals.on_hint(Hint.SCHEDULES, self._look_again)
        signals.on_hint(Hint.CANCELED, self._watching.wake)
        signals.on_hint(Hint.PLANS, self._plans_changed)
        signals.on_hint(Hint.LEADER, self._nobody_leads)

    @property
    def _loops(self) -> list[Loop]:
        """Those that this instance's roles need, in the order in which they start."""
        of_both = [self._driving] if self._roles & {Role.SCHEDULER, Role.WORKER} else []
        of_worker = [self._watching, self._dispatching] if Role.WORKER in self._roles else []
        of_scheduler = (
            [*self._of_scheduler, self._purging, self._showing, self._scheduling]
            if Role.SCHEDULER in self._roles
            else []
        )
        return [*of_scheduler, *of_both, *of_worker]

    async def start(self) -> None:
        """Joins, takes back what the last process of this instance left, then begins. StoreUnavailable."""
        loop = asyncio.get_running_loop()
        if self._store.listen(lambda hint: _call_soon(loop, self._signals.hear, hint)):
            self._signals.tell_others = self._store.tell_others
        elif self._store.shared:
            self.dispatcher.look_by_itself()
        await self.membership.start()
        if Role.SCHEDULER in self._roles:
            await self.leadership.run_once(self._clock.now())
            await self.recovery.recover(self._clock.now())
        for each in self._loops:
            each.start()

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
        for loop in (self._scheduling, self._dispatching, self._driving, self._electing):
            await loop.stop()
        await asyncio.gather(self._resign(), self.workers.drain(grace))
        self._signals.tell_others(Hint.WORK)
        for loop in (self._showing, self._watching, self._purging, *self._of_scheduler):
            await loop.stop()
        await self.membership.stop()

    async def _resign(self) -> None:
        await self.leadership.resign()
        self._signals.tell_others(Hint.LEADER)

    def _owner(self) -> str | None:
        return self.membership.owner

    def _joined(self) -> None:
        self._electing.wake()
        self._work()

    def _elected(self) -> None:
        """What was left to another is ours now."""
        self.scheduler.look_again()
        for loop in (self._scheduling, self._showing, *self._of_scheduler):
            loop.wake()

    def _nobody_leads(self) -> None:
        self._electing.wake()
        self._recovering.wake()

    def _look_again(self) -> None:
        self.scheduler.look_again()
        self._scheduling.wake()

    def _plans_changed(self) -> None:
        self._driving.wake()
        self._showing.wake()

    def _ask_for_help(self) -> None:
        """All our places are taken: others may have some."""
        self._signals.tell_others(Hint.WORK)

    def _schedules_changed(self, schedules: Sequence[Schedule]) -> None:
        self.scheduler.changed(schedules)
        self._scheduling.wake()

    def _work(self) -> None:
        self.dispatcher.expect_work()
        self._dispatching.wake()

    def _free(self, claimed: Claimed) -> None:
        """A node's result is about to be written: whatever it makes ready is claimed in the same transaction."""
        if claimed.node is None:
            self._room()
        else:
            self._work()

    def _ended(self, claimed: Claimed, _: Result) -> None:
        if claimed.job.spec.concurrency is ConcurrencyPolicy.PARALLEL:
            self._room()
        else:
            self._work()  # the job's next may have been let in
        if claimed.node is not None and claimed.node.task is not None:
            self._driving.wake()
            self._showing.wake()

    def _room(self) -> None:
        """A place is free."""
        if self.dispatcher.expect_room():
            self._dispatching.wake()


def _call_soon(loop: asyncio.AbstractEventLoop, what: Callable[[str], None], hint: str) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(what, hint)
