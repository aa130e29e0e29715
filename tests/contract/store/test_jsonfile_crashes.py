"""The JSON file when the disk is full, when another process has it, and when something fails between two steps."""

import asyncio
import errno
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from ksana.domain.errors import CommitUnknown, StoreFull, StoreInUse, StoreUnavailable
from ksana.store.jsonfile import atomic, open_json_store
from ksana.store.jsonfile.paths import scratch_folder, temporary
from ksana.store.requests import JobFilter, NewJob
from ksana.store.sql.store import SqlStore
from tests.clock import FakeClock
from tests.contract.store.conftest import EVERYTHING, OPTIONS
from tests.contract.store.counting import before_commits
from tests.contract.store.test_jsonfile import opened, said, version_of
from tests.contract.store.test_jsonfile_damage import filled, jobs_in
from tests.contract.store.world import World, http_spec

HOUR = timedelta(hours=1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jobs.json"


# Full, forbidden, in use ------------------------------------------------------------------------------------------------


async def test_a_full_disk_refuses_and_goes_on_when_there_is_room(path: Path) -> None:
    async with opened(path, FakeClock()) as world:
        kept = await world.job()
        claimed = await world.running(kept)
        before = version_of(path)
        temporary(path).symlink_to("/dev/full")
        with pytest.raises(StoreFull, match=r"jobs\.json cannot be written"):
            await world.job()
        assert version_of(path) == before
        assert [job.id for job in (await world.store.jobs(JobFilter(), EVERYTHING)).items] == [kept.id]
        assert await world.store.succeed(world.ending(claimed))
        made = await world.job()
    assert [job.id for job in await jobs_in(path)] == [kept.id, made.id]


async def test_a_file_that_cannot_be_written_refuses_and_nothing_is_half_written(path: Path) -> None:
    async with opened(path, FakeClock()) as world:
        job = await world.job()
        before = version_of(path)
        temporary(path).mkdir()
        for _ in range(3):
            with pytest.raises(StoreUnavailable, match=r"jobs\.json cannot be written"):
                await world.enqueue(job)
        assert await world.executions() == []
        assert version_of(path) == before
        temporary(path).rmdir()
        assert (await world.enqueue(job)).job_id == job.id


async def test_a_command_that_changes_nothing_in_the_file_needs_no_room(path: Path) -> None:
    async with opened(path, FakeClock()) as world:
        await world.enqueue(await world.job())
        temporary(path).mkdir()
        [claimed] = await world.claim()
        assert await world.store.retry(world.ending(claimed, error="x"), world.clock.now())
        temporary(path).rmdir()


async def test_of_many_that_are_refused_none_is_in_the_file(path: Path) -> None:
    async with opened(path, FakeClock()) as world:
        temporary(path).mkdir()
        new = [NewJob(f"k{n}", http_spec(f"n{n}")) for n in range(50)]
        answers = await asyncio.gather(*(world.store.create_job(each) for each in new), return_exceptions=True)
        assert {type(answer) for answer in answers} == {StoreUnavailable}
        temporary(path).rmdir()
        await world.job()
    assert len(await jobs_in(path)) == 1


async def test_a_file_that_cannot_be_made_is_told_at_once(path: Path) -> None:
    in_the_way = path.with_name("folder")
    in_the_way.write_text("a file")
    with pytest.raises(Exception, match="cannot write to the data directory"):
        await jobs_in(in_the_way / "jobs.json")


async def test_a_second_process_is_told_who_has_the_file(path: Path) -> None:
    script = (
        "import sys\n"
        "from ksana.engine.clock import SystemClock\n"
        "from ksana.store.jsonfile import open_json_store\n"
        "from ksana.store.requests import StoreOptions\n"
        "open_json_store(sys.argv[1], options=StoreOptions(), clock=SystemClock())\n"
    )
    async with opened(path, FakeClock()) as world:
        command = [sys.executable, "-c", script, f"json://{path}"]
        second = subprocess.run(command, capture_output=True, text=True, check=False)
        assert second.returncode != 0
        assert "StoreInUse" in second.stderr
        with pytest.raises(StoreInUse, match=f"process {os.getpid()}"):
            open_json_store(f"json://{path}", options=OPTIONS, clock=FakeClock())
        await world.job()
    assert len(await jobs_in(path)) == 1


# Crashes between two steps ----------------------------------------------------------------------------------------------


async def test_what_a_crash_left_behind_is_removed(path: Path) -> None:
    await filled(path)
    before = said(path)["jobs"]
    temporary(path).write_text('{"version": 1, "jobs": [')
    scratch_folder(path).mkdir()
    (scratch_folder(path) / "ksana.db").write_text("rubbish")
    assert len(await jobs_in(path)) == 1
    assert said(path)["jobs"] == before
    assert sorted(each.name for each in path.parent.iterdir()) == ["jobs.json", "jobs.json.lock"]


async def test_a_commit_that_fails_after_the_write_takes_it_back(path: Path) -> None:
    async with opened(path, FakeClock()) as world:
        await world.job(name="kept")
        before = said(path)["jobs"]
        with failing_commits(world):
            with pytest.raises(StoreFull):
                await world.job(name="refused")
            assert said(path)["jobs"] == before
        await world.job(name="after")
    assert [job.spec.name for job in await jobs_in(path)] == ["kept", "after"]


async def test_a_change_that_can_be_neither_committed_nor_taken_back_is_told_as_unknown(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(path, FakeClock()) as world:
        await world.job(name="kept")
        with failing_commits(world, and_then=lambda: temporary(path).mkdir()), pytest.raises(CommitUnknown):
            await world.job(name="unknown")
        temporary(path).rmdir()
        # Whatever the next transaction is about, it sets the file right.
        await world.store.acquire_lock("any", "one", HOUR)
        assert [job["name"] for job in said(path)["jobs"]] == ["kept"]


async def test_a_folder_that_cannot_be_synced_leaves_it_unknown_and_is_set_right(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(folder: Path) -> None:
        raise OSError(errno.EIO, "Input/output error")

    async with opened(path, FakeClock()) as world:
        await world.job(name="kept")
        with monkeypatch.context() as patched:
            patched.setattr(atomic, "_sync_folder", broken)
            with pytest.raises(CommitUnknown, match="Input/output error"):
                await world.job(name="unknown")
        await world.store.acquire_lock("any", "one", HOUR)
        assert [job["name"] for job in said(path)["jobs"]] == ["kept"]


async def test_the_file_is_synced_before_it_is_renamed_and_its_folder_after(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    sync, rename = os.fsync, Path.replace

    def noted_sync(descriptor: int) -> None:
        steps.append("sync " + Path(f"/proc/self/fd/{descriptor}").readlink().name)
        sync(descriptor)

    def noted_rename(source: Path, target: Path) -> Path:
        steps.append(f"rename {source.name} {target.name}")
        return rename(source, target)

    async with opened(path, FakeClock()) as world:
        monkeypatch.setattr(os, "fsync", noted_sync)
        monkeypatch.setattr(Path, "replace", noted_rename)
        await world.job()
    assert steps == ["sync jobs.json.tmp", "rename jobs.json.tmp jobs.json", f"sync {path.parent.name}"]


@contextmanager
def failing_commits(world: World, and_then: Callable[[], Any] = lambda: None) -> Iterator[None]:
    """COMMIT finds no room; `and_then` happens just before."""

    def fail() -> None:
        and_then()
        full = Exception("database or disk is full")
        full.sqlite_errorname = "SQLITE_FULL"  # type: ignore[attr-defined]
        raise OperationalError("COMMIT", None, full)

    assert isinstance(world.store, SqlStore)
    with before_commits(world.store, fail):
        yield
