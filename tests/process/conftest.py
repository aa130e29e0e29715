"""Ksana as a process of its own, and what it says."""

import atexit
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import IO, Any

import httpx2
import pytest
from tests.process.nursery import Forked, Nursery

PATIENCE = 30.0
"""Seconds after which a process that says nothing counts as stuck; nothing waits this long when all is well."""
COMMAND = [sys.executable, "-m", "ksana.cli.main"]
BYTECODE = Path(__file__).parents[2] / ".pytest_cache" / "bytecode"
_KEPT = ("PATH", "HOME", "LANG", "TMPDIR", "VIRTUAL_ENV", "SSL_CERT_FILE")


def environment(given: Mapping[str, str]) -> dict[str, str]:
    """What the process sees: nothing of this shell's settings. Compiled modules are kept: to compile them takes seconds."""
    kept = {name: value for name, value in os.environ.items() if name in _KEPT}
    return {**kept, "PYTHONPYCACHEPREFIX": str(BYTECODE), **given}


Process = Forked | subprocess.Popen[str]


def begin(*arguments: str, cwd: Path, env: Mapping[str, str] | None = None, fresh: bool = False) -> Process:
    """Begins a command; `fresh` is an interpreter of its own from the start, and takes two seconds."""
    if not fresh and sys.platform == "linux":  # elsewhere, what the libraries begin may not survive a fork
        return _nursery().start(arguments, cwd, environment(env or {}))
    return subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=cwd,
        env=environment(env or {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@cache
def _nursery() -> Nursery:
    """This session's."""
    nursery = Nursery(environment({}))
    atexit.register(nursery.close)
    return nursery


@dataclass(frozen=True, slots=True)
class Ended:
    """A command that has ended."""

    code: int
    out: str
    err: str


def ksana(*arguments: str, cwd: Path, env: Mapping[str, str] | None = None, fresh: bool = False) -> Ended:
    """Runs a command to its end."""
    running = Serving(begin(*arguments, cwd=cwd, env=env, fresh=fresh))
    running.read()
    try:
        code = running.process.wait(PATIENCE)
    finally:
        running.close()
    return Ended(code, "".join(running.told()), "".join(running.lines))


@dataclass
class Serving:
    """`ksana serve`, on a free port."""

    process: Process
    said: "queue.Queue[str | None]" = field(default_factory=queue.Queue)
    lines: list[str] = field(default_factory=list)
    written: threading.Condition = field(default_factory=threading.Condition)
    base: str = ""
    _readers: list[threading.Thread] = field(default_factory=list)

    def read(self) -> None:
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        for target, stream in ((self._read_said, self.process.stdout), (self._read_lines, self.process.stderr)):
            reader = threading.Thread(target=target, args=(stream,))
            reader.start()
            self._readers.append(reader)

    def wait_ready(self) -> "Serving":
        """Until it has said where it is."""
        while not self.base:
            text = self.said.get(timeout=PATIENCE)
            if text is None:
                raise AssertionError(f"it ended with {self.process.wait(PATIENCE)}: {self.lines}")
            if "API:" in text or "health:" in text:  # an instance without an API answers probes alone
                self.base = text.split()[-1].removesuffix("/api/v1").removesuffix("/health")
        return self

    def told(self) -> Iterator[str]:
        """What it has said, to its end."""
        return iter(self.said.get, None)

    def get(self, path: str, **headers: str) -> httpx2.Response:
        return httpx2.get(self.base + path, headers=headers, timeout=PATIENCE)

    def until(self, path: str, condition: Callable[[httpx2.Response], object]) -> httpx2.Response:
        """The first answer that satisfies it; fails with the last one."""
        deadline = time.monotonic() + PATIENCE
        while not condition(answer := self.get(path)):
            assert time.monotonic() < deadline, f"GET {path} still answers {answer.status_code} {answer.text}"
            time.sleep(0.05)
        return answer

    def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Signals it and waits; its exit code."""
        self.process.send_signal(how)
        code = self.process.wait(PATIENCE)
        self.close()
        return code

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(PATIENCE)
        for reader in self._readers:
            reader.join(PATIENCE)
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()

    def wait_logged(self, action: str) -> None:
        """Until its log has a line with that action."""
        with self.written:
            found = self.written.wait_for(lambda: any(line["action"] == action for line in self.log()), PATIENCE)
        assert found, self.lines

    def log(self) -> list[dict[str, Any]]:
        """Its log so far; every line must be JSON."""
        return [json.loads(line) for line in self.lines]

    def _read_said(self, stream: IO[str]) -> None:
        for line in stream:
            self.said.put(line)
        self.said.put(None)

    def _read_lines(self, stream: IO[str]) -> None:
        for line in stream:
            with self.written:
                self.lines.append(line)
                self.written.notify_all()


Serve = Callable[..., Serving]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Starts `ksana serve` with the data directory `data` below the test's own, and waits until it is ready unless told
    not to; all end with the test."""
    started: list[Serving] = []

    def start(
        *arguments: str, env: Mapping[str, str] | None = None, ready: bool = True, fresh: bool = False
    ) -> Serving:
        serving = Serving(begin("serve", "--port", "0", *arguments, cwd=tmp_path, env=env, fresh=fresh))
        started.append(serving)
        serving.read()
        return serving.wait_ready() if ready else serving

    yield start
    for serving in started:
        serving.close()
