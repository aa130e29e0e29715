"""A migrated database, quickly: what the migrations make is made once, and copied, repeated or emptied after that.

tests/contract/store/test_migrations.py proves that the tables as declared are the tables as migrated.
"""

import shutil
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

from sqlalchemy import Connection, Dialect, Engine, NullPool, create_engine, make_url, text
from sqlalchemy.exc import OperationalError
from sqlalchemy.schema import CreateIndex, CreateTable

from ksana.store.requests import StoreOptions
from ksana.store.sql import migrate
from ksana.store.sql.schema import MYSQL, READY_SHARE, metadata
from tests.servers.base import Address

_SQLITE = "sqlite:///"
_DRIVERS = {"postgresql": "postgresql+psycopg", "mysql": "mysql+pymysql"}
_idle: dict[int, list[str]] = defaultdict(list)


def prepare(url: str) -> None:
    """Gives an empty database the tables of this version."""
    if url.startswith(_SQLITE):
        shutil.copyfile(_template(), url.removeprefix(_SQLITE))
        return
    engine = _engine(url)
    with engine.begin() as connection:
        for statement in _statements(engine.dialect.name, engine):
            connection.execute(text(statement))
    engine.dispose()


def lend(server: Address) -> Iterator[str]:
    """A prepared, empty database of a server: one that was lent before and has been emptied, which takes a quarter of the time
    that a new one takes. Whoever changes more than rows does not borrow."""
    idle = _idle[server.port]
    if not idle:
        idle.append(server.create_database())
        prepare(idle[-1])
    url = idle.pop()
    yield url
    _empty(url)
    idle.append(url)


def _empty(url: str) -> None:
    """Makes the tables as new: in their numbers, and in how the server keeps and estimates them, too, which DELETE would not."""
    engine = _engine(url)
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            others = "datname = current_database() AND pid <> pg_backend_pid()"
            connection.execute(text(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}"))
            connection.execute(text(f"TRUNCATE {', '.join(metadata.tables)} RESTART IDENTITY"))
        else:
            _end_others(connection)
            connection.execute(text("SET foreign_key_checks = 0"))
            for table in metadata.tables:
                connection.execute(text(f"TRUNCATE TABLE {table}"))
    engine.dispose()


def _end_others(connection: Connection) -> None:
    """Whoever is still connected to it goes."""
    others = "db = database() AND id <> connection_id()"
    for row in connection.execute(text(f"SELECT id FROM information_schema.processlist WHERE {others}")).all():
        with suppress(OperationalError):  # it has gone meanwhile
            connection.execute(text(f"KILL {row.id}"))


@cache
def _template() -> Path:
    path = Path(tempfile.mkdtemp(prefix="ksana-template-")) / "ksana.db"
    migrate.upgrade(f"{_SQLITE}{path}", StoreOptions())
    return path


def discard() -> None:
    """The template goes with the session."""
    if _template.cache_info().currsize:
        shutil.rmtree(_template().parent, ignore_errors=True)


def _engine(url: str) -> Engine:
    address = make_url(url)
    return create_engine(address.set(drivername=_DRIVERS[address.get_backend_name()]), poolclass=NullPool)


_known: dict[str, list[str]] = {}


def _statements(name: str, engine: Engine) -> list[str]:
    if name not in _known:
        _known[name] = [*_ddl(engine.dialect), *_revision()]
    return _known[name]


def _ddl(dialect: Dialect) -> list[str]:
    made = []
    for table in metadata.sorted_tables:
        made.append(str(CreateTable(table).compile(dialect=dialect)))
        made += [
            str(CreateIndex(index).compile(dialect=dialect))
            for index in sorted(table.indexes, key=lambda i: str(i.name))
            if (dialect.name, index.name) != (MYSQL, "ix_executions_share")
        ]
    # What one database alone has is not among the tables' columns and indexes.
    return [*made, READY_SHARE] if dialect.name == MYSQL else made


def _revision() -> list[str]:
    return [
        "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)",
        f"INSERT INTO alembic_version (version_num) VALUES ('{migrate.HEAD}')",
    ]
