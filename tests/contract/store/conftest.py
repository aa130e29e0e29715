"""One suite, every back end: `store` is SQLite, PostgreSQL and MySQL in turn, each on a new, migrated database."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ksana.store.requests import StoreOptions
from ksana.store.sql import migrate, open_store
from ksana.store.sql.store import SqlStore
from tests.clock import FakeClock
from tests.contract.store.world import World

BACK_ENDS = [
    pytest.param("sqlite", id="sqlite"),
    pytest.param("postgresql", id="postgresql", marks=pytest.mark.postgresql),
    pytest.param("mysql", id="mysql", marks=pytest.mark.mysql),
]
OPTIONS = StoreOptions(readers=2)


@pytest.fixture(params=BACK_ENDS)
def back_end(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def url(back_end: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database."""
    if back_end == "sqlite":
        return f"sqlite:///{tmp_path / 'ksana.db'}"
    fixture = {"postgresql": "postgres_url", "mysql": "mysql_url"}[back_end]
    return str(request.getfixturevalue(fixture))


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def store(url: str, clock: FakeClock) -> AsyncIterator[SqlStore]:
    migrate.upgrade(url, OPTIONS)
    opened = open_store(url, options=OPTIONS, clock=clock)
    yield opened
    await opened.close()


@pytest.fixture
def world(store: SqlStore, clock: FakeClock) -> World:
    return World(store, clock)
