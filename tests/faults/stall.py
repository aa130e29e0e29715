"""How busy this machine is with what others do: lateness that comes of that is the machine's, not the product's."""

import threading
import time
from typing import Self

EVERY_SECONDS = 0.05
WORK_SECONDS = 0.2


class Stall:
    """Sleeps a little again and again, and keeps by how much it overslept at the most."""

    def __init__(self) -> None:
        self.longest = 0.0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while True:
            began = time.monotonic()
            if self._ended.wait(EVERY_SECONDS):
                return
            self.longest = max(self.longest, time.monotonic() - began - EVERY_SECONDS)


def slowness() -> float:
    """How many times longer than on an idle machine work takes just now: for each second of CPU, so many pass."""
    began, used = time.monotonic(), time.thread_time()
    while time.thread_time() - used < WORK_SECONDS:
        pass
    return max(1.0, (time.monotonic() - began) / WORK_SECONDS)
