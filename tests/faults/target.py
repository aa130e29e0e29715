"""The witness as the harness holds it: its process, addresses for jobs, and what it has seen."""

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self
from urllib.parse import quote

from tests.faults.hits import Hit, HitLog
from tests.process.nursery import ROOT

STUB = Path(__file__).with_name("stub.py")
LOOK_SECONDS = 0.05


class Target:
    """A running witness."""

    def __init__(self, folder: Path) -> None:
        self.log = folder / "witness.log"
        self.log.touch(mode=0o666)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.witness", str(self.log)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())
        self._hits = HitLog(self.log)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
        self._process.wait(20)

    def url(self, schedule: str, mode: str = "fast", *, again: str | None = None) -> str:
        """The address of a schedule's job; `again` is how later attempts of a fire are answered."""
        then = "" if again is None else f"&again={quote(again)}"
        return f"http://127.0.0.1:{self.port}/{mode}?s={schedule}{then}"

    def command(self, schedule: str, seconds: float) -> list[str]:
        """The same as a command, for shell jobs."""
        return [sys.executable, "-I", "-S", str(STUB), str(self.log), schedule, str(seconds)]

    def hits(self) -> list[Hit]:
        """All so far."""
        return self._hits.read()

    def wait(self, until: Callable[[Sequence[Hit]], object], seconds: float) -> bool:
        """Until what was seen is so; False if it was not in time. The checker says what that means."""
        deadline = time.monotonic() + seconds
        while not until(self.hits()):
            if time.monotonic() > deadline:
                return False
            time.sleep(LOOK_SECONDS)
        return True
