"""Runtime state in the database that has everything else: for those who have no Redis, or want none."""

from collections.abc import Awaitable, Mapping, Sequence
from typing import TypeVar

from ksana.domain.errors import RuntimeUnavailable, StoreError
from ksana.runtime.base import Lifetimes
from ksana.runtime.table import RuntimeTable
from ksana.runtime.tabled import TableRuntime
from ksana.store.runtime_requests import RuntimeRemoval, RuntimeWrite

T = TypeVar("T")


class SqlRuntime(TableRuntime):
    """Over the store's verbs. What has expired goes by the database's clock, and is removed by retention."""

    name = "sql"

    def __init__(self, table: RuntimeTable, lifetimes: Lifetimes) -> None:
        super().__init__(_Translated(table), lifetimes)


class _Translated:
    """A table whose database being out of reach is the runtime state being so."""

    def __init__(self, table: RuntimeTable) -> None:
        self._table = table

    async def write_runtime(self, writes: Sequence[RuntimeWrite]) -> Sequence[bool]:
        return await _asked(self._table.write_runtime(writes))

    async def read_runtime(self, kind: str, keys: Sequence[str]) -> Mapping[str, tuple[str, int]]:
        return await _asked(self._table.read_runtime(kind, keys))

    async def all_runtime(self, kind: str, limit: int) -> Mapping[str, tuple[str, int]]:
        return await _asked(self._table.all_runtime(kind, limit))

    async def remove_runtime(self, removals: Sequence[RuntimeRemoval]) -> Sequence[bool]:
        return await _asked(self._table.remove_runtime(removals))

    async def count_runtime(self) -> Mapping[str, int]:
        return await _asked(self._table.count_runtime())


async def _asked(answer: Awaitable[T]) -> T:
    try:
        return await answer
    except StoreError as error:
        raise RuntimeUnavailable(error.message) from error
