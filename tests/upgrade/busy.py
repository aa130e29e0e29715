"""A large database of the schema before, and somebody who writes to it: how long does a migration keep a writer waiting?

python -m tests.upgrade.busy 1000000
"""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, Engine, event, text
from sqlalchemy.exc import DBAPIError

from ksana.store.requests import StoreOptions
from ksana.store.sql import migrate
from ksana.store.sql.dialects import dialect_of
from ksana.store.sql.migrations import __file__ as migrations_file
from tests.servers.mysql import MySqlServer
from tests.servers.postgresql import PostgresServer
from tests.upgrade.older import OLDER_SCHEMA

COLUMNS = (
    "triggered_by, worker_queue, status, ready_at, epoch, attempt, open_dependencies, created_at, updated_at, input"
)
ROW = (
    "'SCHEDULE', 'default', 'SUCCEEDED', NULL, 1, 1, 0, 1, 1, '{\"what\": \"an order of usual length, more or less\"}'"
)


def engine_of(url: str) -> Engine:
    """As an instance has it, with its limits: a write that waits for a lock longer than 2 s fails."""
    return dialect_of(url).writing_engine(url, StoreOptions())


def upgrade(connection: Connection, revision: str) -> None:
    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(Path(migrations_file).parent).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    command.upgrade(config, revision)
    connection.commit()


def fill(url: str, rows: int) -> None:
    """The schema before, with so many executions; those of each third id wait for a worker."""
    engine = dialect_of(url).writing_engine(url, StoreOptions(), patient=True)
    with engine.connect() as connection:
        upgrade(connection, OLDER_SCHEMA)
        connection.execute(text(f"INSERT INTO executions ({COLUMNS}) VALUES ({ROW})"))
        made = 1
        while made < rows:
            more = min(made, rows - made)
            connection.execute(
                text(f"INSERT INTO executions ({COLUMNS}) SELECT {COLUMNS} FROM executions LIMIT {more}")
            )
            connection.commit()
            made += more
        connection.execute(text("UPDATE executions SET ready_at = id WHERE MOD(id, 3) = 0"))
        connection.commit()
    engine.dispose()


class Writer:
    """Inserts and updates executions, one transaction after the other, until it is told to stop."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.written = 0
        self.longest = 0.0
        self.errors: list[DBAPIError] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        engine = engine_of(self.url)
        with engine.connect() as connection:
            if connection.dialect.name != "postgresql":
                connection.execute(text("SET SESSION lock_wait_timeout = 2"))
                connection.commit()
            while not self._stop.is_set():
                begun = time.monotonic()
                try:
                    self._write(connection)
                except DBAPIError as error:
                    connection.rollback()
                    self.errors.append(error)
                self.longest = max(self.longest, time.monotonic() - begun)
        engine.dispose()

    def _write(self, connection: Connection) -> None:
        connection.execute(text(f"INSERT INTO executions ({COLUMNS}) VALUES ({ROW})"))
        changed = {"now": self.written, "id": self.written % 1000 + 1}
        connection.execute(text("UPDATE executions SET ready_at = :now, status = 'RETRYING' WHERE id = :id"), changed)
        connection.commit()
        self.written += 1


@contextmanager
def statements(writer: Writer | None = None) -> Iterator[dict[str, int]]:
    """The statements that change tables, as they are begun; of each, how often the writer had written while it ran."""
    seen: dict[str, int] = {}

    def written() -> int:
        return 0 if writer is None else writer.written

    def begun(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if statement.lstrip().startswith(("ALTER", "CREATE INDEX", "DROP INDEX")):
            seen[statement] = -written()

    def ended(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if statement in seen:
            seen[statement] += written()

    event.listen(Engine, "before_cursor_execute", begun)
    event.listen(Engine, "after_cursor_execute", ended)
    try:
        yield seen
    finally:
        event.remove(Engine, "before_cursor_execute", begun)
        event.remove(Engine, "after_cursor_execute", ended)


def measure(url: str, rows: int) -> str:
    fill(url, rows)
    with Writer(url) as writer:
        time.sleep(3)
        usual, writer.longest, before = writer.longest, 0.0, writer.written
        begun = time.monotonic()
        migrate.upgrade(url, StoreOptions())
        took = time.monotonic() - begun
        longest, written = writer.longest, writer.written - before
    return (
        f"{rows} executions: migrated in {took:.1f} s; {written} writes meanwhile, {len(writer.errors)} failed,"
        f" the longest {longest:.2f} s (before: {usual:.2f} s)"
    )


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    for kind in (PostgresServer, MySqlServer):
        with kind(durable=True) as server:
            print(kind.__name__, measure(server.create_database(), rows), flush=True)


if __name__ == "__main__":
    main()
