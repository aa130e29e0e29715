"""Wakes the other instances on a PostgreSQL by NOTIFY: one thread, one connection, outside of every transaction.

NOTIFY takes a lock of the whole database when its transaction commits. So hints do not travel with the work that they are
about, but after it, by themselves, and what gathers meanwhile goes together.
"""

import os
import selectors
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from sqlalchemy.engine import make_url

from ksana.telemetry import log

if TYPE_CHECKING:
    from psycopg import Connection

CHANNEL = "ksana"
_OPTIONS: dict[str, Any] = {"autocommit": True, "application_name": "ksana", "tcp_user_timeout": 10_000}
MISSED = "*"
"""What a listener is told when it may not have heard everything."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 5.0
_LOOK = 30.0
"""How long a connection is silent before it is looked at: a dead one would never say so."""


class PostgresqlCourier:
    """A Courier. What is sent while the database is away is dropped: whoever hears it again looks at everything."""

    def __init__(self, url: str, patience: timedelta) -> None:
        self._url = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
        self._patience = max(1, round(patience.total_seconds()))
        self._waiting: set[str] = set()
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._wake_out, self._wake_in = os.pipe()
        os.set_blocking(self._wake_in, False)
        self._thread: threading.Thread | None = None

    def start(self, listener: Callable[[str], None]) -> None:
        self._thread = threading.Thread(target=self._work, args=(listener,), name="ksana-courier", daemon=True)
        self._thread.start()

    def send(self, hint: str) -> None:
        with self._lock:
            first = not self._waiting
            self._waiting.add(hint)
        if first:
            self._wake()

    def close(self) -> None:
        self._ended.set()
        self._wake()
        if self._thread is not None:
            self._thread.join()
        os.close(self._wake_in)
        os.close(self._wake_out)

    def _wake(self) -> None:
        with suppress(BlockingIOError):  # a full pipe wakes as well
            os.write(self._wake_in, b"!")

    # The thread -------------------------------------------------------------------------------------------------------

    def _work(self, listener: Callable[[str], None]) -> None:
        import psycopg  # noqa: PLC0415 - only those who use PostgreSQL need it

        pause = _FIRST_PAUSE
        while not self._ended.is_set():
            try:
                with psycopg.connect(self._url, **_OPTIONS, connect_timeout=self._patience) as connection:
                    connection.execute(f"LISTEN {CHANNEL}")
                    pause = _FIRST_PAUSE
                    listener(MISSED)
                    self._carry(connection, listener)
            except (psycopg.Error, OSError) as error:
                log().debug("hints are not heard", action="store.courier_lost", err=type(error).__name__)
                self._ended.wait(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)

    def _carry(self, connection: "Connection", listener: Callable[[str], None]) -> None:
        me = connection.info.backend_pid
        with selectors.DefaultSelector() as selector:
            selector.register(connection.fileno(), selectors.EVENT_READ)
            selector.register(self._wake_out, selectors.EVENT_READ)
            while not self._ended.is_set():
                readable = {key.fd for key, _ in selector.select(_LOOK)}
                if not readable:
                    connection.execute("SELECT 1")
                if self._wake_out in readable:
                    os.read(self._wake_out, 65_536)
                    self._send(connection, self._taken())
                for notice in connection.notifies(timeout=0):
                    if notice.pid != me:
                        listener(notice.payload)
        self._send(connection, self._taken())

    def _taken(self) -> set[str]:
        with self._lock:
            taken, self._waiting = self._waiting, set()
        return taken

    def _send(self, connection: "Connection", hints: Iterable[str]) -> None:
        for hint in sorted(hints):
            connection.execute("SELECT pg_notify(%s, %s)", (CHANNEL, hint))
