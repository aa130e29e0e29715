"""The dispatcher: claims what is ready, as much as this instance has room for, and hands it to the workers."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from ksana.engine.loop import Round
from ksana.engine.workers import Workers
from ksana.store.base import Store
from ksana.store.requests import ClaimRequest

GATHERING = timedelta(milliseconds=5)
"""How long, with more work waiting than there is room for, a free place may wait for others to be free too."""


@dataclass(frozen=True, slots=True)
class DispatcherOptions:
    poll_interval: timedelta = timedelta(seconds=1)
    """How often to look for what other instances have added."""
    queues: tuple[str, ...] = ("default",)


class Dispatcher:
    """A Periodic. `owner` says under which instance id to claim; None while this instance has no lease."""

    name = "dispatcher"

    def __init__(
        self, store: Store, workers: Workers, owner: Callable[[], str | None], options: DispatcherOptions
    ) -> None:
        self.interval = options.poll_interval
        self._store = store
        self._workers = workers
        self._owner = owner
        self._options = options
        self._told = True
        self._backlog = False
        self._free_since: datetime | None = None

    def expect_work(self) -> None:
        """There is something to claim: no need to ask first."""
        self._told = True

    def expect_room(self) -> None:
        """A place is free. If the last claim filled them all, there is more where that came from."""
        self._told = self._told or self._backlog

    async def run_once(self, now: datetime) -> Round:
        owner = self._owner()
        if owner is None or self._workers.free <= 0:
            self._free_since = None
            return Round()  # the end of a run wakes us
        if self._backlog and (wait_until := self._gathering(now)) is not None:
            return Round(0, wait_until)
        if not self._told:
            # Asking takes no lock and writes nothing: an idle instance costs its database next to nothing.
            ready_at = await self._store.next_ready_at(self._options.queues)
            if ready_at is None or ready_at > now:
                return Round(0, ready_at)
        self._told = False
        room = self._workers.free
        claimed = await self._store.claim(ClaimRequest(owner, room, self._options.queues), now)
        for each in claimed:
            self._workers.start(each)
        self._backlog = len(claimed) == room
        self._free_since = None
        # With room left, one more look tells when the next will be ready; else the end of a run wakes us.
        return Round(len(claimed), None if self._backlog else now)

    def _gathering(self, now: datetime) -> datetime | None:
        """Until when to wait for more places to be free; None: claim now. One claim costs little more for many than for one."""
        if self._free_since is None or now < self._free_since:
            self._free_since = now
        if 2 * self._workers.free >= self._workers.size or now - self._free_since >= GATHERING:
            return None
        return self._free_since + GATHERING
