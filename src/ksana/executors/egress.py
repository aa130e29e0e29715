"""The one client that every call to a user's target goes through. It keeps S10 to S16 of the reliability rules.

A target is checked three times: its URL when it is saved and again when it is sent (`egress_rules`), every address of its name
when that is looked up (`egress_names`), and the address itself when the socket is opened (here).
"""

import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache

import aiohttp
from aiohttp.abc import AbstractResolver
from yarl import URL

from ksana.executors.egress_names import CheckedResolver, Denied, SystemResolver
from ksana.executors.egress_policy import EgressPolicy

# Servers commonly close what has been idle for five seconds or more; a request sent at that very moment would be lost.
KEEP_ALIVE_SECONDS = 4.0
NAMES_KEPT_SECONDS = 10
_AUTOMATIC = ("Accept", "Accept-Encoding", "User-Agent", "Content-Type")
_AddressInfo = tuple[
    int | socket.AddressFamily, int | socket.SocketKind, int, str, tuple[str, int] | tuple[str, int, int, int]
]


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One request, whole: nothing is added to its headers on the way out."""

    method: str
    url: URL
    headers: Mapping[str, str]
    body: bytes | None
    connect_timeout: timedelta


class BrokenOff(aiohttp.ClientError):
    """The connection was lost before an answer came. Whether the target has done the work is not known."""


class EgressClient:
    """Sends requests over pooled connections. No cookies, no proxies, no redirects; TLS is verified.

    It belongs to the event loop that first sends with it. The caller keeps the total deadline, and must close every response.
    """

    def __init__(self, policy: EgressPolicy, *, connections: int, resolver: AbstractResolver | None = None) -> None:
        self.policy = policy
        self._connections = connections
        self._inner = resolver
        self._session: aiohttp.ClientSession | None = None
        self._resolver: CheckedResolver | None = None

    async def send(self, request: Outgoing) -> aiohttp.ClientResponse:
        """The answer, its body still to be read. Raises what `aiohttp` raises, BrokenOff, and Denied as its `os_error`."""
        return await self._opened().request(
            request.method,
            request.url,
            headers=request.headers,
            data=request.body,
            allow_redirects=False,
            # Over everything until the connection stands: a free place in the pool, the name, TCP and TLS.
            timeout=aiohttp.ClientTimeout(total=None, connect=request.connect_timeout.total_seconds()),
        )

    async def close(self) -> None:
        """Closes every connection. Harmless if nothing was sent."""
        session, self._session = self._session, None
        resolver, self._resolver = self._resolver, None
        if session is not None:
            await session.close()
        if resolver is not None:
            await resolver.close()

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._resolver = CheckedResolver(self.policy, self._inner or SystemResolver())
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=self._connections,
                    resolver=self._resolver,
                    ttl_dns_cache=NAMES_KEPT_SECONDS,
                    keepalive_timeout=KEEP_ALIVE_SECONDS,
                    ssl=tls_context(),
                    socket_factory=self._socket,
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
                skip_auto_headers=_AUTOMATIC,
                # Whoever reads the body caps it, before and after it is unpacked.
                auto_decompress=False,
                middlewares=(_send_once,),
            )
        return self._session

    def _socket(self, info: _AddressInfo) -> socket.socket:
        """A socket for an address that is allowed; Denied otherwise. aiohttp looks up no literal addresses, so they meet this."""
        family, kind, protocol, _name, address = info
        reason = self.policy.classify_socket(address[0])
        if reason is not None:
            raise Denied("that address", reason)
        return socket.socket(family, kind, protocol)


@lru_cache(maxsize=1)
def tls_context() -> ssl.SSLContext:
    """Verifies certificates and names against the system's roots; TLS 1.2 or newer. Read once: that takes tens of milliseconds."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


async def _send_once(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Keeps aiohttp from sending a GET, PUT or DELETE again by itself: what is sent twice must be two attempts on record."""
    try:
        return await handler(request)
    except aiohttp.ClientConnectorError:  # nothing was sent, and aiohttp leaves it at that
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise BrokenOff("the connection was closed before an answer came") from error
