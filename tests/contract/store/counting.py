"""Counts what a store asks of its database: statements, how often it waits for an answer, rows that come back, and commits."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from sqlalchemy import event

from ksana.store.sql.rows import Prepared
from ksana.store.sql.store import SqlStore
from ksana.store.sql.tx import Tx


@dataclass
class Count:
    statements: int = 0
    trips: int = 0
    """How often an answer was waited for, but for that to a COMMIT."""
    rows: int = 0
    commits: int = 0
    sql: set[str] = field(default_factory=set)
    """What was said to the driver straight."""


@contextmanager
def counting(store: SqlStore) -> Iterator[Count]:
    """Everything that the writer does meanwhile. Statements go to the driver in two ways: ours straight, others by SQLAlchemy."""
    count = Count()
    parameters, named, gathered = Prepared.parameters, Prepared.named, Prepared.gathered
    cursor, sent = Tx._cursor, Tx._sent

    def asked(self: Prepared, *given: Any) -> Any:
        count.statements += 1
        count.sql.add(self.sql)
        return parameters(self, *given)

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

    def asked_alone(self: Tx) -> Any:
        count.trips += 1
        return cursor(self)

    def asked_together(self: Tx, *question: Any) -> Any:
        count.trips += 1
        return sent(self, *question)

    def committed(_: Any) -> None:
        count.commits += 1

    event.listen(store._writing, "after_cursor_execute", executed)
    event.listen(store._writing, "commit", committed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Prepared, "parameters", asked)
        patch.setattr(Prepared, "named", answered)
        patch.setattr(Prepared, "gathered", answered_as_text)
        patch.setattr(Tx, "_cursor", asked_alone)
        patch.setattr(Tx, "_sent", asked_together)
        yield count
    event.remove(store._writing, "after_cursor_execute", executed)
    event.remove(store._writing, "commit", committed)
