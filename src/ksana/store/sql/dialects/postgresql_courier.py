"""Wakes the other instances on a PostgreSQL by NOTIFY: one thread, one connection, outside of every transaction.

NOTIFY takes a lock of the whole database when its transaction commits. So hints do not travel with the work that they are
about, but after it, by themselves, and what gathers meanwhile goes together.
"""

import os
import selectors
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ksana.telemetry import log

if TYPE_CHECKING:
    from ksana.store.sql.dialects.postgresql_connection import Impatient

CHANNEL = "ksana"
MISSED = "*"
"""What a listener is told when it may not have heard everything."""
_PATIENCE = 10.0
"""Seconds that the server may take to answer."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 5.0
_LOOK = 10.0
"""How long a connection is silent before it is looked at: a dead one would never say so."""
_WORTH_TELLING = 3.0
"""Seconds without hints after which somebody should know; a server that is restarted is back sooner."""
_FAREWELL = 2.0
"""Seconds that the last hints may take when it is closed."""


class PostgresqlCourier:
    """A Courier. What is sent while the database is away is sent when it is back; whoever hears it again looks at everything."""

    def __init__(self, arguments: Sequence[Any], options: Mapping[str, Any]) -> None:
        """Both as the driver's `connect` takes them."""
        self._arguments = arguments
        self._options = options
        self._waiting: set[str] = set()
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._wake_out, self._wake_in = os.pipe()
        os.set_blocking(self._wake_in, False)
        self._thread: threading.Thread | None = None
        self._heard_at = 0.0
        self._told = False

    def start(self, listener: Callable[[str], None]) -> None:
        self._thread = threading.Thread(target=self._work, args=(listener,), name="ksana-courier", daemon=True)
        self._thread.start()

    def send(self, hint: str) -> None:
        with self._lock:
            if self._ended.is_set():
                return  # the pipe may be somebody else's by now
            first = not self._waiting
            self._waiting.add(hint)
            if first:
                self._wake()

    def close(self) -> None:
        with self._lock:
            if self._ended.is_set():
                return
            self._ended.set()
            self._wake()
        if self._thread is None:
            self._close_pipe()
        else:
            self._thread.join(_FAREWELL)  # if the server is silent, it ends by itself later on

    def _wake(self) -> None:
        with suppress(BlockingIOError):  # a full pipe wakes as well
            os.write(self._wake_in, b"!")

    def _close_pipe(self) -> None:
        os.close(self._wake_in)
        os.close(self._wake_out)

    # The thread -------------------------------------------------------------------------------------------------------

    def _work(self, listener: Callable[[str], None]) -> None:
        try:
            self._keep_carrying(listener)
        finally:
            with self._lock:
                self._ended.set()  # whatever ended it: from now on nobody may write to the pipe
            self._close_pipe()

    def _keep_carrying(self, listener: Callable[[str], None]) -> None:
        import psycopg  # noqa: PLC0415 - only those who use PostgreSQL need it

        pause = _FIRST_PAUSE
        self._heard_at = time.monotonic()
        while not self._ended.is_set():
            try:
                with self._connected() as connection:
                    self._regained()
                    listener(MISSED)
                    self._send(connection)
                    pause = _FIRST_PAUSE
                    self._carry(connection, listener)
            except (psycopg.Error, OSError) as error:
                self._lost(error)
                self._ended.wait(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)

    def _connected(self) -> "Impatient":
        from ksana.store.sql.dialects.postgresql_connection import Impatient  # noqa: PLC0415 - and with it, the driver

        connection = Impatient.connect(*self._arguments, **self._options, autocommit=True)
        connection.patience = _PATIENCE
        try:
            connection.execute(f"LISTEN {CHANNEL}")
        except BaseException:
            connection.close()
            raise
        return connection

    def _carry(self, connection: "Impatient", listener: Callable[[str], None]) -> None:
        me = connection.info.backend_pid
        with selectors.DefaultSelector() as selector:
            selector.register(connection.fileno(), selectors.EVENT_READ)
            selector.register(self._wake_out, selectors.EVENT_READ)
            while not self._ended.is_set():
                readable = {key.fd for key, _ in selector.select(_LOOK)}
                self._heard_at = time.monotonic()  # until now nothing spoke against it
                if not readable:
                    connection.execute("SELECT 1")
                if self._wake_out in readable:
                    os.read(self._wake_out, 65_536)
                    self._send(connection)
                for notice in connection.notifies(timeout=0):
                    if notice.pid != me:
                        listener(notice.payload)
        self._send(connection)

    def _send(self, connection: "Impatient") -> None:
        """Everything that waits. What could not be sent waits for the next connection."""
        with self._lock:
            taken, self._waiting = self._waiting, set()
        try:
            while taken:
                connection.execute("SELECT pg_notify(%s, %s)", (CHANNEL, min(taken)))
                taken.remove(min(taken))
        finally:
            with self._lock:
                self._waiting |= taken

    # What an operator is told -----------------------------------------------------------------------------------------

    def _lost(self, error: Exception) -> None:
        silent = time.monotonic() - self._heard_at
        if self._told or self._ended.is_set() or silent < _WORTH_TELLING:
            return
        self._told = True
        log().warning(
            "hints are not heard", action="store.courier_lost", err=type(error).__name__, seconds=round(silent, 1)
        )

    def _regained(self) -> None:
        if self._told:
            self._told = False
            log().info("hints are heard again", action="store.courier_regained")
        self._heard_at = time.monotonic()
