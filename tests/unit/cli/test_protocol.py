"""How much of a request is taken, and how long it may take to come."""

import asyncio
import socket
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from ksana.cli import protocol
from ksana.cli.process import Server, configured
from ksana.cli.protocol import MAX_HEAD, BoundedProtocol

PATIENCE = 20.0
KEPT_BY_A_BALANCER = 60.0
BEGIN = b"POST / HTTP/1.1\r\nHost: localhost\r\n"
HUGE = b"X-%d: " + b"a" * 1_000 + b"\r\n"


async def counting(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers with how many bytes the body has."""
    body = await Request(scope, receive).body()
    await PlainTextResponse(str(len(body)))(scope, receive, send)


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    server = Server(configured(counting))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = asyncio.create_task(server.serve([listener]))
        await server.answering.wait()
        yield server
        server.end(timedelta(0))
        await serving


@pytest.fixture
def address(server: Server) -> tuple[str, int]:
    found: tuple[str, int] = server.servers[0].sockets[0].getsockname()
    return found


async def answered(address: tuple[str, int], *parts: bytes) -> bytes:
    """All that comes back until the connection ends; what is sent of the parts may be less."""
    reader, writer = await asyncio.open_connection(*address)
    try:
        async with asyncio.timeout(PATIENCE):
            for part in parts:
                writer.write(part)
                await writer.drain()
            return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


async def test_a_head_as_large_as_is_allowed_is_read_and_its_body_too(address: tuple[str, int]) -> None:
    fits = b"".join(HUGE % number for number in range(MAX_HEAD // 1_000 - 2))
    for body in (b"", b"b" * 500_000):
        asked = BEGIN + fits + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        for parts in ([asked], [asked[:9_000], asked[9_000:20_000], asked[20_000:]]):
            assert (await answered(address, *parts)).endswith(b"\r\n\r\n%d" % len(body))


@pytest.mark.parametrize(
    "more",
    [
        b"".join(HUGE % number for number in range(20)) + b"\r\n",
        b"X: " + b"a" * 200_000,
        b"Transfer-Encoding: chunked\r\n\r\n0\r\nX: " + b"a" * 200_000,
    ],
)
async def test_a_larger_head_is_not_kept(address: tuple[str, int], more: bytes) -> None:
    asked = BEGIN + more
    told = await answered(address, *(asked[place : place + 4_000] for place in range(0, len(asked), 4_000)))
    assert not told or told.startswith(b"HTTP/1.1 400 ")
    assert b"200 OK" not in told


async def test_who_does_not_come_to_an_end_is_cut_off(
    address: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.02)
    monkeypatch.setattr(protocol, "BODY_SECONDS", 0.02)
    whole = BEGIN + b"Content-Length: 0\r\n\r\n"
    for sent in (b"", BEGIN, BEGIN + b"Content-Length: 9\r\n\r\nhalf"):
        assert await answered(address, sent) == b""
    assert (await answered(address, whole + BEGIN)).count(b"HTTP/1.1 200 OK") == 1


async def test_who_comes_to_an_end_in_time_is_not(address: tuple[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.05)
    reader, writer = await asyncio.open_connection(*address)
    async with asyncio.timeout(PATIENCE):
        for _ in range(2):
            writer.write(BEGIN + b"Content-Length: 2\r\n\r\nab")
            assert (await reader.readuntil(b"\r\n\r\n2")).startswith(b"HTTP/1.1 200 OK")
            await asyncio.sleep(0.1)  # longer than a request may take
    writer.close()


async def test_between_two_requests_a_connection_outlives_the_pool_of_its_client(
    server: Server, address: tuple[str, int]
) -> None:
    reader, writer = await asyncio.open_connection(*address)
    for _ in range(2):
        writer.write(BEGIN + b"Content-Length: 1\r\n\r\nb")
        assert (await reader.readuntil(b"\r\n\r\n1")).startswith(b"HTTP/1.1 200 ")
    [kept] = server.server_state.connections
    assert isinstance(kept, BoundedProtocol)
    assert kept.timeout_keep_alive_task is not None
    assert kept.timeout_keep_alive_task.when() - asyncio.get_running_loop().time() > KEPT_BY_A_BALANCER
    writer.close()
