"""A listener's batches as server-sent events."""

import asyncio
from collections.abc import AsyncGenerator

import orjson
from starlette.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from ksana.api.live.hub import Hub
from ksana.api.live.listening import Batch, Wanted
from ksana.domain.errors import KsanaError
from ksana.telemetry import log

EVENT_STREAM = "text/event-stream"
HEARTBEAT_SECONDS = 15.0
PATIENCE_SECONDS = 30.0
"""A listener to whom nothing can be sent for so long does not read, and is cut off."""
_RETRY = b"retry: 1000\n\n"
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


async def told(hub: Hub, wanted: Wanted, after: int | None) -> AsyncGenerator[bytes]:
    """Until the hub is closed; at once, if what was missed cannot be read: whoever listens comes again."""
    with hub.listening(wanted) as listener:
        yield _RETRY
        try:
            await hub.begin(listener, after)
        except KsanaError as error:
            log().warning("a stream could not begin", action="events.not_begun", err=error.message)
            return
        batch = await listener.take(0)
        while batch is not None:
            yield written(batch)
            batch = await listener.take(HEARTBEAT_SECONDS)


def written(batch: Batch) -> bytes:
    """Without events a comment, which still says where to go on from."""
    if not batch.events and not batch.more:
        return b": still here\nid: %d\n\n" % batch.position
    events = [orjson.Fragment(each.text) for each in batch.events]
    data = orjson.dumps({"events": events, "more": batch.more})
    return b"id: %d\nevent: changes\ndata: %s\n\n" % (batch.position, data)


class EventStream(StreamingResponse):
    media_type = EVENT_STREAM

    def __init__(self, hub: Hub, wanted: Wanted, after: int | None, patience: float = PATIENCE_SECONDS) -> None:
        self._told = told(hub, wanted, after)
        self._patience = patience
        super().__init__(self._told, headers=_HEADERS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._told.aclose()  # it leaves the hub now, not when somebody collects it

    async def stream_response(self, send: Send) -> None:
        async def impatient(message: Message) -> None:
            async with asyncio.timeout(self._patience):
                await send(message)

        try:
            await super().stream_response(impatient)
        except TimeoutError:
            log().warning("a listener that does not read was cut off", action="events.cut_off")
