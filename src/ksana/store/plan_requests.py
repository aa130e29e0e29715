"""What the store's verbs about plans take and give back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from ksana.domain.events import SYSTEM, Actor
from ksana.domain.plan import Plan, PlanSpec, PlanStatus, TaskStatus, Tenant, TenantTask, WaveTally
from ksana.domain.workflow import Snapshot
from ksana.domain.workflow_run import NodeRun

CHECKPOINT_LIFE = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class NewPlan:
    key: str
    spec: PlanSpec
    snapshot: Snapshot
    tenants: Sequence[tuple[str, Tenant]]
    """Each with the id of its task, in the order in which they are begun."""
    at: datetime
    start: bool = False
    actor: Actor = SYSTEM


@dataclass(frozen=True, slots=True)
class PlanFilter:
    statuses: frozenset[PlanStatus] = frozenset()
    keyword: str | None = None
    """Part of the name."""


@dataclass(frozen=True, slots=True)
class TaskFilter:
    plan_id: int
    statuses: frozenset[TaskStatus] = frozenset()
    wave: int | None = None
    keyword: str | None = None
    """Part of the tenant's id."""


# Orders to a plan -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StartPlan:
    plan_id: int
    at: datetime
    actor: Actor = SYSTEM


@dataclass(frozen=True, slots=True)
class PausePlan:
    """No further tenant is begun; with `tasks`, those that run pause at their next stage boundary."""

    plan_id: int
    at: datetime
    tasks: bool = True
    actor: Actor = SYSTEM


@dataclass(frozen=True, slots=True)
class ResumePlan:
    """It goes on, with the tasks that were paused with it; with `override`, whatever its gate and its budget say."""

    plan_id: int
    at: datetime
    override: bool = False
    actor: Actor = SYSTEM


@dataclass(frozen=True, slots=True)
class CancelPlan:
    plan_id: int
    at: datetime
    actor: Actor = SYSTEM


@dataclass(frozen=True, slots=True)
class RetryFailed:
    """The tenants that failed, again."""

    plan_id: int
    at: datetime
    from_checkpoint: bool = True
    checkpoint_life: timedelta = CHECKPOINT_LIFE
    actor: Actor = SYSTEM


PlanOrder = StartPlan | PausePlan | ResumePlan | CancelPlan | RetryFailed

# Orders to a task -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PauseTask:
    task_id: int
    at: datetime
    actor: Actor = SYSTEM


@dataclass(frozen=True, slots=True)
class ResumeTask:
    task_id: int
    at: datetime
    actor: Actor = SYSTEM


@dataclass(frozen=True, slots=True)
class RetryTask:
    """From its checkpoint, if it has one that is not older than `checkpoint_life`; else from its first stage."""

    task_id: int
    at: datetime
    from_checkpoint: bool = True
    checkpoint_life: timedelta = CHECKPOINT_LIFE
    actor: Actor = SYSTEM


@dataclass(frozen=True, slots=True)
class CancelTask:
    task_id: int
    at: datetime
    actor: Actor = SYSTEM


TaskOrder = PauseTask | ResumeTask | RetryTask | CancelTask


@dataclass(frozen=True, slots=True)
class Steered:
    """After an order: the executions whose work is to be broken off now, and of a retry how many tenants are tried again and
    which are not, because they have another task."""

    broken_off: tuple[int, ...] = ()
    retried: int = 0
    busy: tuple[str, ...] = ()


# What the engine does -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PlanStanding:
    plan: Plan
    waves: tuple[WaveTally, ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A task whose turn it is, as far as the store knows."""

    task_id: int
    task_key: str
    tenant_id: str


@dataclass(frozen=True, slots=True)
class Admission:
    """These may begin; of those, others outside have the tenant, and they are to be tried again at `retry_at`."""

    plan_id: int
    at: datetime
    admitted: tuple[int, ...] = ()
    refused: tuple[int, ...] = ()
    retry_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class OutboxRow:
    id: int
    at: datetime
    type: str
    plan_id: int
    task_id: int | None


@dataclass(frozen=True, slots=True)
class ShownPlan:
    """A plan with what is shown of it outside."""

    plan: Plan
    completed: int
    task_keys: tuple[str, ...]
    updated_at: datetime
    """When it, or one of its tasks, last changed."""


@dataclass(frozen=True, slots=True)
class ShownAfter:
    """How far somebody has got through all that is shown: first the tasks that have not ended, by id, then the others by when
    they ended."""

    task_id: int = 0
    ended_at: int | None = None
    """Microseconds; None: still among those that have not ended."""


@dataclass(frozen=True, slots=True)
class TaskStages:
    """A task with its stages as they stand, in order; those that its present run has not come to are `None`."""

    task: TenantTask
    stages: Sequence[NodeRun | None]


@dataclass(frozen=True, slots=True)
class ContextChange:
    """More for a checkpoint, from outside. `expected_version`: only if nobody has saved it since."""

    task_id: int
    context: Mapping[str, Any]
    at: datetime
    expected_version: int | None = None
    checkpoint_life: timedelta = CHECKPOINT_LIFE
    actor: Actor = SYSTEM


@dataclass(frozen=True, slots=True)
class CheckpointRemoval:
    task_id: int
    at: datetime
    expected_version: int | None = None
    checkpoint_life: timedelta = CHECKPOINT_LIFE
    actor: Actor = SYSTEM


@dataclass(frozen=True, slots=True)
class PlanFigures:
    plans: Mapping[PlanStatus, int] = field(default_factory=dict)
    tasks: Mapping[TaskStatus, int] = field(default_factory=dict)
    """Those that have not ended."""
    outbox_oldest: datetime | None = None
    paused: Mapping[str, int] = field(default_factory=dict)
    """Plans that are paused, by why."""
