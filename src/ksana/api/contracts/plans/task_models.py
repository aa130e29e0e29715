"""Document 004's bodies of tenants' tasks and their checkpoints."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from ksana.api.contracts.jobchain.run_models import NodeName
from ksana.api.contracts.plans.paths import CheckpointVersion
from ksana.api.contracts.shapes import Shown, Strict
from ksana.api.contracts.values import Text

TaskName = Literal["CREATED", "WAITING_FOR_LOCK", "RUNNING", "PAUSED", "COMPLETED", "FAILED", "CANCELLED"]
MOST_ASKED = 1_000


# What comes in ------------------------------------------------------------------------------------------------------


class ContextBody(Strict):
    """More for a checkpoint: these keys are put in, others stay."""

    model_config = ConfigDict(
        alias_generator=to_camel, json_schema_extra={"example": {"contextData": {"rows": 3}, "version": 2}}
    )

    context_data: dict[Text, Any]
    version: CheckpointVersion | None = Field(default=None, description="Changes it only if this is still its version.")


class TenantsBody(Strict):
    """Which tenants."""

    model_config = ConfigDict(
        alias_generator=to_camel, json_schema_extra={"example": {"tenantIds": ["t-001", "t-002"]}}
    )

    tenant_ids: Annotated[list[Text], Field(min_length=1, max_length=MOST_ASKED)]


# What goes out --------------------------------------------------------------------------------------------------------


class TaskSummary(Shown):
    """A tenant's pass through the stages of a plan."""

    task_id: str
    tenant_id: str
    plan_id: str
    status: TaskName
    pause_requested: bool = Field(description="It pauses at its next stage boundary.")
    wave: int = Field(description="From 1.")
    stage_names: list[str]
    last_completed_stage_index: int = Field(description="From 0; -1 if none is done.")
    completed_stages: int
    total_stages: int
    current_stage: str | None = Field(description="While it runs, is paused, or has failed.")
    progress: float = Field(description="The share of its stages that are done.")
    attempt: int = Field(description="How often it began from its first stage.")
    run_id: str | None = Field(description="The run that it is, at `/api/v1/runs/{runId}`.")
    error: str | None
    reason: str | None = Field(description="Why it is paused, waits or was cancelled.")
    has_checkpoint: bool
    created_at: str
    started_at: str | None
    ended_at: str | None
    updated_at: str


class StageShown(Shown):
    name: str
    index: int
    status: NodeName
    attempts: int
    output: Any
    error: str | None
    started_at: str | None
    ended_at: str | None


class CheckpointShown(Shown):
    """From where a task would go on."""

    task_id: str
    tenant_id: str
    plan_id: str
    version: int
    last_completed_stage_index: int
    completed_stages: list[str]
    context_data: dict[str, Any]
    saved_at: str
    expires_at: str | None = Field(description="Of a task that has failed.")


class TaskShown(TaskSummary):
    """The same with its stages."""

    params: dict[str, Any] = Field(description="The tenant's own.")
    stages: list[StageShown]
    checkpoint: CheckpointShown | None


class TasksShown(BaseModel):
    """A page of them, in the order in which they are begun."""

    page: int
    size: int
    total: int
    items: list[TaskSummary]


class TenantsShown(BaseModel):
    """The task of each tenant: the one that it has, else the last."""

    items: list[TaskSummary]
    missing: list[str] = Field(description="Tenants that never had one.")
