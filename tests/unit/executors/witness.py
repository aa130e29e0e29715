"""A real server on loopback that behaves as its path says and keeps what it was sent.

`/ok`, `/status/503`, `/never`, `/drip`, `/reset`, `/half`, `/garbage`, `/huge`, `/bomb`, `/packed`, `/redirect/302?to=…`, `/echo`.
"""

import asyncio
import gzip
import json
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

MEGABYTE = 1_000_000


@dataclass
class Seen:
    """One request as it stood on the wire."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        return next((value for known, value in self.headers if known.lower() == name.lower()), None)

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Witness:
    port: int = 0
    seen: list[Seen] = field(default_factory=list)
    connections: int = 0
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    """A request has come."""
    flowing: asyncio.Event = field(default_factory=asyncio.Event)
    """Of a huge body more has been taken than buffers could hold: somebody reads it."""
    left: asyncio.Event = field(default_factory=asyncio.Event)
    """A client has closed its connection."""
    answer_headers: dict[str, str] = field(default_factory=dict)
    """Added to every answer."""

    def url(self, path: str = "/ok", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                while await self._answer_one(reader, writer):
                    pass
        finally:
            self.left.set()
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def _answer_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        begin = await reader.readexactly(1)
        if begin == b"\x16":  # the first byte of TLS, which it does not speak
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            return False
        head = (begin + await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.strip().split("\r\n")
        method, target, _version = first.split(" ")
        headers = [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines)]
        request = Seen(method, target, headers, b"")
        request.body = await reader.readexactly(int(request.header("content-length") or 0))
        self.seen.append(request)
        self.arrived.set()
        mode = urlsplit(target).path.split("/")[1]
        return await _MODES.get(mode, _ok)(self, request, reader, writer)

    async def send(self, writer: asyncio.StreamWriter, status: int, body: bytes = b"", **headers: str) -> bool:
        named = {name.replace("_", "-"): value for name, value in headers.items()} | self.answer_headers
        lines = "".join(f"{name}: {value}\r\n" for name, value in named.items())
        writer.write(f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\n{lines}\r\n".encode() + body)
        await writer.drain()
        return True


Mode = Callable[[Witness, Seen, asyncio.StreamReader, asyncio.StreamWriter], Coroutine[None, None, bool]]


async def _ok(witness: Witness, request: Seen, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    body = b"" if request.method == "HEAD" else b'{"done": true}'
    return await witness.send(writer, 200, body, Content_Type="application/json")


async def _status(witness: Witness, request: Seen, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    status = int(request.target.split("/")[2])
    return await witness.send(writer, status, b"" if status in {204, 304} else b"as asked", Content_Type="text/plain")


async def _never(
    _witness: Witness, _request: Seen, reader: asyncio.StreamReader, _writer: asyncio.StreamWriter
) -> bool:
    await reader.read()  # until the client goes away
    return False


async def _drip(_witness: Witness, _request: Seen, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
    while not writer.is_closing():
        writer.write(b".")
        await writer.drain()
        await asyncio.sleep(0.01)
    return False


async def _reset(
    _witness: Witness, _request: Seen, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> bool:
    writer.transport.abort()
    return False


async def _half(_witness: Witness, _request: Seen, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
    return False


async def _garbage(
    _witness: Witness, _request: Seen, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> bool:
    writer.write(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")
    return False


async def _huge(witness: Witness, _request: Seen, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
    for number in range(1000):
        writer.write(b"x" * MEGABYTE)
        await writer.drain()
        if number == 30:
            witness.flowing.set()
    return True


async def _bomb(witness: Witness, _request: Seen, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    return await witness.send(writer, 200, gzip.compress(b"\0" * 50 * MEGABYTE, 1), Content_Encoding="gzip")


async def _packed(
    witness: Witness, _request: Seen, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> bool:
    body = gzip.compress(b'{"packed": true}')
    return await witness.send(writer, 200, body, Content_Encoding="gzip", Content_Type="application/json")


async def _redirect(
    witness: Witness, request: Seen, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> bool:
    to = parse_qs(urlsplit(request.target).query)["to"][0]
    return await witness.send(writer, int(urlsplit(request.target).path.split("/")[2]), b"moved", Location=to)


async def _echo(witness: Witness, request: Seen, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    document = {"target": request.target, "headers": dict(request.headers), "body": request.body.decode()}
    return await witness.send(writer, 200, json.dumps(document).encode(), Content_Type="application/json")


_MODES: dict[str, Mode] = {
    "status": _status,
    "never": _never,
    "drip": _drip,
    "reset": _reset,
    "half": _half,
    "garbage": _garbage,
    "huge": _huge,
    "bomb": _bomb,
    "packed": _packed,
    "redirect": _redirect,
    "echo": _echo,
}


@asynccontextmanager
async def witness_on_loopback(tls: ssl.SSLContext | None = None) -> AsyncIterator[Witness]:
    """A witness that is listening; it ends, and its connections with it, when the block does."""
    witness, tasks = Witness(), set[asyncio.Task[None]]()

    def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(witness.serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(accepted, "127.0.0.1", 0, ssl=tls)
    witness.port = server.sockets[0].getsockname()[1]
    try:
        yield witness
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()
