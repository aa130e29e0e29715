"""The tables of a new SQLite file, all in one transaction, as they are declared.

The revisions one after another make the same (tests/contract/store/test_migrations.py compares), but take 0.4 s, most of it to
load Alembic; and of a file that nobody has written to there is nothing to carry over.
"""

from functools import lru_cache

from sqlalchemy import Connection, create_mock_engine, text
from sqlalchemy.dialects import sqlite
from sqlalchemy.schema import CreateIndex, ExecutableDDLElement

from ksana.store.sql import schema


@lru_cache
def tables() -> tuple[str, ...]:
    """All tables and indexes, as text."""
    found: list[ExecutableDDLElement] = []
    schema.metadata.create_all(
        create_mock_engine("sqlite://", lambda element, *_, **__: found.append(element)),
        checkfirst=False,
    )
    # Of indexes that serve a question alike, SQLite takes the last that was made: always the same.
    found.sort(key=lambda element: str(element.element.name) if isinstance(element, CreateIndex) else "")
    compiler = sqlite.dialect()
    return tuple(str(element.compile(dialect=compiler)) for element in found)


def is_untouched(connection: Connection) -> bool:
    """Whether this is a SQLite file that has nothing in it, not even of somebody else."""
    if connection.dialect.name != "sqlite":
        return False
    try:
        return not connection.execute(text("SELECT count(*) FROM sqlite_master")).scalar_one()
    finally:
        connection.rollback()


def create(connection: Connection, revision: str, more: str) -> None:
    """All tables, as of that revision, and what `more` says; or nothing of it, should the process die."""
    version = "version_num VARCHAR(32) NOT NULL, CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)"
    noted = f"INSERT INTO alembic_version (version_num) VALUES ('{revision}')"
    for statement in (*tables(), f"CREATE TABLE alembic_version ({version})", noted, more):
        connection.exec_driver_sql(statement)
    connection.commit()
