"""The scheduler: planned instants become occurrences and executions, on the instant.

The store is the truth; a window of what is due soon is held in memory. Whatever is due together is written together. A
schedule that somebody else fired or changed meanwhile is `lost` to us, which does no harm; one that cannot be worked out or
written is parked with its error, and the others go on. Where several instances are, all but the leader leave it a headstart.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Protocol

from ksana.domain.clock import Clock
from ksana.domain.errors import KsanaError
from ksana.domain.ledger import Fired, Firing, Schedule
from ksana.domain.schedule import FireDecision, decide_fire
from ksana.engine.loop import Round
from ksana.engine.measures import Measures
from ksana.engine.recall import Stillness
from ksana.engine.signals import Signals
from ksana.engine.window import Window
from ksana.store.base import Store
from ksana.store.workflow_requests import NewRun
from ksana.telemetry import log

GATHERING = timedelta(milliseconds=20)
"""The shortest time between two fires: a transaction for a hundred costs little more than for one."""


@dataclass(frozen=True, slots=True)
class SchedulerOptions:
    poll_interval: timedelta = timedelta(seconds=1)
    ahead: timedelta = timedelta(seconds=30)
    batch_limit: int = 1_000


class Starts(Protocol):
    async def planned(self, workflow_id: int, params: Mapping[str, Any], now: datetime) -> NewRun | str:
        """What a workflow's scheduled runs start with; or, in a word, why they cannot."""


class Scheduler:
    """A Periodic."""

    name = "scheduler"

    def __init__(
        self,
        store: Store,
        clock: Clock,
        options: SchedulerOptions,
        signals: Signals,
        measures: Measures,
        starts: Starts,
        headstart: Callable[[], timedelta] = lambda: timedelta(0),
    ) -> None:
        self._starts = starts
        self._headstart = headstart
        self.interval = options.poll_interval
        self._store = store
        self._clock = clock
        self._options = options
        self._signals = signals
        self._measures = measures
        self._window = Window()
        self._still = Stillness(store)
        self._look_at: datetime | None = None
        self._held_off: dict[int, tuple[datetime, int]] = {}
        """Schedules that were lost to somebody else: until when they are left alone, and how often that was so. Who has one
        locked may be a while about it, and is not to be asked again and again."""
        self._meanwhile: list[Schedule] | None = None
        """What was changed or fired since a look began that is still under way: its answer may not have it yet."""

    def changed(self, schedules: Sequence[Schedule]) -> None:
        """These are new, or other than before. What they were is out of the window at once."""
        for schedule in schedules:
            self._put(schedule)

    def _put(self, schedule: Schedule) -> None:
        self._window.put(schedule)
        if self._meanwhile is not None:
            self._meanwhile.append(schedule)

    def look_again(self) -> None:
        """What is in memory may no longer be what is in the store."""
        self._look_at = None

    async def run_once(self, now: datetime) -> Round:
        """Fires everything that is due at `now`, however much that is."""
        headstart = self._headstart()
        if headstart:
            overdue_at = await self._overdue_at(headstart)
            if overdue_at is None or overdue_at > now:
                return Round(0, overdue_at)
        if not self._must_look(now):
            fired = await self._fire_due(now)
        elif self._sees_beyond(now) and not headstart:
            fired = await self._fire_beside_a_look(now)
        else:
            await self._look(now)
            fired = await self._fire_due(now)
        return Round(fired, self._next_at(now) if fired else self._next_at())

    async def _fire_due(self, now: datetime, *, look: bool = True) -> int:
        """All that is due in the window; with a `look` whenever it is empty, all that is due in the store."""
        fired = 0
        while due := self._window.take_due(now - self._headstart(), self._options.batch_limit):
            fired += await self._fire(due, now)
            if look and self._window.next_at() is None:
                await self._look(now)
        return fired

    async def _fire_beside_a_look(self, now: datetime) -> int:
        """To look at a thousand schedules takes longer than one that is due meanwhile should wait: the window has it already."""
        looking = asyncio.create_task(self._look(now), name="look")
        fired = 0
        try:
            while not looking.done():
                now = self._clock.now()
                fired += await self._fire_due(now, look=False)
                await asyncio.wait({looking}, timeout=self._until_next_fire(now))
        finally:
            await asyncio.wait({looking})
        await looking
        return fired + await self._fire_due(self._clock.now())

    def _until_next_fire(self, fired_at: datetime) -> float | None:
        """Seconds to wait for the next that is due in the window; None: nothing is, for all that is known."""
        soonest = self._window.next_at()
        if soonest is None:
            return None
        return max(0.0, (max(soonest, fired_at + GATHERING) - self._clock.now()).total_seconds())

    def _must_look(self, now: datetime) -> bool:
        # A clock that went back must not keep us from looking until it has caught up.
        if self._look_at is not None and self._look_at - self.interval <= now < self._look_at:
            return False
        if self._look_at is None or not self._still.lasts(now) or not self._sees_beyond(now + self.interval):
            return True
        self._look_at = now + self.interval
        return False

    def _sees_beyond(self, instant: datetime) -> bool:
        return self._window.horizon is not None and instant < self._window.horizon

    async def _overdue_at(self, headstart: timedelta) -> datetime | None:
        """From when on the leader has not fired what was left to it. Asked of the store each time: the leader moves on."""
        self.look_again()
        soonest = await self._store.next_fire_at()
        return None if soonest is None else soonest + headstart

    async def _look(self, now: datetime) -> None:
        began = self._clock.monotonic()
        self._look_at = now + self.interval
        self._still.note(now)
        self._meanwhile = []
        try:
            await self._load(now)
        except KsanaError:
            self.look_again()  # or else the next round would find nothing to do, and be taken for a recovery
            raise
        finally:
            self._meanwhile = None
        self._measures.looked(self._clock.monotonic() - began)

    async def _load(self, now: datetime) -> None:
        """The window becomes what the store has, and what has happened since it was asked."""
        until, limit = now + self._options.ahead, self._options.batch_limit
        seen_until = self._window.horizon
        found = await self._store.due_schedules(until, limit)
        for bad in found.unreadable:
            await self._park(bad.schedule_id, bad.version, bad.error)
        full = len(found.schedules) + len(found.unreadable) >= limit
        latest = found.schedules[-1].next_fire_at if full and found.schedules else None
        self._held_off = {each.id: self._held_off[each.id] for each in found.schedules if each.id in self._held_off}
        schedules = [self._left_alone(each) for each in found.schedules] if self._held_off else found.schedules
        self._window.load(schedules, latest or until)
        for schedule in self._meanwhile or ():
            self._window.put(schedule)
        if latest is not None and self._look_at is not None and latest != seen_until:
            # The next look is to be over before all that this one has found is fired. (One that sees no further than the last
            # did would be the first of ever more, the nearer that instant is.)
            self._look_at = min(self._look_at, max(now + GATHERING, now + (latest - now) / 2))

    def _left_alone(self, schedule: Schedule) -> Schedule:
        """As it is but, if somebody else had it just now, due only when it is to be tried again."""
        until, _ = self._held_off.get(schedule.id, (None, 0))
        at = schedule.next_fire_at
        return schedule if until is None or at is None or at >= until else replace(schedule, next_fire_at=until)

    def _hold_off(self, schedule_id: int) -> None:
        _, times = self._held_off.get(schedule_id, (None, 0))
        pause = min(self.interval, GATHERING * 2.0 ** min(times, 10))
        self._held_off[schedule_id] = self._clock.now() + pause, times + 1

    async def _fire(self, due: Sequence[Schedule], now: datetime) -> int:
        firings = await self._firings_of(due, now)
        schedules = {schedule.id: schedule for schedule in due if schedule.id in firings}
        try:
            starts = await self._starts_of(schedules.values(), now)
            if any(firing.decision.fires for firing in firings.values()):
                self._signals.work_coming()
            answers = await self._store.fire(list(firings.values()), now, starts)
        except KsanaError:
            self.look_again()  # they have left the window, but not the store
            raise
        for fired in answers:
            schedule = schedules[fired.schedule_id]
            if fired.error is not None:
                await self._park(schedule.id, schedule.version, fired.error)
            else:
                self._settle(schedule, firings[schedule.id].decision, fired)
        if any(fired.execution_ids for fired in answers):
            self._signals.work_came()
        return sum(len(fired.execution_ids) for fired in answers)

    async def _firings_of(self, due: Sequence[Schedule], now: datetime) -> dict[int, Firing]:
        """What is decided about each, by schedule; one that cannot be worked out is parked."""
        firings: dict[int, Firing] = {}
        decisions: dict[tuple[int, datetime], FireDecision] = {}
        for schedule in due:
            try:
                firing = _decided(schedule, now, decisions)
            except Exception as error:  # noqa: BLE001 - one bad schedule must not hold up the others
                await self._park(schedule.id, schedule.version, str(error) or type(error).__name__)
                continue
            if firing is not None:
                firings[schedule.id] = firing
        return firings

    async def _starts_of(self, schedules: Iterable[Schedule], now: datetime) -> dict[int, NewRun | str]:
        """What runs of those that are of workflows start with, by schedule."""
        return {
            each.id: await self._starts.planned(each.workflow_id, each.input, now)
            for each in schedules
            if each.workflow_id is not None
        }

    def _settle(self, schedule: Schedule, decision: FireDecision, fired: Fired) -> None:
        if fired.lost:
            self._hold_off(schedule.id)
            self.look_again()
            return
        self._held_off.pop(schedule.id, None)
        if self._meanwhile is not None or self._window.reaches(decision.next_fire_at):
            self._put(_moved(schedule, decision))
        else:
            self._window.drop(schedule.id)  # a look that was answered while it was being fired had it still
        if fired.skipped:
            self._measures.fired(schedule, decision, fired)

    async def _park(self, schedule_id: int, version: int, error: str) -> None:
        if await self._store.park_schedule(schedule_id, version, error):
            log().error("schedule parked", action="schedule.parked", schedule_id=schedule_id, err=error)

    def _next_at(self, fired_at: datetime | None = None) -> datetime | None:
        """When to look again; after a fire not at once, so that what is due a moment later is written with others."""
        if self._look_at is None:
            return self._clock.now() + GATHERING
        soonest = self._window.next_at()
        next_at = self._look_at if soonest is None else min(soonest + self._headstart(), self._look_at)
        return next_at if fired_at is None else max(next_at, fired_at + GATHERING)


def _decided(schedule: Schedule, now: datetime, decisions: dict[tuple[int, datetime], FireDecision]) -> Firing | None:
    """`decisions`: those that have been made at this `now`. Thousands may be planned alike for one instant (each hour, on the
    hour), and specs that are written alike are one object."""
    spec, cursor = schedule.spec, schedule.next_planned_for
    if cursor is None:
        return None
    decision = decisions.get((id(spec), cursor)) if not spec.jitter else None
    if decision is None:
        decision = decisions[id(spec), cursor] = decide_fire(spec, schedule.id, cursor, now)
    return Firing(schedule.id, schedule.version, cursor, decision)


def _moved(schedule: Schedule, decision: FireDecision) -> Schedule:
    return replace(schedule, next_planned_for=decision.next_cursor, next_fire_at=decision.next_fire_at)
