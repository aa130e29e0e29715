"""The processes of a measurement: `ksana serve`, and the target that it calls."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

PATIENCE = 60.0


@dataclass
class Served:
    """A `ksana serve` process and where it answers."""

    process: "subprocess.Popen[str]"
    base: str

    @property
    def pid(self) -> int:
        return self.process.pid

    def end(self, how: signal.Signals) -> None:
        self.process.send_signal(how)
        self.process.wait()


def serve(folder: Path, *flags: str, settings: Mapping[str, str] | None = None) -> Served:
    """`ksana serve` with its data in the folder, ready to answer; settings as variables of its environment."""
    command = [sys.executable, "-m", "ksana.cli.main", "serve", "--port", "0", "--data-dir", str(folder), *flags]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "LOG_LEVEL": "error", **(settings or {})},
    )
    assert process.stdout is not None
    for text in process.stdout:
        if "API:" in text or "health:" in text:
            return Served(process, text.split()[-1].removesuffix("/api/v1").removesuffix("/health"))
    raise RuntimeError("ksana did not start")


@contextmanager
def serving(folder: Path, *flags: str, settings: Mapping[str, str] | None = None) -> Iterator[Served]:
    """The same, ended afterwards."""
    served = serve(folder, *flags, settings=settings)
    try:
        yield served
    finally:
        served.end(signal.SIGTERM)


@dataclass
class Called:
    """A target process, and what it says of the calls that it had."""

    url: str
    pid: int

    def count(self) -> int:
        """How many since the last `times`."""
        return int(self._ask("count"))

    def times(self) -> list[float]:
        """When they came, in order; then it begins anew."""
        times: list[float] = self._ask("told")
        return times

    def wait_for(self, calls: int, seconds: float) -> None:
        """RuntimeError if there are not so many in that time."""
        wait_until(lambda: self.count() >= calls, f"{calls:,} calls of the target", seconds)

    def _ask(self, what: str) -> Any:
        # Asked often, beside what is measured: the standard library's client costs little to make.
        with urlopen(f"{self.url}/{what}", timeout=PATIENCE) as answer:
            return json.load(answer)


@contextmanager
def target() -> Iterator[Called]:
    """A target of one's own."""
    process = subprocess.Popen([sys.executable, "-m", "bench.target", "0"], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield Called(f"http://127.0.0.1:{int(process.stdout.readline())}", process.pid)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def wait_until(true: Callable[[], bool], what: str, seconds: float) -> None:
    """RuntimeError if it is not so in that time."""
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() > deadline:
            raise RuntimeError(f"not in {seconds:.0f} s: {what}")
        time.sleep(0.05)
