"""What one listener has not been given yet. It never holds more than one batch: of more, it only knows that there was more."""

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from ksana.api.live.telling import Told
from ksana.domain.events import Event

MOST_AT_ONCE = 200
"""Events of a batch."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a listener wants to hear of: all, unless it says."""

    types: frozenset[str] = frozenset()
    """Whole types, `execution.ended`, or what they begin with, `execution`."""
    subject: str | None = None

    def fits(self, event: Event) -> bool:
        if self.subject is not None and event.subject != self.subject:
            return False
        return not self.types or event.type in self.types or event.type.partition(".")[0] in self.types

    def newest(self, events: Sequence[Event]) -> tuple[list[Event], bool]:
        """Those of them that fit, as many as a batch takes; and whether there were more."""
        fitting = [event for event in events if self.fits(event)]
        return fitting[-MOST_AT_ONCE:], len(fitting) > MOST_AT_ONCE


@dataclass(frozen=True, slots=True)
class Batch:
    """What is to be sent; nothing, if only time has passed. `position` is where to go on from."""

    events: Sequence[Told]
    more: bool
    position: int


class Listener:
    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self.ended = False
        self._pending: deque[Told] = deque(maxlen=MOST_AT_ONCE)
        self._more = False
        self._position = 0
        self._seen: frozenset[int] = frozenset()
        """What it was given in the beginning, and may be offered again."""
        self._woken = asyncio.Event()

    def offer(self, events: Sequence[Told], position: int, *, more: bool) -> None:
        """These have come. What is not taken in time falls out, and is told as `more`."""
        fresh = [each for each in events if each.id not in self._seen]
        self._more |= more or len(self._pending) + len(fresh) > MOST_AT_ONCE
        self._pending.extend(fresh)
        self._position = position
        if self._pending or self._more:
            self._woken.set()

    def resume(self, events: Sequence[Told], position: int, *, more: bool) -> None:
        """Before what has been offered meanwhile, it gets these."""
        self._seen = frozenset(each.id for each in events)
        offered, self._pending = self._pending, deque(events, MOST_AT_ONCE)
        self.offer(list(offered), position, more=more)

    def end(self) -> None:
        """There is nothing to come."""
        self.ended = True
        self._woken.set()

    async def take(self, within: float) -> Batch | None:
        """What has come, or nothing when so many seconds have passed. None: it has ended, and this was all."""
        if not self._woken.is_set():
            alarm = asyncio.get_running_loop().call_later(within, self._woken.set)
            try:
                await self._woken.wait()
            finally:
                alarm.cancel()
        if self.ended and not self._pending:
            return None
        batch = Batch(tuple(self._pending), self._more, self._position)
        self._pending.clear()
        self._more = False
        if not self.ended:
            self._woken.clear()
        return batch
