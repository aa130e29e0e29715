"""What the witness answers, by mode.

| mode | what it does |
| --- | --- |
| `fast` | 200 at once |
| `slow/<seconds>` | 200 after that time |
| `never` | never answers |
| `status/<code>` | answers with that status |
| `async/<seconds>` | 202 at once, and the callback after that time, repeated until somebody takes it |
| `async-early` | the callback first, and 202 only when that is answered |
| `silent` | 202, and no callback ever |
| `reset` | breaks the connection off |
| `drip` | 200, then a byte a second without end |
| `bytes/<n>` | 200 and n bytes |
| `gzip/<megabytes>` | 200 and a small body that unpacks to so many |
| `redirect` | 302 to itself, without end |
"""

import asyncio
import json
import zlib
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any, Final, Protocol

import aiohttp

DRIP_SECONDS = 1.0
BYTES_A_SECOND = 100_000_000
CHUNK = b"x" * 65_536
MEGABYTE = b"\0" * 1_000_000
CALLBACK_TRIES = 120
CALLBACK_AGAIN_SECONDS = 0.5
_OK: Final = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n{"ok":true}'


class Asked(Protocol):
    """What an answer needs to know of a request."""

    @property
    def path(self) -> str: ...
    @property
    def query(self) -> dict[str, str]: ...
    @property
    def argument(self) -> str: ...
    @property
    def callback_url(self) -> str: ...


class Caller(Protocol):
    """Whom to answer."""

    transport: asyncio.Transport

    def note(self, phase: str, request: Any, **what: Any) -> None: ...
    def end(self, how: str) -> None: ...


def fast() -> bytes:
    return _OK


def head(status: int, length: int | None, **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} -", *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items())]
    lines.append("Connection: close" if length is None else f"Content-Length: {length}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


async def _slow(caller: Caller, asked: Asked) -> None:
    await asyncio.sleep(float(asked.argument))
    caller.transport.write(_OK)


async def _never(_: Caller, __: Asked) -> None:
    await asyncio.get_running_loop().create_future()


async def _status(caller: Caller, asked: Asked) -> None:
    caller.transport.write(head(int(asked.argument), 0))


async def _async(caller: Caller, asked: Asked) -> None:
    """The work goes on after the 202, and is not broken off when the connection is."""
    work = asyncio.get_running_loop().create_task(_call_back(caller, asked, float(asked.argument or 0)))
    _kept.add(work)
    work.add_done_callback(_kept.discard)
    caller.transport.write(head(202, 0))


async def _async_early(caller: Caller, asked: Asked) -> None:
    await _call_back(caller, asked, 0)
    caller.transport.write(head(202, 0))


async def _silent(caller: Caller, _: Asked) -> None:
    caller.transport.write(head(202, 0))


async def _reset(caller: Caller, _: Asked) -> None:
    caller.end("reset")
    caller.transport.abort()


async def _drip(caller: Caller, _: Asked) -> None:
    caller.transport.write(head(200, None))
    while True:
        caller.transport.write(b".")
        await asyncio.sleep(DRIP_SECONDS)


async def _bytes(caller: Caller, asked: Asked) -> None:
    left = int(asked.argument)
    caller.transport.write(head(200, left))
    while left > 0:
        caller.transport.write(CHUNK[:left])
        left -= len(CHUNK)
        await asyncio.sleep(caller.transport.get_write_buffer_size() / BYTES_A_SECOND)  # or else all of it is in memory


@cache
def _packed(megabytes: int) -> bytes:
    packer = zlib.compressobj(9, wbits=31)
    return b"".join(packer.compress(MEGABYTE) for _ in range(megabytes)) + packer.flush()


async def _gzip(caller: Caller, asked: Asked) -> None:
    packed = _packed(int(asked.argument))
    caller.transport.write(head(200, len(packed), Content_Encoding="gzip") + packed)


async def _redirect(caller: Caller, asked: Asked) -> None:
    caller.transport.write(head(302, 0, Location=f"{asked.path}?s={asked.query.get('s', '')}"))


async def _call_back(caller: Caller, asked: Asked, seconds: float) -> None:
    """Reports success; what gets no answer, or one that says `later`, is said again, as targets do."""
    await asyncio.sleep(seconds)
    body = json.dumps({"status": "SUCCESS", "data": {"by": "witness"}})
    async with aiohttp.ClientSession() as session:
        for _ in range(CALLBACK_TRIES):
            status = await _posted(session, asked.callback_url, body)
            caller.note("callback", asked, status=status)
            if 0 < status < 500:
                return
            await asyncio.sleep(CALLBACK_AGAIN_SECONDS)


async def _posted(session: aiohttp.ClientSession, url: str, body: str) -> int:
    """The status of the answer; 0 if there was none."""
    try:
        async with session.post(
            url, data=body, headers={"Content-Type": "application/json"}, timeout=aiohttp.ClientTimeout(10)
        ) as answer:
            return answer.status
    except (aiohttp.ClientError, TimeoutError):
        return 0


_kept: set[asyncio.Task[None]] = set()
MODES: Final[dict[str, Callable[[Caller, Any], Awaitable[None]]]] = {
    "slow": _slow,
    "never": _never,
    "status": _status,
    "async": _async,
    "async-early": _async_early,
    "silent": _silent,
    "reset": _reset,
    "drip": _drip,
    "bytes": _bytes,
    "gzip": _gzip,
    "redirect": _redirect,
}
