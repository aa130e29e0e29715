"""PostgreSQL: several instances, row locks, READ COMMITTED."""

from collections.abc import Sequence
from typing import Any, ClassVar

from sqlalchemy import URL, Connection, Engine, create_engine, event, text
from sqlalchemy.engine import make_url

from ksana.store.requests import Diagnosis, StoreOptions
from ksana.store.sql.dialects.base import STANDSTILL_SECONDS, Courier, Pool, RowColumns, Said, ServerDialect
from ksana.store.sql.dialects.postgresql_courier import PostgresqlCourier

_MIGRATION_LOCK = 7_100_001
_TIME_LIMITS = f"-c lock_timeout=2s -c idle_in_transaction_session_timeout={STANDSTILL_SECONDS}s"
# Every statement looks up a few rows by an index. The planner, who judges a job by the average over all history, would rather
# hash or read the whole table, which costs the more the longer Ksana has run; or, of a backlog that it has not counted yet, read
# and sort all to find the first few.
_PLANNER = "-c enable_seqscan=off -c enable_bitmapscan=off -c enable_hashjoin=off -c enable_mergejoin=off -c jit=off"
PREPARED = 256
"""Statements that a connection for the writer keeps prepared: each from the first time on, since it will come again."""
_TYPES = {"int": "bigint", "text": "text", "key": "text"}


class PostgresqlDialect(ServerDialect):
    name = "postgresql"
    # Not where they are NULL: by id alone it would sort, or walk past every node of every workflow.
    sees_what_is_the_same = False
    marks: ClassVar[dict[str, str]] = {
        "join": "JOIN",
        "for_update": "FOR UPDATE OF t",
        "skip_locked": "FOR UPDATE OF t SKIP LOCKED",
        "for_share": "FOR SHARE OF t",
        # NO KEY: foreign keys that point to jobs need not wait for a claim.
        "for_update_jobs": "FOR NO KEY UPDATE OF t SKIP LOCKED",
        "if_there": "ON CONFLICT (id) DO UPDATE SET",
        "by_id": "",
        "by_ready": "",
        "in_ready_index": "t.ready_at IS NOT NULL",
        "by_job_status": "",
        "by_node": "",
        "by_owner": "",
        "by_share": "",
        "share": "t.share",
        # No index has it in this form: rows are found by what is asked for beside it.
        "status": "(t.status || '')",
        "once": "MATERIALIZED",
        "now": "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS bigint)",
    }

    def engine(self, url: str, options: StoreOptions, pool: Pool) -> Engine:
        parsed = _for_driver(url)
        engine = create_engine(
            parsed,
            isolation_level="READ COMMITTED",
            pool_size=pool.kept,
            max_overflow=pool.more,
            pool_recycle=round(options.connection_age.total_seconds()),
            pool_timeout=_seconds(options),
            # What the URL says of a session holds, unless we must have it otherwise: the last word counts.
            connect_args={**_connecting(options), "options": f"{_said(parsed)} {_session(pool)}".strip()},
        )

        @event.listens_for(engine, "do_connect")
        def _connect(dialect: Any, record: Any, arguments: Any, options: Any) -> Any:  # noqa: ARG001
            from ksana.store.sql.dialects.postgresql_connection import Impatient  # noqa: PLC0415 - and with it, the driver

            connection = Impatient.connect(*arguments, **options)
            connection.patience = pool.patience
            if pool.repeats:
                connection.prepare_threshold, connection.prepared_max = 0, PREPARED
            return connection

        return engine

    # jsonb, not json: that would read each row anew for every column, which for a body of a megabyte takes a second.
    def rows_table(self, columns: RowColumns, given: str = "rows", name: str = "r") -> str:
        fields = ", ".join(
            f"CAST(value ->> {i} AS {_TYPES[kind]}) AS {column}" for i, (column, kind) in enumerate(columns)
        )
        return f"(SELECT {fields} FROM jsonb_array_elements(CAST(:{given} AS jsonb))) AS {name}"

    def insert_with_ids(
        self, connection: Connection, table: str, columns: RowColumns, rows: str, count: int
    ) -> list[int]:
        names = ", ".join(name for name, _ in columns)
        values = ", ".join(f"CAST(value ->> {i} AS {_TYPES[kind]})" for i, (_, kind) in enumerate(columns))
        # INSERT … SELECT … ORDER BY takes its serial values in that order; sorting makes the answer follow it too.
        inserted = connection.execute(
            text(
                f"INSERT INTO {table} ({names}) SELECT {values} FROM jsonb_array_elements(CAST(:rows AS jsonb))"
                " WITH ORDINALITY AS source(value, position) ORDER BY position RETURNING id"
            ),
            {"rows": rows},
        )
        ids = sorted(inserted.scalars())
        if len(ids) != count:
            raise AssertionError(f"{len(ids)} rows of {count} were inserted into {table}")
        return ids

    def together(self, connection: Any, said: Sequence[Said]) -> Any:
        """All of them may take as long as one answer may."""
        *before, (sql, parameters) = said
        cursor = connection.cursor()
        if not before:
            cursor.execute(sql, parameters)
            return cursor
        with connection.pipeline():
            for each, its_parameters in before:
                connection.cursor().execute(each, its_parameters)
            cursor.execute(sql, parameters)
        return cursor

    def diagnose(self, connection: Connection) -> list[Diagnosis]:
        def setting(name: str) -> str:
            return str(connection.execute(text(f"SHOW {name}")).scalar_one())

        findings = [
            Diagnosis("durability", "ok" if setting(name) != "off" else "warn", f"{name}={setting(name)}")
            for name in ("fsync", "synchronous_commit", "full_page_writes")
        ]
        findings.append(Diagnosis("version", "ok", f"PostgreSQL {setting('server_version')}"))
        return findings

    def courier(self, url: str, options: StoreOptions) -> Courier | None:
        parsed = _for_driver(url)
        given, named = parsed.get_dialect()().create_connect_args(parsed)
        session = {"options": _said(parsed)} if "options" in named else {}
        return PostgresqlCourier(given, {**named, **_connecting(options), **session})

    def lock_for_migration(self, connection: Connection) -> None:
        connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": _MIGRATION_LOCK})


def _for_driver(url: str) -> URL:
    return make_url(url).set(drivername="postgresql+psycopg")


def _seconds(options: StoreOptions) -> int:
    return max(1, round(options.connect_timeout.total_seconds()))


def _connecting(options: StoreOptions) -> dict[str, Any]:
    return {
        "connect_timeout": _seconds(options),
        "application_name": "ksana",
        # A connection that hangs is found out by the kernel or the server, not waited for.
        "tcp_user_timeout": 10_000,
        "keepalives_idle": 5,
        "keepalives_interval": 2,
        "keepalives_count": 3,
    }


def _said(url: URL) -> str:
    """The settings of a session that stand in the URL."""
    return " ".join(url.normalized_query.get("options", ()))


def _session(pool: Pool) -> str:
    if pool.patience is None:
        return "-c timezone=UTC"
    return f"-c timezone=UTC -c statement_timeout={pool.statement_seconds}s {_TIME_LIMITS} {_PLANNER}"
