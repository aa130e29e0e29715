"""The time that leases follow where a process is alone with its database."""

from ksana.domain.clock import Clock, to_micros


class Steady:
    """The time of day as it was when the store was opened, carried on by the monotonic clock.

    A wall clock that is set, or that went on while the machine slept, so ends no lease: nobody else can be there to take over,
    and what runs would be dropped and done twice. Leases of an earlier process are ended by whoever joins, whatever they say.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began = to_micros(clock.now())
        self._since = clock.monotonic()

    def micros(self) -> int:
        return self._began + round((self._clock.monotonic() - self._since) * 1_000_000)
