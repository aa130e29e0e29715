"""Changes to tables that others work on: nobody waits for one longer than a moment.

A change to a table waits until nobody uses it, and all that come after wait behind it: behind a backup that reads for hours, that
is everybody. So it waits for a moment only, lets the others through, and tries again.
"""

import time
from collections.abc import Callable
from contextlib import suppress

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from ksana.domain.errors import StoreError
from ksana.store.sql.errors import Trouble, diagnose

LOCK_SECONDS = 1
"""How long others wait behind a change; less than what their own statements wait for a lock."""
PAUSE_SECONDS = 4.0
TRIES = 60
LOOK_SECONDS = 0.2

_POSTGRESQL_HOLDERS = """
    SELECT a.pid, a.usename, a.application_name FROM pg_stat_activity AS a
    WHERE a.datname = current_database() AND a.pid <> pg_backend_pid()
      AND (a.backend_xmin IS NOT NULL OR EXISTS (
        SELECT 1 FROM pg_locks AS l WHERE l.pid = a.pid AND l.granted AND l.relation = to_regclass(:table)))
    ORDER BY a.xact_start LIMIT 3
"""
_MYSQL_HOLDERS = """
    SELECT p.id AS pid, p.user AS usename, p.host AS application_name
    FROM information_schema.innodb_trx AS t JOIN information_schema.processlist AS p ON p.id = t.trx_mysql_thread_id
    WHERE p.id <> connection_id() AND p.db = database() ORDER BY t.trx_started LIMIT 3
"""


def take_lock(connection: Connection, lock: Callable[[Connection], None]) -> None:
    """The session's lock for migrations, however long another has it.

    On PostgreSQL nobody sleeps in a transaction for it: whoever has it builds an index beside the others' work, which ends
    only after all transactions that have begun before.
    """
    while True:
        try:
            _wait_at_most(connection, "10ms")
            lock(connection)
            connection.commit()
        except DBAPIError as error:
            connection.rollback()
            if diagnose(error) is not Trouble.TRANSIENT:
                raise
            time.sleep(LOOK_SECONDS)
        else:
            return


def in_turn(connection: Connection, table: str, change: Callable[[], object]) -> None:
    """The change in a transaction of its own, as soon as the table is free for it. StoreError if it never is."""
    if connection.dialect.name == "sqlite":  # nobody else has the file
        change()
        return
    connection.commit()
    met: DBAPIError | None = None
    for attempt in range(TRIES):
        if attempt:
            time.sleep(PAUSE_SECONDS)
        try:
            _wait_at_most(connection, f"{LOCK_SECONDS}s")
            change()
            connection.commit()
        except DBAPIError as error:
            connection.rollback()
            if diagnose(error) is not Trouble.TRANSIENT:
                raise
            met = error
        else:
            return
    raise _given_up(connection, table) from met


def beside(connection: Connection, table: str, change: Callable[[], object]) -> None:
    """PostgreSQL's CONCURRENTLY: outside of any transaction. It may wait, as nobody waits for it. StoreError if for too long."""
    isolation = connection.get_isolation_level()
    connection.commit()
    connection.execution_options(isolation_level="AUTOCOMMIT")
    try:
        patience = round(TRIES * (LOCK_SECONDS + PAUSE_SECONDS) * 1000)
        connection.execute(
            text("SELECT set_config('lock_timeout', :patience, false), set_config('statement_timeout', '0', false)"),
            {"patience": str(patience)},
        )
        change()
        connection.execute(text("RESET lock_timeout"))
        connection.execute(text("RESET statement_timeout"))
    except DBAPIError as error:
        connection.rollback()
        if diagnose(error) is not Trouble.TRANSIENT:
            raise
        raise _given_up(connection, table) from error
    connection.commit()
    connection.execution_options(isolation_level=isolation)


def _wait_at_most(connection: Connection, limit: str) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT set_config('lock_timeout', :limit, true)"), {"limit": limit})
    elif connection.dialect.name != "sqlite":
        connection.execute(text(f"SET SESSION lock_wait_timeout = {LOCK_SECONDS}"))


def _given_up(connection: Connection, table: str) -> StoreError:
    return StoreError(
        f"the table {table} could not be changed, however often it was tried: {_holders(connection, table)}. When that has"
        " ended, run ksana migrate again: it goes on where it stopped"
    )


def _holders(connection: Connection, table: str) -> str:
    """Who has had a transaction open for longest, as far as we may know."""
    found: list[str] = []
    with suppress(DBAPIError):
        query = _POSTGRESQL_HOLDERS if connection.dialect.name == "postgresql" else _MYSQL_HOLDERS
        rows = connection.execute(text(query), {"table": table} if ":table" in query else {})
        found = [f"{row.pid} ({row.usename}, {row.application_name or 'nameless'})" for row in rows]
    connection.rollback()
    return f"in use by the database's processes {', '.join(found)}" if found else "a long transaction uses it"
