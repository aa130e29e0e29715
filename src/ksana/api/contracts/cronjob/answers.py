"""What goes out: tasks with the fields of document 003 §8.1, runs with those of §8.2, callbacks with those of §8.3."""

from datetime import datetime
from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, RootModel

from ksana.api.contracts.jobchain.run_models import RunShown as WorkflowRunShown
from ksana.api.contracts.jobchain.run_models import RunSummary as WorkflowRunSummary

T = TypeVar("T")
TaskStatus = Literal["ENABLED", "DISABLED"]
Strategy = Literal["fixed", "exponential"]
RunStatusName = Literal[
    "SCHEDULED",
    "RUNNING",
    "SUCCESS",
    "FAILED",
    "TIMEOUT",
    "RETRYING",
    "CALLBACK_PENDING",
    "CALLBACK_SUCCESS",
    "FAILED_TIMEOUT",
    "CANCELED",
    "SKIPPED",
]


class Answer(BaseModel):
    model_config = ConfigDict(frozen=True)


class ErrorAnswer(Answer):
    """Every error. `code` is for programs, `message` for people; `details.field` names what is wrong."""

    code: str = Field(examples=["INVALID_ARGUMENT"])
    message: str = Field(examples=["cron_expr: has 4 fields, not five (minute first) or six (second first)"])
    details: dict[str, Any] = Field(examples=[{"field": "cron_expr"}])
    request_id: str


class Listed(Answer, Generic[T]):
    page: int
    page_size: int
    total: int | None = Field(description="Counted up to 10,000; null where `before_id` was asked for.")
    items: list[T]


class RetryPolicyShown(Answer):
    max_retries: int
    initial_delay: int | float
    strategy: Strategy
    max_delay: int | float | None


class ScheduleShown(Answer):
    """A task's schedule, of whatever kind: other contracts have `every` and `once` as well."""

    key: str
    kind: Literal["cron", "every", "once"]
    cron: str | None
    every: str | None
    run_at: datetime | None
    start_at: datetime | None
    end_at: datetime | None
    jitter: int | float
    status: Literal["ACTIVE", "PAUSED", "PARKED", "FINISHED"]
    error: str | None


class LastRun(Answer):
    """The newest run that has ended."""

    run_id: int
    status: RunStatusName
    final_status: str | None
    scheduled_time: datetime | None
    start_time: datetime | None
    end_time: datetime | None
    error_message: str | None


class Task(Answer):
    id: int
    key: str = Field(description="The string by which the other contracts know it.")
    name: str
    description: str
    type: str = Field(description="`http`, unless another contract made it; the fields of the request are null then.")
    cron_expr: str | None = Field(description="Six fields; null if the schedule is of another kind.")
    timezone: str | None
    exec_type: Literal["SYNC", "ASYNC"]
    http_method: str | None
    target_url: str | None
    headers: dict[str, str] | None
    body_template: str | None
    timeout_seconds: int | float
    retry_policy: RetryPolicyShown
    max_concurrency: int
    concurrency_policy: Literal["QUEUE", "SKIP", "PARALLEL"]
    misfire_policy: Literal["FIRE_NOW", "SKIP", "CATCH_UP_LIMITED"] | None
    catchup_limit: int | None
    callback_method: str | None
    callback_timeout_sec: int | float
    status: TaskStatus
    version: int
    created_at: datetime
    updated_at: datetime
    recovery: Literal["retry", "fail"]
    queue_limit: int
    follow_redirects: bool | None
    connect_timeout: int | float | None
    labels: dict[str, str]
    worker_queue: str
    start_at: datetime | None
    end_at: datetime | None
    jitter: int | float | None
    next_run_time: datetime | None
    last_run: LastRun | None
    schedule: ScheduleShown | None


class TaskUpdated(Task):
    updated: Literal[True] = True


class TaskDeleted(Answer):
    deleted: Literal[True] = True
    id: int


class Triggered(Answer):
    run_id: int
    task_id: int
    status: RunStatusName


class AttemptShown(Answer):
    attempt: int
    status: str
    start_time: datetime
    end_time: datetime
    request_method: str | None
    request_url: str | None
    request_headers: dict[str, Any]
    request_body: str | None
    response_code: int | None
    response_headers: dict[str, Any]
    response_body: str | None
    error_message: str | None
    notes: dict[str, Any] | None = Field(description="Says so where the kept response is not whole.")


class CallbackShown(Answer):
    id: int
    received_at: datetime
    status: Literal["RECEIVED", "IGNORED"]
    headers: dict[str, str]
    body: str


class RunSummary(Answer):
    """A run as lists show it: all that its own row tells."""

    id: int
    task_id: int | None
    scheduled_time: datetime | None
    start_time: datetime | None
    end_time: datetime | None
    status: RunStatusName
    final_status: str | None = Field(description="Once it has ended; CALLBACK_SUCCESS is SUCCESS here.")
    attempt: int = Field(description="From 1; 0 before the first has begun.")
    trigger: str
    reason: str | None
    error_message: str | None
    next_retry_time: datetime | None
    callback_token: None = Field(default=None, description="Always null: Ksana keeps only a hash of it.")
    callback_deadline: datetime | None
    trace_id: str | None
    created_at: datetime
    updated_at: datetime


class Run(RunSummary):
    """A run with its attempts. `request_…` and `response_…` are those of the last one."""

    request_headers: dict[str, Any] | None
    request_body: str | None
    response_code: int | None
    response_body: str | None
    queue_position: int | None = Field(description="While it is queued: how many go before it.")
    output: Any
    attempts: list[AttemptShown]
    callbacks: list[CallbackShown]


class OneRun(RootModel[Run | WorkflowRunShown]):
    """The run of a task (document 003 §8.2), or that of a workflow (document 001 §6.3)."""


class TaskRunListed(RunSummary):
    kind: Literal["task"]


class RunsListed(Answer):
    """Runs of both kinds. `size` is `page_size` by document 001's name."""

    page: int
    page_size: int
    size: int
    total: int | None = Field(description="Counted up to 10,000; null where `before_id` was asked for.")
    items: list[TaskRunListed | WorkflowRunSummary]


class RunCanceled(Answer):
    run_id: int
    status: RunStatusName
    canceled: bool = Field(description="Whether it was this request that ended it.")
    message: str


class RunExplained(Answer):
    run_id: int
    status: RunStatusName
    code: str
    message: str
    until: datetime | None
    position: int | None
    running: int | None
    limit: int | None


class CallbackAccepted(Answer):
    run_id: int
    final_status: str | None
    status: RunStatusName
    accepted: bool = Field(description="False: the run had ended before, and stays as it is.")


class NodeCallbackAccepted(CallbackAccepted):
    """Of a node of a workflow's run."""

    run_id: str  # type: ignore[assignment]
    node_id: str


class AnyCallbackAccepted(RootModel[CallbackAccepted | NodeCallbackAccepted]):
    """Of a task's run, or of a node of a workflow's run."""
