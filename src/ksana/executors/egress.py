"""The one client that every call to a user's target goes through. It keeps S10 to S16 of the reliability rules.

A target is checked three times: its URL when it is saved and again when it is sent (`egress_rules`), every address of its name
when that is looked up (`egress_names`), and the address itself when the socket is opened (`egress_dial`).
"""

import asyncio

from ksana.executors.egress_connection import Answer, Connection
from ksana.executors.egress_dial import Dialler
from ksana.executors.egress_errors import ConnectTimeout
from ksana.executors.egress_names import CheckedNames, Resolver, SystemResolver
from ksana.executors.egress_policy import EgressPolicy
from ksana.executors.egress_pool import Pool
from ksana.executors.egress_request import Outgoing


class EgressClient:
    """Sends requests over pooled connections. No cookies, no proxies, no redirects; TLS is verified; nothing is sent twice.

    It belongs to the event loop that first sends with it.
    """

    def __init__(self, policy: EgressPolicy, *, connections: int, resolver: Resolver | None = None) -> None:
        self.policy = policy
        self._connections = connections
        self._inner = resolver
        self._names: CheckedNames | None = None
        self._pool: Pool | None = None

    async def send(self, request: Outgoing, answer: Answer, *, expires_at: float) -> None:
        """Writes down what is answered. EgressError, or a TimeoutError when the loop's time is `expires_at`.

        ConnectTimeout if the connection did not stand in its own time. If it is cancelled, the connection is closed.
        """
        pool = self._pool or self._opened()
        connection = pool.idle(request.frame.origin) or await _connected(pool, request, expires_at)
        waiter = connection.ask(request.data, answer, expires_at)
        try:
            await waiter
        except asyncio.CancelledError:
            connection.leave(waiter)
            raise

    async def close(self) -> None:
        """Closes every connection. Harmless if nothing was sent."""
        pool, self._pool = self._pool, None
        names, self._names = self._names, None
        if pool is not None:
            await pool.close()
        if names is not None:
            await names.close()

    def _opened(self) -> Pool:
        self._names = CheckedNames(self.policy, self._inner or SystemResolver())
        self._pool = Pool(self._connections, Dialler(self.policy, self._names).dial)
        return self._pool


async def _connected(pool: Pool, request: Outgoing, expires_at: float) -> Connection:
    """Within the time for everything until the connection stands: a free place in the pool, the name, TCP and TLS."""
    connect_by = asyncio.get_running_loop().time() + request.frame.connect_timeout.total_seconds()
    try:
        async with asyncio.timeout_at(min(connect_by, expires_at)):
            return await pool.acquire(request.frame.origin)
    except TimeoutError as error:
        raise ConnectTimeout if connect_by < expires_at else TimeoutError from error
