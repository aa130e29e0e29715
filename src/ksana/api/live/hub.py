"""One reader for everybody who listens, at work only while somebody does.

On an embedded database it reads when this process has committed something, which costs nothing to look at; where others may
write too, it asks besides: every 250 ms while something happens, up to every two seconds while nothing does.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from ksana.api.live.listening import Listener, Wanted
from ksana.api.live.reader import EventReader, Passed
from ksana.api.live.telling import Teller
from ksana.domain.clock import Clock
from ksana.engine.loop import Loop, Round
from ksana.engine.recall import LOOK_ANYWAY
from ksana.store.base import Store

BATCH_SECONDS = 0.25
"""Batches come no closer than this."""
LOOK = timedelta(milliseconds=200)
"""How often it looks whether this process has committed anything."""
LONGEST_PAUSE = 2.0
"""Between two questions to a database that others write to."""


class Hub:
    """Of a process."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self.teller = Teller(store)
        self._store = store
        self._clock = clock
        self._listeners: set[Listener] = set()
        self._reading: tuple[Reading, Loop] | None = None
        self._ending: set[asyncio.Task[None]] = set()
        self._closed = False

    @contextmanager
    def listening(self, wanted: Wanted) -> Iterator[Listener]:
        """A listener, until the end of the block; one that has ended already if the hub is closed."""
        listener = Listener(wanted)
        if self._closed:
            listener.end()
        self._listeners.add(listener)
        self._start()
        try:
            yield listener
        finally:
            self._listeners.discard(listener)
            self._rest()

    async def begin(self, listener: Listener, after: int | None) -> None:
        """From now on, or with what came after that event first."""
        if self._reading is None:
            return
        reading, _ = self._reading
        await reading.begun.wait()
        if after is None:
            listener.offer([], reading.position, more=False)
            return
        passed = await reading.since(after)
        events, more = listener.wanted.newest(passed.events)
        listener.resume(await self.teller.told(events), reading.position, more=more or passed.skipped)

    async def close(self) -> None:
        """Every stream ends, and no other begins. Harmless again."""
        self._closed = True
        for listener in self._listeners:
            listener.end()
        self._stop()
        if self._ending:
            await asyncio.wait(self._ending)

    def _start(self) -> None:
        if self._reading is None and not self._closed:
            reading = Reading(self._store, self._clock, self.teller, self._listeners)
            loop = Loop(reading, self._clock)
            loop.start()
            self._reading = reading, loop

    def _rest(self) -> None:
        if not self._listeners:
            self._stop()

    def _stop(self) -> None:
        """Not awaited: whoever leaves may be in the middle of being cancelled."""
        if self._reading is not None:
            reading, loop = self._reading
            self._reading = None
            reading.begun.set()  # nobody waits for it any longer
            ending = asyncio.create_task(loop.stop(), name="events-end")
            self._ending.add(ending)
            ending.add_done_callback(self._ending.discard)


class Reading:
    """A Periodic: from the first listener to the last."""

    name = "events"
    interval = timedelta(seconds=LONGEST_PAUSE)

    def __init__(self, store: Store, clock: Clock, teller: Teller, listeners: set[Listener]) -> None:
        self.begun = asyncio.Event()
        self._store = store
        self._clock = clock
        self._teller = teller
        self._listeners = listeners
        self._reader = EventReader(store, clock)
        self._longest = LONGEST_PAUSE if store.shared else LOOK_ANYWAY.total_seconds()
        self._pause = self._longest
        self._commits = 0
        self._read_at = 0.0

    @property
    def position(self) -> int:
        return self._reader.position

    async def since(self, after: int) -> Passed:
        return await self._reader.since(after)

    async def run_once(self, now: datetime) -> Round:
        moment = self._clock.monotonic()
        if not self.begun.is_set():
            self._commits, self._read_at = self._store.commits, moment
            await self._reader.begin()
            self.begun.set()
            return Round(next_at=now + LOOK)
        left = self._due_in(moment)
        if left > 0:
            return Round(next_at=now + min(LOOK, timedelta(seconds=left)))
        commits = self._store.commits
        passed = await self._reader.read()
        self._commits, self._read_at = commits, moment
        anything = bool(passed.events) or self._reader.waits_for_gaps
        self._pause = BATCH_SECONDS if anything and self._store.shared else min(2 * self._pause, self._longest)
        await self._tell(passed)
        return Round(len(passed.events), now + LOOK)

    def _due_in(self, moment: float) -> float:
        """How many seconds until it is to be read again, if nothing is committed until then."""
        pause = BATCH_SECONDS if self._commits != self._store.commits else self._pause
        return self._read_at + pause - moment

    async def _tell(self, passed: Passed) -> None:
        listeners = list(self._listeners)
        chosen = [listener.wanted.newest(passed.events) for listener in listeners]
        needed = {event.id: event for events, _ in chosen for event in events}
        try:
            told = {each.id: each for each in await self._teller.told(list(needed.values()))}
        except Exception:
            # They have been read, and are not read again: whoever misses any hears that there was more.
            for listener, (events, more) in zip(listeners, chosen, strict=True):
                listener.offer([], self.position, more=more or passed.skipped or bool(events))
            raise
        for listener, (events, more) in zip(listeners, chosen, strict=True):
            listener.offer([told[event.id] for event in events], self.position, more=more or passed.skipped)
