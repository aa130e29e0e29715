"""What an attempt may do while it runs: keep checkpoints, artifacts and logs. Everything is fenced by its claim."""

import asyncio
from typing import Any

from ksana.domain.clock import Clock
from ksana.domain.errors import KsanaError
from ksana.domain.execution import Claim
from ksana.executors.base import AttemptLost
from ksana.store.base import Store
from ksana.store.workflow_requests import LogChunk
from ksana.telemetry import log

CHUNK = 32_000
KEPT = 5_000_000
"""Characters of one attempt's logs that are kept."""
GATHERING_SECONDS = 0.2
CUT = "… what follows is not kept\n"


class AttemptTools:
    """The tools of one attempt. `close` writes what is left of its logs."""

    __slots__ = ("_claim", "_clock", "_flushing", "_seq", "_size", "_store", "_waiting")

    def __init__(self, store: Store, clock: Clock, claim: Claim) -> None:
        self._store = store
        self._clock = clock
        self._claim = claim
        self._waiting: list[LogChunk] = []
        self._seq = 0
        self._size = 0
        self._flushing: asyncio.Task[None] | None = None

    @property
    def used(self) -> bool:
        """Whether there may be anything left to be written."""
        return self._seq > 0

    async def save_checkpoint(self, value: Any) -> None:
        if not await self._store.save_checkpoint(self._claim, value):
            raise AttemptLost

    async def save_artifact(self, value: Any) -> None:
        if not await self._store.save_artifact(self._claim, value):
            raise AttemptLost

    def log(self, text: str, stream: str = "stdout") -> None:
        if not text or self._size > KEPT:
            return
        self._size += len(text)
        if self._size > KEPT:
            text += CUT
        for begin in range(0, len(text), CHUNK):
            self._add(text[begin : begin + CHUNK], stream[:8])
        if self._flushing is None:
            self._flushing = asyncio.get_running_loop().create_task(self._flush_soon())

    def _add(self, text: str, stream: str) -> None:
        last = self._waiting[-1] if self._waiting else None
        if last is not None and last.stream == stream and len(last.text) + len(text) <= CHUNK:
            self._waiting[-1] = LogChunk(last.claim, last.seq, last.at, stream, last.text + text)
            return
        self._seq += 1
        self._waiting.append(LogChunk(self._claim, self._seq, self._clock.now(), stream, text))

    async def _flush_soon(self) -> None:
        await asyncio.sleep(GATHERING_SECONDS)
        self._flushing = None
        await self._flush()

    async def _flush(self) -> None:
        chunks, self._waiting = self._waiting, []
        if not chunks:
            return
        try:
            await self._store.append_logs(chunks)
        except KsanaError as error:
            # The work itself must not wait for its logs.
            log().warning("logs not kept", action="run.logs_lost", run_id=self._claim.execution_id, err=error.message)

    async def close(self) -> None:
        if self._flushing is not None:
            self._flushing.cancel()
            self._flushing = None
        await self._flush()
