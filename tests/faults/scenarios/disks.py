"""The disk is full, of the database and of the log alike: what cannot be kept is refused, and nothing else changes."""

import json
import shutil
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import httpx2

from tests.faults.arena import Arena
from tests.faults.history import History, Schedule, Verdict
from tests.faults.operations import job_of, outcome_of
from tests.faults.room import Confined, Disk
from tests.faults.scenarios import scenario

KILOBYTES = 6_000
BLOB = "x" * 20_000
BEFORE, MOST, REFUSALS = 10, 1_000, 20
FULL_SECONDS = 12.0
REFUSED = {503, 507}
RECOVERY_SECONDS = 5.0
TICK = "tick"


@dataclass
class Writer:
    """Asks for jobs, and keeps what it was told of each."""

    base: str
    target: str
    told: dict[str, str] = field(default_factory=dict)
    statuses: Counter[int] = field(default_factory=Counter)
    _numbers: "count[int]" = field(default_factory=count)

    def create(self) -> str:
        """ok, fail or info."""
        name = f"job-{next(self._numbers):05}"
        schedule = Schedule(name, every=3_600, start_wall=time.time())
        body = job_of(schedule, {"url": self.target})
        body["http"]["body"] = BLOB
        try:
            answer = httpx2.post(f"{self.base}/jobs", json=body, timeout=20)
        except httpx2.HTTPError:
            self.told[name] = "info"
            return "info"
        self.statuses[answer.status_code] += 1
        self.told[name] = outcome_of(answer)
        return self.told[name]

    def names(self, outcome: str) -> set[str]:
        return {name for name, told in self.told.items() if told == outcome}

    def read(self) -> int:
        """The status of a question."""
        try:
            return httpx2.get(f"{self.base}/jobs", params={"limit": 5}, timeout=5).status_code
        except httpx2.HTTPError:
            return 0


Kept = Callable[[Path, Path], tuple[set[str], str]]
"""The names of the jobs that the store's files have, and what its own check says of them."""


@scenario("F10", "disk full: SQLite and the log", stores=("sqlite",), gate=False)
def full_disk_sqlite(arena: Arena) -> tuple[History, Verdict]:
    return _full_disk(arena, "sqlite:///{}/ksana.db", _kept_by_sqlite)


@scenario("F10-json", "disk full: a JSON file and the log", stores=("sqlite",), gate=False)
def full_disk_json(arena: Arena) -> tuple[History, Verdict]:
    return _full_disk(arena, "json://{}/jobs.json", _kept_by_json)


def _full_disk(arena: Arena, url: str, kept: Kept) -> tuple[History, Verdict]:
    with ExitStack() as stack:
        disk = stack.enter_context(Disk(arena.folder / "disk", KILOBYTES))
        instance = Confined(disk, {"KSANA_DATABASE_URL": url.format(disk.folder)})
        stack.callback(instance.close)
        instance.start()
        writer = Writer(instance.base, arena.target.url("never-due"))
        verdict = Verdict()
        _tick(arena, instance.base)
        _fill_and_relieve(arena, disk, instance, writer, verdict)
        instance.end(signal.SIGKILL)
        names, sound = kept(disk.outside, arena.folder / "copy")
        _compare(verdict, writer, names, sound)
        verdict.figures["restart_seconds"] = round(instance.start(), 2)
        verdict.require(writer.read() == 200, "it does not answer after a restart")
        instance.end(signal.SIGTERM)
    _judge_ticks(arena, verdict)
    return arena.history(), verdict


def _tick(arena: Arena, base: str) -> None:
    """A schedule that goes on all along: what it missed while nothing could be written is made up for."""
    schedule = Schedule(TICK, every=1, start_wall=float(int(time.time())))
    httpx2.post(f"{base}/jobs", json=job_of(schedule, {"url": arena.target.url(TICK)})).raise_for_status()
    arena.target.wait(lambda hits: len(hits) > 2, 20)


def _fill_and_relieve(arena: Arena, disk: Disk, instance: Confined, writer: Writer, verdict: Verdict) -> None:
    for _ in range(BEFORE):
        verdict.require(writer.create() == "ok", "refused before the disk was full")
    with arena.bands.during("disk", "disk"):
        began, reads = time.monotonic(), Counter[int]()
        disk.fill()
        tries = 0
        while len(writer.names("fail")) < REFUSALS and tries < MOST:
            tries += 1
            writer.create()
            disk.fill()  # what the last one gave back
        reads.update(writer.read() for _ in range(10))
        time.sleep(max(0.0, began + FULL_SECONDS - time.monotonic()))
        verdict.require(not instance.ended, "it ended as the disk was full")
        disk.relieve()
    recovered = _until_ok(writer)
    verdict.figures |= {
        "refused": len(writer.names("fail")),
        "statuses": dict(writer.statuses),
        "reads_while_full": dict(reads),
        "recovery_seconds": recovered,
    }
    verdict.require(len(writer.names("fail")) >= REFUSALS, "nothing was refused: the scenario is void")
    verdict.require(set(writer.statuses) <= REFUSED | {200, 201}, f"answers: {dict(writer.statuses)}")
    verdict.require(set(reads) == {200}, f"questions were answered with {dict(reads)}")
    verdict.require(recovered is not None, f"it refused for {RECOVERY_SECONDS} s though there was room")
    time.sleep(3)


def _until_ok(writer: Writer) -> float | None:
    began = time.monotonic()
    while time.monotonic() - began < RECOVERY_SECONDS:
        if writer.create() == "ok":
            return round(time.monotonic() - began, 2)
        time.sleep(0.1)
    return None


def _compare(verdict: Verdict, writer: Writer, names: set[str], sound: str) -> None:
    kept, lost = writer.names("ok"), writer.names("ok") - names
    half = writer.names("fail") & names
    verdict.figures |= {
        "acknowledged": len(kept),
        "acknowledged_lost": len(lost),
        "refused_but_there": len(half),
        "unknown": len(writer.names("info")),
        "check": sound,
    }
    verdict.require(sound == "ok", f"the file says of itself: {sound}")
    verdict.require(not lost, f"I6: acknowledged, and not there: {sorted(lost)[:5]}")
    verdict.require(not half, f"I6: refused, and there: {sorted(half)[:5]}")


def _kept_by_sqlite(folder: Path, copy: Path) -> tuple[set[str], str]:
    copy.mkdir()
    for name in ("ksana.db", "ksana.db-wal"):
        if (folder / name).exists():
            shutil.copyfile(folder / name, copy / name)
    with closing(sqlite3.connect(copy / "ksana.db")) as connection:
        sound = connection.execute("PRAGMA integrity_check").fetchone()[0]
        rows = connection.execute("SELECT name FROM jobs WHERE deleted_at IS NULL")
        return {name for (name,) in rows}, str(sound)


def _kept_by_json(folder: Path, _: Path) -> tuple[set[str], str]:
    told = json.loads((folder / "jobs.json").read_bytes())
    aside = list(folder.glob("jobs.bad*"))
    return {job["name"] for job in told["jobs"]}, "ok" if not aside else f"set aside: {aside}"


def _judge_ticks(arena: Arena, verdict: Verdict) -> None:
    """Each second has one run, also those that were due while nothing could be written."""
    runs: dict[float, set[str]] = {}
    for hit in arena.target.hits():
        if hit.schedule == TICK and hit.planned is not None:
            runs.setdefault(round(hit.planned), set()).add(hit.run)
    twice = [at for at, each in runs.items() if len(each) > 1]
    lost = [at for at in range(int(min(runs)), int(max(runs))) if at not in runs]
    verdict.figures |= {"n": len(runs), "lost": len(lost), "duplicated": len(twice)}
    verdict.require(not lost, f"I1: lost: {lost[:5]}")
    verdict.require(not twice, f"I2: fired twice: {twice[:5]}")
