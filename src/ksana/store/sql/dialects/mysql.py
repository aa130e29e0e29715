"""MySQL (8.0 or later) and MariaDB (10.6 or later): several instances, row locks, READ COMMITTED."""

import re
import ssl
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, ClassVar

import orjson
import pymysql
from pymysql.constants import CLIENT
from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import make_url

from ksana.store.requests import Diagnosis, StoreOptions
from ksana.store.sql.dialects.base import GIVEN, STANDSTILL_SECONDS, Pool, RowColumns, Said, ServerDialect

_MIGRATION_LOCK = "ksana_migration"
MOST_LISTED = 64
"""Rows whose values an UPDATE has in itself: to find each of more takes longer than by a join."""
# A key is compared with an indexed column, which a LONGTEXT cannot be.
_TYPES = {"int": "BIGINT", "text": "LONGTEXT", "key": "VARCHAR(128)"}


class _Connection(pymysql.connections.Connection):
    """Encrypted where the server can, as the driver has it, but whom to trust is not read anew each time.

    That takes 45 ms of CPU for each connection, also for each that fails: with the server down, most of a core.
    """

    def _create_ssl_ctx(self, sslp: Any) -> ssl.SSLContext:
        made: ssl.SSLContext = _unverified() if sslp == {} else super()._create_ssl_ctx(sslp)  # type: ignore[misc]
        return made


@cache
def _unverified() -> ssl.SSLContext:
    """What the driver makes if nothing is said about certificates: encrypted, and nobody's certificate is checked."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


class MysqlDialect(ServerDialect):
    name = "mysql"
    # Compared with a value of another row, a column is not searched for: every row before it would be read, for each share.
    seeks_shares = False
    # For pairs it reads what comes before, too; it is OR that it makes ranges of.
    seeks_pairs = False
    marks: ClassVar[dict[str, str]] = {
        # The rows first, then the table by its primary key: another order would lock rows that are not asked for.
        "join": "STRAIGHT_JOIN",
        # MariaDB has no OF; the rows' table is not lockable anyway.
        "for_update": "FOR UPDATE",
        "skip_locked": "FOR UPDATE SKIP LOCKED",
        # MariaDB has no FOR SHARE.
        "for_share": "LOCK IN SHARE MODE",
        "for_update_jobs": "FOR UPDATE SKIP LOCKED",
        "if_there": "ON DUPLICATE KEY UPDATE",
        # For a small table the planner would rather read, and lock, all of it.
        "by_id": "FORCE INDEX (PRIMARY)",
        "by_ready": "FORCE INDEX (ix_executions_ready)",
        # All are in it: to ask for those that wait would read all of a queue's history to find that none does.
        "in_ready_index": "1 = 1",
        "by_job_status": "FORCE INDEX (ix_executions_job_status)",
        "by_node": "FORCE INDEX (ix_executions_node)",
        "status": "t.status",
        # It knows no such word, and works it out once.
        "once": "",
        "by_owner": "FORCE INDEX (ix_executions_owner)",
        "by_share": "FORCE INDEX (ix_executions_share)",
        # See READY_SHARE in schema.py.
        "share": "t.ready_share",
        "now": "CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED)",
    }

    def following(self, index: str) -> str:
        # Left to itself it also intersects two indexes and sorts what it found, or walks by id and filters.
        return f" FORCE INDEX ({index})"

    def engine(self, url: str, options: StoreOptions, pool: Pool) -> Engine:
        seconds = max(1, round(options.connect_timeout.total_seconds()))
        engine = create_engine(
            make_url(url).set(drivername="mysql+pymysql"),
            isolation_level="READ COMMITTED",
            pool_size=pool.kept,
            max_overflow=pool.more,
            pool_recycle=round(options.connection_age.total_seconds()),
            pool_timeout=seconds,
            connect_args={
                "charset": "utf8mb4",
                "connect_timeout": seconds,
                # The driver's connect_timeout ends before the server's greeting; a silent one is given up all the same.
                "read_timeout": seconds,
                "write_timeout": pool.patience,
                # What an UPDATE found counts, not what was different; and see `together`: what is in a statement beside its
                # parameters, nobody outside has a word in.
                "client_flag": CLIENT.FOUND_ROWS | CLIENT.MULTI_STATEMENTS,
            },
        )

        @event.listens_for(engine, "do_connect")
        def _open(dialect: Any, record: Any, given: Any, named: Any) -> _Connection:  # noqa: ARG001
            return _Connection(*given, **named)

        @event.listens_for(engine, "connect")
        def _connect(connection: Any, record: Any) -> None:  # noqa: ARG001
            connection._read_timeout = pool.patience  # noqa: SLF001  the driver has no other way
            with connection.cursor() as cursor:
                # Refuses what does not fit instead of cutting it off, whatever the server's default.
                cursor.execute(
                    "SET SESSION sql_mode = 'TRADITIONAL', innodb_lock_wait_timeout = 2, time_zone = '+00:00'"
                )
                cursor.execute("SET NAMES utf8mb4 COLLATE utf8mb4_bin")
                if pool.patience is not None and "MariaDB" in connection.get_server_info():  # MySQL has no such limits
                    cursor.execute(
                        f"SET SESSION idle_transaction_timeout = {STANDSTILL_SECONDS},"
                        f" max_statement_time = {pool.statement_seconds}"
                    )

        return engine

    def rows_table(self, columns: RowColumns, given: str = "rows", name: str = "r") -> str:
        fields = ", ".join(f"{column} {_TYPES[kind]} PATH '$[{i}]'" for i, (column, kind) in enumerate(columns))
        return f"JSON_TABLE(:{given}, '$[*]' COLUMNS ({fields})) AS {name}"

    def update_joined(self, table: str, assignments: Mapping[str, str], rows: str, on: str = "t.id = r.id") -> str:
        # UPDATE has no FROM here; and later assignments see what earlier ones set, so none reads a column another sets.
        changes = ", ".join(f"t.{column} = {value}" for column, value in assignments.items())
        return f"UPDATE {rows} STRAIGHT_JOIN {table} AS t {self.marks['by_id']} ON {on} SET {changes}"

    def update_listed(self, table: str, assignments: Mapping[str, str], columns: RowColumns, count: int) -> str | None:
        if count > MOST_LISTED:
            return None
        # Joined to other rows, a table is updated by way of another, on the disk if a text is among what is set.
        ids = ", ".join(f":id_{row}" for row in range(count))
        types = dict(columns)

        def of_its_row(given: re.Match[str]) -> str:
            name = given[1]
            value = f"ELT(FIELD(t.id, {ids}), {', '.join(f':{name}_{row}' for row in range(count))})"
            return f"CAST({value} AS SIGNED)" if types[name] == "int" else value

        changes = ", ".join(f"t.{column} = {GIVEN.sub(of_its_row, value)}" for column, value in assignments.items())
        return f"UPDATE {table} AS t {self.marks['by_id']} SET {changes} WHERE t.id IN ({ids})"

    def insert_with_ids(
        self, connection: Connection, table: str, columns: RowColumns, rows: str, count: int
    ) -> list[int]:
        # MySQL's INSERT returns no rows. Several VALUES in one INSERT get consecutive ids whatever
        # innodb_autoinc_lock_mode is; INSERT … SELECT need not.
        values: list[list[Any]] = orjson.loads(rows)
        names = ", ".join(name for name, _ in columns)
        marks = ", ".join(["(" + ", ".join(["%s"] * len(columns)) + ")"] * count)
        result = connection.exec_driver_sql(
            f"INSERT INTO {table} ({names}) VALUES {marks}", tuple(value for row in values for value in row)
        )
        first = int(result.lastrowid)
        step = int(connection.execute(text("SELECT @@auto_increment_increment")).scalar_one())
        return [first + position * step for position in range(count)]

    def together(self, connection: Any, said: Sequence[Said]) -> Any:
        cursor = connection.cursor()
        cursor.execute(";\n".join(cursor.mogrify(sql, parameters) for sql, parameters in said))
        while cursor.nextset():
            pass
        return cursor

    def diagnose(self, connection: Connection) -> list[Diagnosis]:
        def setting(name: str) -> str:
            return str(connection.execute(text(f"SELECT @@{name}")).scalar_one())

        flush = setting("innodb_flush_log_at_trx_commit")
        return [
            Diagnosis("durability", "ok" if flush == "1" else "warn", f"innodb_flush_log_at_trx_commit={flush}"),
            Diagnosis("version", "ok", setting("version")),
        ]

    def lock_for_migration(self, connection: Connection) -> None:
        while not connection.execute(text("SELECT GET_LOCK(:name, 60)"), {"name": _MIGRATION_LOCK}).scalar_one():
            pass  # another process is still at it
