"""A private Redis, and the few words of its protocol that the tests need."""

import socket
from pathlib import Path
from typing import BinaryIO, ClassVar
from urllib.parse import urlsplit

from tests.servers.base import Address, MissingError, Server
from tests.servers.hints import how_to_install
from tests.servers.machine import LOOPBACK, find_program

DATABASES = 1_000
CONNECT_SECONDS = 5.0
COUNTER = "ksana:tests:databases"


class RedisError(Exception):
    """Redis answered with an error."""


class RedisAddress(Address):
    """A Redis on this machine. Its databases share the channels; for those, take a private server."""

    @property
    def url(self) -> str:
        return self._url_of(0)

    def create_database(self) -> str:
        """The next of its numbered databases; database 0 counts them for all who share the server."""
        count = self.call(0, "INCR", COUNTER)
        return self._url_of(1 + int(count) % (DATABASES - 1))

    def drop_database(self, url: str) -> None:
        """Empties it."""
        self.call(int(urlsplit(url).path.lstrip("/")), "FLUSHDB")

    def serves(self, folder: Path) -> bool:
        try:
            self.call(0, "DBSIZE")  # refused while it still loads its data, which CONFIG is not
            return Path(self.call(0, "CONFIG", "GET", "dir").splitlines()[-1]).resolve() == folder
        except (OSError, RedisError, IndexError):
            return False

    def call(self, database: int, *words: str) -> str:
        """Sends one command and returns the answer as text, an array's elements on a line each."""
        with socket.create_connection((LOOPBACK, self.port), CONNECT_SECONDS) as connection:
            connection.sendall(_encode("SELECT", str(database)) + _encode(*words))
            with connection.makefile("rb") as answers:
                _decode(answers)
                return _decode(answers)

    def _url_of(self, database: int) -> str:
        return f"redis://{LOOPBACK}:{self.port}/{database}"


class RedisServer(Server):
    """A Redis, or Valkey, of one's own."""

    prefix: ClassVar[str] = "redis"
    accounts: ClassVar[tuple[str, ...]] = ("redis",)

    def __init__(self, *, durable: bool = False) -> None:
        self.program = self.find()
        super().__init__(durable=durable)

    @classmethod
    def find(cls) -> Path:
        """The installed server; raises MissingError when there is none."""
        program = find_program("redis-server", "valkey-server")
        if program is None:
            raise MissingError("Redis", how_to_install("redis"), "redis-server or valkey-server")
        return program

    @property
    def address(self) -> RedisAddress:
        return RedisAddress(self.port)

    def _initialise(self) -> None:
        return None

    def _serve(self) -> list[str]:
        options = {
            "port": str(self.port),
            "bind": LOOPBACK,
            "dir": str(self.folder),
            "databases": str(DATABASES),
            "save": "",
            "appendonly": "yes" if self.durable else "no",
            "appendfsync": "always",
        }
        return [
            str(self.program),
            *(word for name, value in options.items() for word in (f"--{name}", value)),
        ]


def _encode(*words: str) -> bytes:
    parts = [f"*{len(words)}\r\n".encode()]
    parts += [b"$%d\r\n%s\r\n" % (len(word.encode()), word.encode()) for word in words]
    return b"".join(parts)


def _decode(answers: BinaryIO) -> str:
    line = answers.readline()
    if not line.endswith(b"\r\n"):
        raise ConnectionError("Redis closed the connection")
    kind, rest = line[:1], line[1:-2].decode()
    if kind == b"-":
        raise RedisError(rest)
    if kind == b"$":
        return "" if rest == "-1" else answers.read(int(rest) + 2)[:-2].decode()
    if kind == b"*":
        return "\n".join(_decode(answers) for _ in range(int(rest)))
    return rest
