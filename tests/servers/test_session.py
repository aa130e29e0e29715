"""A whole test session: one server for all its workers, nothing left after it, and honesty about what is missing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers import absence
from tests.servers.base import MissingError
from tests.servers.shared import Desk, DeskClient, SharedServers

ROOT = Path(__file__).parents[2]
SESSION_SECONDS = 120
NOTHING_INSTALLED = "import tests.servers.machine\ntests.servers.machine.PROGRAM_FOLDERS = ()\n"
WORKERS = pytest.mark.parametrize("workers", [0, 2])
PLUGINS = ("xdist.plugin", "pytest_asyncio.plugin", "tests.conftest")
"""To load all that is installed takes each process of a session three times as long."""
MISSING = MissingError("Redis", "apt-get install redis-server", "redis-server")


class Session:
    """Runs pytest on its own over one file of tests, with our conftest and nothing else of ours."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        path = os.pathsep.join([str(ROOT), str(folder), os.environ.get("PYTHONPATH", "")])
        self._environment = {**os.environ, "PYTHONPATH": path}
        self._environment.pop(absence.VARIABLE, None)
        self._plugins = [part for name in PLUGINS for part in ("-p", name)]

    def hide_all_servers(self) -> None:
        (self._folder / "nothing_installed.py").write_text(NOTHING_INSTALLED)
        self._plugins += ["-p", "nothing_installed"]
        self._environment["PATH"] = str(self._folder)

    def require(self, back_ends: str) -> None:
        self._environment[absence.VARIABLE] = back_ends

    def run(self, tests: str, workers: int) -> "subprocess.CompletedProcess[str]":
        (self._folder / "test_inner.py").write_text(tests)
        # The outer session may be a worker itself, and would be taken for the inner one's.
        environment = {n: v for n, v in self._environment.items() if not n.startswith("PYTEST_")}
        environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        options = ["-c", str(ROOT / "pyproject.toml"), "-p", "no:cacheprovider", "-n", str(workers)]
        return subprocess.run(
            [sys.executable, "-m", "pytest", *self._plugins, *options, str(self._folder / "test_inner.py")],
            cwd=self._folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=SESSION_SECONDS,
            check=False,
        )


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(tmp_path)


@pytest.mark.redis
@WORKERS
def test_all_tests_of_a_session_share_one_server_that_ends_with_it(
    session: Session, tmp_path: Path, workers: int
) -> None:
    result = session.run(
        "import pytest\n"
        "from pathlib import Path\n"
        "@pytest.mark.parametrize('n', range(6))\n"
        "def test_inner(redis_server, redis_url, n, worker_id):\n"
        "    folder = redis_server.call(0, 'CONFIG', 'GET', 'dir').splitlines()[1]\n"
        f"    Path(r'{tmp_path}', f'seen-{{n}}').write_text(folder + ' ' + redis_url)\n",
        workers,
    )
    assert result.returncode == 0, result.stdout
    seen = [path.read_text().split() for path in tmp_path.glob("seen-*")]
    folders, urls = ({entry[0] for entry in seen}, {entry[1] for entry in seen})
    assert (len(seen), len(folders), len(urls)) == (6, 1, 6)
    assert not Path(folders.pop()).exists()


@pytest.mark.redis
def test_a_worker_that_crashes_neither_takes_the_server_with_it_nor_leaves_it_behind(
    session: Session, tmp_path: Path
) -> None:
    result = session.run(
        "import os\n"
        "from pathlib import Path\n"
        "def test_crash(redis_server):\n"
        f"    Path(r'{tmp_path}', 'folder').write_text(redis_server.call(0, 'CONFIG', 'GET', 'dir').splitlines()[1])\n"
        "    os._exit(1)\n"
        "def test_after_the_crash(redis_server):\n"
        f"    assert redis_server.serves(Path(Path(r'{tmp_path}', 'folder').read_text()))\n",
        1,
    )
    assert "1 failed, 1 passed" in result.stdout
    assert not Path((tmp_path / "folder").read_text()).exists()


@WORKERS
def test_missing_servers_are_skipped_and_told_at_the_end(session: Session, workers: int) -> None:
    session.hide_all_servers()
    result = session.run(
        "import pytest\n"
        "def test_a(postgres_url): ...\n"
        "def test_b(private_mysql): private_mysql()\n"
        "@pytest.mark.redis\n"
        "def test_c(): ...\n"
        "@pytest.mark.redis\n"
        "def test_d(): ...\n",
        workers,
    )
    assert result.returncode == 0, result.stdout
    told = result.stdout.partition("not tested on this machine")[2]
    assert "PostgreSQL: 1 skipped. To test it: " in told
    assert "MySQL or MariaDB: 1 skipped. To test it: " in told
    assert "Redis: 2 skipped. To test it: " in told
    assert "4 skipped" in told.splitlines()[-1]


@WORKERS
def test_a_missing_server_that_is_required_fails_its_tests(session: Session, workers: int) -> None:
    session.hide_all_servers()
    session.require("postgresql,redis")
    result = session.run(
        "def test_a(postgres_url): ...\ndef test_b(mysql_url): ...\ndef test_c(redis_url): ...\n", workers
    )
    assert result.returncode == 1
    assert "1 skipped, 2 errors" in result.stdout.splitlines()[-1]


def test_a_required_back_end_that_does_not_exist_ends_the_session(session: Session) -> None:
    session.require("oracle")
    result = session.run("def test_a(): ...\n", 0)
    assert result.returncode == pytest.ExitCode.USAGE_ERROR
    assert (
        "KSANA_TEST_REQUIRE lists oracle; known: postgresql, mysql, redis, chromium, compiler, console" in result.stderr
    )


def test_a_back_end_may_be_missing_unless_it_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(absence.VARIABLE, "postgresql")
    with pytest.raises(pytest.skip.Exception, match="Redis is not installed: apt-get install redis-server"):
        absence.absent("redis", MISSING)
    monkeypatch.setenv(absence.VARIABLE, "postgresql, redis")
    with pytest.raises(pytest.fail.Exception, match="looked for redis-server"):
        absence.absent("redis", MISSING)


@pytest.mark.parametrize(
    ("failure", "expected"), [(MISSING, "Redis is not installed"), (OSError("disk full"), "OSError: disk full")]
)
def test_what_the_controller_fails_with_reaches_the_worker(
    monkeypatch: pytest.MonkeyPatch, failure: Exception, expected: str
) -> None:
    def fail(_: SharedServers, name: str) -> None:
        raise failure

    monkeypatch.setattr(SharedServers, "address", fail)
    desk = Desk(SharedServers())
    try:
        with pytest.raises(Exception, match=expected):
            DeskClient(desk.port).address("redis")
    finally:
        desk.close()
