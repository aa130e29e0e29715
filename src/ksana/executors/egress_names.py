"""Names to addresses, each of which the policy has seen. What is not allowed never reaches a socket."""

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address
from typing import Protocol

from ksana.executors.egress_errors import BrokenOff, Denied, Unresolved
from ksana.executors.egress_policy import EgressPolicy

LOOKUPS_AT_ONCE = 32
NAMES_KEPT_SECONDS = 10.0
NAMES_KEPT = 4_096


class Resolver(Protocol):
    """Where the addresses of a name come from."""

    async def resolve(self, host: str, port: int, /) -> list[str]:
        """Every address of the name, the best first. socket.gaierror if it has none."""

    async def close(self) -> None:
        """Lets go of what it holds."""


class SystemResolver:
    """The system's own lookup, in threads of its own: a dead name server must not hold up those who share the loop's pool."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(LOOKUPS_AT_ONCE, thread_name_prefix="ksana-names")

    async def resolve(self, host: str, port: int, /) -> list[str]:
        """Every address of the name, as the system orders them. socket.gaierror if it has none."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, _look_up, host, port)

    async def close(self) -> None:
        """Waits for nobody: a lookup under way ends in its own time."""
        self._threads.shutdown(wait=False, cancel_futures=True)


class CheckedNames:
    """Another resolver, whose every answer is checked and kept for a short while. One bad address among good ones denies all.

    The addresses returned are the very ones that are connected to, so a name that changes its mind afterwards gains nothing.
    Those who ask for the same name at the same time share one lookup.
    """

    def __init__(self, policy: EgressPolicy, inner: Resolver) -> None:
        self._policy = policy
        self._inner = inner
        self._known: dict[tuple[str, int], tuple[float, list[str]]] = {}
        self._lookups: dict[tuple[str, int], asyncio.Task[list[str]]] = {}

    async def addresses(self, host: str, port: int) -> list[str]:
        """All of them allowed; otherwise Denied. Unresolved if there are none. A literal address is its own."""
        if _is_literal(host):
            return [host]  # looked at where its socket is opened
        place, loop = (host, port), asyncio.get_running_loop()
        expires_at, known = self._known.get(place, (0.0, []))
        if loop.time() < expires_at:
            known.append(known.pop(0))  # each in its turn
            return known.copy()
        lookup = self._lookups.get(place)
        if lookup is None:
            lookup = self._lookups[place] = loop.create_task(self._looked_up(host, port))
            lookup.add_done_callback(lambda done: self._ended(place, done))
        try:
            return (await asyncio.shield(lookup)).copy()
        except asyncio.CancelledError:
            if lookup.cancelled():  # not whoever asked, but the lookup: names are closed
                raise BrokenOff("closed") from None
            raise

    async def close(self) -> None:
        for lookup in list(self._lookups.values()):
            lookup.cancel()
        await self._inner.close()

    async def _looked_up(self, host: str, port: int) -> list[str]:
        reason = self._policy.classify_host(host)
        if reason is not None:
            raise Denied(host, reason)
        try:
            found = await self._inner.resolve(host, port)
        except OSError as error:
            raise Unresolved(error) from error
        except UnicodeError as error:  # a part of it is longer than names have them
            raise Unresolved(socket.gaierror(socket.EAI_NONAME, "not a name")) from error
        if not found:
            raise Unresolved(socket.gaierror(socket.EAI_NONAME, "no address"))
        for address in found:
            reason = self._policy.classify(address, host=host)
            if reason is not None:
                raise Denied(host, reason)
        return found

    def _ended(self, place: tuple[str, int], lookup: "asyncio.Task[list[str]]") -> None:
        self._lookups.pop(place, None)
        if lookup.cancelled() or lookup.exception() is not None:
            return
        if len(self._known) >= NAMES_KEPT:
            self._known.clear()  # names of jobs are few; this is for those who make them up
        self._known[place] = (lookup.get_loop().time() + NAMES_KEPT_SECONDS, lookup.result())


def _look_up(host: str, port: int) -> list[str]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    return list(dict.fromkeys(str(address[0]) for _family, _type, _proto, _name, address in found))


def _is_literal(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
