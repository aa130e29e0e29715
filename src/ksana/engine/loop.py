"""One shape for every background service: `run_once(now)` does what is due and says when to look again.

The loop around it owns the ticking, the errors and the end. One that fails is tried again after a pause that grows; it is
told of once when it begins to fail and once when it works again, not at every try.
"""

import asyncio
import random
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Protocol

from ksana.domain.clock import Clock
from ksana.domain.errors import KsanaError, StoreUnavailable
from ksana.domain.values import immutable
from ksana.telemetry import log

FIRST_PAUSE = 0.2
LONGEST_PAUSE = 3.0


@immutable
class Round:
    """How much was done, and when to look again: None is after the usual interval."""

    done: int = 0
    next_at: datetime | None = None


class Periodic(Protocol):
    """Something to be done again and again."""

    name: str
    interval: timedelta
    """The longest time between two looks."""

    async def run_once(self, now: datetime) -> Round:
        """What is due at `now`. Whatever it raises is logged, and it is called again later."""


class Loop:
    """Runs a Periodic until it is stopped, for the first time after `delay`. `wake` makes it look at once."""

    def __init__(self, periodic: Periodic, clock: Clock, delay: timedelta = timedelta(0)) -> None:
        self._periodic = periodic
        self._clock = clock
        self._delay = delay
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._stopped = asyncio.Event()
        self._failures = 0

    def wake(self) -> None:
        self._woken.set()

    def start(self) -> None:
        self._task = asyncio.create_task(self._work(), name=self._periodic.name)

    async def stop(self) -> None:
        """Lets the round that has begun end. Harmless if it never started, or again."""
        self._stopped.set()
        self._woken.set()
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _work(self) -> None:
        await self._rest(self._delay.total_seconds())
        while not self._stopped.is_set():
            self._woken.clear()
            pause = await self._round()
            if pause <= 0:
                await asyncio.sleep(0)  # others want their turn too
            elif self._failures:
                # Nothing but the end shortens this pause: wake-ups would make it a tight loop.
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._stopped.wait(), pause)
            else:
                await self._rest(pause)

    async def _rest(self, seconds: float) -> None:
        if seconds > 0:
            alarm = asyncio.get_running_loop().call_later(seconds, self._woken.set)
            await self._woken.wait()
            alarm.cancel()

    async def _round(self) -> float:
        """One look; how many seconds until the next."""
        try:
            result = await self._periodic.run_once(self._clock.now())
        except Exception as error:  # noqa: BLE001 - one bad round must not end the service
            return self._failed(error)
        if self._failures:
            log().info("works again", action="engine.works_again", service=self._periodic.name, failures=self._failures)
            self._failures = 0
        longest = self._periodic.interval.total_seconds()
        if result.next_at is None:
            return longest
        return min((result.next_at - self._clock.now()).total_seconds(), longest)

    def _failed(self, error: Exception) -> float:
        self._failures += 1
        if self._failures == 1:
            expected = isinstance(error, StoreUnavailable)
            told = error.message if isinstance(error, KsanaError) else type(error).__name__
            log().error(
                "failed; it is tried again",
                action="engine.failed",
                service=self._periodic.name,
                err=told,
                exc_info=None if expected else error,
            )
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(self._failures - 1, 10))
        return pause * random.uniform(0.5, 1.0)  # noqa: S311 - so that several instances do not all come at once
