"""A TCP proxy between the product and a real server, for the faults that only a network makes.

| | what clients meet |
| --- | --- |
| `pass_on()` | nothing: every byte goes through; ends whatever else was said |
| `refuse()` | nobody listens; connections that were open are reset |
| `reset()` | every connection is reset, and each new one |
| `blackhole()` | connections are open and silent, and new ones are accepted. What was on its way arrives when it is over |
| `delay(seconds)` | each request takes so much longer |
| `cut_after(number)` | the next connection that has answered so many bytes from now on is reset in the middle of its answer |
| `lose_answer_to(request)` | a request reaches the server, its answer does not come back, and the connection ends |
| `drop(request)` | a request does not reach the server, and the connection ends |
"""

import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum, auto
from typing import Self

from sqlalchemy.engine import make_url

CHUNK = 65_536
BACKLOG = 128
RESET_AT_CLOSE = struct.pack("ii", 1, 0)


class _Mode(Enum):
    PASS = auto()
    REFUSE = auto()
    RESET = auto()
    BLACKHOLE = auto()


@dataclass
class _Trap:
    """Requests for which something else happens than for others."""

    request: bytes
    reaches_server: bool
    times: int
    every: int
    seen: int = 0

    def catches(self, data: bytes) -> bool:
        if self.times == 0 or self.request not in data.upper():
            return False
        self.seen += 1
        if self.seen % self.every:
            return False
        self.times -= 1
        return True


class Proxy:
    """Passes everything on until it is told otherwise."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._changed = threading.Condition()
        self._mode = _Mode.PASS
        self._trap: _Trap | None = None
        self._delay = 0.0
        self._left: int | None = None
        self._links: set[_Link] = set()
        self.lost = 0
        """How many answers were lost, or requests dropped."""
        self.port = 0
        self._listener = self._listen()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._change(_Mode.REFUSE)

    def pass_on(self) -> None:
        if self._mode is _Mode.REFUSE:
            self._listener = self._listen()
        self._delay, self._left, self._trap = 0.0, None, None
        self._change(_Mode.PASS)

    def refuse(self) -> None:
        self._change(_Mode.REFUSE)

    def reset(self) -> None:
        self._change(_Mode.RESET)

    def blackhole(self) -> None:
        self._change(_Mode.BLACKHOLE)

    def delay(self, seconds: float) -> None:
        self._delay = seconds

    def cut_after(self, number: int) -> None:
        self._left = number

    def lose_answer_to(self, request: bytes, *, times: int = 1, every: int = 1) -> None:
        """The next request that contains these bytes, or so many times every so-manieth; letters are compared as capitals."""
        self._trap = _Trap(request, True, times, every)

    def drop(self, request: bytes, *, times: int = 1, every: int = 1) -> None:
        """Likewise."""
        self._trap = _Trap(request, False, times, every)

    @property
    def connections(self) -> int:
        """That are open now."""
        return len(self._links)

    # What links ask -----------------------------------------------------------------------------------------------------

    def caught(self, data: bytes) -> _Trap | None:
        with self._changed:
            if self._trap is None or not self._trap.catches(data):
                return None
            self.lost += 1
            return self._trap

    def wait_open(self, link: "_Link") -> None:
        """While everything is silent."""
        with self._changed:
            self._changed.wait_for(lambda: self._mode is not _Mode.BLACKHOLE or link.broken)

    def slow_down(self) -> None:
        if self._delay:
            time.sleep(self._delay)

    def allowed(self, data: bytes) -> bytes:
        """As much of an answer as may pass."""
        with self._changed:
            if self._left is None or len(data) < self._left:
                self._left = None if self._left is None else self._left - len(data)
                return data
            cut, self._left = self._left, None
            return data[:cut]

    # Inside -------------------------------------------------------------------------------------------------------------

    def _change(self, mode: _Mode) -> None:
        with self._changed:
            self._mode = mode
            links = list(self._links)
            self._changed.notify_all()
        if mode is _Mode.REFUSE:
            with suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)  # wakes whoever accepts
            self._listener.close()
        if mode in {_Mode.REFUSE, _Mode.RESET}:
            for link in links:
                link.reset()

    def _listen(self) -> socket.socket:
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self.port))
        listener.listen(BACKLOG)
        self.port = listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        return listener

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client: socket.socket) -> None:
        link = _Link(self, client)
        with self._changed:
            self._links.add(link)
            if self._mode in {_Mode.REFUSE, _Mode.RESET}:
                link.reset()
        try:
            with suppress(OSError):
                link.carry(self._target)
        finally:
            client.close()
            with self._changed:
                self._links.discard(link)


class _Link:
    """One connection, and the one to the server that it leads to."""

    def __init__(self, proxy: Proxy, client: socket.socket) -> None:
        self._proxy = proxy
        self._client = client
        self.broken = False

    def reset(self) -> None:
        """The client is told that the connection is gone, in the middle of whatever it does."""
        self.broken = True
        with suppress(OSError):
            self._client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_CLOSE)
            self._client.shutdown(socket.SHUT_RD)  # wakes whoever reads; what closes it then resets it

    def carry(self, target: tuple[str, int]) -> None:
        self._proxy.wait_open(self)
        if self.broken:
            return
        with socket.create_connection(target) as server:
            answers = threading.Thread(target=self._answers, args=(server,), daemon=True)
            answers.start()
            while data := _received(self._client):
                self._proxy.wait_open(self)
                trap = self._proxy.caught(data)
                if trap is not None:
                    _spring(trap, self._client, server, data)
                    return
                self._proxy.slow_down()
                server.sendall(data)
            _hang_up(server)
            answers.join()

    def _answers(self, server: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(CHUNK):
                self._proxy.wait_open(self)
                allowed = self._proxy.allowed(data)
                self._client.sendall(allowed)
                if len(allowed) < len(data):
                    self.reset()
        if not self.broken:  # or else the client would see an orderly end
            _hang_up(self._client)


def _spring(trap: _Trap, client: socket.socket, server: socket.socket, data: bytes) -> None:
    # The client hears nothing more; the server does what it was asked, since it reads before it sees the end.
    client.shutdown(socket.SHUT_RDWR)
    if trap.reaches_server:
        server.sendall(data)
    with suppress(OSError):
        server.shutdown(socket.SHUT_WR)
        while server.recv(CHUNK):
            pass


def _received(source: socket.socket) -> bytes:
    with suppress(OSError):
        return source.recv(CHUNK)
    return b""


def _hang_up(sink: socket.socket) -> None:
    with suppress(OSError):
        sink.shutdown(socket.SHUT_RDWR)


@contextmanager
def proxied(url: str) -> Iterator[tuple[str, Proxy]]:
    """The same database through a proxy."""
    parsed = make_url(url)
    with Proxy(parsed.host or "127.0.0.1", parsed.port or 0) as proxy:
        through = parsed.set(host="127.0.0.1", port=proxy.port)
        yield through.render_as_string(hide_password=False), proxy
