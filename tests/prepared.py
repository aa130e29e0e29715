"""A migrated database, quickly: what the migrations make is made once, and copied, repeated or emptied after that.

tests/contract/store/test_migrations.py proves that the tables as declared are the tables as migrated.
"""

import atexit
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from sqlalchemy import Connection, Dialect, Engine, NullPool, create_engine, make_url, text
from sqlalchemy.schema import CreateIndex, CreateTable

from ksana.store.requests import StoreOptions
from ksana.store.sql import migrate
from ksana.store.sql.schema import metadata
from tests.servers.base import Address

_SQLITE = "sqlite:///"
_DRIVERS = {"postgresql": "postgresql+psycopg", "mysql": "mysql+pymysql"}
_FEW_ROWS = 500
"""Of a database with more, the server would keep what they took up."""
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
    """A prepared, empty database of a server: one that was lent before and has been emptied, which takes a tenth of the time
    that a new one takes. Whoever changes more than rows does not borrow."""
    idle = _idle[server.port]
    if not idle:
        idle.append(server.create_database())
        prepare(idle[-1])
    url = idle.pop()
    yield url
    if _emptied(url):
        idle.append(url)
    else:
        server.drop_database(url)


def _emptied(url: str) -> bool:
    """Whether the database is as new: not if it held much."""
    engine = _engine(url)
    with engine.connect() as connection:
        _end_others(connection)
        deleted = sum(connection.execute(table.delete()).rowcount for table in reversed(metadata.sorted_tables))
        for statement in _restarts(connection.dialect.name):
            connection.execute(text(statement))
        connection.commit()
    engine.dispose()
    return deleted <= _FEW_ROWS


def _end_others(connection: Connection) -> None:
    """Whoever is still connected to it goes."""
    if connection.dialect.name == "postgresql":
        others = "datname = current_database() AND pid <> pg_backend_pid()"
        connection.execute(text(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}"))
        return
    others = "db = database() AND id <> connection_id()"
    for row in connection.execute(text(f"SELECT id FROM information_schema.processlist WHERE {others}")).all():
        connection.execute(text(f"KILL {row.id}"))


def _restarts(dialect: str) -> list[str]:
    """What makes numbers begin at 1 again."""
    numbered = [(table.name, table.autoincrement_column) for table in metadata.sorted_tables]
    if dialect == "mysql":
        return [f"ALTER TABLE {name} AUTO_INCREMENT = 1" for name, column in numbered if column is not None]
    return [
        f"SELECT setval(pg_get_serial_sequence('{name}', '{column.name}'), 1, false)"
        for name, column in numbered
        if column is not None
    ]


@cache
def _template() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="ksana-template-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = folder / "ksana.db"
    migrate.upgrade(f"{_SQLITE}{path}", StoreOptions())
    return path


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
        ]
    return made


def _revision() -> list[str]:
    return [
        "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)",
        f"INSERT INTO alembic_version (version_num) VALUES ('{migrate.HEAD}')",
    ]
