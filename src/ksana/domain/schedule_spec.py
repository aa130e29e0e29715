"""A schedule as its author defines it: when, between which bounds, and what becomes of what was missed."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from zoneinfo import ZoneInfo

from ksana.domain.cron import EARLIEST, LATEST, CronExpression, load_zone, parse_cron
from ksana.domain.durations import LONGEST
from ksana.domain.errors import InvalidInput

SHORTEST_EVERY = timedelta(milliseconds=100)
LONGEST_JITTER = timedelta(days=7)
MAX_CATCHUP = 100


class ScheduleKind(StrEnum):
    ONCE = "once"
    EVERY = "every"
    CRON = "cron"


class MisfirePolicy(StrEnum):
    """What becomes of instants that are later than `misfire_grace` when they are looked at."""

    FIRE_NOW = "FIRE_NOW"  # one run for the whole delay
    SKIP = "SKIP"  # none
    CATCH_UP_LIMITED = "CATCH_UP_LIMITED"  # the latest `catchup_limit` of them


def document_002_misfire(kind: ScheduleKind, every: timedelta | None) -> tuple[MisfirePolicy, timedelta]:
    """Document 002 §5, where a schedule of its contract says nothing: what is late is not made up for. A `cron`, which that
    document only announces, runs once for the whole delay. The policy, and from when on an instant is late."""
    if kind is ScheduleKind.CRON:
        return MisfirePolicy.FIRE_NOW, timedelta(minutes=1)
    second = timedelta(seconds=1)
    return MisfirePolicy.SKIP, second if every is None else min(second, every / 2)


@dataclass(frozen=True, slots=True)
class ScheduleSpec:
    """Valid by construction: InvalidInput names the field that is not. Datetimes become UTC, cron six fields."""

    kind: ScheduleKind
    run_at: datetime | None = None
    """The instant of a `once`."""
    every: timedelta | None = None
    cron: str | None = None
    timezone: str = "UTC"
    """The IANA zone in which `cron` is read."""
    anchor: datetime | None = None
    """From where `every` counts, and its first instant. `start_at` unless given; else the caller gives its creation."""
    start_at: datetime | None = None
    """There is no instant before it."""
    end_at: datetime | None = None
    """There is no instant after it; one exactly at it is allowed."""
    jitter: timedelta = timedelta(0)
    """How much later than planned an instant may fire, though never as late as the following instant."""
    misfire: MisfirePolicy = MisfirePolicy.FIRE_NOW
    catchup_limit: int = 5
    misfire_grace: timedelta = timedelta(minutes=1)

    def __post_init__(self) -> None:
        for field in ("run_at", "anchor", "start_at", "end_at"):
            value = getattr(self, field)
            if value is not None:
                object.__setattr__(self, field, _instant(value, field))
        _check_parts(self)
        load_zone(self.timezone)
        if self.cron is not None:
            object.__setattr__(self, "cron", parse_cron(self.cron, field="cron").normalized)
        if self.kind is ScheduleKind.EVERY and self.anchor is None:
            object.__setattr__(self, "anchor", self.start_at)
        _check_every(self)
        _check_bounds(self)
        _check_misfire(self)

    def compiled(self) -> tuple[CronExpression, ZoneInfo]:
        """The parsed expression and zone of a CRON, read once and shared by all schedules that have the same."""
        return _compiled(self.cron or "", self.timezone)


@lru_cache(maxsize=4096)
def _compiled(cron: str, timezone: str) -> tuple[CronExpression, ZoneInfo]:
    return parse_cron(cron, field="cron"), load_zone(timezone)


def _instant(value: datetime, field: str) -> datetime:
    if value.tzinfo is None:
        raise InvalidInput(field, "must carry a time zone or an offset, as in 2026-01-31T12:00:00Z")
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise InvalidInput(field, "is beyond the calendar in UTC") from None


def _check_parts(spec: ScheduleSpec) -> None:
    """Exactly the part that its kind speaks of is given."""
    parts = {ScheduleKind.ONCE: "run_at", ScheduleKind.EVERY: "every", ScheduleKind.CRON: "cron"}
    for kind, field in parts.items():
        given = getattr(spec, field) is not None
        if kind is spec.kind and not given:
            raise InvalidInput(field, f"is required for a schedule of kind {spec.kind}")
        if kind is not spec.kind and given:
            raise InvalidInput(field, f"does not belong to a schedule of kind {spec.kind}")


def _check_every(spec: ScheduleSpec) -> None:
    if spec.every is None:
        return
    if not SHORTEST_EVERY <= spec.every <= LONGEST:
        raise InvalidInput("every", "must be between 100ms and a hundred years")
    if spec.anchor is None:
        raise InvalidInput("anchor", "is required for a schedule of kind every, or start_at")


def _check_bounds(spec: ScheduleSpec) -> None:
    for field in ("run_at", "anchor", "start_at"):
        value = getattr(spec, field)
        if value is not None and not EARLIEST <= value <= LATEST:
            raise InvalidInput(field, f"must lie between the years {EARLIEST.year} and {LATEST.year}")
    if spec.start_at and spec.end_at and spec.end_at < spec.start_at:
        raise InvalidInput("end_at", "is before its start")
    if spec.run_at and spec.start_at and spec.run_at < spec.start_at:
        raise InvalidInput("run_at", "is before its start")
    if spec.run_at and spec.end_at and spec.run_at > spec.end_at:
        raise InvalidInput("run_at", "is after end_at")


def _check_misfire(spec: ScheduleSpec) -> None:
    if not timedelta(0) <= spec.jitter <= LONGEST_JITTER:
        raise InvalidInput("jitter", f"must be between 0 and {LONGEST_JITTER.days} days")
    if not timedelta(0) <= spec.misfire_grace <= LONGEST:
        raise InvalidInput("misfire_grace", "must be between 0 and a hundred years")
    least = 1 if spec.misfire is MisfirePolicy.CATCH_UP_LIMITED else 0
    if not least <= spec.catchup_limit <= MAX_CATCHUP:
        raise InvalidInput("catchup_limit", f"must be between {least} and {MAX_CATCHUP}")
