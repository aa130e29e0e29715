"""The schedules that are due soon, in memory, so that they fire on the instant and not on the next look at the store."""

import heapq
from collections.abc import Iterable
from datetime import datetime

from ksana.domain.ledger import Schedule


class Window:
    """Every active schedule that fires by `horizon`, as far as this process knows."""

    def __init__(self) -> None:
        self._heap: list[tuple[datetime, int, int, Schedule]] = []
        self._known: dict[int, Schedule] = {}
        """The one that counts; others with its id in the heap are out of date, and passed over when their time comes."""
        self._puts = 0
        self.horizon: datetime | None = None

    def load(self, schedules: Iterable[Schedule], horizon: datetime) -> None:
        """What the store has now, in place of what it had before."""
        self._known = {each.id: each for each in schedules if each.next_fire_at is not None}
        self._heap = [(at, each.id, 0, each) for each in self._known.values() if (at := each.next_fire_at) is not None]
        heapq.heapify(self._heap)
        self.horizon = horizon

    def put(self, schedule: Schedule) -> None:
        """One that has fired, or was changed. If it does not fire by the horizon, a later look finds it."""
        at = schedule.next_fire_at
        self.drop(schedule.id)
        if at is not None and self.reaches(at):
            self._known[schedule.id] = schedule
            self._puts += 1  # two for one instant and schedule are never compared by what they are
            heapq.heappush(self._heap, (at, schedule.id, self._puts, schedule))

    def drop(self, schedule_id: int) -> None:
        """One that does not fire by the horizon."""
        self._known.pop(schedule_id, None)

    def reaches(self, at: datetime | None) -> bool:
        """Whether a schedule that fires then belongs into the window."""
        return at is not None and self.horizon is not None and at <= self.horizon

    def take_due(self, now: datetime, limit: int) -> list[Schedule]:
        """Those whose time has come, earliest first, at most `limit`; they are no longer in the window."""
        due: list[Schedule] = []
        while self._heap and self._heap[0][0] <= now and len(due) < limit:
            schedule = heapq.heappop(self._heap)[3]
            if self._known.get(schedule.id) is schedule:
                del self._known[schedule.id]
                due.append(schedule)
        return due

    def next_at(self) -> datetime | None:
        while self._heap and self._known.get(self._heap[0][1]) is not self._heap[0][3]:
            heapq.heappop(self._heap)  # out of date
        return self._heap[0][0] if self._heap else None
