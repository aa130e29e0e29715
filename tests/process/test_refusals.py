"""What stops Ksana from starting is told in one line, with what to do, and leaves nothing behind."""

import socket
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.process.conftest import Ended, ksana

FREE = {"PORT": "0"}


def assert_one_line(ended: Ended, *parts: str) -> None:
    assert ended.code != 0
    assert ended.out == ""
    told = [line for line in ended.err.splitlines() if not line.startswith("{")]
    assert len(told) == 1, ended.err
    assert told[0].startswith("ksana: ")
    assert all(part in told[0] for part in parts), told[0]


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port that nothing listens on, kept from others by being bound."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def test_an_unknown_setting_in_the_file(tmp_path: Path) -> None:
    (tmp_path / "k.yaml").write_text("server:\n  prot: 1\n")
    ended = ksana("serve", "--config", "k.yaml", cwd=tmp_path, fresh=True)
    assert_one_line(ended, "server.prot", "k.yaml, line 2", "did you mean server.port?")
    assert ended.code == 2
    assert [file.name for file in tmp_path.iterdir()] == ["k.yaml"]


@pytest.mark.parametrize(
    ("url", "part"),
    [
        ("postgresql://u:s3cret@host:port/k", "host or port cannot be read"),
        ("ksana.db", "sqlite:///path"),
        ("json://", "json:///absolute"),
    ],
)
def test_a_malformed_database_address(url: str, part: str, tmp_path: Path) -> None:
    ended = ksana("serve", cwd=tmp_path, env={"KSANA_DATABASE_URL": url})
    assert_one_line(ended, "database.url", "environment KSANA_DATABASE_URL", part)
    assert ended.code == 2
    assert "s3cret" not in ended.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("scheme", ["postgresql", "mysql"])
@pytest.mark.parametrize("command", ["serve", "migrate"])
def test_a_database_that_is_down(command: str, scheme: str, silent_port: int, tmp_path: Path) -> None:
    url = f"{scheme}://u:s3cret@127.0.0.1:{silent_port}/k"
    ended = ksana(
        command, cwd=tmp_path, env={"KSANA_DATABASE_URL": url, "KSANA_DATABASE_CONNECT_TIMEOUT": "300ms"} | FREE
    )
    assert_one_line(ended, f"127.0.0.1:{silent_port}", "start it, or correct database.url")
    assert ended.code == 1
    assert "s3cret" not in ended.err


@pytest.mark.parametrize("scheme", ["postgresql", "mysql"])
def test_a_port_that_accepts_and_says_nothing(scheme: str, tmp_path: Path) -> None:
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        url = f"{scheme}://u:s3cret@127.0.0.1:{mute.getsockname()[1]}/k"
        ended = ksana("doctor", cwd=tmp_path, env={"KSANA_DATABASE_URL": url, "KSANA_DATABASE_CONNECT_TIMEOUT": "1s"})
    assert ended.code == 1
    assert "cannot be reached" in ended.out
    assert "s3cret" not in ended.out + ended.err


def test_a_wrong_option_in_the_address_is_no_outage(tmp_path: Path) -> None:
    url = "postgresql://u@127.0.0.1/k?nonsense=1"
    ended = ksana("serve", cwd=tmp_path, env={"KSANA_DATABASE_URL": url} | FREE)
    assert_one_line(ended, "nonsense", "correct it, or database.url")
    assert ended.code == 1


def test_a_path_that_cannot_be_looked_at(tmp_path: Path) -> None:
    ended = ksana("doctor", "--data-dir", "x" * 300, cwd=tmp_path)
    assert_one_line(ended, "cannot be looked at")
    assert ended.code == 1


def test_a_data_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ended = ksana("serve", "--data-dir", "file/data", cwd=tmp_path, env=FREE)
    assert_one_line(ended, "data_dir (from flag --data-dir)", "file/data", "choose another")
    assert ended.code == 2


def test_a_read_only_data_directory(tmp_path: Path) -> None:
    """/proc refuses new files even to root, as a read-only disk does."""
    ended = ksana("serve", cwd=tmp_path, env={"DATA_DIR": "/proc/self"} | FREE)
    assert_one_line(ended, "/proc/self", "data")


@pytest.mark.parametrize("command", ["serve", "migrate"])
def test_a_database_written_by_a_newer_version(command: str, tmp_path: Path) -> None:
    ksana("migrate", cwd=tmp_path)
    with closing(sqlite3.connect(tmp_path / "data" / "ksana.db")) as database:
        database.execute("UPDATE alembic_version SET version_num = '9999'")
        database.execute("UPDATE marks SET at = 9999 WHERE name = 'schema_serves_from'")
        database.commit()
    ended = ksana(command, cwd=tmp_path, env=FREE)
    assert_one_line(ended, "9999", "upgrade Ksana")
    assert ended.code == 1


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "ksana.example"])
def test_sec_s1_an_address_that_others_can_reach(host: str, tmp_path: Path) -> None:
    ended = ksana("serve", "--host", host, cwd=tmp_path)
    assert_one_line(ended, "no authentication yet", "--insecure")
    assert ended.code == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["sevre"], 'Unknown command "sevre"'),
        (["serve", "--prot", "1"], "Did you mean --port?"),
        (["serve", "--port"], "requires an argument"),
        (["serve", "--port", "x"], "must be a whole number"),
        (["serve", "--config", "none.yaml"], "No such file"),
    ],
)
def test_a_wrong_command_line(arguments: list[str], part: str, tmp_path: Path) -> None:
    ended = ksana(*arguments, cwd=tmp_path)
    assert_one_line(ended, part)
    assert ended.code == 2
