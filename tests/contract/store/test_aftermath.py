"""A SQLite file whose process was killed: checked before it is used, and refused by name if it is damaged."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from ksana.domain.errors import StoreError, StoreInUse
from ksana.store.sql import migrate, open_store
from ksana.store.sql.aftermath import check_after_crash
from ksana.store.sql.store import SqlStore
from tests.clock import FakeClock
from tests.contract.store.conftest import OPTIONS
from tests.contract.store.world import World, run_sql
from tests.prepared import prepare

PAGE = 4_096


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "ksana.db"
    prepare(f"sqlite:///{path}")
    return path


@pytest.fixture
def crashed(file: Path, tmp_path: Path) -> Iterator[Path]:
    """The files as a process that was killed leaves them: copied while it had them open."""
    store = opened(file)
    run_sql(url_of(file), "CREATE TABLE filler AS SELECT 1")
    left = tmp_path / "left"
    left.mkdir()
    for name in ("ksana.db", "ksana.db-wal", "ksana.db.lock"):
        shutil.copyfile(file.with_name(name), left / name)
    yield left / "ksana.db"
    store._close()


def url_of(path: Path) -> str:
    return f"sqlite:///{path}"


def opened(path: Path) -> SqlStore:
    return open_store(url_of(path), options=OPTIONS, clock=FakeClock())


def told(path: Path) -> list[str]:
    with capture_logs() as lines:
        check_after_crash(url_of(path))
    return [line["action"] for line in lines]


def damage(path: Path, page: int) -> None:
    """As a disk that lost a page."""
    with path.open("r+b") as file:
        file.seek((page - 1) * PAGE)
        file.write(os.urandom(PAGE))


def test_after_an_orderly_end_there_is_nothing_to_check(file: Path) -> None:
    opened(file)._close()
    assert told(file) == []


def test_a_file_whose_process_was_killed_is_checked_once(crashed: Path) -> None:
    assert told(crashed) == ["store.checked"]
    assert told(crashed) == []
    assert run_sql(url_of(crashed), "SELECT count(*) FROM filler")[0][0] == 1, "what was in its log is there"


def test_a_page_that_is_damaged_is_found_and_named_each_time(crashed: Path) -> None:
    check_after_crash(url_of(crashed))  # all is in the file now, and nothing in the log
    crashed.with_name("ksana.db.lock").write_text("process 1 on somewhere\n")
    for page in (5, 9, 13):
        damage(crashed, page)
    for _ in range(2):
        with pytest.raises(StoreError, match=r"ksana\.db is damaged: .*\.recover"):
            opened(crashed)
    with pytest.raises(StoreError, match="is damaged"):
        migrate.upgrade(url_of(crashed), OPTIONS)


def test_a_log_that_is_missing_is_told(crashed: Path) -> None:
    crashed.with_name("ksana.db-wal").unlink()
    assert told(crashed) == ["store.checked", "store.log_missing"]


async def test_a_file_that_is_in_use_is_left_alone(file: Path) -> None:
    store = opened(file)
    await World(store, FakeClock()).job()
    assert told(file) == []
    with pytest.raises(StoreInUse):
        opened(file)
    await store.close()


def test_a_file_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    assert told(tmp_path / "ksana.db") == []
    assert list(tmp_path.iterdir()) == []


def test_a_check_that_is_broken_off_is_made_again(crashed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: Path) -> str:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("ksana.store.sql.aftermath._findings", broken)
        with pytest.raises(KeyboardInterrupt):
            check_after_crash(url_of(crashed))
    assert told(crashed)[0] == "store.checked"
