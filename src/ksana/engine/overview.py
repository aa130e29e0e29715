"""How all of it stands now, and how it went in the last hours; worked out at most every few seconds, whoever asks."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from ksana.domain.clock import EPOCH, Clock
from ksana.domain.instance import LEADER, Instance, InstanceStatus
from ksana.domain.states import ExecutionStatus, RunStatus
from ksana.store.base import Store
from ksana.store.console_requests import HistoryCell, QueueFigures

REMEMBERED_SECONDS = 5.0
MOST_HOURS = 48
LATELY = timedelta(hours=1)
"""For how long an instance whose heart stopped counts as lost."""
_STEPS = ((1, 60), (8, 300), (24, 900), (MOST_HOURS, 1800))
"""Up to so many hours, steps of so many seconds: never more than a hundred."""


@dataclass(frozen=True, slots=True)
class QueueNow:
    queue: str
    ready: int
    running: int
    places: int
    """How many executions the living instances that serve it take at once, of all their queues together."""


@dataclass(frozen=True, slots=True)
class InstancesNow:
    alive: int
    lost: int
    leader: str | None


@dataclass(frozen=True, slots=True)
class Step:
    """What ended within a step, and how late scheduled runs began; None where there were none."""

    at: datetime
    succeeded: int
    failed: int
    late_p50: int | None
    late_p99: int | None


@dataclass(frozen=True, slots=True)
class History:
    step: timedelta
    since: datetime
    """From when on it is whole."""
    steps: Sequence[Step]


@dataclass(frozen=True, slots=True)
class Overview:
    at: datetime
    running: int
    ready: int
    retrying: int
    awaiting_callback: int
    waiting: int
    """Because their job or workflow runs as often as it may."""
    failures: int
    """Targets with failures that nobody has acknowledged."""
    queues: Sequence[QueueNow]
    instances: InstancesNow
    history: History


class Overviews:
    """One for a process."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._known: dict[int, tuple[float, Overview]] = {}
        self._asking = asyncio.Lock()

    async def of(self, hours: int) -> Overview:
        """With the history of the last 1 to 48 hours; at most 5 s old. Those who ask meanwhile wait for the same answer."""
        async with self._asking:
            asked_at, known = self._known.get(hours, (0.0, None))
            now = self._clock.monotonic()
            if known is None or now - asked_at >= REMEMBERED_SECONDS:
                known = await self._ask(hours)
                self._known[hours] = now, known
            return known

    async def _ask(self, hours: int) -> Overview:
        now = self._clock.now()
        figures = await self._store.figures()
        queues = await self._store.queue_figures(now)
        instances = await self._store.instances()
        leader = await self._store.lock(LEADER)
        count = figures.active.get
        return Overview(
            at=now,
            running=count(ExecutionStatus.RUNNING, 0),
            ready=sum(queue.ready for queue in queues),
            retrying=count(ExecutionStatus.RETRYING, 0),
            awaiting_callback=count(ExecutionStatus.CALLBACK_PENDING, 0),
            waiting=count(ExecutionStatus.QUEUED, 0) + figures.workflow_runs.get(RunStatus.QUEUED, 0),
            failures=(await self._store.failures(0)).total,
            queues=queues_now(queues, [each for each in instances if _lives(each, now)]),
            instances=instances_now(instances, now, None if leader is None else leader.owner),
            history=await self._history(hours, now),
        )

    async def _history(self, hours: int, now: datetime) -> History:
        step = timedelta(seconds=next(seconds for most, seconds in _STEPS if hours <= most))
        first = _floor(now - timedelta(hours=hours), step)
        found = await self._store.run_history(first, step)
        since = found.since or first
        return History(step, since, steps_of(found.cells, _floor(since, step), now, step))


def queues_now(figures: Iterable[QueueFigures], living: Sequence[Instance]) -> list[QueueNow]:
    """Those that have something to do, and those that somebody serves, by name."""
    busy = {each.queue: each for each in figures}
    places: dict[str, int] = {}
    for instance in living:
        for queue in instance.queues:
            places[queue] = places.get(queue, 0) + instance.places
    names = sorted(busy.keys() | places.keys())
    known = [busy.get(name) or QueueFigures(name, 0, 0) for name in names]
    return [QueueNow(each.queue, each.ready, each.running, places.get(each.queue, 0)) for each in known]


def instances_now(instances: Sequence[Instance], now: datetime, leader: str | None) -> InstancesNow:
    alive = sum(_lives(each, now) for each in instances)
    return InstancesNow(alive, sum(_is_lost(each, now) for each in instances), leader)


def _lives(instance: Instance, now: datetime) -> bool:
    return instance.status is InstanceStatus.ALIVE and instance.expires_at > now


def _is_lost(instance: Instance, now: datetime) -> bool:
    """Its heart stopped lately, whether or not somebody has taken note."""
    left = instance.status is InstanceStatus.LEFT
    return not left and not _lives(instance, now) and instance.heartbeat_at > now - LATELY


def steps_of(cells: Iterable[HistoryCell], first: datetime, last: datetime, step: timedelta) -> list[Step]:
    """Every step from the first to the one that `last` is in, those in which nothing ended too."""
    by_step: dict[datetime, list[HistoryCell]] = {}
    for cell in cells:
        by_step.setdefault(cell.at, []).append(cell)
    instants = [first + step * number for number in range((last - first) // step + 1)]
    return [_step(at, by_step.get(at, [])) for at in instants]


def _step(at: datetime, cells: Sequence[HistoryCell]) -> Step:
    late = sorted((cell.late_millis, cell.number) for cell in cells if cell.late_millis is not None)
    return Step(
        at,
        succeeded=sum(cell.number for cell in cells if cell.succeeded),
        failed=sum(cell.number for cell in cells if not cell.succeeded),
        late_p50=percentile(late, 50),
        late_p99=percentile(late, 99),
    )


def percentile(counted: Sequence[tuple[int, int]], percent: int) -> int | None:
    """The least of these (value, how many), in order, that at least so many percent do not exceed; None of nothing."""
    wanted = sum(number for _, number in counted) * percent
    seen = 0
    for value, number in counted:
        seen += number
        if seen * 100 >= wanted:
            return value
    return None


def _floor(instant: datetime, step: timedelta) -> datetime:
    return instant - (instant - EPOCH) % step
