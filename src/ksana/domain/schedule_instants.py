"""The planned instants of a schedule: the next, the latest, how many; and the jitter that each is delayed by.

Nothing here walks over instants it was not asked for, so that a year of them costs as little as an hour.
Windows exclude their beginning and include their end.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from itertools import islice

from ksana.domain.cron import LATEST, count_between, next_after, previous_before
from ksana.domain.schedule_spec import ScheduleKind, ScheduleSpec

TICK = timedelta(microseconds=1)
"""The resolution of time: `instant - TICK` is just before it."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def next_instant(spec: ScheduleSpec, after: datetime | None) -> datetime | None:
    """The first planned instant strictly later than `after` (None: the very first); None if there is none.

    A cron schedule that has neither `start_at` nor an anchor begins in 1970.
    """
    if after is None:
        after = _beginning(spec) - TICK
    if spec.start_at is not None:
        after = max(after, spec.start_at - TICK)
    found = _next(spec, after)
    if found is None or (spec.end_at is not None and found > spec.end_at):
        return None
    return found


def instants_after(spec: ScheduleSpec, after: datetime | None) -> Iterator[datetime]:
    """Every planned instant strictly later than `after`, ascending, as long as it is asked for."""
    found = next_instant(spec, after)
    while found is not None:
        yield found
        found = next_instant(spec, found)


def next_instants(spec: ScheduleSpec, after: datetime | None, *, limit: int) -> list[datetime]:
    """The first `limit` planned instants strictly later than `after`, ascending, without jitter."""
    return list(islice(instants_after(spec, after), limit))


def count_instants(spec: ScheduleSpec, after: datetime, until: datetime) -> int:
    """The number of planned instants later than `after` and not later than `until`, exactly."""
    after, until = _within_bounds(spec, after, until)
    if until <= after:
        return 0
    if spec.kind is ScheduleKind.CRON:
        return count_between(*spec.compiled(), after, until)
    if spec.every is not None and spec.anchor is not None:
        until = min(until, LATEST)
        # Numbered from 0 at the anchor, so floor + 1 of them are not later than a moment.
        upto = max((until - spec.anchor) // spec.every + 1, 0)
        return max(upto - max((after - spec.anchor) // spec.every + 1, 0), 0)
    return 1 if spec.run_at is not None and after < spec.run_at <= until else 0


def latest_instants(spec: ScheduleSpec, after: datetime, until: datetime, n: int) -> list[datetime]:
    """The latest `n` planned instants later than `after` and not later than `until`, ascending."""
    after, until = _within_bounds(spec, after, until)
    found: list[datetime] = []
    while len(found) < n:
        latest = _latest(spec, until)
        if latest is None or latest <= after:
            break
        found.append(latest)
        until = latest - TICK
    return found[::-1]


def jitter_of(spec: ScheduleSpec, schedule_id: int, planned: datetime) -> timedelta:
    """How much later than planned an instant fires: evenly spread from 0 to `jitter`, the same always and everywhere.

    It never reaches the following instant, so that instants fire in the order in which they are planned.
    """
    if not spec.jitter:
        return spec.jitter
    # Without the bounds: changing `end_at` leaves the fire times of all others as they are.
    following = _next(spec, planned)
    longest = spec.jitter if following is None else min(spec.jitter, following - planned - TICK)
    name = f"{schedule_id}:{(planned - _EPOCH) // TICK}".encode()
    fraction = int.from_bytes(blake2b(name, digest_size=8).digest())
    return timedelta(microseconds=fraction * (longest // TICK + 1) >> 64)


def fire_time(spec: ScheduleSpec, schedule_id: int, planned: datetime) -> datetime:
    """When a planned instant fires."""
    return planned + jitter_of(spec, schedule_id, planned)


def _beginning(spec: ScheduleSpec) -> datetime:
    return spec.run_at or spec.start_at or spec.anchor or _EPOCH


def _within_bounds(spec: ScheduleSpec, after: datetime, until: datetime) -> tuple[datetime, datetime]:
    if spec.start_at is not None:
        after = max(after, spec.start_at - TICK)
    return after, until if spec.end_at is None else min(until, spec.end_at)


def _next(spec: ScheduleSpec, after: datetime) -> datetime | None:
    """The next instant by kind, whatever the bounds."""
    if spec.kind is ScheduleKind.CRON:
        return next_after(*spec.compiled(), after)
    if spec.every is not None and spec.anchor is not None:
        number = max((after - spec.anchor) // spec.every + 1, 0)
        return spec.anchor + number * spec.every if number <= (LATEST - spec.anchor) // spec.every else None
    return spec.run_at if spec.run_at is not None and spec.run_at > after else None


def _latest(spec: ScheduleSpec, until: datetime) -> datetime | None:
    """The latest instant not later than `until` by kind, whatever the bounds."""
    if spec.kind is ScheduleKind.CRON:
        return previous_before(*spec.compiled(), min(until, LATEST) + TICK)
    if spec.every is not None and spec.anchor is not None:
        number = (min(until, LATEST) - spec.anchor) // spec.every
        return spec.anchor + number * spec.every if number >= 0 else None
    return spec.run_at if spec.run_at is not None and spec.run_at <= until else None
