"""Days in a time zone, and a ledger counted by them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

from ksana.domain.schedule import ScheduleSpec, count_instants
from ksana.domain.schedule_instants import TICK

ONE_DAY = timedelta(days=1)


def day_edges(first: date, until: date, zone: ZoneInfo) -> list[datetime]:
    """When each day from `first` to before `until` begins, and when the last ends, in UTC. Days have 23 to 25 hours, and one that a
    zone leaps over has none."""
    days = [first + number * ONE_DAY for number in range((until - first).days + 1)]
    # A midnight that the clock leaps over is the instant of the leap; of two, it is the first.
    return [datetime.combine(day, time.min, zone).astimezone(UTC) for day in days]


@dataclass(frozen=True, slots=True)
class InstantRange:
    """`count` instants, from `first` to `last`."""

    first: datetime
    last: datetime
    count: int


def spread_over_days(
    spec: ScheduleSpec | None, part: InstantRange, edges: Sequence[datetime]
) -> Iterator[tuple[int, int]]:
    """On which of the days, and how many of a range of instants, each lies. By the schedule as it is now, if that has as many;
    else, since it was changed, evenly over the time."""
    known = spec if spec is not None and count_instants(spec, part.first - TICK, part.last) == part.count else None
    for day, (begin, end) in enumerate(pairwise(edges)):
        after, until = max(part.first, begin) - TICK, min(part.last, end - TICK)
        if after < until:
            number = _evenly(part, after, until) if known is None else count_instants(known, after, until)
            if number:
                yield day, number


def _evenly(part: InstantRange, after: datetime, until: datetime) -> int:
    """As if they were the same time apart: how many are later than `after` and not later than `until`."""
    return _up_to(part, until) - _up_to(part, after)


def _up_to(part: InstantRange, moment: datetime) -> int:
    if moment < part.first:
        return 0
    if part.last <= part.first:
        return part.count
    return (moment - part.first) * (part.count - 1) // (part.last - part.first) + 1
