"""How requests come in: as uvicorn reads them, but no more of a head than is allowed, and not for ever.

A head that is too large is refused with 400, and its connection closed; so is, without a word, that of a request that does not
come to its end in time, or of a client that asks nothing at all. Between two requests uvicorn keeps its own time.
"""

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

MAX_HEAD = 16_384
"""Bytes of the URL and the headers; as many again of whatever else is not body."""
HEAD_SECONDS = 30.0
BODY_SECONDS = 300.0
"""After the time for the head."""
_TOO_LARGE = "The head of the request is too large."


class BoundedProtocol(HttpToolsProtocol):
    """Of one connection."""

    _silent = 0
    """Bytes that have come since the last of a body, or of a request."""
    _head_owed = _end_owed = True
    _alarm: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._alarm = self.loop.call_later(HEAD_SECONDS, self._ring)

    def connection_lost(self, exc: Exception | None) -> None:
        self._rest()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._silent += len(data)
        super().data_received(data)
        if self._silent > MAX_HEAD and not self.transport.is_closing():
            self._refuse()
        elif self._end_owed and self._alarm is None and not self.transport.is_closing():
            self._alarm = self.loop.call_later(HEAD_SECONDS, self._ring)

    def on_message_begin(self) -> None:
        self._head_owed = self._end_owed = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        if self._silent > MAX_HEAD:  # some of it may be body, or of another request
            size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
            if size > MAX_HEAD:
                raise ValueError(_TOO_LARGE)
            self._silent = size
        self._head_owed = False
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._silent = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._silent = 0
        self._head_owed = self._end_owed = False
        self._rest()
        super().on_message_complete()

    def _refuse(self) -> None:
        cycle: RequestResponseCycle | None = (
            self.cycle
        )  # which is None before the first request, whatever its type says
        if cycle is not None and not cycle.response_complete:
            self.transport.abort()  # an earlier request is being answered, and nothing may come in between
        else:
            self.send_400_response(_TOO_LARGE)

    def _ring(self) -> None:
        if self._head_owed:
            self.transport.abort()
        else:
            self._alarm = self.loop.call_later(BODY_SECONDS, self.transport.abort)

    def _rest(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
