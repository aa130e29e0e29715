"""What processes cost, read from /proc: on Linux only."""

import os
from collections.abc import Iterable
from pathlib import Path

from tests.servers.leash import descendants

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
USER_AND_SYSTEM = slice(11, 15)
"""utime, stime, and the same of children that have ended, counted from the state, which follows the name."""
RESIDENT = 21


def cpu_seconds(roots: Iterable[int]) -> float:
    """Of these processes and all below them, since they began; of those that are gone, nothing."""
    return sum(sum(map(int, fields[USER_AND_SYSTEM])) for fields in _stats(roots)) / TICKS


def resident_bytes(roots: Iterable[int]) -> int:
    """Memory of these processes and all below them; what they share counts for each."""
    return sum(int(fields[RESIDENT]) for fields in _stats(roots)) * PAGE


def _stats(roots: Iterable[int]) -> Iterable[list[str]]:
    for root in roots:
        for pid in (root, *descendants(root)):
            try:
                text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
            except OSError:
                continue
            # The name stands in brackets, and may hold blanks and brackets itself.
            yield text.rpartition(")")[2].split()
