"""Clocks: of the machine, and of the database that several machines share."""

import time
from datetime import UTC, datetime, timedelta

from ksana.domain.clock import Clock

DOUBT = 0.1
"""What was under way for more seconds than this says too little about the time to be believed, if there is anything better."""
STALE = 60.0
"""After so many seconds, there is nothing better."""
AGREED = timedelta(milliseconds=100)
CLOSE_ENOUGH = timedelta(milliseconds=10)


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()


class Timekeeper:
    """A Clock: the database's time, kept by this machine's monotonic clock between two heartbeats.

    So all instances on one database agree what time it is, to a tenth of a second, and a clock that is wrong, or jumps, on one
    machine does no harm.
    """

    def __init__(self, machine: Clock) -> None:
        self._machine = machine
        self._known: tuple[datetime, float] | None = None
        """A time, and when that was by the monotonic clock."""
        self._confirmed_at = 0.0

    def now(self) -> datetime:
        known = self._known
        if known is None:
            return self._machine.now()
        at, since = known
        return at + timedelta(seconds=self._machine.monotonic() - since)

    def monotonic(self) -> float:
        return self._machine.monotonic()

    def _nearly(self, now: datetime, read_at: float) -> datetime:
        """The machine's own time instead, if it is nearly the same: it is more exact than what was read on the way."""
        own = self._machine.now() - timedelta(seconds=self._machine.monotonic() - read_at)
        return own if abs(own - now) <= AGREED else now

    def told(self, now: datetime, read_at: float, doubt: float) -> None:
        """It was `now` at `read_at` of the monotonic clock, give or take."""
        now = self._nearly(now, read_at)
        known = self._known
        if known is not None:
            at, since = known
            if doubt > DOUBT and read_at - self._confirmed_at < STALE:
                return
            if abs(at + timedelta(seconds=read_at - since) - now) < CLOSE_ENOUGH:
                self._confirmed_at = read_at
                return
        self._known, self._confirmed_at = (now, read_at), read_at
