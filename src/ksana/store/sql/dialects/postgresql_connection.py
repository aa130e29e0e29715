"""A connection that gives up on a server which does not answer.

The kernel finds out about a machine that is gone (tcp_user_timeout), but not about a server, or something on the way to it,
that takes everything and says nothing. The driver would wait for ever, and with it the heartbeat.
"""

from typing import TypeVar

import psycopg
from psycopg.abc import PQGen
from psycopg.rows import TupleRow

RV = TypeVar("RV")
LOOK_SECONDS = 0.1
"""How often the driver looks up while it waits."""


class Impatient(psycopg.Connection[TupleRow]):
    patience: float | None = None
    """Seconds that an answer may take; then the connection is closed."""

    def wait(self, gen: PQGen[RV], interval: float = LOOK_SECONDS, timeout: float | None = None) -> RV:
        """OperationalError if nothing has come in time; whether the server has done what it was asked is unknown then."""
        given = self.patience if timeout is None else timeout
        try:
            return super().wait(gen, interval, given)
        except psycopg.errors._WaitTimeout:  # noqa: SLF001 - it is what `wait` documents
            if timeout is not None:
                raise  # whoever asked for it expects it
            self.pgconn.finish()
            raise psycopg.OperationalError(f"the server has not answered for {self.patience} s") from None
