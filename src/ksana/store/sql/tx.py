"""One transaction, as the statements see it."""

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar

from sqlalchemy import Connection, Executable, Row

from ksana.store.sql.dialects.base import Dialect, Said, ServerDialect
from ksana.store.sql.errors import as_sqlalchemy_has_it
from ksana.store.sql.live import Live
from ksana.store.sql.rows import Prepared, Statement, chunks, in_values, insert_rows, most_in_values
from ksana.store.workflow_requests import EndedRun

T = TypeVar("T")
NO_ROWS: tuple[Sequence[Any], ...] = ()
MOST_UNSENT = 1_000_000
"""Characters that may wait for the next question: with it they must fit into what a server takes at once."""
MOST_UNSENT_STATEMENTS = 32


class TooMuch(Exception):
    """The transaction is about more rows than it may be where it was begun."""


@dataclass(slots=True)
class Fresh:
    """What a transaction has just found or written, and so need not ask for. Whoever may change it forgets it first."""

    begun: set[int] = field(default_factory=set)
    """Workflow runs that have begun, locked."""
    made: dict[tuple[int, str], tuple[str, str]] = field(default_factory=dict)
    """By run and node, how nodes have ended and what they made, as JSON."""


@dataclass(slots=True)
class Held:
    """Executions that are to be written by `statement`, unless what comes last in the transaction writes them in its own way."""

    statement: Statement
    rows: dict[int, tuple[Any, ...]]
    """By their ids."""
    values: dict[str, Any]
    found: dict[int, Any]
    """As they were read, by their ids."""


class Tx:
    """Runs statements on the connection of a transaction that somebody else began and will commit, after `flush`."""

    def __init__(
        self,
        connection: Connection,
        dialect: Dialect,
        clock: int,
        steady: int | None = None,
        most_rows: int | None = None,
        live: Live[Any] | None = None,
    ) -> None:
        self._connection = connection
        self.live = live
        """What is known without being asked for; None where it cannot be."""
        self._driver = connection.dialect
        self.dialect = dialect
        self._server = dialect if isinstance(dialect, ServerDialect) else None
        self.clock = clock
        """The process's time in microseconds."""
        self._steady = clock if steady is None else steady
        """What `{now}` means on a database that is not shared."""
        self._rows_left = most_rows
        self._opened: Any = None
        self._unsent: list[Said] = []
        """What is to be done, in order, and travels with the next question."""
        self._unsent_size = 0
        self.held: Held | None = None
        """Written before anything else that is about executions, and before the end."""
        self.fresh = Fresh()
        self.ended_runs: list[EndedRun] = []
        """Workflow runs that end with this transaction, to be told of when it has committed."""

    @property
    def connection(self) -> Connection:
        """For statements of SQLAlchemy; everything that was to be done before is done."""
        self.flush()
        if self.live is not None:
            self.live.forget()
        return self._connection

    def query(self, statement: Statement, rows: Iterable[Sequence[Any]] = NO_ROWS, **values: Any) -> list[Row[Any]]:
        """The rows that it answers with; for a statement with {rows}, of all its chunks one after the other."""
        answers: list[Row[Any]] = []
        gathers = statement.many and self.dialect.gathers_rows
        for found in self._ask(statement, rows, values, self._gathered if gathers else self._rows, whole=True):
            answers += found
        return answers

    def changed(self, statement: Statement, rows: Iterable[Sequence[Any]] = NO_ROWS, **values: Any) -> int:
        """Does it; how many rows it changed."""
        return sum(self._ask(statement, rows, values, self._changed, whole=False))

    def run(self, statement: Statement, rows: Iterable[Sequence[Any]] = NO_ROWS, **values: Any) -> None:
        """Does it. If there is a server to be asked, it travels with the next question: each that waits for its answer takes
        longer on its way than to be answered."""
        if self._server is None:
            self._ask(statement, rows, values, self._changed, whole=False)
            return
        for prepared, parameters in self._parts(statement, rows, values, whole=False):
            size = sum(len(value) for value in parameters.values() if isinstance(value, str))
            if self._unsent_size + size > MOST_UNSENT or len(self._unsent) >= MOST_UNSENT_STATEMENTS:
                self._send()
            self._unsent.append((prepared.sql, parameters))
            self._unsent_size += size
            if size > MOST_UNSENT:
                self._send()

    def hold(self, held: Held) -> None:
        """Writes these later."""
        self.release()
        self.held = held

    def release(self) -> None:
        """Writes what is still held back."""
        held, self.held = self.held, None
        if held is not None and held.rows:
            self.run(held.statement, sorted(held.rows.values()), **held.values)

    def flush(self) -> None:
        """Everything that was to be done is done."""
        self.release()
        self._send()

    def _send(self) -> None:
        if self._unsent:
            sql = self._unsent[-1][0]
            try:
                self._sent()
            except Exception as error:
                raise as_sqlalchemy_has_it(error, self._connection, sql) from error

    def _ask(
        self,
        statement: Statement,
        rows: Iterable[Sequence[Any]],
        values: dict[str, Any],
        answer: Callable[[Prepared, Any], T],
        *,
        whole: bool,
    ) -> list[T]:
        """Straight by the driver: to be asked through SQLAlchemy, most questions take longer than to be answered."""
        answers: list[T] = []
        for prepared, parameters in self._parts(statement, rows, values, whole=whole):
            try:
                answers.append(answer(prepared, parameters))
            except Exception as error:
                raise as_sqlalchemy_has_it(error, self._connection, prepared.sql) from error
        return answers

    def _executed(self, sql: str, parameters: Any) -> Any:
        """The cursor that has its answer; what had to be done before has been."""
        if self._unsent:
            return self._sent((sql, parameters))
        cursor = self._opened
        if cursor is None:  # one for the whole transaction
            cursor = self._opened = self._connection.connection.cursor()
        cursor.execute(sql, parameters)
        return cursor

    def _sent(self, *question: Said) -> Any:
        """The cursor that has the answer to the last of what was to be done, and to the question if there is one."""
        if self._server is None:
            raise AssertionError("without a server, nothing waits to be sent")
        said, self._unsent, self._unsent_size = [*self._unsent, *question], [], 0
        return self._server.together(self._connection.connection.dbapi_connection, said)

    def _rows(self, prepared: Prepared, parameters: Any) -> list[Any]:
        cursor = self._executed(prepared.sql, parameters)
        found = cursor.fetchall()
        return prepared.named(cursor.description, found) if found else []

    def _gathered(self, prepared: Prepared, parameters: Any) -> list[Any]:
        if not prepared.gathering:
            return self._rows(prepared, parameters)  # which tells its columns
        try:
            return prepared.gathered(self._executed(prepared.gathering, parameters).fetchone()[0])
        except sqlite3.DataError:  # more than one text can hold
            return self._rows(prepared, parameters)

    def _changed(self, prepared: Prepared, parameters: Any) -> int:
        return int(self._executed(prepared.sql, parameters).rowcount)

    def _parts(
        self, statement: Statement, rows: Iterable[Sequence[Any]], values: dict[str, Any], *, whole: bool
    ) -> list[tuple[Prepared, Any]]:
        """The statement for each part of its rows, with its parameters. `whole`: it looks at all of them together."""
        values["clock"] = self._steady
        given = rows if isinstance(rows, list) else list(rows)
        self.about(len(given))
        prepared = statement.at_once(self.dialect, self._driver, len(given))
        if prepared is not None:
            parts = [(prepared, prepared.parameters(values, given))]
        else:
            parts = self._several_parts(statement, given, values, whole=whole)
            if not parts:
                return parts
            prepared = parts[0][0]
        # What it might see is written, and what it might make untrue forgotten.
        if self.held is not None and prepared.of_executions and not statement.apart:
            self.release()
        if prepared.changes and self.live is not None and not statement.keeps:
            self.live.forget()
        return parts

    def about(self, rows: int) -> None:
        """So many rows more. TooMuch."""
        if self._rows_left is not None:
            self._rows_left -= rows
            if self._rows_left < 0:
                raise TooMuch

    def _several_parts(
        self, statement: Statement, given: list[Sequence[Any]], values: dict[str, Any], *, whole: bool
    ) -> list[tuple[Prepared, Any]]:
        dialect, driver = self.dialect, self._driver
        if dialect.takes_values and not (whole and len(given) > most_in_values(len(statement.rows))):
            sized = [(statement.for_driver(dialect, driver, size), part) for size, part in in_values(given)]
            return [(prepared, prepared.parameters(values, part)) for prepared, part in sized]
        if (listed := statement.for_few(dialect, driver, given)) is not None:
            return [(listed, listed.parameters(values | statement.in_list(given)))]
        prepared = statement.for_driver(dialect, driver)
        return [(prepared, prepared.parameters(values | {"rows": chunk})) for chunk, _ in chunks(given)]

    def insert_with_ids(
        self, table: str, columns: Sequence[tuple[str, str]], rows: Iterable[Sequence[Any]]
    ) -> list[int]:
        """Inserts rows into a table with growing ids; the ids, in the order of the rows."""
        if self._server is None:
            return self._insert_counting(table, tuple(columns), rows)
        ids: list[int] = []
        for chunk, count in chunks(rows):
            ids += self._server.insert_with_ids(self.connection, table, columns, chunk, count)
        return ids

    def _insert_counting(
        self, table: str, columns: tuple[tuple[str, str], ...], rows: Iterable[Sequence[Any]]
    ) -> list[int]:
        numbered = [(number, *row) for number, row in enumerate(rows, self.next_id(table))]
        self.run(_numbered(table, columns), numbered)
        return [row[0] for row in numbered]

    def next_id(self, table: str) -> int:
        """Where nobody else writes, it is known before. AUTOINCREMENT keeps the last one given, and notes those that are."""
        return int(self.query(_LAST_ID, table=table)[0][0]) + 1

    def core(self, statement: Executable) -> list[Row[Any]]:
        """The rows that an SQLAlchemy statement answers with."""
        self.flush()
        return list(self._connection.execute(statement))

    def core_run(self, statement: Executable) -> int:
        """How many rows an SQLAlchemy statement changed."""
        return self.connection.execute(statement).rowcount

    def now(self) -> int:
        """The time that leases follow: the database's own where several processes share it."""
        return int(self.query(_NOW)[0][0])


_NOW = Statement("SELECT {now}")
_LAST_ID = Statement("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = :table")


@cache
def _numbered(table: str, columns: tuple[tuple[str, str], ...]) -> Statement:
    return insert_rows(table, (("id", "int"), *columns))
