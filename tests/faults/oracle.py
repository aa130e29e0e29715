"""When schedules are due, by brute force: every second of UTC is asked whether it is one. Slow, plain, and nothing of Ksana's.

Daylight saving: a cron is *fixed* if its second, minute and hour have no `*`. Fixed: what falls into a gap is due once, at the
first instant after it, and what comes twice is due the first time. Others: every instant whose local form matches.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from math import ceil
from zoneinfo import ZoneInfo

from tests.faults.history import Schedule

MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
RANGES = ((0, 59), (0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
MILLISECOND = 0.001


def instants(schedule: Schedule, begin: float, end: float) -> list[float]:
    """All in [begin, end), as seconds since 1970."""
    first = begin if schedule.start_wall is None else max(begin, schedule.start_wall)
    last = end if schedule.end_wall is None else min(end, schedule.end_wall + MILLISECOND)  # its end is still within
    if schedule.every:
        assert schedule.start_wall is not None, "an interval is counted from its start"
        return list(_every(schedule.every, schedule.start_wall, first, last))
    seconds = _cron_seconds(schedule.cron, schedule.zone, ceil(begin), ceil(end))
    return [float(second) for second in seconds if first <= second < last]


def _every(every: float, start: float, begin: float, end: float) -> Iterator[float]:
    """Each millisecond is asked whether it is a whole number of intervals after the start."""
    step, origin = round(every * 1_000), round(start * 1_000)
    for millisecond in range(ceil(begin * 1_000 - 1e-6), ceil(end * 1_000 - 1e-6)):
        if millisecond >= origin and (millisecond - origin) % step == 0:
            yield millisecond / 1_000


@cache
def _cron_seconds(expression: str, zone: str, begin: int, end: int) -> tuple[int, ...]:
    """Kept: a thousand schedules with one expression are worked out once."""
    cron, place = Cron.read(expression), ZoneInfo(zone)
    return tuple(second for second in range(begin, end) if _is_due(cron, place, second))


def _is_due(cron: "Cron", zone: ZoneInfo, second: int) -> bool:
    local = datetime.fromtimestamp(second, UTC).astimezone(zone)
    if not cron.fixed:
        return cron.matches(local)
    return (cron.matches(local) and local.fold == 0) or any(
        cron.matches(each) for each in _skipped(local, second, zone)
    )


def _skipped(local: datetime, second: int, zone: ZoneInfo) -> Iterator[datetime]:
    """The local seconds that this instant jumped over."""
    before = datetime.fromtimestamp(second - 1, UTC).astimezone(zone)
    jump = _seconds(local.utcoffset()) - _seconds(before.utcoffset())
    plain = local.replace(tzinfo=None)
    for missing in range(1, jump + 1):
        yield plain - timedelta(seconds=missing)


def _seconds(offset: timedelta | None) -> int:
    assert offset is not None
    return round(offset.total_seconds())


@dataclass(frozen=True, slots=True)
class Cron:
    """Six fields as the values that each allows."""

    second: frozenset[int]
    minute: frozenset[int]
    hour: frozenset[int]
    day: frozenset[int]
    month: frozenset[int]
    weekday: frozenset[int]
    fixed: bool
    any_day: bool
    """Day of month or day of week begins with `*`: both must match; or else either."""

    @classmethod
    def read(cls, expression: str) -> "Cron":
        fields = expression.upper().split()
        fields = ["0", *fields] if len(fields) == 5 else fields
        second, minute, hour, day, month, weekday = (
            _values(field, low, high) for field, (low, high) in zip(fields, RANGES, strict=True)
        )
        any_day = fields[3].startswith("*") or fields[5].startswith("*")
        weekdays = frozenset(number % 7 for number in weekday)
        return cls(second, minute, hour, day, month, weekdays, not any("*" in field for field in fields[:3]), any_day)

    def matches(self, local: datetime) -> bool:
        if local.second not in self.second or local.minute not in self.minute or local.hour not in self.hour:
            return False
        by_day, by_weekday = local.day in self.day, local.isoweekday() % 7 in self.weekday
        return local.month in self.month and ((by_day and by_weekday) if self.any_day else (by_day or by_weekday))


def _values(field: str, low: int, high: int) -> frozenset[int]:
    return frozenset(value for part in field.split(",") for value in _part(part, low, high))


def _part(part: str, low: int, high: int) -> range:
    span, _, step = part.partition("/")
    if span == "*":
        first, last = low, high
    elif "-" in span:
        first, last = (_number(word) for word in span.split("-"))
    else:
        first = _number(span)
        last = high if step else first
    return range(first, last + 1, int(step or 1))


def _number(word: str) -> int:
    if word in MONTHS:
        return MONTHS.index(word) + 1
    return DAYS.index(word) if word in DAYS else int(word)
