"""Counts what a store asks of its database: statements, rows that come back, and commits."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from sqlalchemy import event

from ksana.store.sql.rows import Prepared
from ksana.store.sql.store import SqlStore


@dataclass
class Count:
    statements: int = 0
    rows: int = 0
    commits: int = 0
    sql: set[str] = field(default_factory=set)
    """What was said to the driver straight."""


@contextmanager
def counting(store: SqlStore) -> Iterator[Count]:
    """Everything that the writer does meanwhile. Statements go to the driver in two ways: ours straight, others by SQLAlchemy."""
    count = Count()
    parameters, named, gathered = Prepared.parameters, Prepared.named, Prepared.gathered

    def asked(self: Prepared, values: Any) -> Any:
        count.statements += 1
        count.sql.add(self.sql)
        return parameters(self, values)

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

    def committed(_: Any) -> None:
        count.commits += 1

    event.listen(store._writing, "after_cursor_execute", executed)
    event.listen(store._writing, "commit", committed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Prepared, "parameters", asked)
        patch.setattr(Prepared, "named", answered)
        patch.setattr(Prepared, "gathered", answered_as_text)
        yield count
    event.remove(store._writing, "after_cursor_execute", executed)
    event.remove(store._writing, "commit", committed)
