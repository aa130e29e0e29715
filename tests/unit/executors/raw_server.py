"""A real server that answers byte for byte as a test tells it: for what no well-behaved server would send."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[bool]]
"""Answers one request; whether the connection stays open for the next."""

OK = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 13\r\n\r\n{"done":true}'


def says(*parts: bytes, stays: bool = True) -> Script:
    """These bytes, each part a packet of its own: client and server share a loop, so that the pause lets the client read."""

    async def script(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        return stays

    return script


def held(answer: bytes, until: asyncio.Event) -> Script:
    """The answer, but not before that has happened."""

    async def script(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        await until.wait()
        writer.write(answer)
        return True

    return script


@dataclass
class RawServer:
    scripts: list[Script]
    """For each request in turn, whatever its connection; the last for all that follow."""
    reads_bodies: bool = True
    url: str = ""
    port: int = 0
    seen: list[bytes] = field(default_factory=list)
    """The request heads."""
    connections: int = 0
    arrived: "asyncio.Queue[None]" = field(default_factory=asyncio.Queue)
    """One entry for each request that has come."""
    left: "asyncio.Queue[None]" = field(default_factory=asyncio.Queue)
    """One entry for each connection that has ended, on either side."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                while await self._answer_one(reader, writer):
                    pass
                with suppress(OSError, NotImplementedError):
                    writer.write_eof()
                while await reader.read(65_536):
                    pass  # until the client has closed its side too
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
            self.left.put_nowait(None)

    async def _answer_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = await reader.readuntil(b"\r\n\r\n")
        lines = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:] if line)
        self.seen.append(head)
        if self.reads_bodies:
            await reader.readexactly(int(lines.get(b"content-length", b"0")))
        self.arrived.put_nowait(None)
        script = self.scripts[min(len(self.seen), len(self.scripts)) - 1]
        return await script(reader, writer)


@asynccontextmanager
async def raw_server(
    *scripts: Script, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None, reads_bodies: bool = True
) -> AsyncIterator[RawServer]:
    """Listening; it ends, and its connections with it, when the block does."""
    raw, tasks = RawServer(list(scripts), reads_bodies), set[asyncio.Task[None]]()

    def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(raw.serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(accepted, host, 0, ssl=tls, limit=65_536 if reads_bodies else 1_024)
    raw.port = server.sockets[0].getsockname()[1]
    raw.url = f"{'https' if tls else 'http'}://{f'[{host}]' if ':' in host else host}:{raw.port}/"
    try:
        yield raw
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()
