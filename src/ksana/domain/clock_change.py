"""The next change of a zone's clock, and what it does to a schedule, for people who plan across it."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from enum import StrEnum
from zoneinfo import ZoneInfo

from ksana.domain.cron import count_between, load_zone
from ksana.domain.cron_zone import EPOCH, SECOND, stretch_at
from ksana.domain.schedule_instants import TICK, latest_instants, next_instants
from ksana.domain.schedule_spec import ScheduleKind, ScheduleSpec

_AHEAD = timedelta(days=400)
_UTC = ZoneInfo("UTC")
_BEFORE, _AFTER = 2, 3
"""So many instants on both sides of a change."""


class ClockEffect(StrEnum):
    """What a change of the clock does to a schedule's instants."""

    NONE = "NONE"
    """Nothing: no instant falls into what is left out or shown twice."""
    ONCE_AFTER = "ONCE_AFTER"
    """Those of the gap fire once, right after it."""
    ONCE_FIRST = "ONCE_FIRST"
    """Those of the fold fire once, when the clock shows them first."""
    LEFT_OUT = "LEFT_OUT"
    """The clock does not show them, and they do not fire."""
    TWICE = "TWICE"
    """The clock shows them twice, and they fire both times."""


@dataclass(frozen=True, slots=True)
class ClockChange:
    """One instant, as the clock would have shown it and as it does: with the offset `before` and the one `after`."""

    before: datetime
    after: datetime

    @property
    def forward(self) -> bool:
        return self.after.replace(tzinfo=None) > self.before.replace(tzinfo=None)


def next_change(zone_name: str, after: datetime) -> ClockChange | None:
    """The first change later than `after`; None if there is none within 400 days."""
    zone = load_zone(zone_name)
    instant = (after - EPOCH) // SECOND
    last = instant + _AHEAD // SECOND
    stretch = stretch_at(zone, instant)
    while stretch.end <= last:
        following = stretch_at(zone, stretch.end)
        if following.offset != stretch.offset:
            return ClockChange(_shown(stretch.end, stretch.offset), _shown(stretch.end, following.offset))
        stretch = following
    return None


def _shown(instant: int, offset: int) -> datetime:
    return (EPOCH + timedelta(seconds=instant)).astimezone(timezone(timedelta(seconds=offset)))


def effect_of(spec: ScheduleSpec, change: ClockChange) -> ClockEffect:
    """What becomes of the instants that the change leaves out or shows twice."""
    if spec.kind is not ScheduleKind.CRON:
        return ClockEffect.NONE
    expression, _ = spec.compiled()
    first, end = sorted((change.before.replace(tzinfo=UTC), change.after.replace(tzinfo=UTC)))
    # On a clock that never changes, so that it has each of the wall-clock times once.
    if count_between(expression, _UTC, first - TICK, end - TICK) == 0:
        return ClockEffect.NONE
    if expression.fixed:
        return ClockEffect.ONCE_AFTER if change.forward else ClockEffect.ONCE_FIRST
    return ClockEffect.LEFT_OUT if change.forward else ClockEffect.TWICE


def instants_around(spec: ScheduleSpec, change: ClockChange, after: datetime) -> list[datetime]:
    """The last planned instants before the change that are later than `after`, and the first ones since."""
    before = change.after - TICK
    return latest_instants(spec, after, before, _BEFORE) + next_instants(spec, before, limit=_AFTER)
