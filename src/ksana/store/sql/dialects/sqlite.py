"""SQLite: one file, one process, one writer."""

import re
import sqlite3
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import make_url
from sqlalchemy.pool import QueuePool

from ksana.store.requests import Diagnosis, StoreOptions
from ksana.store.sql.dialects.base import GIVEN, Dialect, RowColumns

OLDEST = (3, 35, 0)
BUSY_TIMEOUT = timedelta(seconds=30)
PATIENCE = {
    True: f"PRAGMA busy_timeout = {BUSY_TIMEOUT // timedelta(milliseconds=1)}",
    False: "PRAGMA busy_timeout = 0",
}


class SqliteDialect(Dialect):
    name = "sqlite"
    # Only one process has the file open (see filelock.py), so its own clock is the one that counts.
    shared = False
    # To take 13 columns out of JSON takes 6.4 µs a row, to bind them 1.9.
    takes_values = True
    # To be able to take a statement alone back, it would copy each page before it changes it: of an UPDATE of 64 rows, 11 of 15 µs
    # each.
    or_fail = "OR FAIL"
    # Its driver lets go of the interpreter's lock for each row, and has to wait until the event loop lets it have it again.
    gathers_rows = True
    # Each job has its own page there, once it has a past, and each page that is changed is written whole.
    has_runs_by_job = False
    patience = PATIENCE
    begin = "BEGIN IMMEDIATE"
    others_wrote = "PRAGMA data_version"
    # The writer holds the whole file from BEGIN IMMEDIATE on: there are no rows to lock.
    marks: ClassVar[dict[str, str]] = {
        # The rows first, then the table by its index: CROSS keeps the planner from turning it round.
        "join": "CROSS JOIN",
        "for_update": "",
        "skip_locked": "",
        "for_share": "",
        "for_update_jobs": "",
        "by_id": "",
        "by_ready": "",
        "in_ready_index": "t.ready_at IS NOT NULL",
        # Of indexes that serve alike it takes the one that was made last, which differs between new files and migrated ones.
        "by_job_status": "INDEXED BY ix_executions_job_status",
        # Else the planner may take the states first, and go through all of a run's waiting nodes for each that is asked for.
        "by_node": "INDEXED BY ix_executions_node",
        "status": "t.status",
        "once": "MATERIALIZED",
        "by_owner": "INDEXED BY ix_executions_owner",
        "by_share": "INDEXED BY ix_executions_share",
        "share": "t.share",
        "now": ":clock",
    }

    def exists(self, url: str) -> bool:
        return database_path(url).exists()

    def writing_engine(self, url: str, options: StoreOptions, *, patient: bool = False) -> Engine:  # noqa: ARG002
        # One connection for the writer, one for heartbeats.
        return _engine(url, pool_size=2, begin=self.begin, set_up=_set_up_writer)

    def reading_engine(self, url: str, options: StoreOptions) -> Engine:
        return _engine(url, pool_size=options.readers, begin="BEGIN", set_up=_set_up_reader)

    def rows_table(self, columns: RowColumns, given: str = "rows", name: str = "r") -> str:
        fields = ", ".join(f"json_extract(value, '$[{i}]') AS {column}" for i, (column, _) in enumerate(columns))
        return f"(SELECT {fields} FROM json_each(:{given})) AS {name}"

    def update_listed(self, table: str, assignments: Mapping[str, str], columns: RowColumns, count: int) -> str | None:  # noqa: ARG002
        if count > 1:
            return None
        # Joined to the one row that it is about, it would be gathered in a table of its own first: 11 µs beside 7.
        changes = ", ".join(f"{column} = {GIVEN.sub(_of_first_row, value)}" for column, value in assignments.items())
        return f"UPDATE {self.or_fail} {table} AS t SET {changes} WHERE t.id = :id_0"

    def following(self, index: str) -> str:
        # Left to itself it walks by id and filters, where its statistics do not know that few rows have a state.
        return f" INDEXED BY {index}"

    def diagnose(self, connection: Connection) -> list[Diagnosis]:
        mode = connection.execute(text("PRAGMA journal_mode")).scalar_one()
        synchronous = connection.execute(text("PRAGMA synchronous")).scalar_one()
        durable = mode == "wal" and synchronous == 2
        findings = [
            Diagnosis(
                "durability",
                "ok" if durable else "fail",
                f"journal_mode={mode}, synchronous={'FULL' if synchronous == 2 else synchronous}",
            )
        ]
        recent = sqlite3.sqlite_version_info >= OLDEST
        findings.append(Diagnosis("version", "ok" if recent else "fail", f"SQLite {sqlite3.sqlite_version}"))
        return findings

    def lock_for_migration(self, connection: Connection) -> None:
        """The process that migrates holds the file's lock already."""


def _of_first_row(given: re.Match[str]) -> str:
    return f":{given[1]}_0"


def database_path(url: str) -> Path:
    """The file that a sqlite:/// URL names."""
    return Path(make_url(url).database or "")


def _engine(url: str, *, pool_size: int, begin: str, set_up: Callable[[Any], None]) -> Engine:
    engine = create_engine(
        make_url(url).set(drivername="sqlite+pysqlite"),
        poolclass=QueuePool,
        pool_size=pool_size,
        max_overflow=0,
        connect_args={"check_same_thread": False, "timeout": BUSY_TIMEOUT.total_seconds(), "cached_statements": 256},
    )

    @event.listens_for(engine, "connect")
    def _connect(connection: Any, record: Any) -> None:  # noqa: ARG001
        # The driver would begin transactions on its own, and always as readers.
        connection.isolation_level = None
        connection.execute(PATIENCE[True])
        connection.execute("PRAGMA foreign_keys = ON")
        set_up(connection)

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        driver: Any = connection.connection.dbapi_connection
        if not driver.in_transaction:  # the writer begins its own before SQLAlchemy hears of them
            driver.execute(begin)

    return engine


def _set_up_writer(connection: Any) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    # A commit is on the disk before anybody hears of it, power loss or not.
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA cache_size = -65536")
    # What else a statement needs to be able to take itself back: not in a file.
    connection.execute("PRAGMA temp_store = MEMORY")


def _set_up_reader(connection: Any) -> None:
    connection.execute("PRAGMA query_only = ON")
    # LIKE would ignore the case of ASCII letters here alone.
    connection.execute("PRAGMA case_sensitive_like = ON")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA cache_size = -16384")
