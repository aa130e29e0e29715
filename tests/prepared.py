"""A migrated database, quickly: what the migrations make is made once, and copied or repeated after that.

tests/contract/store/test_migrations.py proves that the tables as declared are the tables as migrated.
"""

import shutil
import tempfile
from functools import cache
from pathlib import Path

from sqlalchemy import Dialect, Engine, NullPool, create_engine, make_url, text
from sqlalchemy.schema import CreateIndex, CreateTable

from ksana.store.requests import StoreOptions
from ksana.store.sql import migrate
from ksana.store.sql.schema import metadata

_SQLITE = "sqlite:///"
_DRIVERS = {"postgresql": "postgresql+psycopg", "mysql": "mysql+pymysql"}


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


@cache
def _template() -> Path:
    path = Path(tempfile.mkdtemp(prefix="ksana-template-")) / "ksana.db"
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
