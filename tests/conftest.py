"""Fixtures for tests against real servers: a new database per test, or a server that the test may kill."""

import gc
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol, TypeVar

import pytest
import structlog

from ksana.store.sql import writer
from tests import prepared
from tests.knowing import Checked
from tests.servers import absence
from tests.servers.base import Address, MissingError, Server
from tests.servers.machine import memory_folder
from tests.servers.mysql import MySqlServer
from tests.servers.postgresql import PostgresServer
from tests.servers.redis import RedisServer
from tests.servers.shared import SERVERS, Desk, DeskClient, SharedServers

S = TypeVar("S", bound=Server)
S_co = TypeVar("S_co", bound=Server, covariant=True)
FIXTURES = {
    "postgresql": {"postgres_server", "postgres_url", "private_postgres"},
    "mysql": {"mysql_server", "mysql_url", "private_mysql"},
    "redis": {"redis_server", "redis_url", "private_redis"},
}
# Whom to trust, for every process of the session: nobody. To read the system's list takes 35 ms for each HTTP client and each
# connection to MariaDB, and no test calls anyone whom it names.
os.environ["SSL_CERT_FILE"] = str(Path(__file__).parent / "servers" / "nobody.pem")
# Temporary files in memory: on a disk, to make and remove a database's files takes PostgreSQL three times the CPU. Ksana and
# the servers are killed here, but no machine is.
if "TMPDIR" not in os.environ and (memory := memory_folder()) is not None:
    os.environ["TMPDIR"] = tempfile.tempdir = memory
# Tracebacks in the log as Python has them: to draw one as structlog does by itself takes seconds.
structlog.configure(
    processors=[
        *structlog.get_config()["processors"][:-1],
        structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback),
    ]
)
# What a writer knows without asking is compared with what is stored.
vars(writer)["Live"] = Checked
SERVED = pytest.StashKey[SharedServers | DeskClient]()
DESK = pytest.StashKey[Desk]()


class StartPrivate(Protocol[S_co]):
    """Starts a server for this test alone; it ends with the test."""

    def __call__(self, *, durable: bool = False) -> S_co: ...


def pytest_configure(config: pytest.Config) -> None:
    absence.required()
    given = getattr(config, "workerinput", None)
    config.stash[SERVED] = SharedServers() if given is None else DeskClient(given["ksana_desk"])


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: object) -> None:
    """Tells a pytest-xdist worker where to ask for servers."""
    config: pytest.Config = node.config  # type: ignore[attr-defined]
    servers = config.stash[SERVED]
    assert isinstance(servers, SharedServers)
    if DESK not in config.stash:
        config.stash[DESK] = Desk(servers)
    node.workerinput["ksana_desk"] = config.stash[DESK].port  # type: ignore[attr-defined]


def pytest_unconfigure(config: pytest.Config) -> None:
    prepared.discard()
    if DESK in config.stash:
        config.stash[DESK].close()
    servers = config.stash.get(SERVED, None)
    if isinstance(servers, SharedServers):
        servers.close()


def pytest_itemcollected(item: pytest.Item) -> None:
    """Marks a test with the back ends whose fixtures it uses, so that `-m "not mysql"` leaves it out."""
    used = set(getattr(item, "fixturenames", ()))
    for back_end, fixtures in FIXTURES.items():
        if fixtures & used:
            item.add_marker(back_end)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """All that imports and collection have made stays: to look through it for garbage took a tenth of the tests' time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skips or fails a test that is marked with a back end which is not here."""
    for back_end, server in SERVERS.items():
        if item.get_closest_marker(back_end) is not None:
            _found(back_end, server)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    lines = absence.untested(terminalreporter.stats.get("skipped", ()))
    if lines:
        terminalreporter.section("not tested on this machine")
        for line in lines:
            terminalreporter.line(line)


@pytest.fixture(scope="session")
def postgres_server(request: pytest.FixtureRequest) -> Address:
    """The session's one PostgreSQL, shared and not durable: to stop or kill one, take `private_postgres`."""
    return _shared(request, "postgresql")


@pytest.fixture(scope="session")
def mysql_server(request: pytest.FixtureRequest) -> Address:
    """The session's one MariaDB or MySQL; see `postgres_server`."""
    return _shared(request, "mysql")


@pytest.fixture(scope="session")
def redis_server(request: pytest.FixtureRequest) -> Address:
    """The session's one Redis; see `postgres_server`."""
    return _shared(request, "redis")


@pytest.fixture
def postgres_url(postgres_server: Address) -> Iterator[str]:
    """A new, empty PostgreSQL database for this test."""
    yield from _database(postgres_server)


@pytest.fixture
def mysql_url(mysql_server: Address) -> Iterator[str]:
    """A new, empty MariaDB or MySQL database for this test."""
    yield from _database(mysql_server)


@pytest.fixture
def redis_url(redis_server: Address) -> Iterator[str]:
    """A Redis database that no other test uses, emptied afterwards."""
    yield from _database(redis_server)


@pytest.fixture
def private_postgres() -> Iterator[StartPrivate[PostgresServer]]:
    """Starts PostgreSQL servers that this test may stop, kill and pause: `private_postgres(durable=True)`."""
    yield from _starter("postgresql", PostgresServer)


@pytest.fixture
def private_mysql() -> Iterator[StartPrivate[MySqlServer]]:
    """Starts MariaDB or MySQL servers that this test may stop, kill and pause."""
    yield from _starter("mysql", MySqlServer)


@pytest.fixture
def private_redis() -> Iterator[StartPrivate[RedisServer]]:
    """Starts Redis servers that this test may stop, kill and pause."""
    yield from _starter("redis", RedisServer)


def _shared(request: pytest.FixtureRequest, back_end: str) -> Address:
    try:
        return request.config.stash[SERVED].address(back_end)
    except MissingError as missing:
        absence.absent(back_end, missing)


def _database(server: Address) -> Iterator[str]:
    url = server.create_database()
    yield url
    server.drop_database(url)


def _starter(back_end: str, kind: Callable[..., S]) -> Iterator[StartPrivate[S]]:
    with ExitStack() as started:

        def start(*, durable: bool = False) -> S:
            try:
                server = kind(durable=durable)
            except MissingError as missing:
                absence.absent(back_end, missing)
            started.callback(server.close)
            server.start()
            return server

        yield start


def _found(back_end: str, server: type[Server]) -> None:
    try:
        server.find()
    except MissingError as missing:
        absence.absent(back_end, missing)
