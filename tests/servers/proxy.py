"""A TCP proxy between the product and a real server, for the faults that only a network makes."""

import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Self

from sqlalchemy.engine import make_url

CHUNK = 65_536


class Proxy:
    """Passes everything on until it is told to lose an answer."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._lock = threading.Lock()
        self._lose_answer_to: bytes | None = None
        self.lost = 0
        """How many answers were lost."""
        self._server = _Server(self)
        self.port = self._server.server_address[1]

    def lose_answer_to(self, request: bytes) -> None:
        """The next request that contains these bytes reaches the server, but its answer does not come back."""
        with self._lock:
            self._lose_answer_to = request

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def carry(self, client: socket.socket) -> None:
        with socket.create_connection(self._target) as server:
            answers = threading.Thread(target=_pump, args=(server, client), daemon=True)
            answers.start()
            while data := _received(client):
                if self._is_to_be_lost(data):
                    _forward_and_hang_up(client, server, data)
                    return
                server.sendall(data)
            _hang_up(server)
            answers.join()

    def _is_to_be_lost(self, data: bytes) -> bool:
        with self._lock:
            if self._lose_answer_to is None or self._lose_answer_to not in data.upper():
                return False
            self._lose_answer_to = None
            self.lost += 1
            return True


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, proxy: Proxy) -> None:
        self.proxy = proxy
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(socketserver.BaseRequestHandler):
    server: _Server

    def handle(self) -> None:
        with suppress(OSError):
            self.server.proxy.carry(self.request)


def _forward_and_hang_up(client: socket.socket, server: socket.socket, data: bytes) -> None:
    # The client hears nothing more; the server does what it was asked, since it reads before it sees the end.
    client.shutdown(socket.SHUT_RDWR)
    server.sendall(data)
    with suppress(OSError):
        server.shutdown(socket.SHUT_WR)
        while server.recv(CHUNK):
            pass


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(CHUNK):
            sink.sendall(data)
    _hang_up(sink)


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
