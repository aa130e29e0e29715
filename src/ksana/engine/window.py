"""The schedules that are due soon, in memory, so that they fire on the instant and not on the next look at the store."""

import heapq
from collections.abc import Iterable
from datetime import datetime

from ksana.domain.ledger import Schedule


class Window:
    """Every active schedule that fires by `horizon`, as the store had them at the last look."""

    def __init__(self) -> None:
        self._heap: list[tuple[datetime, int, Schedule]] = []
        self.horizon: datetime | None = None

    def load(self, schedules: Iterable[Schedule], horizon: datetime) -> None:
        """What the store has now, in place of what it had before."""
        self._heap = [(each.next_fire_at, each.id, each) for each in schedules if each.next_fire_at is not None]
        heapq.heapify(self._heap)
        self.horizon = horizon

    def put(self, schedule: Schedule) -> None:
        """One that has fired and fires again; beyond the horizon, the next look finds it."""
        at = schedule.next_fire_at
        if at is not None and self.horizon is not None and at <= self.horizon:
            heapq.heappush(self._heap, (at, schedule.id, schedule))

    def take_due(self, now: datetime, limit: int) -> list[Schedule]:
        """Those whose time has come, earliest first, at most `limit`; they are no longer in the window."""
        due: list[Schedule] = []
        while self._heap and self._heap[0][0] <= now and len(due) < limit:
            due.append(heapq.heappop(self._heap)[2])
        return due

    def next_at(self) -> datetime | None:
        return self._heap[0][0] if self._heap else None
