"""Connections that are kept for the next request, and no more of them at once than are allowed.

A place is one open connection, idle ones included. Whoever finds none free waits in line; a place that becomes free is handed to
the first in it, with the connection if it leads to where that one wants to go.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from ksana.executors.egress_connection import Connection, Origin
from ksana.executors.egress_errors import BrokenOff

# Servers commonly close what has been idle for five seconds or more; a request sent at that very moment would be lost.
KEEP_ALIVE_SECONDS = 4.0

Dial = Callable[[Origin, Callable[[], Connection]], Awaitable[Connection]]


@dataclass(eq=False, slots=True)
class _Waiting:
    origin: Origin
    turn: "asyncio.Future[Connection | None]"
    """A connection to the origin; or None: a place for a new one."""


class Pool:
    """Belongs to one event loop."""

    def __init__(self, limit: int, dial: Dial) -> None:
        self._limit = limit
        self._dial = dial
        self._loop = asyncio.get_running_loop()
        self._places = 0
        self._open: set[Connection] = set()
        self._idle: dict[Origin, list[Connection]] = {}
        self._waiting: deque[_Waiting] = deque()
        self._outbox: list[tuple[Connection, bytes]] = []
        self._sweep: asyncio.TimerHandle | None = None
        self._closed = False
        self._emptied: asyncio.Future[None] | None = None

    def idle(self, origin: Origin) -> Connection | None:
        """One that is free, the last used first; it is the caller's now."""
        idle = self._idle.get(origin)
        while idle:
            connection = idle.pop()
            if connection.usable and self._loop.time() - connection.idle_since < KEEP_ALIVE_SECONDS:
                return connection
            connection.close()
        return None

    async def acquire(self, origin: Origin) -> Connection:
        """One that is free or new, in one's turn. Raises what dialling raises; may be cancelled at any time."""
        while True:
            connection = self.idle(origin) or await self._place(origin)
            if connection is None:
                return await self._dialled(origin)
            if connection.usable:
                return connection

    async def close(self) -> None:
        """Every connection, also those in use; whoever waits is told so. Returns when all are closed."""
        self._closed = True
        for waiting in self._waiting:
            if not waiting.turn.done():
                waiting.turn.set_exception(BrokenOff("closed"))
        self._waiting.clear()
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None
        self._idle.clear()
        for connection in list(self._open):
            connection.close()
        if self._open:
            self._emptied = self._loop.create_future()
            await self._emptied

    # What connections ask of their owner ----------------------------------------------------------------------------

    def send(self, connection: Connection, data: bytes) -> None:
        """Together with whatever else is sent in this turn of the loop: calls of the system one after another cost far less
        than the same number of them between our own work, of which each leaves the processor's caches cold."""
        self._outbox.append((connection, data))
        if len(self._outbox) == 1:
            self._loop.call_soon(self._write_all)

    def freed(self, connection: Connection) -> None:
        origin = connection.origin
        if self._waiting:
            waiting = self._next()
            if waiting is not None and waiting.origin == origin:
                waiting.turn.set_result(connection)
                return
            if waiting is not None:
                self._waiting.appendleft(waiting)
                connection.close()  # its place is passed on when it is lost
                return
        connection.idle_since = self._loop.time()
        idle = self._idle.get(origin)
        if idle is None:
            idle = self._idle[origin] = []
        idle.append(connection)
        if self._sweep is None:
            self._sweep = self._loop.call_later(KEEP_ALIVE_SECONDS, self._close_old)

    def gone(self, connection: Connection) -> None:
        if connection not in self._open:
            return
        self._open.remove(connection)
        idle = self._idle.get(connection.origin, [])
        if connection in idle:
            idle.remove(connection)
        self._vacate()
        if not self._open and self._emptied is not None and not self._emptied.done():
            self._emptied.set_result(None)

    # Places ---------------------------------------------------------------------------------------------------------

    async def _place(self, origin: Origin) -> Connection | None:
        """A place for a new connection, or somebody's connection to the same origin."""
        if self._places < self._limit:
            self._places += 1
            return None
        waiting = _Waiting(origin, self._loop.create_future())
        self._waiting.append(waiting)
        self._close_one_idle()
        try:
            return await waiting.turn
        except asyncio.CancelledError:
            if waiting.turn.cancelled():
                with suppress(ValueError):
                    self._waiting.remove(waiting)  # while nothing becomes free, nobody else would
            elif waiting.turn.done() and waiting.turn.exception() is None:
                self._pass_on(waiting.turn.result())
            raise

    def _close_one_idle(self) -> None:
        """Makes room where connections to elsewhere are kept for nobody."""
        for idle in self._idle.values():
            if idle:
                idle.pop(0).close()  # its place is passed on when it is lost
                return

    def _pass_on(self, connection: Connection | None) -> None:
        """A place that came too late for whom it was meant."""
        if connection is None:
            self._vacate()
        elif connection.usable:
            self.freed(connection)

    def _vacate(self) -> None:
        """A place is free: it is the next one's in line."""
        waiting = self._next()
        if waiting is None:
            self._places -= 1
        else:
            waiting.turn.set_result(None)

    def _next(self) -> _Waiting | None:
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.turn.done():
                return waiting
        return None

    # Connections ----------------------------------------------------------------------------------------------------

    async def _dialled(self, origin: Origin) -> Connection:
        try:
            connection = await self._dial(origin, lambda: Connection(origin, self))
        except BaseException:
            self._vacate()
            raise
        if connection.lost or self._closed:
            connection.close()
            self._vacate()
            raise BrokenOff("closed as soon as it stood")
        self._open.add(connection)
        return connection

    def _write_all(self) -> None:
        outbox, self._outbox = self._outbox, []
        for connection, data in outbox:
            connection.write(data)

    def _close_old(self) -> None:
        """Those that have been idle for too long; and again when the next one will have been."""
        now = self._loop.time()
        self._sweep = None
        for origin, idle in list(self._idle.items()):
            young = [each for each in idle if now - each.idle_since < KEEP_ALIVE_SECONDS]
            for each in idle:
                if now - each.idle_since >= KEEP_ALIVE_SECONDS:
                    each.close()
            if young:
                self._idle[origin] = young
            else:
                del self._idle[origin]
        oldest = min((each.idle_since for idle in self._idle.values() for each in idle), default=None)
        if oldest is not None:
            self._sweep = self._loop.call_later(oldest + KEEP_ALIVE_SECONDS - now, self._close_old)
