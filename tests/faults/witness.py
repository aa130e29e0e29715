"""The witness: the target of all jobs, in a process that no fault touches. What it saw is the only truth.

`python -m tests.faults.witness LOG` prints its port. A request is `/<mode>[/<argument>]?s=<schedule>[&again=<mode>[/<argument>]]`;
`again` is what requests with a key that was seen before get. Each hit is one line when it begins and one when it ends, each
written with a single append, so that nothing of it is lost or mixed up whatever happens to whoever called. The schedule's name
stands in the address and not in a header, so that it is known even if all headers lie.

This is the machine of it: HTTP, just enough, and fast (a thousand hits within a second are ordinary). `answers.py` has the modes.
"""

import asyncio
import itertools
import json
import os
import sys
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

import uvloop

from tests.faults.answers import MODES, fast

BACKLOG = 2_048
NAMES = {
    "run": "x-ksana-run-id",
    "job": "x-ksana-job-id",
    "planned": "x-ksana-scheduled-at",
    "attempt": "x-ksana-attempt",
    "epoch": "x-ksana-epoch",
    "instance": "x-ksana-instance",
    "key": "idempotency-key",
    "callback": "x-ksana-callback-url",
}
"""What is kept of a request, and the header that has it; one that is not sent is left out."""


class Log:
    """Lines of JSON, each appended with one write."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def write(self, phase: str, number: int, **what: Any) -> None:
        line = {"phase": phase, "n": number, **what, "wall": time.time(), "mono": time.monotonic()}
        os.write(self._file, json.dumps(line, separators=(",", ":")).encode() + b"\n")


@dataclass(slots=True)
class Request:
    """One request that reached the witness."""

    number: int
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    mode: str
    argument: str

    @property
    def callback_url(self) -> str:
        return self.headers.get("x-ksana-callback-url", "")


class Seen:
    """The log, and which keys have been here before."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self._numbers = itertools.count(1)
        self._keys: Counter[str] = Counter()

    def begin(self, target: str, headers: dict[str, str], body: bytes) -> Request:
        parts = urlsplit(target)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        key = headers.get("idempotency-key", "")
        again = bool(key) and self._keys[key] > 0
        self._keys[key] += 1
        path = query["again"] if again and "again" in query else parts.path.lstrip("/")
        mode, _, argument = path.partition("/")
        request = Request(next(self._numbers), parts.path, query, headers, body, mode, argument)
        told = {name: headers[header] for name, header in NAMES.items() if header in headers}
        self.log.write("start", request.number, kind="http", schedule=query.get("s", ""), mode=mode, **told)
        return request

    def end(self, request: Request, how: str) -> None:
        self.log.write("end", request.number, how=how)


class Connection(asyncio.Protocol):
    """One connection, with one request at a time."""

    def __init__(self, seen: Seen) -> None:
        self._seen = seen
        self._received = b""
        self._under_way: Request | None = None
        self._work: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def connection_lost(self, _: Exception | None) -> None:
        """Whoever called has gone, or we have broken it off."""
        if self._work is not None:
            self._work.cancel()
        self.end("gone")

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, separator, rest = self._received.partition(b"\r\n\r\n")
        if not separator:
            return
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length = int(headers.get("content-length", 0))
        if len(rest) < length:
            return
        self._received = rest[length:]
        self._answer(self._seen.begin(first.split(" ")[1], headers, rest[:length]))

    def _answer(self, request: Request) -> None:
        self._under_way = request
        if request.mode == "fast":  # by far the most: without a task
            self.end("answered")
            self.transport.write(fast())
            return
        self._work = asyncio.get_running_loop().create_task(self._work_on(request))

    async def _work_on(self, request: Request) -> None:
        await MODES[request.mode](self, request)
        self.end("answered")

    def end(self, how: str) -> None:
        """The work of the request under way is over, once."""
        if self._under_way is not None:
            self._seen.end(self._under_way, how)
            self._under_way = None

    def note(self, phase: str, request: Request, **what: Any) -> None:
        self._seen.log.write(phase, request.number, **what)


async def serve(path: str) -> None:
    seen = Seen(Log(path))
    server = await asyncio.get_running_loop().create_server(lambda: Connection(seen), "127.0.0.1", 0, backlog=BACKLOG)
    print(server.sockets[0].getsockname()[1], flush=True)
    until_closed = asyncio.get_running_loop().run_in_executor(
        None, sys.stdin.read
    )  # whoever started it holds the other end
    await until_closed


if __name__ == "__main__":
    uvloop.run(serve(sys.argv[1]))
    os._exit(0)  # nobody is waited for: not even those who wait for an answer
