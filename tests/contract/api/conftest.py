"""A running `ksana serve` on every back end in turn, a client for it, and a target for its jobs to call.

A module shares one server per back end, so its tests use names of their own (`unique`). A module that needs other settings
overrides the fixture `settings`; one that needs one back end only marks itself with `ON_SQLITE`.
"""

import itertools
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.contract.api.witness import Target, Witness
from tests.prepared import prepare
from tests.process.conftest import Serving, begin
from tests.servers.base import Address

BACK_ENDS = [
    pytest.param("sqlite", id="sqlite"),
    pytest.param("postgresql", id="postgresql", marks=pytest.mark.postgresql),
    pytest.param("mysql", id="mysql", marks=pytest.mark.mysql),
    pytest.param("json", id="json"),
]
ON_SQLITE = pytest.mark.parametrize("back_end", BACK_ENDS[:1], indirect=True, scope="module")
"""For tests of what does not depend on the store, or that take seconds."""
SERVERS = {"postgresql": "postgres_server", "mysql": "mysql_server"}
PAUSE_SECONDS = 0.05
ANSWER_SECONDS = 30.0
_numbers = itertools.count(1)


def unique(prefix: str) -> str:
    """A name that nothing else in the session has."""
    return f"{prefix}-{os.getpid()}-{next(_numbers)}"


def until(
    api: httpx2.Client, path: str, condition: Callable[[Any], object], timeout: float = 20, **params: str | int
) -> Any:
    """Asks until the JSON answered satisfies the condition, and returns it; fails with the last one."""
    deadline = time.monotonic() + timeout
    while True:
        answer = api.get(path, params=params)
        if answer.status_code == 200 and condition(answer.json()):
            return answer.json()
        if time.monotonic() > deadline:
            pytest.fail(f"after {timeout:g} s GET {path} still answers {answer.status_code} {answer.text}")
        time.sleep(PAUSE_SECONDS)


@contextmanager
def serving(
    folder: Path, database_url: str, settings: Mapping[str, str], *flags: str, command: str = "serve"
) -> Iterator[Serving]:
    """`ksana serve` on a free port with its data in the folder; it ends with the block."""
    arguments = ("--port", "0", "--data-dir", str(folder / "data"), "--database-url", database_url, *flags)
    server = Serving(begin(command, *arguments, cwd=folder, env={"LOG_LEVEL": "warning", **settings}))
    server.read()
    try:
        yield server.wait_ready()
    finally:
        server.close()


@contextmanager
def empty_database(back_end: str, folder: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a new, empty store."""
    if back_end == "sqlite":
        url = f"sqlite:///{folder / 'ksana.db'}"
        prepare(url)  # or else every server would migrate, which takes it longer than to start
        yield url
    elif back_end == "json":
        yield f"json://{folder / 'jobs.json'}"
    else:
        server: Address = request.getfixturevalue(SERVERS[back_end])
        url = server.create_database()
        try:
            prepare(url)
            yield url
        finally:
            server.drop_database(url)


@pytest.fixture(scope="module", params=BACK_ENDS)
def back_end(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def settings() -> Mapping[str, str]:
    """Environment variables for the module's server."""
    return {}


@dataclass
class Shared:
    """Servers that several modules use, by back end; they end with the session."""

    running: dict[str, Serving] = field(default_factory=dict)
    ending: ExitStack = field(default_factory=ExitStack)


@pytest.fixture(scope="session")
def shared() -> Iterator[Shared]:
    servers = Shared()
    with servers.ending:
        yield servers


_SHARING = (
    "test_jobchain",
    "test_chains",
    "test_plans_flow",
    "test_plans_steering",
    "test_plans_waves",
    "test_plans_example",
)


@pytest.fixture(scope="module")
def server(
    back_end: str,
    settings: Mapping[str, str],
    shared: Shared,
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Serving]:
    """The module's server on this back end. Those about workflows leave nothing behind that goes on: they share one."""
    folder = tmp_path_factory.mktemp(back_end)
    if not request.module.__name__.rpartition(".")[2].startswith(_SHARING):
        with empty_database(back_end, folder, request) as url, serving(folder, url, settings) as running:
            yield running
        return
    if back_end not in shared.running:
        url = shared.ending.enter_context(empty_database(back_end, folder, request))
        shared.running[back_end] = shared.ending.enter_context(serving(folder, url, settings))
    yield shared.running[back_end]


@pytest.fixture(scope="module")
def api(server: Serving) -> Iterator[httpx2.Client]:
    """A client of the module's server."""
    with httpx2.Client(base_url=server.base, timeout=ANSWER_SECONDS) as client:
        yield client


@pytest.fixture(scope="session")
def witness() -> Iterator[Witness]:
    """The session's one target server."""
    running = Witness()
    yield running
    running.close()


@pytest.fixture
def target(witness: Witness) -> Iterator[Target]:
    """This test's corner of the target server; what it still holds is released at the end."""
    corner = witness.target()
    yield corner
    corner.release_all()
