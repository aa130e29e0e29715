"""A target that answers at once, in a process of its own: `python -m bench.target PORT`.

It writes down when it was called. `GET /told` answers with the times of all calls since the last such question, as JSON;
`GET /count` with how many there are.
"""

import asyncio
import json
import sys
import time
from typing import cast

import uvloop

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
ANSWER = HEAD % (11, b'{"ok":true}')


class Target(asyncio.Protocol):
    """Just enough HTTP for requests whose heads are not torn apart."""

    def __init__(self, calls: list[float]) -> None:
        self._calls = calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)

    def data_received(self, data: bytes) -> None:
        if data.startswith(b"GET /count "):
            return self._tell(len(self._calls))
        if data.startswith(b"GET /told "):
            self._tell(self._calls)
            return self._calls.clear()
        requests = data.count(b" HTTP/1.1\r\n")
        self._calls += [time.time()] * requests
        return self._transport.write(ANSWER * requests)

    def _tell(self, what: object) -> None:
        body = json.dumps(what).encode()
        self._transport.write(HEAD % (len(body), body))


async def serve(port: int) -> None:
    calls: list[float] = []
    server = await asyncio.get_running_loop().create_server(lambda: Target(calls), "127.0.0.1", port, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1]) if len(sys.argv) > 1 else 0))
