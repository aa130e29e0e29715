"""How a task and a plan stand, as the facade tells it: read from Ksana's answers, or from what is shown in Redis."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Self

from ksana.client.errors import UNEXPECTED_ANSWER, FacadeError
from ksana.domain.plan import PlanStatus, TaskStatus
from ksana.runtime.base import PlanProjection, TaskProjection

_UNDER_WAY = frozenset({TaskStatus.RUNNING, TaskStatus.PAUSED, TaskStatus.FAILED})


class Source(StrEnum):
    """Who told it."""

    KSANA = "ksana"
    REDIS = "redis"
    """What was shown there last: Ksana was away, and it may since have gone on, or not."""


@dataclass(frozen=True, slots=True)
class TaskStatusInfo:
    """A tenant's task. What only Ksana knows is None where `source` is Redis."""

    task_id: str
    tenant_id: str
    plan_id: str
    status: TaskStatus
    pause_requested: bool
    stage_names: tuple[str, ...]
    last_completed_stage_index: int
    """-1: none."""
    created_at: datetime
    updated_at: datetime
    source: Source = Source.KSANA
    error: str | None = None
    reason: str | None = None
    run_id: str | None = None
    wave: int | None = None
    attempt: int | None = None
    """How often it began from its first stage."""
    has_checkpoint: bool | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None

    @property
    def total_stages(self) -> int:
        return len(self.stage_names)

    @property
    def completed_stages(self) -> int:
        """How many it need not do again."""
        return self.last_completed_stage_index + 1

    @property
    def progress(self) -> float:
        return round(self.completed_stages / self.total_stages, 4) if self.stage_names else 0.0

    @property
    def current_stage(self) -> str | None:
        """The stage that it is in, stands before, or failed in."""
        if self.status not in _UNDER_WAY or self.completed_stages >= self.total_stages:
            return None
        return self.stage_names[self.completed_stages]

    @classmethod
    def of_answer(cls, told: Mapping[str, Any]) -> Self:
        """From Ksana's JSON. FacadeError."""
        answer = _Answer(told)
        return cls(
            task_id=answer.text("taskId"),
            tenant_id=answer.text("tenantId"),
            plan_id=answer.text("planId"),
            status=TaskStatus(answer.word("status", TaskStatus)),
            pause_requested=answer.get("pauseRequested", bool),
            stage_names=tuple(answer.get("stageNames", list)),
            last_completed_stage_index=answer.get("lastCompletedStageIndex", int),
            created_at=answer.instant("createdAt"),
            updated_at=answer.instant("updatedAt"),
            error=told.get("error"),
            reason=told.get("reason"),
            run_id=told.get("runId"),
            wave=told.get("wave"),
            attempt=told.get("attempt"),
            has_checkpoint=told.get("hasCheckpoint"),
            started_at=answer.instant_or_none("startedAt"),
            ended_at=answer.instant_or_none("endedAt"),
        )

    @classmethod
    def of_projection(cls, shown: TaskProjection) -> Self:
        """FacadeError."""
        return cls(
            task_id=shown.task_id,
            tenant_id=shown.tenant_id,
            plan_id=shown.plan_id,
            status=TaskStatus(_known(shown.status, TaskStatus)),
            pause_requested=shown.pause_requested,
            stage_names=shown.stage_names,
            last_completed_stage_index=shown.last_completed_stage_index,
            created_at=shown.created_at,
            updated_at=shown.updated_at,
            source=Source.REDIS,
        )


@dataclass(frozen=True, slots=True)
class PlanStatusInfo:
    """A plan. What only Ksana knows is None or empty where `source` is Redis."""

    plan_id: str
    status: PlanStatus
    progress: float
    """The share of tenants that are completed."""
    tenants: int
    max_concurrency: int
    created_at: datetime
    updated_at: datetime
    source: Source = Source.KSANA
    name: str | None = None
    pause_reason: str | None = None
    message: str | None = None
    current_wave: int | None = None
    tasks: Mapping[str, int] | None = None
    """How many tenants are waiting, running, paused, completed, failed, cancelled."""
    started_at: datetime | None = None
    ended_at: datetime | None = None

    @classmethod
    def of_answer(cls, told: Mapping[str, Any]) -> Self:
        """From Ksana's JSON. FacadeError."""
        answer = _Answer(told)
        return cls(
            plan_id=answer.text("planId"),
            status=PlanStatus(answer.word("status", PlanStatus)),
            progress=float(answer.get("progress", int | float)),
            tenants=answer.get("tenants", int),
            max_concurrency=answer.get("maxConcurrency", int),
            created_at=answer.instant("createdAt"),
            updated_at=answer.instant("updatedAt"),
            name=told.get("name"),
            pause_reason=told.get("pauseReason"),
            message=told.get("message"),
            current_wave=told.get("currentWave"),
            tasks=answer.get("tasks", dict),
            started_at=answer.instant_or_none("startedAt"),
            ended_at=answer.instant_or_none("endedAt"),
        )

    @classmethod
    def of_projection(cls, shown: PlanProjection) -> Self:
        """FacadeError."""
        return cls(
            plan_id=shown.plan_id,
            status=PlanStatus(_known(shown.status, PlanStatus)),
            progress=shown.progress,
            tenants=len(shown.task_ids),
            max_concurrency=shown.max_concurrency,
            created_at=shown.created_at,
            updated_at=shown.updated_at,
            source=Source.REDIS,
        )


class _Answer:
    """Ksana's JSON, of which each part must be there and be of its type."""

    def __init__(self, told: Mapping[str, Any]) -> None:
        self._told = told

    def get(self, name: str, kind: Any) -> Any:
        found = self._told.get(name)
        if not isinstance(found, kind):
            raise FacadeError(UNEXPECTED_ANSWER, f"{name} is {found!r:.100}: is that Ksana, and of this version?")
        return found

    def text(self, name: str) -> str:
        return str(self.get(name, str))

    def word(self, name: str, words: type[StrEnum]) -> str:
        return _known(self.text(name), words)

    def instant(self, name: str) -> datetime:
        text = self.text(name)
        try:
            return datetime.fromisoformat(text).astimezone(UTC)
        except ValueError as error:
            raise FacadeError(UNEXPECTED_ANSWER, f"{name} is {text[:100]!r}: {error}") from error

    def instant_or_none(self, name: str) -> datetime | None:
        return None if self._told.get(name) is None else self.instant(name)


def _known(word: str, words: type[StrEnum]) -> str:
    if word not in set(words):
        raise FacadeError(
            UNEXPECTED_ANSWER, f"there is no {words.__name__} {word[:100]!r}; there are {', '.join(words)}"
        )
    return word
