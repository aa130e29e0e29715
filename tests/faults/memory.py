"""How much memory a process takes, at the most, beyond what it took at first."""

import threading
from pathlib import Path
from typing import Self

EVERY_SECONDS = 0.1
KILOBYTES = 1_024


class Memory:
    """Reads the resident size of a process again and again."""

    def __init__(self, pid: int) -> None:
        self._status = Path(f"/proc/{pid}/status")
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.first = self._read()
        self.most = self.first

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def peak(self) -> float:
        """Megabytes more than at first, at the most."""
        return round((self.most - self.first) / KILOBYTES, 1)

    @property
    def growth(self) -> float:
        """Megabytes more than at first, now."""
        return round((self._read() - self.first) / KILOBYTES, 1)

    def _watch(self) -> None:
        while not self._ended.wait(EVERY_SECONDS):
            self.most = max(self.most, self._read())

    def _read(self) -> int:
        for line in self._status.read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1])
        return 0
