"""One connection to a target, one request at a time: HTTP/1.1 as far as a client needs it.

An answer is written down as it comes, within its bounds, and whoever asked is woken once, at its end. Nothing piles up: what
is beyond the bounds is not kept, and beyond what is read the connection is closed.
"""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple, Protocol, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from ksana.domain.values import immutable
from ksana.executors.egress_errors import BrokenOff, EgressError, Incomplete, NotHttp

MAX_FIELD = 8_190
"""Bytes of one header."""
MAX_FIELDS = 128
MAX_HEAD = 65_536
"""Bytes of all headers, and of whatever else may come before, between or after the parts of a body."""
_TOO_LARGE = "the head is too large"

Headers = Sequence[tuple[bytes, bytes]]


class Origin(NamedTuple):
    """What a connection leads to, and what it may be used for again."""

    scheme: str
    host: str
    """In ASCII; an IPv6 address without brackets."""
    port: int


@immutable
class Bounds:
    """How much of an answer is taken."""

    max_read: int
    """Bytes of the body after which the connection is closed."""
    max_kept: int
    """Bytes of the body that are kept."""
    unread: frozenset[int] = frozenset()
    """Statuses that are enough by themselves if they come with a Location: their body is left where it is."""


class Answer:
    """What has come back so far; the connection writes it, anyone may read it, also after the attempt was cut short."""

    __slots__ = ("bounds", "bytes_read", "complete", "headers", "kept", "status", "without_body")

    def __init__(self, bounds: Bounds, *, without_body: bool = False) -> None:
        self.bounds = bounds
        self.without_body = without_body
        """Of HEAD: whatever the headers say, no body follows."""
        self.status: int | None = None
        self.headers: Headers = ()
        self.kept: bytes | bytearray = b""
        self.bytes_read = 0
        self.complete = False
        """The whole body has been read."""

    def header(self, name: bytes) -> bytes | None:
        """The first of this name, which is given in lower case."""
        return next((value for known, value in self.headers if known.lower() == name), None)


class Owner(Protocol):
    """Whom a connection belongs to."""

    def send(self, connection: "Connection", data: bytes, /) -> None:
        """Has it written, if not at once, then before the loop waits for anything."""

    def freed(self, connection: "Connection", /) -> None:
        """It can be asked again."""

    def gone(self, connection: "Connection", /) -> None:
        """It is closed."""


class Connection(asyncio.Protocol):
    """Belongs to a pool, which it tells when it is free again and when it is lost."""

    def __init__(self, origin: Origin, owner: Owner) -> None:
        self.origin = origin
        self.idle_since = 0.0
        self.lost = False
        self._owner = owner
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._parser: HttpResponseParser | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._answer = _NOBODYS
        self._headers: list[tuple[bytes, bytes]] = []
        self._fault: NotHttp | None = None
        self._silent = 0
        """Bytes that have come since the request was sent, or since the last of the body."""
        self._sent = self._informational = self._ended = self._reusable = False
        self._expires_at = self._timer_at = 0.0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def usable(self) -> bool:
        """A request can be sent: nothing was heard of its end yet."""
        return self._transport is not None and not self._transport.is_closing()

    def ask(self, data: bytes, answer: Answer, expires_at: float) -> "asyncio.Future[None]":
        """Sends a whole request. The future is done when the answer is; or fails with an EgressError or TimeoutError.

        Only while it is free. Whoever no longer waits must say so (`leave`).
        """
        if self._parser is None:
            self._parser = _parser(self)
        self._answer = answer
        self._headers = []
        self._silent = 0
        self._ended = self._sent = False
        self._expires_at = expires_at
        if self._timer is None or expires_at < self._timer_at:
            self._set_timer()
        self._waiter = waiter = self._loop.create_future()
        self._owner.send(self, data)
        return waiter

    def write(self, data: bytes) -> None:
        """What was asked to be sent, unless whoever asked has left meanwhile or the connection has ended."""
        if self._waiter is not None and self._transport is not None:
            self._sent = True
            self._transport.write(data)

    def leave(self, waiter: "asyncio.Future[None]") -> None:
        """Nobody waits for this answer any more: unless it has come meanwhile, the connection is closed."""
        if self._waiter is waiter:
            self._fail(None)
        elif waiter.done() and not waiter.cancelled():
            waiter.exception()  # nobody will look at it any more

    def close(self) -> None:
        """At once; a request under way is broken off."""
        if self._transport is not None:
            self._transport.abort()

    # What the transport tells ---------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self._waiter is None or self._parser is None or not self._sent:
            self.close()  # nobody asked, or not yet: this is no answer
            return
        self._silent += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            self._reusable = False
            if not self._ended:
                self._fail(self._fault or NotHttp(str(error)))
                return
        if self._ended:
            self._finish()
        elif self._silent > MAX_HEAD:
            self._fail(NotHttp(_TOO_LARGE))

    def eof_received(self) -> None:
        self._stream_ended(None)
        self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stream_ended(exc)
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._parser = self._transport = None
        self.lost = True
        self._owner.gone(self)

    # What the parser tells ------------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if self._ended:
            self._reusable = False  # bytes after the answer: whatever they are, they are not to be read as the next one
        self._informational = False

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        parser, answer = self._parser, self._answer
        if self._ended or parser is None:
            return
        headers, self._headers = self._headers, []  # trailers, should any follow, are nobody's
        if self._silent > MAX_FIELD or len(headers) > MAX_FIELDS:
            self._check_size(headers)
        status = parser.get_status_code()
        if status < 200 and status != 101:
            if status < 100:
                self._refuse("no such status")
            self._informational = True
            return
        answer.status, answer.headers = status, headers
        self._reusable = parser.should_keep_alive() and parser.get_http_version() == "1.1" and status != 101
        if answer.without_body or status == 101:
            self._ended = answer.complete = True
            self._parser = None  # it may wait for a body that does not come
        elif status in answer.bounds.unread and answer.header(b"location") is not None:
            self._ended, self._reusable = True, False

    def on_body(self, data: bytes) -> None:
        if self._ended:
            self._reusable = False
            return
        self._silent = 0
        answer, bounds = self._answer, self._answer.bounds
        answer.bytes_read += len(data)
        room = bounds.max_kept - len(answer.kept)
        if not answer.kept:
            answer.kept = data[:room]
        elif room > 0:
            if not isinstance(answer.kept, bytearray):
                answer.kept = bytearray(answer.kept)
            answer.kept += data[:room]
        if answer.bytes_read > bounds.max_read:
            self._ended, self._reusable = True, False

    def on_message_complete(self) -> None:
        if not self._ended and not self._informational:
            self._ended = self._answer.complete = True

    def _check_size(self, headers: "Headers") -> None:
        sizes = [len(name) + len(value) for name, value in headers]
        if len(sizes) > MAX_FIELDS or max(sizes, default=0) > MAX_FIELD or sum(sizes) > MAX_HEAD:
            self._refuse(_TOO_LARGE)

    def _refuse(self, reason: str) -> None:
        """Stops the parser in the middle."""
        self._fault = NotHttp(reason)
        raise self._fault

    # How it ends ----------------------------------------------------------------------------------------------------

    def _finish(self) -> None:
        """The answer is there. The connection is free before whoever asked is woken, so that it can serve the next at once."""
        waiter, self._waiter = self._waiter, None
        transport, self._answer = self._transport, _NOBODYS
        if self._reusable and transport is not None and not transport.get_write_buffer_size():
            self._owner.freed(self)
        else:
            self.close()
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def _fail(self, error: EgressError | TimeoutError | None) -> None:
        waiter, self._waiter = self._waiter, None
        self._answer = _NOBODYS
        self.close()
        if waiter is not None and error is not None and not waiter.done():
            waiter.set_exception(error)

    def _stream_ended(self, error: Exception | None) -> None:
        if self._waiter is None:
            return
        if self._answer.status is None:
            self._fail(BrokenOff("the connection was closed before an answer came"))
        elif error is None and _until_close(self._answer):
            self._answer.complete = True
            self._reusable = False
            self._finish()
        else:
            self._fail(Incomplete("the connection was closed before the end of the answer"))

    # The deadline: one timer for many requests, set again when it rings too early ------------------------------------

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = self._expires_at
        self._timer = self._loop.call_later(max(0.0, self._expires_at - self._loop.time()), self._ring)

    def _ring(self) -> None:
        self._timer = None
        if self._waiter is None:
            return
        if self._loop.time() < self._expires_at:
            self._set_timer()
        else:
            self._fail(TimeoutError())


_NOBODYS = Answer(Bounds(0, 0))


def _parser(connection: Connection) -> HttpResponseParser:
    parser = HttpResponseParser(connection)
    # Of what servers do that they should not, what can be understood in one way only.
    parser.set_dangerous_leniencies(
        lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
    )
    return parser


def _until_close(answer: Answer) -> bool:
    """Whether the end of the connection is the end of this body (RFC 9112 §6.3)."""
    encodings = [value for name, value in answer.headers if name.lower() == b"transfer-encoding"]
    if encodings:
        return encodings[-1].rpartition(b",")[2].strip().lower() != b"chunked"
    return answer.header(b"content-length") is None
