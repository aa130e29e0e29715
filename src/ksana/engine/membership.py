"""This instance among the others: it joins, keeps its lease with a heartbeat from a thread of its own, and leaves.

A lease that could not be kept is over, whether the database was away or this process was: all work is dropped before others
may take it, and the instance joins anew under another id, so that nothing it did before counts as its own.

The thread beats whatever the event loop does, so that no job can cost the instance its work. But a loop that hangs schedules
nothing: after a while its instance resigns as the leader, and one that hangs for a minute is as good as dead.
"""

import asyncio
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass
from math import inf

from ksana import __version__
from ksana.domain.clock import Clock
from ksana.domain.errors import KsanaError
from ksana.domain.ids import new_key
from ksana.domain.instance import HEARTBEAT, LEASE, MARGIN, Lease, Pulse
from ksana.engine.clock import Timekeeper
from ksana.engine.leadership import Leadership
from ksana.store.base import Store
from ksana.store.requests import NewInstance
from ksana.telemetry import log

_TRY_AGAIN, _LONGEST_PAUSE = 0.5, 3.0
TICK = 1.0
SILENT = 5.0
"""After how many seconds without a tick of the event loop its instance does not lead any more."""
HUNG = 60.0
"""And after how many it is given up."""


@dataclass(frozen=True, slots=True)
class Member:
    """How an instance shows itself to the others."""

    name: str
    roles: tuple[str, ...]
    queues: tuple[str, ...] = ()
    places: int = 0
    address: str = ""


@dataclass(frozen=True, slots=True)
class Events:
    """Whom to tell."""

    lost: Callable[[], None]
    joined: Callable[[], None]


class Membership:
    def __init__(self, store: Store, clock: Clock, member: Member, events: Events) -> None:
        self._store = store
        self._clock = clock
        self._member = member
        self._events = events
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._rejoining: asyncio.Task[None] | None = None
        self._ticking: asyncio.Task[None] | None = None
        self._ticked = 0.0
        self._trusted_until = inf
        self.leadership = Leadership(store, clock, lambda: self.owner)
        self.instance_id: str | None = None

    @property
    def owner(self) -> str | None:
        """Under which it claims; None while it has no lease, or may have lost it without having heard so."""
        return self.instance_id if self._clock.monotonic() < self._trusted_until else None

    async def start(self) -> None:
        """Joins. StoreUnavailable."""
        await self._join()
        self._ticking = asyncio.create_task(self._tick(), name="tick")

    async def stop(self) -> None:
        """Leaves, so that what is left of its work is taken over at once."""
        self._ended.set()
        for task in (self._ticking, self._rejoining):
            if task is not None:
                task.cancel()
                await asyncio.wait([task])
        if self.instance_id is not None:
            instance_id, self.instance_id = self.instance_id, None
            await self.leadership.resign()
            await self._store.leave(instance_id)
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)

    async def _join(self) -> None:
        instance_id, me = new_key(self._clock.now()), self._member
        began = self._clock.monotonic()
        joined = await self._store.join(
            NewInstance(instance_id, me.name, __version__, me.roles, LEASE, me.queues, me.places, me.address)
        )
        ended = self._clock.monotonic()
        self._keep_time(Pulse(leads=False, now=joined.heartbeat_at, read_at=(began + ended) / 2, doubt=ended - began))
        self.instance_id = instance_id
        self._trusted_until = began + (LEASE - MARGIN).total_seconds()
        self._ticked = ended
        loop = asyncio.get_running_loop()
        self._thread = threading.Thread(
            target=self._beat, args=(instance_id, began, loop), name="ksana-heartbeat", daemon=True
        )
        self._thread.start()
        log().info("joined", action="instance.joined", instance_id=instance_id, name=me.name)
        self._events.joined()

    async def _tick(self) -> None:
        """Shows the thread that the event loop is alive; and does not wait for one that hangs at the database to say that the
        lease is over."""
        while True:
            self._ticked = self._clock.monotonic()
            if self.instance_id is not None and self.owner is None:
                self._lose(self.instance_id)
            await asyncio.sleep(TICK)

    def _keep_time(self, pulse: Pulse) -> None:
        if isinstance(self._clock, Timekeeper):
            self._clock.told(pulse.now, pulse.read_at, pulse.doubt)

    # The thread: never in the event loop, so that nothing which blocks that can cost the lease ------------------------

    def _beat(self, instance_id: str, renewed: float, loop: asyncio.AbstractEventLoop) -> None:
        # An instance that was given up meanwhile must not be kept alive.
        while not self._ended.wait(HEARTBEAT.total_seconds()) and self.instance_id == instance_id:
            began = self._clock.monotonic()
            if not self._try_to_beat(instance_id, renewed, loop):
                if not self._ended.is_set():
                    loop.call_soon_threadsafe(self._lose, instance_id)
                return
            renewed = began

    def _try_to_beat(self, instance_id: str, renewed: float, loop: asyncio.AbstractEventLoop) -> bool:
        """Whether the lease was renewed; tried again as long as there is time."""
        while True:
            try:
                return self._beat_once(instance_id, loop)
            except KsanaError as error:
                left = (LEASE - MARGIN).total_seconds() - (self._clock.monotonic() - renewed)
                if left <= 0:
                    return False
                log().warning(
                    "heartbeat failed", action="instance.heartbeat_failed", err=error.message, left=round(left, 1)
                )
                if self._ended.wait(min(_TRY_AGAIN, left)):
                    return True

    def _beat_once(self, instance_id: str, loop: asyncio.AbstractEventLoop) -> bool:
        began = self._clock.monotonic()
        silent = began - self._ticked
        if silent > HUNG:
            log().error(
                "the event loop hangs: this instance is given up", action="instance.hung", seconds=round(silent)
            )
            return False
        lease, hangs = self.leadership.lease, silent > SILENT
        if hangs and lease is not None:
            self.leadership.stand_down(lease)
        pulse = self._store.beat(
            instance_id, LEASE, leading=None if hangs else lease, resigning=lease if hangs else None
        )
        if pulse is None or self.instance_id != instance_id:
            return False
        self._trusted_until = began + (LEASE - MARGIN).total_seconds()
        self._keep_time(pulse)
        if lease is not None:
            self._lead_on(lease, pulse, began, loop)
        return True

    def _lead_on(self, lease: Lease, pulse: Pulse, began: float, loop: asyncio.AbstractEventLoop) -> None:
        if pulse.leads:
            self.leadership.renewed(lease, began)
        elif not self._ended.is_set():
            loop.call_soon_threadsafe(self.leadership.lose, lease)

    # Back in the event loop -------------------------------------------------------------------------------------------

    def _lose(self, instance_id: str) -> None:
        if self.instance_id != instance_id:
            return
        log().error("lease lost: all work is dropped", action="instance.lost", instance_id=instance_id)
        self.instance_id = None
        if self.leadership.lease is not None:
            self.leadership.lose(self.leadership.lease)
        self._events.lost()
        self._rejoining = asyncio.create_task(self._rejoin(), name="rejoin")

    async def _rejoin(self) -> None:
        pause = _TRY_AGAIN
        while not self._ended.is_set():
            try:
                await self._join()
            except KsanaError as error:
                log().warning("cannot join yet", action="instance.join_failed", err=error.message)
                await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 - so that not all come at once
                pause = min(2 * pause, _LONGEST_PAUSE)
            else:
                return
