"""One transaction, as the statements see it."""

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, Executable, Row

from ksana.store.sql.dialects.base import Dialect
from ksana.store.sql.rows import Statement, chunks
from ksana.store.workflow_requests import EndedRun

NO_ROWS: tuple[Sequence[Any], ...] = ()


class Tx:
    """Runs statements on the connection of a transaction that somebody else began and will commit."""

    def __init__(self, connection: Connection, dialect: Dialect, clock: int, steady: int | None = None) -> None:
        self.connection = connection
        self.dialect = dialect
        self.clock = clock
        """The process's time in microseconds."""
        self._steady = clock if steady is None else steady
        """What `{now}` means on a database that is not shared."""
        self.ended_runs: list[EndedRun] = []
        """Workflow runs that end with this transaction, to be told of when it has committed."""

    def query(self, statement: Statement, rows: Iterable[Sequence[Any]] = NO_ROWS, **values: Any) -> list[Row[Any]]:
        """The rows that it answers with; for a statement with {rows}, of all its chunks one after the other."""
        clause = statement.for_dialect(self.dialect)
        values["clock"] = self._steady
        if not statement.rows:
            return list(self.connection.execute(clause, values))
        answers: list[Row[Any]] = []
        for chunk, _ in chunks(rows):
            answers += self.connection.execute(clause, values | {"rows": chunk})
        return answers

    def run(self, statement: Statement, rows: Iterable[Sequence[Any]] = NO_ROWS, **values: Any) -> int:
        """How many rows it changed."""
        clause = statement.for_dialect(self.dialect)
        values["clock"] = self._steady
        if not statement.rows:
            return self.connection.execute(clause, values).rowcount
        return sum(self.connection.execute(clause, values | {"rows": chunk}).rowcount for chunk, _ in chunks(rows))

    def insert_with_ids(
        self, table: str, columns: Sequence[tuple[str, str]], rows: Iterable[Sequence[Any]]
    ) -> list[int]:
        """Inserts rows into a table with growing ids; the ids, in the order of the rows."""
        ids: list[int] = []
        for chunk, count in chunks(rows):
            ids += self.dialect.insert_with_ids(self.connection, table, columns, chunk, count)
        return ids

    def core(self, statement: Executable) -> list[Row[Any]]:
        """The rows that an SQLAlchemy statement answers with."""
        return list(self.connection.execute(statement))

    def core_run(self, statement: Executable) -> int:
        """How many rows an SQLAlchemy statement changed."""
        return self.connection.execute(statement).rowcount

    def now(self) -> int:
        """The time that leases follow: the database's own where several processes share it."""
        return int(self.query(_NOW)[0][0])


_NOW = Statement("SELECT {now}")
