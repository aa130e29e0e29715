"""What `ksana.runtime.tabled` needs of whoever keeps its values: the verbs of the store that are about runtime state."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from ksana.store.runtime_requests import RuntimeRemoval, RuntimeWrite


class RuntimeTable(Protocol):
    """Values by kind and key. One that has expired is not there."""

    async def write_runtime(self, writes: Sequence[RuntimeWrite]) -> Sequence[bool]:
        """Each by its rule, in order: whether it was written."""

    async def read_runtime(self, kind: str, keys: Sequence[str]) -> Mapping[str, tuple[str, int]]:
        """Value and version of those that are there."""

    async def all_runtime(self, kind: str, limit: int) -> Mapping[str, tuple[str, int]]:
        """Value and version of the first `limit` of a kind, by key."""

    async def remove_runtime(self, removals: Sequence[RuntimeRemoval]) -> Sequence[bool]:
        """Of each, whether it was there and was the one to remove."""

    async def count_runtime(self) -> Mapping[str, int]:
        """How many there are of each kind that there is."""
