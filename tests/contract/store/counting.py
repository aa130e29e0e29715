"""Counts what a store asks of its database: statements, how often it waits for an answer, rows that come back, and commits."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from sqlalchemy import Connection, event

from ksana.store.sql.driven import Driven
from ksana.store.sql.rows import Prepared
from ksana.store.sql.store import SqlStore
from ksana.store.sql.tx import Tx

PLAIN = frozenset({int, float, str, bytes, type(None)})


@dataclass
class Count:
    statements: int = 0
    trips: int = 0
    """How often an answer was waited for, but for that to a COMMIT."""
    rows: int = 0
    commits: int = 0
    values: int = 0
    """That went with what was said to the driver straight."""
    sql: set[str] = field(default_factory=set)
    """What was said to the driver straight."""
    foreign: set[str] = field(default_factory=set)
    """Of that, what went with a value of a type that is not the driver's own, so that it looks for how to take it, each time."""


@contextmanager
def before_commits(store: SqlStore, note: Callable[[], None]) -> Iterator[None]:
    """Calls it before each COMMIT of the writer, whichever way that takes; what it raises fails the COMMIT."""
    told = Driven._tell

    def told_the_driver(self: Driven, sql: str) -> None:
        if sql == "COMMIT" and self._connection.engine is store._writing:
            note()
        told(self, sql)

    def told_of(_: Connection) -> None:
        note()

    event.listen(store._writing, "commit", told_of)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Driven, "_tell", told_the_driver)
            yield
    finally:
        event.remove(store._writing, "commit", told_of)


@contextmanager
def counting(store: SqlStore) -> Iterator[Count]:
    """Everything that the writer does meanwhile. Statements go to the driver in two ways: ours straight, others by SQLAlchemy."""
    count = Count()
    parameters, named, gathered = Prepared.parameters, Prepared.named, Prepared.gathered
    executed_alone, sent = Tx._executed, Tx._sent

    def asked(self: Prepared, *given: Any) -> Any:
        count.statements += 1
        count.sql.add(self.sql)
        values = parameters(self, *given)
        count.values += len(values)
        if any(type(each) not in PLAIN for each in values):
            count.foreign.add(self.sql)
        return values

    def answered(self: Prepared, description: Any, rows: Any) -> list[Any]:
        found = named(self, description, rows)
        count.rows += len(found)
        return found

    def answered_as_text(self: Prepared, text: str) -> list[Any]:
        found = gathered(self, text)
        count.rows += len(found)
        return found

    def executed(*_: Any) -> None:
        count.statements += 1
        count.trips += 1

    def asked_alone(self: Tx, *question: Any) -> Any:
        count.trips += not self._unsent
        return executed_alone(self, *question)

    def asked_together(self: Tx, *question: Any) -> Any:
        count.trips += 1
        return sent(self, *question)

    def committed() -> None:
        count.commits += 1

    event.listen(store._writing, "after_cursor_execute", executed)
    with before_commits(store, committed), pytest.MonkeyPatch.context() as patch:
        patch.setattr(Prepared, "parameters", asked)
        patch.setattr(Prepared, "named", answered)
        patch.setattr(Prepared, "gathered", answered_as_text)
        patch.setattr(Tx, "_executed", asked_alone)
        patch.setattr(Tx, "_sent", asked_together)
        yield count
    event.remove(store._writing, "after_cursor_execute", executed)
