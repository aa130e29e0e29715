"""Files of the embedded stores that are damaged, cut off, or half replaced: noticed, and never begun anew in silence."""

import asyncio
import json
import os
import shutil
import signal
import sqlite3
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import httpx2
from structlog.testing import capture_logs

from ksana.domain.errors import SchemaMismatch, StoreError
from ksana.store.jsonfile.paths import temporary
from ksana.store.jsonfile.scratch import ScratchLock
from ksana.store.sql.aftermath import check_after_crash
from tests import prepared
from tests.contract.store.test_jsonfile_damage import Loader, filled
from tests.faults.arena import Arena
from tests.faults.history import History, Schedule, Verdict
from tests.faults.operations import job_of, outcome_of
from tests.faults.scenarios import scenario
from tests.process.conftest import PATIENCE, Serving, begin

PAGE = 4_096
ASIDE, REFUSED, READ, SILENT = "set aside", "refused", "read", "silent"
BITS_OF_EACH = 2
KILLS_OF_EACH = 8
JOBS = 6


# F25: the JSON file is damaged -----------------------------------------------------------------------------------------------


@scenario("F25", "a JSON file that is cut off, flipped, empty or of another version", stores=("sqlite",), gate=False)
def damaged_json(arena: Arena) -> tuple[History, Verdict]:
    """Cut off at every offset and flipped at every byte: the original is always kept; and the same by real processes."""
    folder = arena.folder / "json"
    folder.mkdir()
    whole = asyncio.run(filled(folder / "whole.json"))
    verdict = Verdict()
    loader = Loader(folder / "jobs.json")
    cut = Counter(_fate(loader, whole[:length]) for length in range(len(whole) - 1))
    flipped = Counter(
        _fate(loader, _flipped(arena, whole, at)) for at in range(len(whole)) for _ in range(BITS_OF_EACH)
    )
    ScratchLock(loader.path).release()
    started = {name: _started(arena, name, data) for name, data in _damages(whole).items()}
    verdict.figures |= {"bytes": len(whole), "cut": dict(cut), "flipped": dict(flipped), "started": started}
    silent = cut[SILENT] + flipped[SILENT] + sum(fate == SILENT for fate in started.values())
    verdict.figures |= {"n": cut.total() + flipped.total() + len(started), "silent": silent, "lost": silent}
    verdict.require(silent == 0, f"{silent} times it began empty, or without a job, and said nothing")
    verdict.require(set(cut) == {ASIDE}, f"cut off: {dict(cut)}")
    return arena.history(), verdict


def _flipped(arena: Arena, whole: bytes, at: int) -> bytes:
    damaged = bytearray(whole)
    damaged[at] ^= 1 << arena.choose.randrange(8)
    return bytes(damaged)


def _fate(loader: Loader, data: bytes) -> str:
    """What becomes of a file with this in it; `silent` if the original is not kept, or a job is missing and nobody says so."""
    with capture_logs() as lines:
        try:
            contents = loader.load(data)
        except SchemaMismatch:
            return REFUSED if loader.path.read_bytes() == data else SILENT
    aside = loader.take_aside()
    if contents.missing:
        told = any(line["action"] == "store.json_set_aside" and line["log_level"] == "error" for line in lines)
        return ASIDE if aside == data and told else SILENT
    return READ if len(contents.jobs) == 1 else SILENT


def _damages(whole: bytes) -> dict[str, bytes]:
    newer = json.dumps(json.loads(whole) | {"version": 99}).encode()
    return {"empty": b"", "half": whole[: len(whole) // 2], "zeros": b"\0" * len(whole), "newer": newer}


def _started(arena: Arena, name: str, data: bytes) -> str:
    """What `ksana serve` does with it."""
    folder = arena.folder / f"json-{name}"
    folder.mkdir()
    path = folder / "jobs.json"
    path.write_bytes(data)
    serving = _serve(folder, f"json://{path}")
    try:
        serving.wait_ready()
    except AssertionError:
        told = "".join(serving.lines)
        return REFUSED if "jobs.json" in told and path.read_bytes() == data else SILENT
    finally:
        serving.close()
    kept = [each.read_bytes() for each in folder.glob("jobs.bad*.json")]
    return ASIDE if kept == [data] and "store.json_set_aside" in "".join(serving.lines) else SILENT


def _serve(folder: Path, url: str, **env: str) -> Serving:
    process = begin("serve", "--port", "0", cwd=folder, env={"KSANA_DATABASE_URL": url, "LOG_LEVEL": "info", **env})
    serving = Serving(process)
    serving.read()
    return serving


# F26: killed as the JSON file is replaced ------------------------------------------------------------------------------------


@scenario("F26", "kill -9 before and after the JSON file is replaced", stores=("sqlite",), gate=False)
def half_replaced(arena: Arena) -> tuple[History, Verdict]:
    """The old one or the new one, never a mixture, and nothing that was acknowledged is missing."""
    folder = arena.folder / "json"
    folder.mkdir()
    path = folder / "jobs.json"
    verdict, acknowledged, kills, mixed, strays = Verdict(), set[str](), 0, 0, 0
    for hit in range(1, KILLS_OF_EACH + 1):
        for place in ("rename.before", "rename.after"):
            certain, unknown, code = _write_until_killed(folder, path, f"{place}:{hit}:kill")
            kills += code == -signal.SIGKILL
            acknowledged |= certain
            found = _names(path)
            mixed += not (found == acknowledged or found == acknowledged | unknown)
            acknowledged = found
            strays += _strays_after_start(folder, path, found)
    verdict.figures |= {"n": 2 * KILLS_OF_EACH, "kills": kills, "mixed": mixed, "lost": mixed, "strays": strays}
    verdict.require(mixed == 0, f"{mixed} times the file was neither the old one nor the new one")
    verdict.require(strays == 0, f"{strays} times something was left over")
    verdict.require(kills == 2 * KILLS_OF_EACH, f"only {kills} were killed: the scenario is void")
    return arena.history(), verdict


def _write_until_killed(folder: Path, path: Path, failpoint: str) -> tuple[set[str], set[str], int]:
    """What was acknowledged, what nobody knows of, and how it ended."""
    serving = _serve(folder, f"json://{path}", KSANA_FAILPOINT=failpoint)
    certain, unknown = set[str](), set[str]()
    try:
        serving.wait_ready()
        for number in range(20):
            name = f"{failpoint}-{time.monotonic_ns()}-{number}".replace(":", "-")
            outcome = _create(serving.base, name)
            if outcome == "ok":
                certain.add(name)
            else:
                unknown.add(name)
                break
    except AssertionError:
        pass  # it was killed as it started
    code = serving.process.wait(PATIENCE)
    serving.close()
    return certain, unknown, code


def _create(base: str, name: str) -> str:
    body = job_of(Schedule(name, every=3_600, start_wall=time.time()), {"url": "http://127.0.0.1:1/"})
    try:
        return outcome_of(httpx2.post(f"{base}/jobs", json=body, timeout=10))
    except httpx2.HTTPError:
        return "info"


def _names(path: Path) -> set[str]:
    """AssertionError, as json has it, if it cannot be read."""
    return {job["name"] for job in json.loads(path.read_bytes())["jobs"]} if path.exists() else set()


def _strays_after_start(folder: Path, path: Path, names: set[str]) -> bool:
    """Whether one that starts and stops again leaves what the killed one left, or finds other jobs."""
    serving = _serve(folder, f"json://{path}")
    serving.wait_ready()
    serving.end()
    return temporary(path).exists() or bool(list(folder.glob("*.bad*"))) or _names(path) != names


# F27: the SQLite file is damaged ---------------------------------------------------------------------------------------------


@scenario("F27", "one page of a SQLite file damaged, or its log removed, after kill -9", stores=("sqlite",), gate=False)
def damaged_sqlite(arena: Arena) -> tuple[History, Verdict]:
    """Every page in turn: what its own check would find is found at the start, and the file is named."""
    crashed = _crashed(arena)
    left = arena.folder / "left"
    shutil.copytree(crashed, left)
    verdict = Verdict()
    pages = (left / "ksana.db").stat().st_size // PAGE
    fates = Counter(_fate_of_page(arena, left, page) for page in range(1, pages + 1))
    by_process = [_fate_of_start(arena, left, page) for page in range(2, pages, max(1, pages // 5))]
    missing = _without_log(arena, left)
    verdict.figures |= {
        "n": pages + len(by_process) + 1,
        "pages": dict(fates),
        "started": dict(Counter(by_process)),
        "log_missing_told": missing,
        "silent": fates[SILENT] + by_process.count(SILENT),
        "lost": fates[SILENT] + by_process.count(SILENT),
    }
    verdict.require(verdict.figures["silent"] == 0, f"went on with a damaged file: {dict(fates)}, {by_process}")
    verdict.require(fates[REFUSED] > pages // 4, "hardly any damage was found: the scenario is void")
    verdict.require(missing, "nothing was said of a log that is not there")
    return arena.history(), verdict


def _crashed(arena: Arena) -> Path:
    """The folder of an instance that was killed; nobody has opened its file since."""
    folder = arena.folder / "own"
    folder.mkdir()
    url = f"sqlite:///{folder / 'ksana.db'}"
    prepared.prepare(url)
    serving = _serve(folder, url)
    serving.wait_ready()
    for number in range(JOBS):
        assert _create(serving.base, f"job-{number}") == "ok"
    serving.end(signal.SIGKILL)
    return folder


def _damaged(arena: Arena, left: Path, page: int) -> Path:
    """A copy with all of its log in the file, one page of it overwritten, and the note of who was killed."""
    folder = arena.folder / "damaged"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(left, folder)
    with closing(sqlite3.connect(folder / "ksana.db")) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with (folder / "ksana.db").open("r+b") as file:
        file.seek((page - 1) * PAGE)
        file.write(os.urandom(PAGE))
    return folder / "ksana.db"


def _sound(path: Path) -> bool:
    try:
        with closing(sqlite3.connect(path)) as connection:
            return bool(connection.execute("PRAGMA integrity_check(1)").fetchone()[0] == "ok")
    except sqlite3.Error:
        return False


def _fate_of_page(arena: Arena, left: Path, page: int) -> str:
    path = _damaged(arena, left, page)
    with capture_logs():
        try:
            check_after_crash(f"sqlite:///{path}")
        except StoreError as error:
            return REFUSED if str(path) in error.message else SILENT
    return "nothing of it in use" if _sound(path) else SILENT


def _fate_of_start(arena: Arena, left: Path, page: int) -> str:
    path = _damaged(arena, left, page)
    serving = _serve(path.parent, f"sqlite:///{path}")
    try:
        serving.wait_ready()
    except AssertionError:
        return REFUSED if str(path) in "".join(serving.lines) else SILENT
    finally:
        serving.close()
    return "nothing of it in use" if _sound(path) else SILENT


def _without_log(arena: Arena, left: Path) -> bool:
    folder = arena.folder / "no-log"
    shutil.copytree(left, folder)
    (folder / "ksana.db-wal").unlink()
    serving = _serve(folder, f"sqlite:///{folder / 'ksana.db'}")
    serving.wait_ready()
    serving.end()
    return any(line["action"] == "store.log_missing" for line in serving.log())
