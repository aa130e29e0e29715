"""What every program of a peer does: it is told what to do by its arguments, and tells in one line how fast it went.

Standard library only: each is run by the Python of its peer's environment.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

TARGET = os.environ.get("BENCH_TARGET", "")
DATABASE = os.environ.get("BENCH_DATABASE", "")
"""Its address;"""
FILE = DATABASE.removeprefix("sqlite:///")
"""and its path, if it is a file."""
BODY = {"a": 1}
ENOUGH = 1_000
"""Nodes by which a rate can be told."""
PATIENCE = 600.0


def numbers() -> list[int]:
    """The sizes, which follow the name of the work."""
    return [int(each) for each in sys.argv[2:]]


def often(nodes: int) -> int:
    """How many times work of so many nodes is done, before it counts and then again: what is over in a moment, several times."""
    return max(1, ENOUGH // nodes)


def tell(work: int, seconds: float) -> None:
    """So many runs, or nodes, in that time."""
    print(json.dumps({"per_second": work / seconds}), flush=True)


@contextmanager
def worker(module: str) -> Iterator[None]:
    """The same program once more, as a worker in a process of its own; ended afterwards."""
    process = subprocess.Popen([sys.executable, "-m", module, "work"])
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def wait_until(true: Callable[[], bool]) -> None:
    """RuntimeError if it is not so in time."""
    deadline = time.monotonic() + PATIENCE
    while not true():
        if time.monotonic() > deadline:
            raise RuntimeError(f"not done in {PATIENCE:.0f} s")
        time.sleep(0.02)
