"""Reading what an execution has written, in pieces: all there is, or on and on until it has ended."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta

from ksana.domain.clock import Clock
from ksana.domain.errors import InvalidInput
from ksana.domain.states import TERMINAL
from ksana.store.base import Store
from ksana.store.workflow_requests import LogLine

Cursor = tuple[int, int]
"""The (epoch, seq) of the last part that is known."""

BEGINNING: Cursor = (0, 0)
END: Cursor = (10**15, 0)
AT_ONCE = 500
BACK_AT_ONCE = 20
MOST_TEXT = 500_000
"""Characters after which what is read backwards is enough."""
POLL_SECONDS = 0.5
LAST_WORDS = timedelta(seconds=1)
"""How much later than its end the last of what an attempt wrote may come."""
_CURSOR = re.compile(r"([0-9]{1,15})\.([0-9]{1,15})")


def read_cursor(text: str, field: str = "after") -> Cursor:
    """As `1.42`. InvalidInput."""
    found = _CURSOR.fullmatch(text)
    if found is None:
        raise InvalidInput(field, "must be a cursor, as in 1.42")
    return int(found[1]), int(found[2])


def told(cursor: Cursor) -> str:
    return f"{cursor[0]}.{cursor[1]}"


class LogReader:
    """Reads on from its cursor; of one attempt only, if that is given."""

    def __init__(
        self, store: Store, clock: Clock, execution_id: int, cursor: Cursor = BEGINNING, attempt: int | None = None
    ) -> None:
        self._store = store
        self._clock = clock
        self._execution_id = execution_id
        self._cursor = cursor
        self._attempt = attempt

    def told_cursor(self) -> str | None:
        return None if self._cursor == BEGINNING else told(self._cursor)

    async def next_lines(self, limit: int | None = None) -> AsyncIterator[LogLine]:
        """What there is now, `limit` of it at the most."""
        epochs, left = await self._epochs(), limit
        while left is None or left > 0:
            lines = await self._store.logs(self._execution_id, self._cursor, AT_ONCE)
            for line in lines:
                if left == 0:
                    return
                self._cursor = (line.epoch, line.seq)
                if epochs is None or line.epoch in epochs:
                    left = None if left is None else left - 1
                    yield line
            if len(lines) < AT_ONCE:
                return

    async def earlier_lines(self, limit: int) -> list[LogLine]:
        """The last of what precedes the cursor, in order: `limit` at the most, and not many more than MOST_TEXT characters."""
        epochs, found, size = await self._epochs(), list[LogLine](), 0
        while True:
            lines = await self._store.logs_before(self._execution_id, self._cursor, BACK_AT_ONCE)
            for line in lines:
                if len(found) == limit or size >= MOST_TEXT:
                    return found[::-1]
                self._cursor = (line.epoch, line.seq)
                if epochs is None or line.epoch in epochs:
                    found.append(line)
                    size += len(line.text)
            if len(lines) < BACK_AT_ONCE:
                self._cursor = BEGINNING
                return found[::-1]

    async def texts(self) -> AsyncIterator[str]:
        async for line in self.next_lines():
            yield line.text

    async def followed(self, stopping: Callable[[], Awaitable[bool]]) -> AsyncIterator[str]:
        """Until it has ended and all of it was read, or the server stops."""
        known = False
        while True:
            ended, long_ago = await self._ended()
            async for text in self.texts():
                yield text
            if (ended and (known or long_ago)) or await stopping():
                return
            known = ended
            await asyncio.sleep(POLL_SECONDS)

    async def _ended(self) -> tuple[bool, bool]:
        """Whether it has ended, and so long ago that nothing more will come."""
        execution = await self._store.execution(self._execution_id)
        if self._attempt is not None and execution.attempt > self._attempt:
            return True, True
        since = None if execution.ended_at is None else self._clock.now() - execution.ended_at
        return execution.status in TERMINAL, since is not None and since > LAST_WORDS

    async def _epochs(self) -> frozenset[int] | None:
        """Under which the attempt was made; several, if an instance handed it back."""
        if self._attempt is None:
            return None
        ended = await self._store.attempts(self._execution_id)
        execution = await self._store.execution(self._execution_id)
        under_way = {execution.epoch} if execution.attempt == self._attempt else set()
        return frozenset(under_way | {each.epoch for each in ended if each.number == self._attempt})
