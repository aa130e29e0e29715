"""By how much a process has grown."""

from pathlib import Path

KILOBYTES = 1_024


class Memory:
    """The resident size of a process, compared with what it was when this was made."""

    def __init__(self, pid: int) -> None:
        self._status = Path(f"/proc/{pid}/status")
        self._first = self._read()

    @property
    def growth(self) -> float:
        """Megabytes."""
        return round((self._read() - self._first) / KILOBYTES, 1)

    def _read(self) -> int:
        for line in self._status.read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1])
        return 0
