"""A thousand tasks, each every second, on a real `ksana serve` with a real target: once in peace, once with `kill -9` half-way.

make bench ARGS="--only every-second --tasks 1000 --seconds 30"
"""

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from bench.report import Line

LATENESS_MS = 100.0
AT_ONCE = 20


@dataclass
class Served:
    """A `ksana serve` process and where it answers."""

    process: "subprocess.Popen[str]"
    base: str

    def end(self, how: signal.Signals) -> None:
        self.process.send_signal(how)
        self.process.wait()


def measure(tasks: int, seconds: int) -> list[Line]:
    lines: list[Line] = []
    for killed in (False, True):
        with tempfile.TemporaryDirectory(prefix="ksana-bench-") as folder:
            lines += _measure(Path(folder), tasks, seconds, killed=killed)
    return lines


def _measure(folder: Path, tasks: int, seconds: int, *, killed: bool) -> list[Line]:
    target = subprocess.Popen([sys.executable, "-m", "bench.target", "0"], stdout=subprocess.PIPE, text=True)
    assert target.stdout is not None
    port = int(target.stdout.readline())
    served = serve(folder)
    try:
        asyncio.run(_create(served.base, tasks, port))
        since = time.time_ns() // 1_000
        if killed:
            time.sleep(seconds / 2)
            served.end(signal.SIGKILL)
            served = serve(folder)
            time.sleep(seconds / 2)
        else:
            time.sleep(seconds)
        until = time.time_ns() // 1_000
        time.sleep(1)
    finally:
        served.end(signal.SIGTERM)
        target.kill()
        target.wait()
    return _told(folder, tasks, since, until, killed=killed)


def serve(folder: Path, *flags: str) -> Served:
    """`ksana serve` with its data in the folder, ready to answer."""
    command = [sys.executable, "-m", "ksana.cli.main", "serve", "--port", "0", "--data-dir", str(folder), *flags]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "LOG_LEVEL": "error"},
    )
    assert process.stdout is not None
    for text in process.stdout:
        if "API:" in text or "health:" in text:
            return Served(process, text.split()[-1].removesuffix("/api/v1").removesuffix("/health"))
    raise RuntimeError("ksana did not start")


async def _create(base: str, tasks: int, port: int) -> None:
    turn = asyncio.Semaphore(AT_ONCE)

    async def one(client: httpx2.AsyncClient, number: int) -> None:
        task = {"name": f"t{number}", "cron_expr": "* * * * * *", "target_url": f"http://127.0.0.1:{port}/{number}"}
        async with turn:
            answer = await client.post("/api/v1/tasks", json=task)
        answer.raise_for_status()

    async with httpx2.AsyncClient(base_url=base, timeout=60) as client:
        await asyncio.gather(*(one(client, number) for number in range(tasks)))


def _told(folder: Path, tasks: int, since: int, until: int, *, killed: bool) -> list[Line]:
    audit = _audited(folder)
    with sqlite3.connect(folder / "ksana.db") as database:
        span = "planned_for > ? AND planned_for <= ?"
        rows = database.execute(f"SELECT count(*) FROM occurrences WHERE {span}", (since, until)).fetchone()[0]
        late = database.execute(
            f"SELECT created_at - planned_for FROM executions WHERE {span} ORDER BY 1", (since, until)
        ).fetchall()
        twice = "SELECT count(*) FROM (SELECT 1 FROM executions GROUP BY schedule_id, planned_for HAVING count(*) > 1)"
        doubled = database.execute(twice).fetchone()[0]
    planned = tasks * (until // 1_000_000 - since // 1_000_000)
    p99 = late[int(len(late) * 0.99)][0] / 1_000 if late else 0.0
    name = f"{tasks:,} tasks each second{', kill -9 half-way' if killed else ''}"
    return [
        Line(f"{name}: rows of planned", f"{rows:,} of {planned:,}", "all", rows == planned),
        Line(f"{name}: lost, doubled", f"{audit['lost']}, {doubled}", "0, 0", audit["lost"] == doubled == 0),
        Line(
            f"{name}: fired late, p99",
            f"{p99:.0f} ms",
            "" if killed else f"<= {LATENESS_MS:.0f} ms",
            None if killed else p99 <= LATENESS_MS,
        ),
    ]


def _audited(folder: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "ksana.cli.main", "audit", "--json", "--data-dir", str(folder)]
    told: dict[str, Any] = json.loads(subprocess.run(command, capture_output=True, text=True, check=False).stdout)
    return told
