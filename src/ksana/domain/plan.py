"""A plan: the same stages for many tenants, so many at a time, in waves. Its states, and what is to be done next. Pure.

A *task* is one tenant's pass through the stages: a run of a workflow in which each stage depends on the one before it. The run
is what is worked on; the task is what it means for the tenant. `decide` looks at a plan from outside, by counting its tasks,
and says the one thing to be done next; whoever does it asks again until there is nothing (docs/design/plans.md).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from ksana.domain.states import Move, Mover

MAX_TENANTS = 10_000
MAX_STAGES = 100
MAX_CONCURRENCY = 10_000
PAUSED_BY_PERSON = "paused"
PAUSED_BY_BUDGET = "failure_budget"
PAUSED_BY_GATE = "gate"
PAUSED_AFTER_WAVE = "wave_done"
PAUSE_REASONS = (PAUSED_BY_PERSON, PAUSED_BY_BUDGET, PAUSED_BY_GATE, PAUSED_AFTER_WAVE)


class PlanStatus(StrEnum):
    READY = "READY"
    """Made, not begun. Moved out by a person's start, or at once (`autoStart`)."""
    RUNNING = "RUNNING"
    """Tenants are begun as there is room for them. Moved out when the last has ended, or it has to pause."""
    PAUSED = "PAUSED"
    """No tenant is begun, but those that a person asks for by name; `reason` says why. Moved out by a person."""
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    """Every tenant has ended, and some have failed."""
    CANCELLED = "CANCELLED"


class TaskStatus(StrEnum):
    CREATED = "CREATED"
    """Waits for its turn. Moved out by the plan."""
    WAITING_FOR_LOCK = "WAITING_FOR_LOCK"
    """It would be its turn, but another task has the tenant. Moved out by the plan, when the tenant is free."""
    RUNNING = "RUNNING"
    """It has the tenant's lock, and its stages run. Moved out by the end of its run."""
    PAUSED = "PAUSED"
    """Between two stages, without the lock; still the tenant's task. Moved out by a person."""
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


class Wish(StrEnum):
    """What a task that runs was asked to do at its next stage boundary, or is being made to do."""

    PAUSE = "pause"
    PAUSE_WITH_PLAN = "pause_with_plan"
    CANCEL = "cancel"
    LOCK_LOST = "lock_lost"


class OnBusy(StrEnum):
    """What becomes of a plan whose tenant has a task already."""

    REJECT = "REJECT"  # it is refused
    WAIT = "WAIT"  # that tenant waits its turn


P_ = PlanStatus
T_ = TaskStatus
M = Mover

_PLAN_EDGES: dict[tuple[P_, P_], Mover] = {
    (P_.READY, P_.RUNNING): M.PERSON,
    (P_.READY, P_.CANCELLED): M.PERSON,
    (P_.RUNNING, P_.PAUSED): M.PERSON,  # or the plan itself: budget, gate, end of a wave
    (P_.RUNNING, P_.COMPLETED): M.ADVANCE,
    (P_.RUNNING, P_.FAILED): M.ADVANCE,
    (P_.RUNNING, P_.CANCELLED): M.PERSON,
    (P_.PAUSED, P_.RUNNING): M.PERSON,
    (P_.PAUSED, P_.COMPLETED): M.ADVANCE,
    (P_.PAUSED, P_.FAILED): M.ADVANCE,
    (P_.PAUSED, P_.CANCELLED): M.PERSON,
    # Tenants are tried again.
    (P_.FAILED, P_.RUNNING): M.PERSON,
    (P_.COMPLETED, P_.RUNNING): M.PERSON,
}
_TASK_EDGES: dict[tuple[T_, T_], Mover] = {
    (T_.CREATED, T_.RUNNING): M.ADVANCE,
    (T_.CREATED, T_.WAITING_FOR_LOCK): M.ADVANCE,
    (T_.CREATED, T_.PAUSED): M.PERSON,
    (T_.CREATED, T_.CANCELLED): M.PERSON,
    (T_.WAITING_FOR_LOCK, T_.RUNNING): M.ADVANCE,
    (T_.WAITING_FOR_LOCK, T_.PAUSED): M.PERSON,
    (T_.WAITING_FOR_LOCK, T_.CANCELLED): M.PERSON,
    (T_.RUNNING, T_.COMPLETED): M.ADVANCE,
    (T_.RUNNING, T_.FAILED): M.ADVANCE,
    (T_.RUNNING, T_.PAUSED): M.ADVANCE,  # at a stage boundary, because a person asked for it
    (T_.RUNNING, T_.CANCELLED): M.PERSON,
    (T_.RUNNING, T_.CREATED): M.ADVANCE,  # it was to pause, and was resumed before it had
    (T_.RUNNING, T_.WAITING_FOR_LOCK): M.RECOVERY,  # somebody else has the tenant's lock
    (T_.PAUSED, T_.CREATED): M.PERSON,
    (T_.PAUSED, T_.CANCELLED): M.PERSON,
    (T_.FAILED, T_.CREATED): M.PERSON,
    (T_.CANCELLED, T_.CREATED): M.PERSON,
}
PLAN_EDGES = frozenset(_PLAN_EDGES)
TASK_EDGES = frozenset(_TASK_EDGES)


class PlanMove(Move[PlanStatus]):
    @classmethod
    def _edges(cls) -> frozenset[tuple[PlanStatus, PlanStatus]]:
        return PLAN_EDGES


class TaskMove(Move[TaskStatus]):
    @classmethod
    def _edges(cls) -> frozenset[tuple[TaskStatus, TaskStatus]]:
        return TASK_EDGES


PLAN_ENDED = frozenset({P_.COMPLETED, P_.FAILED, P_.CANCELLED})
PLAN_GOING_ON = frozenset({P_.RUNNING, P_.PAUSED})
TASK_ENDED = frozenset({T_.COMPLETED, T_.FAILED, T_.CANCELLED})
TASK_ACTIVE = frozenset(T_) - TASK_ENDED
"""Not ended: it is, or would be, the tenant's one task."""
TASK_WAITING = frozenset({T_.CREATED, T_.WAITING_FOR_LOCK})
TASK_RETRYABLE = frozenset({T_.FAILED, T_.CANCELLED})

# What a plan is -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Wave:
    """The tenants of one step of a rollout, by number or as a share of all."""

    size: int | None = None
    percent: float | None = None
    pause_after: bool = False
    max_failed_percent: float | None = None
    """The gate to the next wave: of this wave's tenants, at most so many may have failed."""

    def tenants(self, total: int) -> int:
        return self.size if self.size is not None else math.ceil(total * (self.percent or 0) / 100)


@dataclass(frozen=True, slots=True)
class Budget:
    """How many tenants may fail before the plan pauses, by number or as a share of all."""

    count: int | None = None
    percent: float | None = None

    def allowed(self, total: int) -> int:
        return self.count if self.count is not None else math.floor(total * (self.percent or 0) / 100)


@dataclass(frozen=True, slots=True)
class PlanSpec:
    name: str
    stages: tuple[Mapping[str, Any], ...]
    """As they were given; `stage_names` in order."""
    stage_names: tuple[str, ...]
    max_concurrency: int = 1
    waves: tuple[Wave, ...] = ()
    failure_budget: Budget | None = None
    on_busy: OnBusy = OnBusy.REJECT
    description: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    """For every tenant; a tenant's own come on top."""


@dataclass(frozen=True, slots=True)
class Tenant:
    id: str
    params: Mapping[str, Any] = field(default_factory=dict)


def wave_of(spec: PlanSpec, total: int) -> list[int]:
    """The wave of each tenant, by position. Whoever no wave has room for is in the last one, after all of them."""
    waves: list[int] = []
    for number, wave in enumerate(spec.waves):
        waves += [number] * min(wave.tenants(total), total - len(waves))
    return waves + [len(spec.waves)] * (total - len(waves))


@dataclass(frozen=True, slots=True)
class Plan:
    """A stored plan."""

    id: int
    key: str
    spec: PlanSpec
    status: PlanStatus
    tenants: int
    created_at: datetime
    updated_at: datetime
    reason: str | None = None
    """Why it is paused: one of the words above."""
    message: str | None = None
    """The same, for people."""
    wave: int = 0
    cleared: int = -1
    """The last wave whose gate has been passed."""
    forgiven: int = 0
    """Failures that a person accepted: the budget counts from there."""
    version: int = 1
    started_at: datetime | None = None
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class TenantTask:
    """A stored task."""

    id: int
    key: str
    plan_id: int
    plan_key: str
    tenant_id: str
    position: int
    wave: int
    status: TaskStatus
    stage_names: tuple[str, ...]
    created_at: datetime
    updated_at: datetime
    params: Mapping[str, Any] = field(default_factory=dict)
    wish: Wish | None = None
    run_id: int | None = None
    run_key: str | None = None
    generation: int = 0
    """How often it began from its first stage."""
    last_completed: int = -1
    """The index of the last stage that it need not do again."""
    version: int = 1
    fence: int = 0
    """The fencing token of the lock that it has, or had last."""
    error: str | None = None
    reason: str | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    checkpoint: "TaskCheckpoint | None" = None
    checkpoint_version: int = 0
    """How often its checkpoint was changed; 0: it never had one."""
    has_tenant: bool = False
    """Whether it is its tenant's one task; told only where checkpoints are."""

    def checkpoint_at(self, now: datetime, life: timedelta) -> "TaskCheckpoint | None":
        """From where it would go on. Of a task that has not ended it never runs out."""
        saved = self.checkpoint
        if saved is None or (self.status in TASK_ENDED and now - saved.saved_at >= life):
            return None
        return saved

    @property
    def pause_requested(self) -> bool:
        return self.wish in {Wish.PAUSE, Wish.PAUSE_WITH_PLAN}


@dataclass(frozen=True, slots=True)
class TaskCheckpoint:
    """From where a task would go on."""

    version: int
    last_completed: int
    completed: tuple[str, ...]
    context: Mapping[str, Any]
    saved_at: datetime


# What is to be done next ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WaveTally:
    """How many tasks of one wave are in which state."""

    waiting: int = 0
    asked_for: int = 0
    """Of those that wait, how many a person asked for by name."""
    running: int = 0
    paused: int = 0
    completed: int = 0
    failed: int = 0
    cancelled: int = 0

    @property
    def open(self) -> int:
        return self.waiting + self.running + self.paused

    @property
    def total(self) -> int:
        return self.open + self.completed + self.failed + self.cancelled


@dataclass(frozen=True, slots=True)
class Nothing:
    """Until something ends, or a person says something."""


@dataclass(frozen=True, slots=True)
class Admit:
    """So many more may run, of the waves that have begun; `asked_for`: only those that a person asked for by name."""

    places: int
    asked_for: bool = False


@dataclass(frozen=True, slots=True)
class NextWave:
    """The present wave is done and its gate passed."""


@dataclass(frozen=True, slots=True)
class Pause:
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class End:
    status: PlanStatus


Decision = Nothing | Admit | NextWave | Pause | End
NOTHING = Nothing()


def decide(plan: Plan, waves: Sequence[WaveTally]) -> Decision:
    """`waves` has one tally for each wave, in order."""
    if plan.status not in PLAN_GOING_ON:
        return NOTHING
    if not any(wave.open for wave in waves):
        return End(P_.FAILED if any(wave.failed for wave in waves) else P_.COMPLETED)
    begun = waves[: plan.wave + 1]
    places = plan.spec.max_concurrency - sum(wave.running for wave in waves)
    if plan.status is P_.PAUSED:
        asked_for = sum(wave.asked_for for wave in begun)
        return Admit(places, asked_for=True) if places > 0 and asked_for else NOTHING
    halt = over_budget(plan, waves)
    if halt is not None:
        return halt
    if at_boundary(plan, waves):
        return _at_boundary(plan, waves[plan.wave])
    return Admit(places) if places > 0 and any(wave.waiting for wave in begun) else NOTHING


def at_boundary(plan: Plan, waves: Sequence[WaveTally]) -> bool:
    """Whether every wave that has begun is done, and there are others."""
    return not any(wave.open for wave in waves[: plan.wave + 1])


def over_budget(plan: Plan, waves: Sequence[WaveTally]) -> Pause | None:
    """Why no more tenants are begun; None if the failures so far are within the budget."""
    budget = plan.spec.failure_budget
    failed = sum(wave.failed for wave in waves)
    if budget is None or failed - plan.forgiven <= budget.allowed(plan.tenants):
        return None
    forgiven = f", {plan.forgiven} of them accepted" if plan.forgiven else ""
    told = f"{failed} of {plan.tenants} tenants failed{forgiven}; {budget.allowed(plan.tenants)} may"
    return Pause(PAUSED_BY_BUDGET, told)


def at_gate(plan: Plan, wave: WaveTally) -> Pause | None:
    """Why the next wave is not begun; None if the gate of the present one is passed."""
    most = plan.spec.waves[plan.wave].max_failed_percent if plan.wave < len(plan.spec.waves) else None
    if most is None or wave.failed * 100 <= most * wave.total:
        return None
    told = f"wave {plan.wave + 1}: {wave.failed} of {wave.total} tenants failed; at most {most:g} % may"
    return Pause(PAUSED_BY_GATE, told)


def _at_boundary(plan: Plan, wave: WaveTally) -> Decision:
    """The present wave has ended, and there are others after it."""
    if plan.wave <= plan.cleared:
        return NextWave()
    shut = at_gate(plan, wave)
    if shut is not None:
        return shut
    if plan.spec.waves[plan.wave].pause_after:
        return Pause(PAUSED_AFTER_WAVE, f"wave {plan.wave + 1} is done: resume to begin the next")
    return NextWave()
