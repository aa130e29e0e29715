"""Expand, then contract: between the oldest program that may still work on a schema and the newest, revisions only add.

What an older program writes and reads must stay as it is while instances are upgraded one by one; so must whatever it leaves out.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, Inspector, inspect, text

from ksana.store.requests import StoreOptions
from ksana.store.sql import migrate
from ksana.store.sql.dialects import dialect_of
from tests.upgrade.busy import upgrade
from tests.upgrade.older import OLDER_SCHEMA

BACK_ENDS = [
    pytest.param("sqlite", id="sqlite"),
    pytest.param("postgres_url", id="postgresql", marks=pytest.mark.postgresql),
    pytest.param("mysql_url", id="mysql", marks=pytest.mark.mysql),
]


@dataclass(frozen=True)
class Table:
    """What a program relies on when it reads and writes a table."""

    columns: dict[str, dict[str, Any]]
    unique: set[tuple[str, ...]]
    points_to: set[str]
    checks: set[str]


@pytest.fixture(params=BACK_ENDS)
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    on_file = request.param == "sqlite"
    url = f"sqlite:///{tmp_path / 'ksana.db'}" if on_file else str(request.getfixturevalue(request.param))
    made = dialect_of(url).writing_engine(url, StoreOptions(), patient=True)
    yield made
    made.dispose()


def tables(connection: Connection) -> dict[str, Table]:
    inspector = inspect(connection)
    found = {name: _table(inspector, name) for name in inspector.get_table_names() if name != "alembic_version"}
    connection.rollback()
    return found


def _table(inspector: Inspector, name: str) -> Table:
    unique = [inspector.get_pk_constraint(name)["constrained_columns"]]
    unique += [each["column_names"] for each in inspector.get_unique_constraints(name)]
    unique += [
        [str(column) for column in each["column_names"]] for each in inspector.get_indexes(name) if each["unique"]
    ]
    return Table(
        {str(each["name"]): dict(each) for each in inspector.get_columns(name)},
        {tuple(sorted(each)) for each in unique},
        {f"{each['constrained_columns']} → {each['referred_table']}" for each in inspector.get_foreign_keys(name)},
        {str(each["sqltext"]) for each in inspector.get_check_constraints(name)},
    )


def narrowed(before: dict[str, Table], after: dict[str, Table]) -> list[str]:
    """What a program that knows only `before` would stumble over."""
    found = [f"{name} is gone" for name in before if name not in after]
    for name, old in before.items():
        if name in after:
            found += [f"{name}: {told}" for told in _narrowed(old, after[name])]
    return found


def _narrowed(old: Table, new: Table) -> Iterator[str]:
    for name, column in old.columns.items():
        if name not in new.columns:
            yield f"{name} is gone"
        elif not _takes(new.columns[name], column):
            yield f"{name} was {column}, and is {new.columns[name]}"
    for name in new.columns.keys() - old.columns.keys():
        if not _fills_itself(new.columns[name]):
            yield f"{name} is new, and must be given"
    yield from (f"unique now: {each}" for each in new.unique - old.unique)
    yield from (f"points to another table now: {each}" for each in new.points_to - old.points_to)
    yield from (f"checked now: {each}" for each in new.checks - old.checks)


def _takes(new: dict[str, Any], old: dict[str, Any]) -> bool:
    """Whether whatever could be written and read before still can."""
    same_kind = type(new["type"]) is type(old["type"])
    longer = _length(new) >= _length(old)
    return same_kind and longer and (new["nullable"] or not old["nullable"]) and _fills(new) >= _fills(old)


def _length(column: dict[str, Any]) -> float:
    length = getattr(column["type"], "length", None)
    return float("inf") if length is None else float(length)


def _fills(column: dict[str, Any]) -> bool:
    return column.get("default") is not None


def _fills_itself(column: dict[str, Any]) -> bool:
    return bool(column["nullable"]) or _fills(column) or "computed" in column


def test_a_schema_that_older_programs_may_work_on_only_adds_to_theirs(engine: Engine) -> None:
    with engine.connect() as connection:
        upgrade(connection, migrate.SERVES_FROM)
        before = tables(connection)
        upgrade(connection, "head")
        after = tables(connection)
    assert before
    assert narrowed(before, after) == []


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("ALTER TABLE marks DROP COLUMN at", "at is gone"),
        ("DROP TABLE marks", "marks is gone"),
        ("ALTER TABLE marks RENAME COLUMN at TO since", "since is new, and must be given"),
        ("CREATE UNIQUE INDEX narrow ON marks (at)", "unique now: ('at',)"),
    ],
)
def test_the_comparison_would_notice_whatever_narrows(engine: Engine, statement: str, told: str) -> None:
    with engine.connect() as connection:
        connection.execute(text("CREATE TABLE marks (name VARCHAR(20) PRIMARY KEY, at BIGINT NOT NULL)"))
        connection.commit()
        before = tables(connection)
        connection.execute(text(statement))
        connection.commit()
        found = narrowed(before, tables(connection))
    assert [each for each in found if each.endswith(told)], found


def test_the_older_program_that_is_tried_is_one_that_may_work_on_this_schema() -> None:
    assert migrate.SERVES_FROM <= OLDER_SCHEMA < migrate.HEAD
