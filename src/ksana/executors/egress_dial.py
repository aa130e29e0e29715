"""From an origin to a connected socket and TLS: the last look at an address is here, where its socket is opened."""

import asyncio
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache

from ksana.executors.egress_connection import Connection, Origin
from ksana.executors.egress_errors import Denied, NotConnected, NoTls
from ksana.executors.egress_names import CheckedNames
from ksana.executors.egress_policy import EgressPolicy

HEADSTART_SECONDS = 0.25
"""How long an address has for itself before the next one is tried beside it (RFC 8305)."""


class Dialler:
    """Opens connections. Every address of a name has been checked when it was looked up, and each is again before its socket."""

    def __init__(self, policy: EgressPolicy, names: CheckedNames) -> None:
        self._policy = policy
        self._names = names

    async def dial(self, origin: Origin, made: Callable[[], Connection]) -> Connection:
        """A new connection to one of the addresses. Denied, Unresolved, NoTls or NotConnected; within no time of its own."""
        addresses = await self._names.addresses(origin.host, origin.port)
        while True:
            address, opened = await self._first_of(addresses, origin.port)
            try:
                return await _begun(opened, origin, made)
            except NotConnected:
                # An address may take connections for TLS that it does not speak; another one may.
                addresses.remove(address)
                if not addresses:
                    raise

    def open_socket(self, address: str) -> socket.socket:
        """A socket for an address that is allowed; Denied otherwise. Literal addresses, which nobody looks up, meet this."""
        reason = self._policy.classify_socket(address)
        if reason is not None:
            raise Denied("that address", reason)
        return socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)

    async def _first_of(self, addresses: list[str], port: int) -> tuple[str, socket.socket]:
        """The address that takes a connection first; each further one starts when the last has failed or a moment passed."""
        if len(addresses) == 1:
            return addresses[0], await self._connected(addresses[0], port)
        left, racing = list(addresses), dict[asyncio.Task[socket.socket], str]()
        failure: NotConnected | None = None
        try:
            while left or racing:
                if left:
                    address = left.pop(0)
                    racing[asyncio.create_task(self._connected(address, port))] = address
                wait = HEADSTART_SECONDS if left else None
                done, _ = await asyncio.wait(racing, timeout=wait, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    address = racing.pop(task)
                    try:
                        return address, task.result()
                    except NotConnected as error:
                        failure = error
        finally:
            for task in racing:
                task.add_done_callback(_unwanted)
                task.cancel()
        assert failure is not None  # noqa: S101 - each of them has failed
        raise failure

    async def _connected(self, address: str, port: int) -> socket.socket:
        try:
            opened = self.open_socket(address)
        except OSError as error:
            raise NotConnected(error) from error
        try:
            opened.setblocking(False)  # noqa: FBT003 - the standard library's name for it
            await asyncio.get_running_loop().sock_connect(opened, (address, port))
        except OSError as error:
            opened.close()
            raise NotConnected(error) from error
        except BaseException:
            opened.close()
            raise
        return opened


@lru_cache(maxsize=1)
def tls_context() -> ssl.SSLContext:
    """Verifies certificates and names against the system's roots; TLS 1.2 or newer. Read once: that takes tens of milliseconds."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


async def _begun(opened: socket.socket, origin: Origin, made: Callable[[], Connection]) -> Connection:
    """A connection over this socket, which from now on is its own."""
    secure = origin.scheme == "https"
    try:
        _transport, connection = await asyncio.get_running_loop().create_connection(
            made,
            sock=opened,
            ssl=tls_context() if secure else None,
            server_hostname=origin.host.rstrip(".") if secure else None,
        )
    except ssl.SSLError as error:
        raise NoTls(error) from error
    except OSError as error:
        raise NotConnected(error) from error
    return connection


def _unwanted(task: "asyncio.Task[socket.socket]") -> None:
    """It was slower than another one."""
    if not task.cancelled():
        with suppress(Exception):
            task.result().close()
