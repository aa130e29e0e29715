"""When a cron expression fires, in any IANA time zone.

Debian's rule at changes of the clock. An expression is *fixed* if second, minute and hour are written
without `*`.
  fixed:     every matching wall-clock time fires once. One that the clock jumps over fires at the first
             instant after the gap, together with all others in that gap; one that the clock shows twice
             fires the first time.
  otherwise: every instant fires at which the clock shows a match.

How it works: `cron_fields` reads the text, `cron_calendar` finds and counts matches on a wall clock without
a zone, and `cron_zone` cuts UTC into stretches in which wall clock and UTC differ by a constant. Here a
search or a count goes from stretch to stretch; the rule above is applied only where one begins. No operation
walks over instants, so that a count over a year costs the same for a yearly and a per-second expression.

Searches end after HORIZON_YEARS and at the years 1900 and 9998. `parse_cron` refuses expressions that never
match and the rarest others match every 40 years, so that None means that one of those two years is reached.
"""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from ksana.domain.cron_calendar import DAY, HORIZON_YEARS, CronExpression, parse_cron
from ksana.domain.cron_zone import EPOCH, SECOND, Stretch, load_zone, stretch_at

__all__ = [
    "EARLIEST",
    "LATEST",
    "CronExpression",
    "count_between",
    "load_zone",
    "next_after",
    "parse_cron",
    "previous_before",
]

EARLIEST = datetime(1900, 1, 1, tzinfo=UTC)
LATEST = datetime(9998, 12, 31, tzinfo=UTC)

_FIRST = (EARLIEST - EPOCH) // SECOND
_LAST = (LATEST - EPOCH) // SECOND
_HORIZON = HORIZON_YEARS * 366 * DAY
_MARGIN = 2 * DAY
"""More than any offset, and than any two offsets of a zone differ by."""


def next_after(expression: CronExpression, zone: ZoneInfo, after: datetime) -> datetime | None:
    """The first instant strictly later than `after`, in whole seconds and UTC; None if there is none."""
    instant = max((after - EPOCH) // SECOND + 1, _FIRST)
    end = min(instant + _HORIZON, _LAST)
    while instant <= end:
        stretch = stretch_at(zone, instant)
        found = _first_in(expression, stretch, instant)
        if found is not None:
            return _datetime(found) if found <= _LAST else None
        # Nothing the clock can show between here and the day before the next match fires: leap over it.
        following = expression.next_local(stretch.end + stretch.offset - _MARGIN)
        if following is None:
            return None
        instant = max(stretch.end, following - _MARGIN)
    return None


def previous_before(expression: CronExpression, zone: ZoneInfo, before: datetime) -> datetime | None:
    """The last instant strictly earlier than `before`, in whole seconds and UTC; None if there is none."""
    instant = min(-((EPOCH - before) // SECOND) - 1, _LAST)
    end = max(instant - _HORIZON, _FIRST)
    while instant >= end:
        stretch = stretch_at(zone, instant)
        found = _last_in(expression, stretch, instant)
        if found is not None:
            return _datetime(found) if found >= _FIRST else None
        preceding = expression.previous_local(stretch.start + stretch.offset + _MARGIN)
        if preceding is None:
            return None
        instant = min(stretch.start - 1, preceding + _MARGIN)
    return None


def count_between(expression: CronExpression, zone: ZoneInfo, after: datetime, until: datetime) -> int:
    """The number of instants later than `after` and not later than `until`, exactly."""
    instant = max((after - EPOCH) // SECOND + 1, _FIRST)
    end = min((until - EPOCH) // SECOND, _LAST) + 1
    count = 0
    while instant < end:
        stretch = stretch_at(zone, instant)
        stop = min(stretch.end, end)
        count += _count_in(expression, stretch, instant, stop)
        instant = stop
    return count


def _first_in(expression: CronExpression, stretch: Stretch, instant: int) -> int | None:
    """The first instant of a stretch at or after `instant`, which lies in it."""
    local = instant + stretch.offset
    if expression.fixed:
        if instant == stretch.start and _fires_after_gap(expression, stretch):
            return instant
        local = max(local, stretch.seen)
    found = expression.next_local(local)
    return found - stretch.offset if found is not None and found < stretch.end + stretch.offset else None


def _last_in(expression: CronExpression, stretch: Stretch, instant: int) -> int | None:
    """The last instant of a stretch at or before `instant`, which lies in it."""
    first = stretch.start + stretch.offset
    if expression.fixed:
        first = max(first, stretch.seen)
    found = expression.previous_local(instant + stretch.offset)
    if found is not None and found >= first:
        return found - stretch.offset
    return stretch.start if expression.fixed and _fires_after_gap(expression, stretch) else None


def _count_in(expression: CronExpression, stretch: Stretch, instant: int, stop: int) -> int:
    """The number of instants of a stretch from `instant` to before `stop`, both in it."""
    local = instant + stretch.offset
    if not expression.fixed:
        return expression.count_local(local, stop + stretch.offset)
    count = expression.count_local(max(local, stretch.seen), stop + stretch.offset)
    if instant == stretch.start and _fires_after_gap(expression, stretch):
        # If the first second after the gap matches by itself too, both are one instant, counted above.
        count += 0 if expression.next_local(local) == local else 1
    return count


def _fires_after_gap(expression: CronExpression, stretch: Stretch) -> bool:
    """Whether the stretch begins after a gap in which something matches."""
    shown = stretch.start + stretch.offset
    if stretch.seen >= shown:
        return False
    skipped = expression.next_local(stretch.seen)
    return skipped is not None and skipped < shown


def _datetime(instant: int) -> datetime:
    return EPOCH + timedelta(seconds=instant)
