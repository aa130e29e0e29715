"""Names to addresses, each of which the policy has seen. What is not allowed never reaches a socket."""

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor

from aiohttp.abc import AbstractResolver, ResolveResult

from ksana.executors.egress_policy import EgressPolicy

LOOKUPS_AT_ONCE = 32


class Denied(OSError):
    """The policy refuses this target. An OSError, because that is what aiohttp carries unharmed out of a connection.

    `reason` is for the log alone: told to whoever made the job, it would say what a name of the private network leads to.
    """

    def __init__(self, host: str, reason: str) -> None:
        super().__init__(f"{host} is not allowed as a target")
        self.host = host
        self.reason = reason


class SystemResolver(AbstractResolver):
    """The system's own lookup, in threads of its own: a dead name server must not hold up those who share the loop's pool."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(LOOKUPS_AT_ONCE, thread_name_prefix="ksana-names")

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Every address of the name, as the system orders them. socket.gaierror if it has none."""
        found = await asyncio.get_running_loop().run_in_executor(self._threads, _look_up, host, port, family)
        return [_result(host, port, family, address) for family, address in found]

    async def close(self) -> None:
        """Waits for nobody: a lookup under way ends in its own time."""
        self._threads.shutdown(wait=False, cancel_futures=True)


class CheckedResolver(AbstractResolver):
    """Another resolver, whose every answer is checked. One bad address among good ones denies them all.

    The addresses returned are the very ones that are connected to, so a name that changes its mind afterwards gains nothing.
    """

    def __init__(self, policy: EgressPolicy, inner: AbstractResolver) -> None:
        self._policy = policy
        self._inner = inner

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """The addresses, all of them allowed; otherwise Denied."""
        reason = self._policy.classify_host(host)
        if reason is not None:
            raise Denied(host, reason)
        found = await self._inner.resolve(host, port, family)
        for result in found:
            reason = self._policy.classify(result["host"], host=host)
            if reason is not None:
                raise Denied(host, reason)
        return found

    async def close(self) -> None:
        await self._inner.close()


def _look_up(host: str, port: int, family: int) -> list[tuple[int, str]]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, family=family, flags=socket.AI_ADDRCONFIG)
    return [(family, str(address[0])) for family, _type, _proto, _name, address in found]


def _result(name: str, port: int, family: int, address: str) -> ResolveResult:
    flags = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
    return ResolveResult(hostname=name, host=address, port=port, family=family, proto=0, flags=flags)
