"""A clock that a test moves."""

from datetime import UTC, datetime, timedelta


class FakeClock:
    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._now = start
        self._elapsed = 0.0

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._elapsed

    def advance(self, by: timedelta) -> datetime:
        self._now += by
        self._elapsed += by.total_seconds()
        return self._now

    def set_by(self, by: timedelta) -> None:
        """The time of day is set, forward or back; no time passes."""
        self._now += by
