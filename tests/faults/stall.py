"""How long this machine keeps a thread waiting for its turn: lateness below that is the machine's, not the product's."""

import threading
import time
from typing import Self

EVERY_SECONDS = 0.05


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
