"""Runtime state in this process, gone with it: for tests, and for one instance that nobody looks at from outside."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ksana.domain.clock import Clock
from ksana.runtime.base import Lifetimes
from ksana.runtime.tabled import TableRuntime
from ksana.store.runtime_requests import RuntimeRemoval, RuntimeWrite

SWEPT_FROM = 1_000
"""Fewer entries than this are not worth looking through for those that have expired."""


class MemoryRuntime(TableRuntime):
    name = "memory"

    def __init__(self, lifetimes: Lifetimes, *, clock: Clock) -> None:
        super().__init__(MemoryTable(clock), lifetimes)


@dataclass(frozen=True, slots=True)
class _Entry:
    value: str
    version: int
    expires_at: float


class MemoryTable:
    """Implements `ksana.runtime.table.RuntimeTable`. No verb awaits anything: each is one step to everybody else."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._entries: dict[tuple[str, str], _Entry] = {}
        self._sweep_at = SWEPT_FROM

    def __len__(self) -> int:
        """How many it holds, expired or not."""
        return len(self._entries)

    async def write_runtime(self, writes: Sequence[RuntimeWrite]) -> Sequence[bool]:
        written = [self._write(write) for write in writes]
        if len(self._entries) >= self._sweep_at:
            self._sweep()
        return written

    async def read_runtime(self, kind: str, keys: Sequence[str]) -> Mapping[str, tuple[str, int]]:
        found = {key: self._living(kind, key) for key in keys}
        return {key: (entry.value, entry.version) for key, entry in found.items() if entry is not None}

    async def all_runtime(self, kind: str, limit: int) -> Mapping[str, tuple[str, int]]:
        keys = sorted(key for of_kind, key in self._entries if of_kind == kind and self._living(kind, key))
        return await self.read_runtime(kind, keys[:limit])

    async def remove_runtime(self, removals: Sequence[RuntimeRemoval]) -> Sequence[bool]:
        return [self._remove(removal) for removal in removals]

    async def count_runtime(self) -> Mapping[str, int]:
        counts: dict[str, int] = {}
        for kind, key in self._entries:
            if self._living(kind, key):
                counts[kind] = counts.get(kind, 0) + 1
        return counts

    def _write(self, write: RuntimeWrite) -> bool:
        there = self._living(write.kind, write.key)
        if not write.allowed(None if there is None else (there.value, there.version)):
            return False
        expires_at = self._clock.monotonic() + write.ttl.total_seconds()
        self._entries[write.kind, write.key] = _Entry(write.value, write.version, expires_at)
        return True

    def _remove(self, removal: RuntimeRemoval) -> bool:
        there = self._living(removal.kind, removal.key)
        if there is None or removal.value not in {None, there.value}:
            return False
        del self._entries[removal.kind, removal.key]
        return True

    def _living(self, kind: str, key: str) -> _Entry | None:
        entry = self._entries.get((kind, key))
        return entry if entry is not None and entry.expires_at > self._clock.monotonic() else None

    def _sweep(self) -> None:
        """Drops what has expired. It is done when there are twice as many as lived last time, so that it costs little."""
        now = self._clock.monotonic()
        self._entries = {name: entry for name, entry in self._entries.items() if entry.expires_at > now}
        self._sweep_at = max(SWEPT_FROM, 2 * len(self._entries))
