"""One suite, every back end: `store` is SQLite, PostgreSQL and MySQL in turn, each on a new, migrated database, and the
JSON-file store, which is SQLite inside: `back_end` says so, and `url` is that of its private database."""

from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from ksana.store.jsonfile import open_json_store
from ksana.store.jsonfile.paths import scratch_folder
from ksana.store.requests import JobFilter, PageRequest, StoreOptions
from ksana.store.sql import open_store
from ksana.store.sql.store import SqlStore
from tests.clock import FakeClock
from tests.contract.store.world import World
from tests.prepared import lend, prepare
from tests.unit.engine.simulation import Simulation
from tests.unit.engine.workflow_world import Flow

BACK_ENDS = [
    pytest.param("sqlite", id="sqlite"),
    pytest.param("postgresql", id="postgresql", marks=pytest.mark.postgresql),
    pytest.param("mysql", id="mysql", marks=pytest.mark.mysql),
    pytest.param("json", id="json"),
]
OPTIONS = StoreOptions(readers=2)
EVERYTHING = PageRequest(size=500)


# It opens the SQL database again by its address; test_jsonfile.py has the same test for the file.
_REOPENS = {"test_closing_commits_what_was_asked_for_and_refuses_the_rest"}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests that open an SQL database by themselves are not about the JSON-file store."""
    elsewhere = [item for item in items if _on_json(item) and _opens_itself(item)]
    if elsewhere:
        config.hook.pytest_deselected(items=elsewhere)
        items[:] = [item for item in items if item not in elsewhere]


def _opens_itself(item: pytest.Item) -> bool:
    return "store" not in getattr(item, "fixturenames", ()) or getattr(item, "originalname", "") in _REOPENS


def _on_json(item: pytest.Item) -> bool:
    case = getattr(item, "callspec", None)
    return case is not None and case.params.get("back_end") == "json"


@pytest.fixture(params=BACK_ENDS)
def back_end(request: pytest.FixtureRequest) -> str:
    """The database that the store speaks to."""
    return "sqlite" if request.param == "json" else str(request.param)


@pytest.fixture
def json_file(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    """The file of the JSON-file store, where that is what is tested."""
    return tmp_path / "jobs.json" if _on_json(request.node) else None


@pytest.fixture
def url(back_end: str, json_file: Path | None, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of an empty database; with its tables, if the test uses `store`."""
    if json_file is not None:
        yield f"sqlite:///{scratch_folder(json_file) / 'ksana.db'}"
        return
    prepared = "store" in request.fixturenames
    if back_end == "sqlite":
        address = f"sqlite:///{tmp_path / 'ksana.db'}"
    elif prepared and request.node.get_closest_marker("changes_tables") is None:
        yield from lend(request.getfixturevalue({"postgresql": "postgres_server", "mysql": "mysql_server"}[back_end]))
        return
    else:
        address = request.getfixturevalue({"postgresql": "postgres_url", "mysql": "mysql_url"}[back_end])
    if prepared:
        prepare(address)
    yield address


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def store(url: str, json_file: Path | None, clock: FakeClock) -> AsyncIterator[SqlStore]:
    if json_file is None:
        opened = open_store(url, options=OPTIONS, clock=clock)
    else:
        opened = open_json_store(f"json://{json_file}", options=OPTIONS, clock=clock)
    yield opened
    if json_file is not None and not opened._closed:
        await _survives_a_restart(opened, json_file, clock)
    await opened.close()


async def _survives_a_restart(store: SqlStore, json_file: Path, clock: FakeClock) -> None:
    """Whatever the test has done, the file says all of its jobs and schedules."""
    # A transaction more: what a test wrote past the store is in the file, too.
    await store.acquire_lock("settled", "test", timedelta(seconds=1))
    before = [await store.jobs(JobFilter(), EVERYTHING), await store.schedules(EVERYTHING)]
    await store.close()
    again = open_json_store(f"json://{json_file}", options=OPTIONS, clock=clock)
    try:
        assert [await again.jobs(JobFilter(), EVERYTHING), await again.schedules(EVERYTHING)] == before
    finally:
        await again.close()


@pytest.fixture
def world(store: SqlStore, clock: FakeClock) -> World:
    return World(store, clock)


@pytest.fixture
async def flow(store: SqlStore, clock: FakeClock) -> AsyncIterator[Flow]:
    """Workflows on an instance of simulated time."""
    simulation = Simulation(store, clock)
    await simulation.join()
    yield Flow(simulation)
    await simulation.engine.workers.drain(timedelta(0))
