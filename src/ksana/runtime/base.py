"""Runtime state of plans, as others see it: document 004's ports. What it holds is made from the store, and can be made again.

The store is the truth: it has every task, stage and fencing token, and no answer of the API depends on what is here. This is
what is shown outside (`redis-cli`, other services, an operator when Ksana is down), and the tenant's lock as others honour it.

All of it may fail with RuntimeUnavailable, and what was asked for may have been done then: nothing is tried again in here. A
value that cannot be read is UnreadableState.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Protocol


class Kind(StrEnum):
    """What is kept, by the word that its key has (document 004, §6.1)."""

    CHECKPOINT = "ckpt"
    TASK = "task"
    PLAN = "plan"
    INDEX = "index:tenant"
    LOCK = "lock:tenant"


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """How long each outlives its last change."""

    checkpoint: timedelta = timedelta(days=7)
    projection: timedelta = timedelta(days=30)
    lock: timedelta = timedelta(hours=2, minutes=30)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """From where a task would go on. `version` grows with every change and never begins again."""

    last_completed_stage_index: int
    completed_stages: tuple[str, ...]
    saved_at: datetime
    context_data: Mapping[str, Any] = field(default_factory=dict)
    version: int = 1


@dataclass(frozen=True, slots=True)
class TaskProjection:
    task_id: str
    tenant_id: str
    plan_id: str
    status: str
    pause_requested: bool
    stage_names: tuple[str, ...]
    last_completed_stage_index: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class PlanProjection:
    plan_id: str
    status: str
    task_ids: tuple[str, ...]
    progress: float
    """The share of tenants that are completed."""
    max_concurrency: int
    created_at: datetime
    updated_at: datetime


class Checkpoints(Protocol):
    async def put(self, task_id: str, checkpoint: Checkpoint) -> bool:
        """False, and nothing is written, if the one that is there has the same or a greater version."""

    async def append(self, task_id: str, stage: str, checkpoint: Checkpoint) -> bool:
        """One stage more: only what is new travels. False, and nothing is written, unless the one that is there can be read and
        has the version just before `checkpoint.version` and as many stages as go before `stage`: then `put` it."""

    async def get(self, task_id: str) -> Checkpoint | None:
        """None if there is none, or it has expired. Never older than what anybody has written; to be read only, since others
        may be given the same. UnreadableState."""

    async def remove(self, task_id: str) -> bool:
        """Whether there was one."""


class TaskProjections(Protocol):
    async def save(self, tasks: Sequence[TaskProjection]) -> None:
        """Each unless the one that is there was updated later."""

    async def get(self, task_ids: Sequence[str]) -> Mapping[str, TaskProjection]:
        """Those that are there. UnreadableState."""

    async def of_tenant(self, tenant_id: str) -> TaskProjection | None:
        """The newest task of a tenant, ended or not, found without the index. Slow: for people. UnreadableState."""


class PlanProjections(Protocol):
    async def save(self, plans: Sequence[PlanProjection]) -> None:
        """Each unless the one that is there was updated later."""

    async def get(self, plan_ids: Sequence[str]) -> Mapping[str, PlanProjection]:
        """Those that are there. UnreadableState."""


class TenantIndex(Protocol):
    async def put(self, entries: Mapping[str, str]) -> None:
        """The task of each of these tenants."""

    async def get(self, tenant_ids: Sequence[str]) -> Mapping[str, str]:
        """The tasks of those tenants that have one."""

    async def remove(self, entries: Mapping[str, str]) -> None:
        """Of these tenants, those whose task is still the one given."""


class TenantLocks(Protocol):
    """One holder a tenant: a task. What a lock guards is also fenced by the store's token, so that one which ran out does no
    harm."""

    async def try_acquire(self, tenant_id: str, task_id: str, ttl: timedelta) -> bool:
        """True also for who has it already (and has it for another `ttl` then). False: another task has it."""

    async def renew(self, tenant_id: str, task_id: str, ttl: timedelta) -> bool:
        """False: it ran out, or another task has it."""

    async def release(self, tenant_id: str, task_id: str) -> bool:
        """Whether it was this task's; another's stays."""

    async def exists(self, tenant_id: str) -> bool:
        """Whether somebody has it."""

    async def holders(self, tenant_ids: Sequence[str]) -> Mapping[str, str]:
        """The tasks that have the locks of these tenants, where somebody has."""

    async def all(self) -> Mapping[str, str]:
        """Every lock that is held: tenant and task. Slow: for upkeep."""


class RuntimeState(Protocol):
    """All of it, in one place."""

    name: str
    """redis, sql or memory."""
    checkpoints: Checkpoints
    tasks: TaskProjections
    plans: PlanProjections
    index: TenantIndex
    locks: TenantLocks

    async def ping(self) -> None:
        """RuntimeUnavailable; UnsafeRuntime if it would forget by itself what it should keep."""

    async def counts(self) -> Mapping[Kind, int]:
        """How many there are of each. Slow: for upkeep."""

    async def repaired(self) -> int:
        """How many values of a wrong type, or that could not be read, were replaced since it was asked last."""

    async def close(self) -> None:
        """Lets go of its connections."""
