"""The database of a measurement: a file, or a private server whose commits wait for the disk, as they would for a user."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from sqlalchemy import text
from tests.servers.base import Server
from tests.servers.mysql import MySqlServer
from tests.servers.postgresql import PostgresServer

from ksana.store.requests import StoreOptions
from ksana.store.sql.dialects import dialect_of


class _Postgres(PostgresServer):
    memory: ClassVar[str] = "512MB"


class _MySql(MySqlServer):
    """The log as the server has it by itself."""

    memory: ClassVar[str] = "512M"
    log: ClassVar[str] = "96M"


# With as much memory as somebody with a million runs would give them: most of these have room in it.
SERVERS: Mapping[str, type[Server]] = {"postgresql": _Postgres, "mysql": _MySql}
NAMES: Mapping[str, str] = {"sqlite": "SQLite", "postgresql": "PostgreSQL", "mysql": "MariaDB"}
FILE = "ksana.db"


@dataclass(frozen=True)
class Databases:
    """Where new databases are made, one for each measurement."""

    kind: str
    server: Server | None = None
    pids: tuple[int, ...] = field(default=())
    """The server's process; a file has none."""

    def fresh(self, folder: Path) -> str:
        """The address of a new one; a file is in the folder, where `ksana serve` would have it."""
        return f"sqlite:///{folder / FILE}" if self.server is None else self.server.create_database()


@contextmanager
def databases(kind: str) -> Iterator[Databases]:
    """MissingError if there is no such server on this machine."""
    if kind == "sqlite":
        yield Databases(kind)
        return
    with SERVERS[kind](durable=True) as server:
        yield Databases(kind, server, (server._pid,))


def rows(url: str, statement: str, **values: Any) -> list[tuple[Any, ...]]:
    """What a question to the database is answered with; beside whoever serves it."""
    engine = dialect_of(url).reading_engine(url, StoreOptions())
    try:
        with engine.connect() as connection:
            return [tuple(row) for row in connection.execute(text(statement), values)]
    finally:
        engine.dispose()
