"""This instance among the others: it joins, keeps its lease with a heartbeat from a thread of its own, and leaves.

A lease that could not be kept is over, whether the database was away or this process was: all work is dropped before others
may take it, and the instance joins anew under another id, so that nothing it did before counts as its own.
"""

import asyncio
import os
import socket
import threading
from collections.abc import Callable
from datetime import timedelta

from ksana import __version__
from ksana.domain.clock import Clock
from ksana.domain.errors import KsanaError
from ksana.domain.ids import new_key
from ksana.domain.instance import HEARTBEAT, LEASE
from ksana.store.base import Store
from ksana.store.requests import NewInstance
from ksana.telemetry import log

MARGIN = timedelta(seconds=3)
"""How long before its lease ends an instance that cannot renew it stops: others must not find it still working."""
_TRY_AGAIN = 0.5


class Membership:
    def __init__(self, store: Store, clock: Clock, on_lost: Callable[[], None], on_joined: Callable[[], None]) -> None:
        self._store = store
        self._clock = clock
        self._on_lost = on_lost
        self._on_joined = on_joined
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._rejoining: asyncio.Task[None] | None = None
        self.instance_id: str | None = None
        """Under which it claims; None while it has no lease."""

    async def start(self) -> None:
        """Joins. StoreUnavailable."""
        await self._join()

    async def stop(self) -> None:
        """Leaves, so that what is left of its work is taken over at once."""
        self._ended.set()
        if self._rejoining is not None:
            self._rejoining.cancel()
            await asyncio.wait([self._rejoining])
        if self.instance_id is not None:
            instance_id, self.instance_id = self.instance_id, None
            await self._store.leave(instance_id)
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)

    async def _join(self) -> None:
        instance_id = new_key(self._clock.now())
        name = f"{socket.gethostname()}:{os.getpid()}"
        began = self._clock.monotonic()
        await self._store.join(NewInstance(instance_id, name, __version__, ("all",), LEASE))
        self.instance_id = instance_id
        loop = asyncio.get_running_loop()
        self._thread = threading.Thread(
            target=self._beat, args=(instance_id, began, loop), name="ksana-heartbeat", daemon=True
        )
        self._thread.start()
        log().info("joined", action="instance.joined", instance_id=instance_id, name=name)
        self._on_joined()

    # The thread: never in the event loop, so that nothing which blocks that can cost the lease ------------------------

    def _beat(self, instance_id: str, renewed: float, loop: asyncio.AbstractEventLoop) -> None:
        while not self._ended.wait(HEARTBEAT.total_seconds()):
            began = self._clock.monotonic()
            kept = self._try_to_beat(instance_id, renewed)
            if not kept:
                if not self._ended.is_set():
                    loop.call_soon_threadsafe(self._lose, instance_id)
                return
            renewed = began

    def _try_to_beat(self, instance_id: str, renewed: float) -> bool:
        """Whether the lease was renewed; tried again as long as there is time."""
        while True:
            try:
                return self._store.beat(instance_id, LEASE)
            except KsanaError as error:
                left = (LEASE - MARGIN).total_seconds() - (self._clock.monotonic() - renewed)
                if left <= 0:
                    return False
                log().warning(
                    "heartbeat failed", action="instance.heartbeat_failed", err=error.message, left=round(left, 1)
                )
                if self._ended.wait(min(_TRY_AGAIN, left)):
                    return True

    # Back in the event loop -------------------------------------------------------------------------------------------

    def _lose(self, instance_id: str) -> None:
        if self.instance_id != instance_id:
            return
        log().error("lease lost: all work is dropped", action="instance.lost", instance_id=instance_id)
        self.instance_id = None
        self._on_lost()
        self._rejoining = asyncio.create_task(self._rejoin(), name="rejoin")

    async def _rejoin(self) -> None:
        while not self._ended.is_set():
            try:
                await self._join()
            except KsanaError as error:
                log().warning("cannot join yet", action="instance.join_failed", err=error.message)
                await asyncio.sleep(_TRY_AGAIN)
            else:
                return
