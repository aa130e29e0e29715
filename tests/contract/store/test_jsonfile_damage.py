"""The JSON file damaged: the original is never lost, and no store begins empty in silence."""

import json
import random
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from ksana.domain.errors import SchemaMismatch
from ksana.domain.job import Job
from ksana.store.jsonfile import scratch
from ksana.store.jsonfile.loading import Contents, load_file
from ksana.store.requests import JobFilter
from tests.clock import FakeClock
from tests.contract.store.conftest import EVERYTHING, OPTIONS
from tests.contract.store.test_jsonfile import opened, said
from tests.contract.store.test_jsonfile_by_hand import PLAIN, edit, write

HOUR = timedelta(hours=1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jobs.json"


@pytest.fixture
def bad(path: Path) -> Path:
    return path.with_name("jobs.bad.json")


def read(path: Path) -> bytes:
    return path.read_bytes()


def put(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def remove(path: Path) -> None:
    path.unlink()


async def jobs_in(path: Path) -> list[Job]:
    async with opened(path, FakeClock()) as world:
        return list((await world.store.jobs(JobFilter(), EVERYTHING)).items)


async def filled(path: Path) -> bytes:
    """A file with a job of every part: schedules, ledger, a last run and one that has not ended."""
    clock = FakeClock()
    async with opened(path, clock) as world:
        job = await world.job()
        await world.every(job, HOUR)
        await world.every(job, 2 * HOUR, jitter=HOUR)
        clock.advance(2 * HOUR)
        await world.fire_due()
        await world.store.fail(world.ending((await world.claim(1))[0], error="x"))
    return read(path)


# Damage -----------------------------------------------------------------------------------------------------------------


class Loader:
    """Reads a file as `open_json_store` does, into one database that is made anew when something has come into it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.dialect = scratch.ScratchDialect(path)
        self.url = scratch.make(path, self.dialect, OPTIONS)

    def load(self, data: bytes) -> Contents:
        self.path.write_bytes(data)
        contents = load_file(self.path, self.url, self.dialect, OPTIONS, FakeClock())
        if contents.jobs:
            self.url = scratch.make(self.path, self.dialect, OPTIONS)
        return contents

    def take_aside(self) -> bytes | None:
        """What was set aside, which is then removed."""
        [*found] = self.path.parent.glob("jobs.bad*.json")
        data = found[0].read_bytes() if found else None
        for each in found:
            each.unlink()
        return data


@pytest.fixture
def loader(path: Path) -> Iterator[Loader]:
    loader = Loader(path)
    yield loader
    scratch.ScratchLock(path).release()


async def test_a_file_that_ends_anywhere_is_set_aside(path: Path, bad: Path) -> None:
    write(path, {"name": "n", "http": {"url": "u"}})
    whole = read(path)
    for length in range(len(whole)):
        put(path, whole[:length])
        with capture_logs() as lines:
            assert await jobs_in(path) == []
        assert [line["action"] for line in lines] == ["store.json_set_aside"]
        assert read(bad) == whole[:length]
        remove(bad)
    put(path, whole)
    assert len(await jobs_in(path)) == 1


async def test_every_part_of_a_file_that_is_cut_off_is_noticed(tmp_path: Path, loader: Loader) -> None:
    whole = await filled(tmp_path / "whole.json")
    with capture_logs():
        for length in range(len(whole) - 1):
            assert loader.load(whole[:length]).missing
            assert loader.take_aside() == whole[:length]
    assert len(loader.load(whole[:-1]).jobs) == 1  # all but the last end of line
    assert loader.take_aside() is None


async def test_a_flipped_bit_never_loses_a_job_in_silence(tmp_path: Path, loader: Loader) -> None:
    whole = await filled(tmp_path / "whole.json")
    dice = random.Random(2)
    ends = {"set aside": 0, "refused": 0, "read": 0}
    for position in dice.sample(range(len(whole)), 200):
        damaged = bytearray(whole)
        damaged[position] ^= 1 << dice.randrange(8)
        ends[_end_of(loader, bytes(damaged))] += 1
    assert ends["set aside"] > 50
    assert ends["read"] > 0  # in a name, say, where any letter will do


def _end_of(loader: Loader, damaged: bytes) -> str:
    with capture_logs() as lines:
        try:
            contents = loader.load(damaged)
        except SchemaMismatch:
            assert loader.path.read_bytes() == damaged
            assert loader.take_aside() is None
            return "refused"
    if contents.missing:
        assert loader.take_aside() == damaged
        assert lines[0]["log_level"] == "error"
        return "set aside"
    assert len(contents.jobs) == 1
    assert loader.take_aside() is None
    return "read"


WRONG: list[Any] = [
    None,
    [],
    {},
    "jobs",
    {"version": 1},
    {"version": 0, "jobs": []},
    {"version": "1", "jobs": []},
    {"version": True, "jobs": []},
    {"version": 1, "jobs": {}},
    {"version": 1, "jobs": [], "more": 1},
    {"version": 1, "jobs": [], "updated_at": "noon"},
    {"version": 1, "jobs": [], "ksana": {"ids": {"jobs": -1}}},
    {"version": 1, "jobs": [None]},
]
WRONG_JOBS: list[dict[str, Any]] = [
    {"id": 7},
    {"id": "~7"},
    {"id": "x" * 65},
    {"name": ""},
    {"name": None},
    {"enabled": "yes"},
    {"type": ""},
    {"http": None},
    {"http": {"method": "GET"}},
    {"http": {"url": "u", "headers": {"a": 1}}},
    {"schedule": "every"},
    {"schedule": {"every": "5m"}},
    {"schedule": {"kind": "sometimes"}},
    {"schedule": {"kind": "every", "every": "5 parsecs"}},
    {"schedule": {"kind": "once", "run_at": "2026-01-01"}},
    {"schedule": {"kind": "once", "run_at": "2026-01-01T00:00:00Z", "more": 1}},
    {"schedule": {"kind": "cron", "cron": "no"}},
    {"timeout": "-1s"},
    {"max_retries": 1.5},
    {"max_retries": -1},
    {"retry_backoff": []},
    {"last_status": "fine"},
    {"last_run_at": 5},
    {"unheard_of": 1},
    {"ksana": []},
    {"ksana": {"id": 1}},
    {"ksana": {"more": 1}},
]


@pytest.mark.parametrize("document", WRONG, ids=lambda wrong: json.dumps(wrong)[:40])
async def test_a_file_of_another_shape_is_set_aside(path: Path, bad: Path, document: Any) -> None:
    put(path, json.dumps(document).encode())
    with capture_logs() as lines:
        assert await jobs_in(path) == []
    assert json.loads(read(bad)) == document
    assert lines[0]["reason"]
    assert said(path)["jobs"] == []


def test_a_job_that_cannot_be_read_sets_its_file_aside_and_is_named(loader: Loader, path: Path) -> None:
    for wrong in WRONG_JOBS:
        write(path, PLAIN, PLAIN | {"id": "uuid-2"} | wrong)
        written = read(path)
        with capture_logs() as lines:
            assert loader.load(written).missing, wrong
        assert lines[0]["reason"].startswith("jobs[1]: "), wrong
        assert loader.take_aside() == written


def test_two_jobs_with_one_id_are_damage(loader: Loader, path: Path) -> None:
    write(path, PLAIN, PLAIN)
    with capture_logs() as lines:
        assert loader.load(read(path)).missing
    assert lines[0]["reason"].startswith("two of the same")


async def test_what_was_set_aside_is_never_overwritten(path: Path) -> None:
    for number in range(4):
        put(path, f"damage {number}".encode())
        with capture_logs():
            assert await jobs_in(path) == []
    names = ["jobs.bad.json", "jobs.bad.1.json", "jobs.bad.2.json", "jobs.bad.3.json"]
    assert [path.with_name(name).read_text() for name in names] == [f"damage {number}" for number in range(4)]


@pytest.mark.parametrize("newer", [{"version": 2}, {"ksana": {"format": 2, "ids": {}}}])
async def test_a_file_of_a_later_program_is_refused_and_left_alone(path: Path, newer: dict[str, Any]) -> None:
    write(path, PLAIN, **newer)
    before = read(path)
    with pytest.raises(SchemaMismatch, match=r"jobs\.json .*upgrade Ksana"):
        await jobs_in(path)
    assert read(path) == before
    assert sorted(each.name for each in path.parent.iterdir()) == ["jobs.json", "jobs.json.lock"]


async def test_an_unreadable_edit_keeps_the_original(path: Path, bad: Path) -> None:
    await filled(path)
    edit(path, max_retries="three")
    edited = read(path)
    with capture_logs() as lines:
        assert await jobs_in(path) == []
    assert read(bad) == edited
    assert "should be a whole number" in lines[0]["reason"]
    assert said(path)["updated_at"] == "2026-01-01T00:00:00Z"
