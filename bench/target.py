"""A target that answers at once, in a process of its own: `python -m bench.target PORT`."""

import asyncio
import sys
from typing import cast

import uvloop

ANSWER = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n{"ok":true}'


class Target(asyncio.Protocol):
    """Just enough HTTP for requests without a body, or with one that comes in the same packet."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)

    def data_received(self, data: bytes) -> None:
        self._transport.write(ANSWER * data.count(b" HTTP/1.1\r\n"))


async def serve(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Target, "127.0.0.1", port)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1]) if len(sys.argv) > 1 else 0))
