"""A private PostgreSQL."""

import signal
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, LiteralString
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

from tests.servers.base import Address, MissingError, Server
from tests.servers.hints import how_to_install
from tests.servers.machine import LOOPBACK, find_program

USER = "ksana"
CONNECT_SECONDS = 10
PROBE_SECONDS = 2


@dataclass(frozen=True)
class PostgresPrograms:
    """What a PostgreSQL is made with and run by; both of one version."""

    initdb: Path
    postgres: Path


class PostgresAddress(Address):
    """A PostgreSQL on this machine that trusts `ksana`."""

    @property
    def url(self) -> str:
        return self._url_of("postgres")

    def create_database(self) -> str:
        name = f"test_{uuid.uuid4().hex[:12]}"
        # template0, because nothing connects to it: a copy of template1 waits until autovacuum has left.
        self._execute("CREATE DATABASE {} TEMPLATE template0", name)
        return self._url_of(name)

    def drop_database(self, url: str) -> None:
        self._execute("DROP DATABASE IF EXISTS {} WITH (FORCE)", urlsplit(url).path.lstrip("/"))

    def serves(self, folder: Path) -> bool:
        try:
            with self._connection(PROBE_SECONDS) as connection:
                row = connection.execute("SHOW data_directory").fetchone()
        except psycopg.OperationalError:
            return False
        return row is not None and Path(row[0]).resolve().is_relative_to(folder)

    def _url_of(self, database: str) -> str:
        return f"postgresql://{USER}@{LOOPBACK}:{self.port}/{database}"

    def _execute(self, statement: LiteralString, database: str) -> None:
        with self._connection(CONNECT_SECONDS) as connection:
            connection.execute(sql.SQL(statement).format(sql.Identifier(database)))

    @contextmanager
    def _connection(self, seconds: int) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
        with psycopg.connect(self.url, autocommit=True, connect_timeout=seconds) as connection:
            yield connection


class PostgresServer(Server):
    """A PostgreSQL of one's own."""

    prefix: ClassVar[str] = "pg"
    accounts: ClassVar[tuple[str, ...]] = ("postgres",)
    memory: ClassVar[str] = "64MB"
    """For what it keeps of its tables."""
    stop_signal: ClassVar[signal.Signals] = signal.SIGINT  # "fast": does not wait for clients to leave
    farewell_signal: ClassVar[signal.Signals] = signal.SIGQUIT  # "immediate": no checkpoint, but frees its memory

    def __init__(self, *, durable: bool = False) -> None:
        self.programs = self.find()
        super().__init__(durable=durable)

    @classmethod
    def find(cls) -> PostgresPrograms:
        """The newest installed server; raises MissingError when there is none."""
        postgres = find_program("postgres")
        initdb = postgres and postgres.resolve().with_name("initdb")
        if postgres is not None and initdb is not None and initdb.exists():
            return PostgresPrograms(initdb, postgres)
        raise MissingError("PostgreSQL", how_to_install("postgresql"), "postgres and initdb in one folder")

    @property
    def address(self) -> PostgresAddress:
        return PostgresAddress(self.port)

    @property
    def data(self) -> Path:
        """The cluster's data directory."""
        return self.folder / "data"

    def close(self) -> None:
        """Ends it and removes its folder, and the memory that one killed by a test left in the system."""
        killed = not self.running and self._folder is not None
        left_over = _left_over_memory(self.data) if killed else None
        super().close()
        if left_over is not None:
            subprocess.run(["ipcrm", "-m", left_over], capture_output=True, check=False)

    def _initialise(self) -> list[str]:
        options = ["--no-sync", "-A", "trust", "-U", USER, "--encoding=UTF8", "--locale=C"]
        return [str(self.programs.initdb), *options, "-D", str(self.data)]

    def _serve(self) -> list[str]:
        settings = {
            "listen_addresses": LOOPBACK,
            "unix_socket_directories": "",
            "max_connections": "200",
            "shared_buffers": self.memory,
            "dynamic_shared_memory_type": "mmap",  # files in the folder, which go with it
            **({} if self.durable else _CARELESS),
        }
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        return [str(self.programs.postgres), "-D", str(self.data), "-p", str(self.port), *options]


_CARELESS = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


def _left_over_memory(data: Path) -> str | None:
    """The System V segment of a postmaster that was killed: the second number on line 7 of its lock file."""
    try:
        return (data / "postmaster.pid").read_text().splitlines()[6].split()[1]
    except (OSError, IndexError):
        return None
