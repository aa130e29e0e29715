"""The limit: the same calls and the same rows with no scheduler at all, in a process of its own.

python -m bench.limits RUNS IN_FLIGHT TARGET FOLDER PAUSE

What it does for every run is the least that a durable scheduler must: a row says that it is planned, another write that it
runs, which is on the disk before the call is sent, and a third how it ended, with the answer. A thread writes whatever came
in during its last transaction as the next one (SQLite, synchronous=FULL), each kind as one statement over one JSON parameter.
It decides nothing, reads nothing back, and knows no retries, limits or other instances.

With a pause, it gathers for so many seconds before each transaction: as a loop that writes every few milliseconds, whatever
comes. Without one it is as fast as it can be.
"""

import asyncio
import json
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import uvloop

BODY = b'{"a":1}'
PATIENCE = 600

TABLE = """
CREATE TABLE runs (id INTEGER PRIMARY KEY, status TEXT, planned REAL, started REAL, ended REAL, code INTEGER, answer TEXT)
"""
PLAN = "INSERT INTO runs (id, status, planned) SELECT value->>0, 'planned', value->>1 FROM json_each(?)"
START = """
UPDATE runs SET status = 'running', started = row.at
FROM (SELECT value->>0 AS id, value->>1 AS at FROM json_each(?)) AS row WHERE runs.id = row.id
"""
END = """
UPDATE runs SET status = 'success', ended = row.at, code = row.code, answer = row.answer
FROM (SELECT value->>0 AS id, value->>1 AS at, value->>2 AS code, value->>3 AS answer FROM json_each(?)) AS row
WHERE runs.id = row.id
"""
IN_ORDER = (PLAN, START, END)


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast so many runs went."""

    per_second: float
    cpu: float
    """Seconds for 1,000 runs."""


def measure_once(runs: int, in_flight: int, target: str, pause: float = 0.0) -> Pace:
    """In a new process, with a new database."""
    with tempfile.TemporaryDirectory(prefix="ksana-bench-") as folder:
        command = [sys.executable, "-m", "bench.limits", str(runs), str(in_flight), target, folder, str(pause)]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=PATIENCE)
    return Pace(**json.loads(done.stdout))


def chain_once(nodes: int) -> float:
    """The same for nodes of which each waits for the one before: one transaction says how that ended and that this one runs.
    Nodes in a second, with a new database."""
    with tempfile.TemporaryDirectory(prefix="ksana-bench-") as folder:
        database = _opened(Path(folder) / "limit.db")
        database.execute(PLAN, (_rows((number, time.time()) for number in range(nodes)),))
        began = time.perf_counter()
        for number in range(nodes):
            database.execute("BEGIN IMMEDIATE")
            if number:
                database.execute(END, (_rows([(number - 1, time.time(), 200, "{}")]),))
            database.execute(START, (_rows([(number, time.time())]),))
            database.execute("COMMIT")
        database.execute(END, (_rows([(nodes - 1, time.time(), 200, "{}")]),))
        wall = time.perf_counter() - began
        database.close()
        _check(Path(folder) / "limit.db", nodes)
    return nodes / wall


def _rows(rows: Iterable[tuple[Any, ...]]) -> str:
    return orjson.dumps(list(rows)).decode()


def _opened(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    database.execute(TABLE)
    return database


class Ledger(threading.Thread):
    """Writes rows in groups, each group as one transaction; whoever waits for a row is told after its commit."""

    def __init__(self, path: Path, pause: float) -> None:
        super().__init__(daemon=True)
        self._path, self._pause = path, pause
        self._loop = asyncio.get_running_loop()
        self._asked = threading.Event()
        self._ended = False
        self._lock = threading.Lock()
        self._rows: dict[str, list[Any]] = {kind: [] for kind in IN_ORDER}
        self._waiting: list[asyncio.Future[None]] = []

    def put(self, kind: str, row: tuple[Any, ...]) -> None:
        """Written soon."""
        with self._lock:
            self._rows[kind].append(row)
        self._asked.set()

    def written(self, kind: str, row: tuple[Any, ...]) -> "asyncio.Future[None]":
        """Done when it is on the disk."""
        done = self._loop.create_future()
        with self._lock:
            self._rows[kind].append(row)
            self._waiting.append(done)
        self._asked.set()
        return done

    def end(self) -> None:
        """Ends the thread."""
        self._ended = True
        self._asked.set()
        self.join()

    def run(self) -> None:
        database = _opened(self._path)
        while True:
            self._asked.wait()
            if self._ended:
                break
            time.sleep(self._pause)
            self._asked.clear()
            self._write(database)
        database.close()

    def _write(self, database: sqlite3.Connection) -> None:
        with self._lock:
            waiting, self._waiting = self._waiting, []
            rows, self._rows = self._rows, {kind: [] for kind in IN_ORDER}
        database.execute("BEGIN IMMEDIATE")
        for kind in IN_ORDER:
            if rows[kind]:
                database.execute(kind, (_rows(rows[kind]),))
        database.execute("COMMIT")
        self._loop.call_soon_threadsafe(_tell, waiting)


def _tell(waiting: "list[asyncio.Future[None]]") -> None:
    for each in waiting:
        each.set_result(None)


async def loop(runs: int, in_flight: int, target: str, folder: Path, pause: float) -> Pace:
    """The rate and the cost of that many runs, all planned before the first is called."""
    ledger = Ledger(folder / "limit.db", pause)
    ledger.start()
    connector = aiohttp.TCPConnector(limit=in_flight)
    async with aiohttp.ClientSession(connector=connector) as session:
        await _each(range(in_flight), in_flight, lambda _: _call(session, target))
        began, worked = time.perf_counter(), time.process_time()
        await _run_all(runs, in_flight, ledger, lambda: _call(session, target))
        wall, cpu = time.perf_counter() - began, time.process_time() - worked
    ledger.end()
    _check(folder / "limit.db", runs)
    return Pace(runs / wall, 1_000 * cpu / runs)


async def _run_all(runs: int, in_flight: int, ledger: Ledger, call: Any) -> None:
    for number in range(runs - 1):
        ledger.put(PLAN, (number, time.time()))
    await ledger.written(PLAN, (runs - 1, time.time()))
    ends: list[asyncio.Future[None]] = []

    async def one(number: int) -> None:
        await ledger.written(START, (number, time.time()))
        code, answer = await call()
        ends.append(ledger.written(END, (number, time.time(), code, answer)))

    await _each(range(runs), in_flight, one)
    await asyncio.gather(*ends)


async def _call(session: aiohttp.ClientSession, target: str) -> tuple[int, str]:
    async with session.post(target, data=BODY) as answer:
        return answer.status, await answer.text()


async def _each(numbers: range, at_once: int, work: Any) -> None:
    left = iter(numbers)

    async def worker() -> None:
        for number in left:
            await work(number)

    await asyncio.gather(*(worker() for _ in range(at_once)))


def _check(path: Path, runs: int) -> None:
    with sqlite3.connect(path) as database:
        found = database.execute("SELECT count(*) FROM runs WHERE status = 'success' AND code = 200").fetchone()[0]
    if found != runs:
        raise AssertionError(f"{found:,} of {runs:,} runs were written as done")


if __name__ == "__main__":
    wanted = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], Path(sys.argv[4]), float(sys.argv[5])
    pace = uvloop.run(loop(*wanted))
    print(json.dumps({"per_second": pace.per_second, "cpu": pace.cpu}))
