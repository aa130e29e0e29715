"""Runtime state over a table of values (`RuntimeTable`): what the database and the memory have in common.

A value is the text that Redis would have, and the hash of a projection is a JSON object of its fields. Every change is
one compare-and-set of the table; where a change needs to read first, the version that was read is what it is fenced by.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Generic

from ksana.domain.clock import to_micros
from ksana.domain.errors import UnreadableState
from ksana.runtime import documents
from ksana.runtime.base import (
    Checkpoint,
    Checkpoints,
    Kind,
    Lifetimes,
    PlanProjections,
    TaskProjection,
    TaskProjections,
    TenantIndex,
    TenantLocks,
)
from ksana.runtime.documents import Form, P
from ksana.runtime.table import RuntimeTable
from ksana.store.runtime_requests import Rule, RuntimeRemoval, RuntimeWrite

SHOWN_AT_MOST = 1_000_000
"""Where everything of a kind is asked for: more than there will be, and not endless."""


def name_of(kind: Kind, key: str) -> str:
    """What a value is called in messages: its key in Redis, without the namespace."""
    return f"{kind}:{key}"


class TableCheckpoints:
    def __init__(self, table: RuntimeTable, lifetime: timedelta) -> None:
        self._table = table
        self._lifetime = lifetime
        self.repaired = 0

    async def put(self, task_id: str, checkpoint: Checkpoint) -> bool:
        write = self._write(task_id, checkpoint, Rule.NEWER)
        if await self._written(write):
            return True
        return await self._clear_unreadable(task_id) and await self._written(write)

    async def append(self, task_id: str, stage: str, checkpoint: Checkpoint) -> bool:
        try:
            before = await self.get(task_id)
        except UnreadableState:
            return False
        if before is None or len(before.completed_stages) != checkpoint.last_completed_stage_index:
            return False
        longer = replace(checkpoint, completed_stages=(*before.completed_stages, stage))
        return await self._written(self._write(task_id, longer, Rule.NEXT))

    async def get(self, task_id: str) -> Checkpoint | None:
        found = (await self._table.read_runtime(Kind.CHECKPOINT, [task_id])).get(task_id)
        return None if found is None else documents.read_checkpoint(name_of(Kind.CHECKPOINT, task_id), found[0])

    async def remove(self, task_id: str) -> bool:
        return (await self._table.remove_runtime([RuntimeRemoval(Kind.CHECKPOINT, task_id)]))[0]

    async def _clear_unreadable(self, task_id: str) -> bool:
        """Removes one that nobody can read, and only that: whether it was there."""
        found = (await self._table.read_runtime(Kind.CHECKPOINT, [task_id])).get(task_id)
        if found is None:
            return False
        try:
            documents.read_checkpoint(name_of(Kind.CHECKPOINT, task_id), found[0])
        except UnreadableState:
            removed = (await self._table.remove_runtime([RuntimeRemoval(Kind.CHECKPOINT, task_id, found[0])]))[0]
            self.repaired += removed
            return removed
        return False

    def _write(self, task_id: str, checkpoint: Checkpoint, rule: Rule) -> RuntimeWrite:
        text = documents.checkpoint_text(checkpoint)
        return RuntimeWrite(Kind.CHECKPOINT, task_id, text, self._lifetime, rule, checkpoint.version)

    async def _written(self, write: RuntimeWrite) -> bool:
        return (await self._table.write_runtime([write]))[0]


class TableProjections(Generic[P]):
    """Projections of one kind; the version of one is the microsecond of its `updated_at`."""

    def __init__(self, table: RuntimeTable, lifetime: timedelta, form: Form[P]) -> None:
        self._table = table
        self._lifetime = lifetime
        self._form = form

    async def save(self, projections: Sequence[P]) -> None:
        if projections:
            await self._table.write_runtime([self._write(each) for each in projections])

    async def get(self, ids: Sequence[str]) -> Mapping[str, P]:
        found = await self._table.read_runtime(self._form.kind, ids)
        return {key: self._read(key, value) for key, (value, _) in found.items()}

    def _write(self, projection: P) -> RuntimeWrite:
        version = to_micros(projection.updated_at)
        text = documents.to_text(self._form.encode(projection))
        key = self._form.identify(projection)
        return RuntimeWrite(self._form.kind, key, text, self._lifetime, Rule.NOT_OLDER, version)

    def _read(self, key: str, value: str) -> P:
        name = name_of(self._form.kind, key)
        return self._form.decode(name, documents.read_object(name, value))


class TableTasks(TableProjections[TaskProjection]):
    async def of_tenant(self, tenant_id: str) -> TaskProjection | None:
        found = await self._table.all_runtime(Kind.TASK, SHOWN_AT_MOST)
        # Another tenant's that cannot be read is no reason to tell nothing of this one's.
        mine = [self._read(key, value) for key, (value, _) in found.items() if documents.to_text(tenant_id) in value]
        tasks = [task for task in mine if task.tenant_id == tenant_id]
        return max(tasks, key=lambda task: (task.created_at, task.task_id), default=None)


class TableIndex:
    def __init__(self, table: RuntimeTable, lifetime: timedelta) -> None:
        self._table = table
        self._lifetime = lifetime

    async def put(self, entries: Mapping[str, str]) -> None:
        if entries:
            await self._table.write_runtime(
                [
                    RuntimeWrite(Kind.INDEX, tenant, task, self._lifetime, Rule.ALWAYS)
                    for tenant, task in entries.items()
                ]
            )

    async def get(self, tenant_ids: Sequence[str]) -> Mapping[str, str]:
        found = await self._table.read_runtime(Kind.INDEX, tenant_ids)
        return {tenant: task for tenant, (task, _) in found.items()}

    async def remove(self, entries: Mapping[str, str]) -> None:
        if entries:
            removals = [RuntimeRemoval(Kind.INDEX, tenant, task) for tenant, task in entries.items()]
            await self._table.remove_runtime(removals)


class TableLocks:
    def __init__(self, table: RuntimeTable) -> None:
        self._table = table

    async def try_acquire(self, tenant_id: str, task_id: str, ttl: timedelta) -> bool:
        return await self._written(RuntimeWrite(Kind.LOCK, tenant_id, task_id, ttl, Rule.FREE))

    async def renew(self, tenant_id: str, task_id: str, ttl: timedelta) -> bool:
        return await self._written(RuntimeWrite(Kind.LOCK, tenant_id, task_id, ttl, Rule.HELD))

    async def release(self, tenant_id: str, task_id: str) -> bool:
        return (await self._table.remove_runtime([RuntimeRemoval(Kind.LOCK, tenant_id, task_id)]))[0]

    async def exists(self, tenant_id: str) -> bool:
        return bool(await self.holders([tenant_id]))

    async def holders(self, tenant_ids: Sequence[str]) -> Mapping[str, str]:
        found = await self._table.read_runtime(Kind.LOCK, tenant_ids)
        return {tenant: task for tenant, (task, _) in found.items()}

    async def all(self) -> Mapping[str, str]:
        found = await self._table.all_runtime(Kind.LOCK, SHOWN_AT_MOST)
        return {tenant: task for tenant, (task, _) in found.items()}

    async def _written(self, write: RuntimeWrite) -> bool:
        return (await self._table.write_runtime([write]))[0]


class TableRuntime:
    """Implements `ksana.runtime.base.RuntimeState` over a table, which it does not close."""

    name: str

    def __init__(self, table: RuntimeTable, lifetimes: Lifetimes) -> None:
        self._table = table
        self._checkpoints = TableCheckpoints(table, lifetimes.checkpoint)
        self.checkpoints: Checkpoints = self._checkpoints
        self.tasks: TaskProjections = TableTasks(table, lifetimes.projection, documents.TASKS)
        self.plans: PlanProjections = TableProjections(table, lifetimes.projection, documents.PLANS)
        self.index: TenantIndex = TableIndex(table, lifetimes.projection)
        self.locks: TenantLocks = TableLocks(table)

    async def ping(self) -> None:
        await self._table.read_runtime(Kind.LOCK, [""])

    async def counts(self) -> Mapping[Kind, int]:
        found = await self._table.count_runtime()
        return {kind: found.get(kind, 0) for kind in Kind}

    async def repaired(self) -> int:
        count, self._checkpoints.repaired = self._checkpoints.repaired, 0
        return count

    async def close(self) -> None:
        """The table is not its own."""
