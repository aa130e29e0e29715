"""The way to one Redis server: how many talk to it at once, how long each waits, and what its errors mean.

A command is sent once. Its answer may be lost with the connection, and sent again it would find its own work there; who
asked knows better what to do then. redis-py closes a connection on which an answer was not waited for, be it a time-out or
a cancellation, so that nobody reads another's.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import NoScriptError, RedisError, ResponseError

from ksana.domain.errors import RuntimeUnavailable
from ksana.runtime.base import Kind
from ksana.runtime.redis_scripts import Script

CONNECTIONS = 16
"""More would not make a server with one thread any faster."""

COMMANDS_AT_ONCE = 500
"""In one pipeline: its answers are held by the server until all are read."""

SCAN_PORTION = 1_000
_MILLISECOND = timedelta(milliseconds=1)
_SECOND = timedelta(seconds=1)

Words = Sequence[str | bytes | int]
Answer = Any
Call = tuple[str, Words]
"""A key, and what its script is told beside it."""


class Wire:
    """Everything it does may raise RuntimeUnavailable."""

    def __init__(self, url: str, namespace: str, timeout: timedelta) -> None:
        seconds = timeout.total_seconds()
        self._redis = Redis.from_url(
            url,
            # RESP 2: what old servers and proxies speak, too, and nothing comes that was not asked for.
            protocol=2,
            # Time is limited here (`_place`): redis-py would use `wait_for`, in which Python 3.11 loses cancellations.
            socket_timeout=None,
            socket_connect_timeout=seconds,
            retry=Retry(NoBackoff(), 0),
        )
        self._namespace = namespace
        self._seconds = seconds
        self._places = asyncio.Semaphore(CONNECTIONS)
        self._closed = False
        self.repaired = 0
        """Values of a wrong type, or that could not be read, which were replaced."""

    @property
    def probe(self) -> str:
        """A key that nothing is ever kept under."""
        return f"{self._namespace}:probe"

    def key(self, kind: Kind, name: str) -> str:
        return f"{self._namespace}:{kind}:{name}"

    async def command(self, *words: str | bytes | int) -> Answer:
        async with self._place():
            return await self._send(*words)

    async def run(self, script: Script, key: str, words: Words) -> Answer:
        """What a script answers."""
        async with self._place():
            try:
                return await self._send("EVALSHA", script.sha, 1, key, *words)
            except NoScriptError:
                # It has not run since the server started.
                return await self._send("EVAL", script.source, 1, key, *words)

    async def run_each(self, script: Script, calls: Sequence[Call]) -> list[Answer]:
        """What a script answers for each of these."""
        answers: list[Answer] = []
        for portion in _portions(calls, COMMANDS_AT_ONCE):
            # The first carries the script, by which the server knows it when the others come.
            commands: list[Words] = [("EVAL", script.source, 1, portion[0][0], *portion[0][1])]
            commands += [("EVALSHA", script.sha, 1, key, *words) for key, words in portion[1:]]
            answers += await self.commands(commands)
        return answers

    async def commands(self, commands: Sequence[Words], *, tolerated: str = "") -> list[Answer]:
        """The answers to many commands in one go; an error that begins with `tolerated` is an answer."""
        answers: list[Answer] = []
        for portion in _portions(commands, COMMANDS_AT_ONCE):
            async with self._place():
                pipeline = self._redis.pipeline(transaction=False)
                for words in portion:
                    pipeline.execute_command(*words)
                answers += await pipeline.execute(raise_on_error=False)
        for answer in answers:
            if isinstance(answer, RedisError) and not (tolerated and str(answer).startswith(tolerated)):
                raise _unavailable(answer)
        return answers

    async def texts(self, keys: Sequence[str]) -> list[str | None]:
        """Of each key the text that it holds; None if there is none, or something else."""
        found: list[str | None] = []
        for portion in _portions(keys, COMMANDS_AT_ONCE):
            found += [None if value is None else plain(value) for value in await self.command("MGET", *portion)]
        return found

    async def names(self, kind: Kind) -> list[str]:
        """All that there are of a kind. Slow: the server is asked for all of its keys, a portion at a time."""
        prefix = self.key(kind, "")
        found = await self._scan(prefix)
        # No id has a colon: what has one is of a namespace that begins as this one goes on.
        return [name for key in found if ":" not in (name := key.removeprefix(prefix))]

    async def count(self) -> dict[Kind, int]:
        """How many there are of each kind, in one go over the server's keys."""
        found = await self._scan(f"{self._namespace}:")
        kinds = Counter(key.removeprefix(f"{self._namespace}:").rpartition(":")[0] for key in found)
        return {kind: kinds[kind.value] for kind in Kind}

    async def _scan(self, prefix: str) -> list[str]:
        pattern, cursor, found = f"{_literal(prefix)}*", 0, dict[str, None]()
        while True:
            answer = await self.command("SCAN", cursor, "MATCH", pattern, "COUNT", SCAN_PORTION)
            cursor = int(answer[0])
            found.update((plain(key), None) for key in answer[1])
            if cursor == 0:
                return list(found)

    async def close(self) -> None:
        self._closed = True
        await self._redis.aclose()

    async def _send(self, *words: str | bytes | int) -> Answer:
        return await self._redis.execute_command(*words)  # type: ignore[no-untyped-call]

    @asynccontextmanager
    async def _place(self) -> AsyncIterator[None]:
        """A connection, and so long for all that is done with it; in it, Redis's errors become ours."""
        if self._closed:
            raise RuntimeUnavailable("Redis: the connection was closed")
        try:
            async with asyncio.timeout(self._seconds), self._places:
                yield
        except TimeoutError as error:
            raise RuntimeUnavailable(f"Redis: no answer within {self._seconds:g} s") from error
        except (RedisError, OSError) as error:
            raise _unavailable(error) from error


def lifetime(ttl: timedelta) -> tuple[str, int]:
    """The words of a time to live: whole seconds, or milliseconds where it has others. At least one."""
    if ttl >= _SECOND and not ttl % _SECOND:
        return "EX", ttl // _SECOND
    return "PX", max(1, ttl // _MILLISECOND)


def plain(value: bytes | str) -> str:
    return value if isinstance(value, str) else value.decode(errors="replace")


def fields(pairs: Sequence[bytes] | Mapping[bytes, bytes]) -> dict[str, str]:
    """A hash, as texts."""
    items = pairs.items() if isinstance(pairs, Mapping) else zip(pairs[::2], pairs[1::2], strict=True)
    return {plain(name): plain(value) for name, value in items}


def is_error(answer: Answer) -> bool:
    return isinstance(answer, ResponseError)


def _unavailable(error: BaseException) -> RuntimeUnavailable:
    return RuntimeUnavailable(f"Redis: {str(error).strip() or type(error).__name__}")


def _literal(text: str) -> str:
    """A text in a pattern, standing for itself."""
    return "".join(f"\\{char}" if char in "\\*?[]^-" else char for char in text)


def _portions(items: Sequence[Any], size: int) -> list[Sequence[Any]]:
    return [items[start : start + size] for start in range(0, len(items), size)]
