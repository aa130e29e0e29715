"""From the start of `ksana serve` to its first answer that it is well: with an empty folder, and with 100,000 schedules.

make bench ARGS="--only start"
"""

import signal
import subprocess
import sys
import tempfile
import time
from http.client import HTTPConnection
from pathlib import Path

from tests.servers.machine import free_port

from bench.idle import fill_not_due
from bench.options import Options
from bench.report import Line, at_most
from bench.spread import Spread

EMPTY_SECONDS = 1.5
FILLED_SECONDS = 3.0
PATIENCE = 60.0
ASKING_SECONDS = 0.005


def measure(options: Options) -> list[Line]:
    empty = Spread.of(_empty() for _ in range(options.times))
    with tempfile.TemporaryDirectory(prefix="ksana-bench-") as folder:
        fill_not_due(Path(folder), options.schedules)
        filled = Spread.of(seconds_to_answer(Path(folder)) for _ in range(options.times))
    return [
        Line.of("start with an empty folder", empty, "s", at_most(EMPTY_SECONDS)),
        Line.of(f"start with {options.schedules:,} schedules", filled, "s", at_most(FILLED_SECONDS)),
    ]


def _empty() -> float:
    with tempfile.TemporaryDirectory(prefix="ksana-bench-") as folder:
        return seconds_to_answer(Path(folder))


def seconds_to_answer(folder: Path) -> float:
    """Of one start; the process is ended afterwards."""
    port = free_port()
    command = [sys.executable, "-m", "ksana.cli.main", "serve", "--port", str(port), "--data-dir", str(folder)]
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while not _is_well(port):
            if process.poll() is not None or time.monotonic() - began > PATIENCE:
                raise RuntimeError("ksana did not start")
            time.sleep(ASKING_SECONDS)
        return time.monotonic() - began
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def _is_well(port: int) -> bool:
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()
