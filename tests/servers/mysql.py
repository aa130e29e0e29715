"""A private MariaDB or MySQL, whichever is installed."""

import subprocess
import uuid
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

import pymysql

from tests.servers.base import Address, MissingError, Server
from tests.servers.hints import how_to_install
from tests.servers.machine import LOOPBACK, find_program

USER = "root"
CONNECT_SECONDS = 10
PROBE_SECONDS = 2


@dataclass(frozen=True)
class MySqlPrograms:
    """The server, and MariaDB's program that fills a data directory; MySQL's server does that itself."""

    server: Path
    installer: Path | None

    @property
    def is_mariadb(self) -> bool:
        """Which of the two it is."""
        return self.installer is not None


class MySqlAddress(Address):
    """A MariaDB or MySQL on this machine whose root has no password."""

    @property
    def url(self) -> str:
        return self._url_of("mysql")

    def create_database(self) -> str:
        name = f"test_{uuid.uuid4().hex[:12]}"
        self._query(f"CREATE DATABASE `{name}`", CONNECT_SECONDS)
        return self._url_of(name)

    def drop_database(self, url: str) -> None:
        name = urlsplit(url).path.lstrip("/")
        # An open transaction holds its tables' metadata locks, and DROP would wait for it.
        users = self._query("SELECT id FROM information_schema.processlist WHERE db = %s", CONNECT_SECONDS, (name,))
        for (connection,) in users:
            self._end_connection(int(connection))
        self._query(f"DROP DATABASE IF EXISTS `{name}`", CONNECT_SECONDS)

    def serves(self, folder: Path) -> bool:
        try:
            rows = self._query("SELECT @@datadir", PROBE_SECONDS)
        except (pymysql.OperationalError, pymysql.InternalError):
            return False
        return Path(rows[0][0]).resolve().is_relative_to(folder)

    def _url_of(self, database: str) -> str:
        return f"mysql://{USER}@{LOOPBACK}:{self.port}/{database}"

    def _end_connection(self, connection: int) -> None:
        try:
            self._query(f"KILL {connection}", CONNECT_SECONDS)
        except pymysql.OperationalError as gone:
            if gone.args[0] != pymysql.constants.ER.NO_SUCH_THREAD:
                raise

    def _query(self, statement: str, seconds: int, values: tuple[str, ...] = ()) -> list[tuple[Any, ...]]:
        connection = pymysql.connect(
            host=LOOPBACK, port=self.port, user=USER, connect_timeout=seconds, read_timeout=seconds
        )
        with closing(connection), connection.cursor() as cursor:
            cursor.execute(statement, values)
            return list(cursor.fetchall())


class MySqlServer(Server):
    """A MariaDB or MySQL of one's own."""

    prefix: ClassVar[str] = "my"
    accounts: ClassVar[tuple[str, ...]] = ("mysql",)
    memory: ClassVar[str] = "64M"
    """For what it keeps of its tables."""
    log: ClassVar[str] = "16M"

    def __init__(self, *, durable: bool = False) -> None:
        self.programs = self.find()
        super().__init__(durable=durable)

    @classmethod
    def find(cls) -> MySqlPrograms:
        """MariaDB where it is installed, else MySQL; raises MissingError when there is neither."""
        looked_for = "mariadbd with mariadb-install-db, or mysqld"
        missing = MissingError("MySQL or MariaDB", how_to_install("mysql"), looked_for)
        server = find_program("mariadbd", "mysqld")
        if server is None:
            raise missing
        if not _is_mariadb(server):
            return MySqlPrograms(server, None)
        installer = find_program("mariadb-install-db", "mysql_install_db")
        if installer is None:
            raise missing
        return MySqlPrograms(server, installer)

    @property
    def address(self) -> MySqlAddress:
        return MySqlAddress(self.port)

    @property
    def data(self) -> Path:
        """The data directory."""
        return self.folder / "data"

    def _initialise(self) -> list[str]:
        if self.programs.installer is None:
            return [str(self.programs.server), "--no-defaults", "--initialize-insecure", *self._storage()]
        options = ["--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve"]
        return [str(self.programs.installer), "--no-defaults", *options, *self._storage()]

    def _serve(self) -> list[str]:
        options = {
            "port": str(self.port),
            "bind-address": LOOPBACK,
            "skip-networking": "0",
            "socket": str(self.folder / "s"),
            "pid-file": str(self.folder / "pid"),
            "character-set-server": "utf8mb4",  # MySQL's default; MariaDB before 11.6 would take latin1
            "max-connections": "200",
            "loose-mysqlx": "0",  # MySQL's second port
            "loose-performance-schema": "0",
        }
        words = [f"--{name}={value}" for name, value in options.items()]
        return [str(self.programs.server), "--no-defaults", *words, "--skip-log-bin", *self._storage()]

    def _storage(self) -> list[str]:
        size = [f"--innodb-buffer-pool-size={self.memory}", f"--loose-innodb-log-file-size={self.log}"]
        careless = ["--innodb-flush-log-at-trx-commit=0", "--loose-debug-no-sync=1"]
        return [f"--datadir={self.data}", *size, *([] if self.durable else careless)]


@cache
def _is_mariadb(server: Path) -> bool:
    version = subprocess.run([server, "--no-defaults", "--version"], capture_output=True, text=True, check=False)
    return "MariaDB" in version.stdout
