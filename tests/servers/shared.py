"""One server of each kind per test session, shared by its pytest-xdist workers.

The controller owns the servers: it starts one when the first worker asks for it, and ends them all when the
session ends. A worker that crashes takes none with it; a controller that is killed takes all, by their
leashes.
"""

import json
import socket
import socketserver
import threading
from typing import Any, Final

from tests.servers.base import Address, MissingError, Server, ServerError
from tests.servers.machine import LOOPBACK
from tests.servers.mysql import MySqlAddress, MySqlServer
from tests.servers.postgresql import PostgresAddress, PostgresServer
from tests.servers.redis import RedisAddress, RedisServer

SERVERS: Final[dict[str, type[Server]]] = {
    "postgresql": PostgresServer,
    "mysql": MySqlServer,
    "redis": RedisServer,
}
ADDRESSES: Final[dict[str, type[Address]]] = {
    "postgresql": PostgresAddress,
    "mysql": MySqlAddress,
    "redis": RedisAddress,
}
ANSWER_SECONDS = 120.0
SHUTDOWN_POLL_SECONDS = 0.05


class SharedServers:
    """Starts each kind of server once, when it is first wanted, for any thread."""

    def __init__(self) -> None:
        self._locks = {name: threading.Lock() for name in SERVERS}
        self._started: dict[str, Server] = {}

    def address(self, name: str) -> Address:
        """Where the one server of this kind listens. Raises MissingError or ServerError."""
        with self._locks[name]:
            if name not in self._started:
                self._started[name] = SERVERS[name]().start()
            return self._started[name].address

    def close(self) -> None:
        """Ends them all."""
        while self._started:
            self._started.popitem()[1].close()


class Desk:
    """Answers workers who ask the controller for a server: a name per line, a JSON object per line back."""

    def __init__(self, servers: SharedServers) -> None:
        self._listener = _Listener((LOOPBACK, 0), _Handler)
        self._listener.servers = servers
        self.port = int(self._listener.server_address[1])
        self._thread = threading.Thread(target=self._listener.serve_forever, args=(SHUTDOWN_POLL_SECONDS,))
        self._thread.start()

    def close(self) -> None:
        """Stops answering, once the answers under way are given."""
        self._listener.shutdown()
        self._thread.join()
        self._listener.server_close()


class DeskClient:
    """The worker's side of the desk: the same `address` as SharedServers has."""

    def __init__(self, port: int) -> None:
        self._port = port

    def address(self, name: str) -> Address:
        """Where the session's one server of this kind listens. Raises MissingError or ServerError."""
        with (
            socket.create_connection((LOOPBACK, self._port), ANSWER_SECONDS) as connection,
            connection.makefile("rwb") as stream,
        ):
            stream.write(f"{name}\n".encode())
            stream.flush()
            answer: dict[str, Any] = json.loads(stream.readline())
        if "missing" in answer:
            raise MissingError(*answer["missing"])
        if "failed" in answer:
            raise ServerError(answer["failed"])
        return ADDRESSES[name](answer["port"])


class _Listener(socketserver.ThreadingTCPServer):
    daemon_threads = False
    servers: SharedServers


class _Handler(socketserver.StreamRequestHandler):
    server: _Listener

    def handle(self) -> None:
        name = self.rfile.readline().decode().strip()
        self.wfile.write(json.dumps(self._answer(name)).encode() + b"\n")

    def _answer(self, name: str) -> dict[str, Any]:
        try:
            return {"port": self.server.servers.address(name).port}
        except MissingError as missing:
            return {"missing": [missing.label, missing.how, missing.looked_for]}
        except Exception as failure:  # noqa: BLE001 - it must reach the worker, which fails its test with it
            return {"failed": f"{type(failure).__name__}: {failure}"}
