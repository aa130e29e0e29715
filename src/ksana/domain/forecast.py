"""What schedules have planned between two instants: counted, not listed, so that the cost depends on how many schedules there are
and not on how often they fire."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice, takewhile

from ksana.domain.ledger import Schedule
from ksana.domain.schedule import count_instants, instants_after
from ksana.domain.schedule_instants import TICK

HOUR = timedelta(hours=1)
FEW = 48
"""Instants that are counted by being listed: it is cheaper than to count each hour."""


@dataclass(frozen=True, slots=True)
class Span:
    """first ≤ instant < until."""

    first: datetime
    until: datetime

    def of(self, schedule: Schedule) -> "Span":
        """What of it lies ahead of a schedule: instants before its cursor are in the ledger already."""
        cursor = schedule.next_planned_for
        return Span(self.first if cursor is None else max(self.first, cursor), self.until)

    def hours(self) -> Iterator["Span"]:
        """The whole hours that it touches, the first and the last cut to what lies within it."""
        begin = self.first
        while begin < self.until:
            end = min(begin.replace(minute=0, second=0, microsecond=0) + HOUR, self.until)
            yield Span(begin, end)
            begin = end


def planned_count(schedule: Schedule, span: Span) -> int:
    """How many instants of an ACTIVE schedule lie in the span."""
    ahead = span.of(schedule)
    if schedule.next_planned_for is None or ahead.first >= ahead.until:
        return 0
    return count_instants(schedule.spec, ahead.first - TICK, ahead.until - TICK)


def planned_instants(schedule: Schedule, span: Span, limit: int) -> list[datetime]:
    """The first of them."""
    ahead = span.of(schedule)
    if schedule.next_planned_for is None:
        return []
    due = takewhile(lambda instant: instant < ahead.until, instants_after(schedule.spec, ahead.first - TICK))
    return list(islice(due, limit))


def planned_by_hour(schedule: Schedule, span: Span) -> dict[datetime, int]:
    """How many in each hour (its beginning, in UTC) that has any."""
    total = planned_count(schedule, span)
    if total <= FEW:
        return Counter(_hour(instant) for instant in planned_instants(schedule, span, total))
    counts = {_hour(each.first): planned_count(schedule, each) for each in span.hours()}
    return {hour: count for hour, count in counts.items() if count}


def _hour(instant: datetime) -> datetime:
    return instant.replace(minute=0, second=0, microsecond=0)
