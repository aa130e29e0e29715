"""Document 004's bodies of plans."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from ksana.api.contracts.bodies import AsGiven
from ksana.api.contracts.jobchain.run_models import OrderBody
from ksana.api.contracts.shapes import Shown
from ksana.api.contracts.values import Duration
from ksana.domain.dag_reading import MAX_NODE_ID
from ksana.domain.ids import KEY_LENGTH
from ksana.domain.job import DESCRIPTION_LENGTH, NAME_LENGTH, RecoveryRule
from ksana.domain.plan import MAX_CONCURRENCY, MAX_STAGES, MAX_TENANTS
from ksana.domain.plan_reading import MAX_WAVES

PlanName = Literal["READY", "RUNNING", "PAUSED", "COMPLETED", "FAILED", "CANCELLED"]
PauseReason = Literal["paused", "failure_budget", "gate", "wave_done"]
OnBusyName = Literal["REJECT", "WAIT"]
Share = Annotated[float, Field(ge=0, le=100)]
Key = Annotated[str, Field(min_length=1, max_length=KEY_LENGTH)]
_AT = "2026-01-31T12:00:00Z"
EXAMPLE: dict[str, Any] = {
    "planId": "rollout-7",
    "name": "Move to schema 12",
    "stages": [
        {
            "name": "drain",
            "type": "shell",
            "config": {"cmd": 'echo "drain $TENANT"', "env": {"TENANT": "{{ params.tenantId }}"}},
        },
        {
            "name": "migrate",
            "type": "http",
            "config": {"method": "POST", "url": "https://api.example.com/{{ params.tenantId }}/migrate"},
            "retry": {"maxAttempts": 3, "backoffMillis": 500, "backoffMultiplier": 2},
            "timeout": "30s",
        },
    ],
    "tenants": ["t-001", {"tenantId": "t-002", "params": {"region": "eu"}}],
    "params": {"version": 12},
    "maxConcurrency": 5,
    "waves": [{"size": 1, "pauseAfter": True, "gate": {"maxFailedPercent": 0}}],
    "failureBudget": "5%",
    "onBusy": "REJECT",
    "autoStart": False,
}

# What comes in ------------------------------------------------------------------------------------------------------


class _Part(BaseModel):
    """Described only: the domain reads it."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid")


class StageRetry(_Part):
    max_attempts: int = Field(default=1, ge=1, le=1_000, description="In all: 1 never retries.")
    backoff_millis: int = Field(default=0, ge=0, description="Wait before the first retry.")
    backoff_multiplier: float = Field(default=1.0, ge=1, le=100, description="How much longer each further wait is.")


class StageBody(_Part):
    """A job that there is (`jobId`), or one of its own (`type` and `config`). Its templates see `params`, with `tenantId`,
    `planId` and `taskId`, and `nodes.<stage>.artifact` of the stages before."""

    name: str = Field(min_length=1, max_length=MAX_NODE_ID)
    description: str | None = None
    job_id: str | None = Field(default=None, description="A job's id, or its number as a text.")
    type: str | None = Field(default=None, description="The executor.", examples=["http"])
    config: dict[str, Any] | None = Field(default=None, description="What the executor of that type reads.")
    retry: StageRetry | None = None
    timeout: Duration | None = None
    params: dict[str, Any] | None = None
    when: str | None = Field(default=None, description="The stage is skipped unless this is true.")
    recovery: RecoveryRule | None = Field(default=None, description="If its instance dies while it runs.")
    worker_queue: str | None = Field(default=None, description="Which workers may do it: those that serve this queue.")


class TenantBody(_Part):
    tenant_id: Key
    params: dict[str, Any] | None = Field(default=None, description="On top of the plan's.")


class GateBody(_Part):
    max_failed_percent: Share


class WaveBody(_Part):
    """So many tenants, or so many of a hundred."""

    size: int | None = Field(default=None, ge=1, le=MAX_TENANTS)
    percent: float | None = Field(default=None, gt=0, le=100)
    pause_after: bool | None = Field(default=None, description="A person begins the next.")
    gate: GateBody | None = Field(default=None, description="The next begins only if no more than these have failed.")


class PlanBody(AsGiven):
    """The same stages for many tenants."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", json_schema_extra={"example": EXAMPLE})

    plan_id: Key | None = Field(default=None, description="An id of your own; one is made if there is none.")
    name: str = Field(min_length=1, max_length=NAME_LENGTH, description="Others may have it, too.")
    description: str | None = Field(default=None, max_length=DESCRIPTION_LENGTH)
    stages: list[StageBody] = Field(min_length=1, max_length=MAX_STAGES, description="In order.")
    tenants: list[Key | TenantBody] = Field(min_length=1, max_length=MAX_TENANTS, description="In order.")
    params: dict[str, Any] | None = Field(default=None, description="For every tenant.")
    max_concurrency: int = Field(default=1, ge=1, le=MAX_CONCURRENCY, description="Tenants at a time.")
    waves: list[WaveBody] | None = Field(
        default=None, max_length=MAX_WAVES, description="Whoever is in none comes after all of them."
    )
    failure_budget: int | str | None = Field(
        default=None, examples=[3, "5%"], description="How many tenants may fail before the plan pauses."
    )
    on_busy: OnBusyName | None = Field(default=None, description="What if a tenant has a task already.")
    auto_start: bool | None = None


class PauseBody(OrderBody):
    """Why, and what."""

    model_config = ConfigDict(json_schema_extra={"example": {"reason": "the on-call asked for it"}})

    tasks: bool = Field(default=True, description="Tenants that run pause at their next stage boundary, too.")


class ResumeBody(OrderBody):
    """Why, and how."""

    model_config = ConfigDict(json_schema_extra={"example": {"override": True, "reason": "known failures"}})

    override: bool = Field(default=False, description="Whatever the gate and the failure budget say.")


class AgainBody(OrderBody):
    """Why, and from where."""

    model_config = ConfigDict(
        alias_generator=to_camel, json_schema_extra={"example": {"fromCheckpoint": False, "reason": "fixed"}}
    )

    from_checkpoint: bool = Field(default=True, description="Else from the first stage.")


# What goes out --------------------------------------------------------------------------------------------------------


class TaskCounts(Shown):
    """How many tenants are where; `waiting` are those that are CREATED or WAITING_FOR_LOCK."""

    waiting: int
    running: int
    paused: int
    completed: int
    failed: int
    cancelled: int


class GateShown(Shown):
    max_failed_percent: float


class WaveShown(Shown):
    """A wave; of the one that has whoever is in no other, `size` and `percent` are null."""

    wave: int = Field(description="From 1.")
    size: int | None
    percent: float | None
    pause_after: bool
    gate: GateShown | None
    tenants: int
    status: Literal["PENDING", "RUNNING", "DONE"]
    tasks: TaskCounts


class PlanSummary(Shown):
    """A plan by itself."""

    plan_id: str
    name: str
    description: str
    status: PlanName
    pause_reason: PauseReason | None
    message: str | None = Field(description="Why it is paused, for people.")
    max_concurrency: int
    on_busy: OnBusyName
    failure_budget: int | str | None
    tenants: int = Field(description="How many.")
    current_wave: int
    created_at: str = Field(examples=[_AT])
    started_at: str | None
    ended_at: str | None
    updated_at: str


class PlanListed(PlanSummary):
    """A plan in a list, with `include=tasks` also how far it is."""

    progress: float | None = Field(default=None, description="The share of its tenants that are done.")
    tasks: TaskCounts | None = None
    total_waves: int | None = Field(default=None, description="How many waves it has.")


class PlanShown(PlanSummary):
    """A plan, and how far it is."""

    stages: list[str]
    params: dict[str, Any]
    progress: float = Field(description="The share of its tenants that are done.", examples=[0.5])
    tasks: TaskCounts
    waves: list[WaveShown]


class PlanRetried(PlanShown):
    retried: int = Field(description="How many tenants are tried again.")
    busy_tenants: list[str] = Field(description="Failed, too, but they have another task by now.")


class PlansShown(BaseModel):
    """A page of them, newest first."""

    page: int
    size: int
    total: int
    items: list[PlanListed]
