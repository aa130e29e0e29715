"""Answers that take a while to work out, given again for some seconds."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from ksana.domain.clock import Clock

T = TypeVar("T")
MOST = 32
"""Questions whose answers are kept."""


class Remembered(Generic[T]):
    """One answer is worked out at a time: whoever asks the same meanwhile waits for it."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self._known: dict[Hashable, tuple[float, T]] = {}
        self._turn = asyncio.Lock()

    async def get(self, question: Hashable, work_out: Callable[[], Awaitable[T]]) -> T:
        """The answer, at most so many seconds old. Raises what `work_out` raises."""
        async with self._turn:
            now = self._clock.monotonic()
            self._known = {each: known for each, known in self._known.items() if 0 <= now - known[0] < self._seconds}
            if question not in self._known:
                if len(self._known) >= MOST:
                    del self._known[next(iter(self._known))]
                self._known[question] = now, await work_out()
            return self._known[question][1]
