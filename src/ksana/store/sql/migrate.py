"""Brings a database's tables to the revision that this program needs. Alembic is loaded only when there is something to carry
over: a new SQLite file gets its tables as they are declared (`fresh.py`)."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sqlalchemy import Connection, Engine, inspect, text
from sqlalchemy.exc import SQLAlchemyError

from ksana.domain.errors import SchemaMismatch, StoreError
from ksana.store.requests import StoreOptions
from ksana.store.sql.aftermath import check_after_crash
from ksana.store.sql.dialects import dialect_of
from ksana.store.sql.errors import translate
from ksana.store.sql.filelock import hold_file
from ksana.store.sql.migrations.turns import take_lock

HEAD = "0007"
"""The newest revision in migrations/versions (a test compares)."""
SERVES_FROM = "0003"
"""The oldest program, by its newest revision, that can go on working on this schema while instances are upgraded one by one."""
FILE_SERVES_FROM = "0007"
"""The same of a file, on which no two work at a time: 0007 takes an index away that programs before it name."""
_SERVES = "schema_serves_from"


@dataclass(frozen=True, slots=True)
class SchemaStatus:
    current: str | None
    head: str
    state: Literal["empty", "current", "older", "ahead", "newer"]
    """`ahead`: of a later program, which says that this one can work on it, too."""

    @property
    def usable(self) -> bool:
        return self.state in {"current", "ahead"}


def status(url: str, options: StoreOptions) -> SchemaStatus:
    """How the database's schema stands to this program's. Writes nothing. StoreUnavailable, StoreError."""
    dialect = dialect_of(url)
    if not dialect.exists(url):
        return SchemaStatus(None, HEAD, "empty")
    with _connected(dialect.reading_engine(url, options)) as connection:
        return _status(connection)


def upgrade(url: str, options: StoreOptions) -> tuple[str | None, str]:
    """Migrates; the revision before and now. Of several processes that try at once, one does it and the others find it
    done. SchemaMismatch if the database is newer than the program; StoreError if others never leave a table to it."""
    check_after_crash(url)
    before = status(url, options)
    _refuse_newer(before)
    if before.usable:
        return before.current, before.current or before.head
    file_lock = hold_file(url)
    try:
        dialect = dialect_of(url)
        with _connected(dialect.writing_engine(url, options, patient=True)) as connection:
            take_lock(connection, dialect.lock_for_migration)
            found = _status(connection)
            _refuse_newer(found)  # another may have migrated meanwhile, to a schema that does not serve us
            if not found.usable:
                _make(connection)
    finally:
        if file_lock is not None:
            file_lock.release()
    return before.current, found.current if found.usable and found.current else found.head


def require_current(found: SchemaStatus) -> None:
    """SchemaMismatch, with what to do, unless this program can work on the schema."""
    _refuse_newer(found)
    if not found.usable:
        raise SchemaMismatch(f"the database has schema {found.current or 'none'}, not {found.head}: run ksana migrate")


def _refuse_newer(found: SchemaStatus) -> None:
    if found.state == "newer":
        raise SchemaMismatch(
            f"the database has schema {found.current}, which is newer than this program's {found.head}: upgrade Ksana"
        )


def _make(connection: Connection) -> None:
    from ksana.store.sql import fresh  # noqa: PLC0415 - once in the life of a database

    if fresh.is_untouched(connection):
        fresh.create(connection, HEAD, _note(connection))
    else:
        _run(connection)


def _run(connection: Connection) -> None:
    from alembic import command  # noqa: PLC0415
    from alembic.config import Config  # noqa: PLC0415

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    command.upgrade(config, "head")
    connection.execute(text("DELETE FROM marks WHERE name = :name"), {"name": _SERVES})
    connection.execute(text(_note(connection)))
    connection.commit()


def _note(connection: Connection) -> str:
    """What says which programs this schema serves."""
    oldest = FILE_SERVES_FROM if connection.dialect.name == "sqlite" else SERVES_FROM
    return f"INSERT INTO marks (name, at) VALUES ('{_SERVES}', {int(oldest)})"


def _status(connection: Connection) -> SchemaStatus:
    current = _revision(connection)
    if current is None:
        return SchemaStatus(None, HEAD, "empty")
    if current == HEAD:
        return SchemaStatus(current, HEAD, "current")
    # Revisions are numbered; one that is not ours, or is higher, comes from a later program.
    if current.isdigit() and current < HEAD:
        return SchemaStatus(current, HEAD, "older")
    return SchemaStatus(current, HEAD, "ahead" if _serves_us(connection) else "newer")


def _serves_us(connection: Connection) -> bool:
    """Whether the later program that made this schema says that ours can work on it."""
    try:
        found = connection.execute(
            text("SELECT at FROM marks WHERE name = :name"), {"name": _SERVES}
        ).scalar_one_or_none()
    finally:
        connection.rollback()
    return found is not None and int(found) <= int(HEAD)


def _revision(connection: Connection) -> str | None:
    try:
        if not inspect(connection).has_table("alembic_version"):
            return None
        return connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one_or_none()
    finally:
        connection.rollback()


def _place(engine: Engine) -> str:
    """Where the database is, without who asks."""
    url = engine.url
    return (
        str(url.database)
        if url.host is None
        else f"the database {url.database} at {url.host}:{url.port or ''}".rstrip(":")
    )


@contextmanager
def _connected(engine: Engine) -> Iterator[Connection]:
    try:
        with engine.connect() as connection:
            yield connection
    except SQLAlchemyError as error:
        ours = translate(error)
        if type(ours) is StoreError:
            told = f"{_place(engine)} cannot be used: {ours.message}; correct it, or database.url (--database-url)"
            ours = StoreError(told)
        raise ours from error
    finally:
        engine.dispose()
