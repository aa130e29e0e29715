"""A time zone as stretches of constant UTC offset, so that everything within one is plain arithmetic.

Instants are whole seconds since the epoch in UTC, wall-clock seconds the same number plus the offset.
`zoneinfo` tells the offset of an instant but not when it changes; the changes of a year are found by asking
for every day and halving where two days differ. (No zone ever changed there and back within a day: the
shortest in the data is four days.)
"""

from bisect import bisect_right
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

from ksana.domain.cron_calendar import DAY
from ksana.domain.errors import InvalidInput

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
MAX_NAME = 64

_LOOK_BACK = 3 * DAY
"""A change this long before a year no longer matters in it: no clock was ever set back by more than a day."""


class Stretch(NamedTuple):
    """From `start` to before `end`, wall clock = UTC + `offset`.

    Wall-clock seconds before `seen` were passed earlier. So `seen > start + offset` is a fold: the clock was set
    back and shows again what it has shown; `seen < start + offset` is a gap: those between were never shown.
    """

    start: int
    end: int
    offset: int
    seen: int


def load_zone(name: str, *, field: str = "timezone") -> ZoneInfo:
    """The IANA zone of that name; InvalidInput on `field` if this machine knows none."""
    # `localtime` is whatever the machine is set to: two instances could disagree.
    if not name or len(name) > MAX_NAME or name == "localtime":
        raise InvalidInput(field, f"not an IANA time zone: {name[:MAX_NAME]!r}")
    try:
        return _zone(name)
    except (KeyError, ValueError, OSError):
        raise InvalidInput(field, f"not an IANA time zone: {name!r}") from None


def stretch_at(zone: ZoneInfo, instant: int) -> Stretch:
    """The stretch an instant lies in, cut at the ends of its UTC year."""
    starts, stretches = _year(zone, (EPOCH + timedelta(seconds=instant)).year)
    return stretches[bisect_right(starts, instant) - 1]


@lru_cache(maxsize=1024)
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)


@lru_cache(maxsize=8192)
def _year(zone: ZoneInfo, year: int) -> tuple[tuple[int, ...], tuple[Stretch, ...]]:
    begin = (datetime(year, 1, 1, tzinfo=UTC) - EPOCH) // SECOND
    end = (datetime(year + 1, 1, 1, tzinfo=UTC) - EPOCH) // SECOND
    stretches: list[Stretch] = []
    start, offset = begin - _LOOK_BACK, _offset(zone, begin - _LOOK_BACK)
    seen = start + offset
    for change in [*_changes(zone, start, end), end]:
        if change > begin:
            stretches.append(_clipped(Stretch(start, change, offset, seen), begin))
        seen = max(seen, change + offset)
        start, offset = change, _offset(zone, change)
    return tuple(stretch.start for stretch in stretches), tuple(stretches)


def _clipped(stretch: Stretch, begin: int) -> Stretch:
    """The stretch from `begin` on. What it loses has been shown, so that the cut is no gap."""
    if stretch.start >= begin:
        return stretch
    return Stretch(begin, stretch.end, stretch.offset, max(stretch.seen, begin + stretch.offset))


def _changes(zone: ZoneInfo, start: int, end: int) -> list[int]:
    """The instants after `start` and before `end` at which the offset becomes another."""
    found = []
    before = _offset(zone, start)
    for day in range(start, end, DAY):
        after = _offset(zone, min(day + DAY, end - 1))
        if after != before:
            found.append(_change_within(zone, day, day + DAY))
        before = after
    return found


def _change_within(zone: ZoneInfo, low: int, high: int) -> int:
    before = _offset(zone, low)
    while high - low > 1:
        middle = (low + high) // 2
        if _offset(zone, middle) == before:
            low = middle
        else:
            high = middle
    return high


def _offset(zone: ZoneInfo, instant: int) -> int:
    offset = (EPOCH + timedelta(seconds=instant)).astimezone(zone).utcoffset()
    return 0 if offset is None else offset.days * DAY + offset.seconds
