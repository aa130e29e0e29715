"""Time is an argument. Whoever needs the time of day takes a Clock, so that a test can run a day in seconds."""

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Protocol

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Clock(Protocol):
    def now(self) -> datetime:
        """The time of day, UTC, aware."""

    def monotonic(self) -> float:
        """Seconds that never go back, for measuring how long something took."""


def to_micros(instant: datetime) -> int:
    """Microseconds since 1970 in UTC: how stores keep an instant. Exact."""
    return (instant - EPOCH) // _MICROSECOND


@lru_cache(maxsize=4_096)
def from_micros(micros: int) -> datetime:
    """The instant that many microseconds after 1970. What is written together is often of one instant."""
    return EPOCH + timedelta(0, 0, micros)
