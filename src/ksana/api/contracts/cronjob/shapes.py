"""What comes in: bodies, checked for shape. Unknown fields are refused, wrong ones named; what they mean is `reading`'s."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StrictBool

from ksana.api.contracts.cronjob.answers import Strategy, TaskStatus
from ksana.api.contracts.cronjob.values import GivenId, Instant, Seconds, Whole
from ksana.api.contracts.values import Duration, Text
from ksana.domain.job import DEFAULT_QUEUE_LIMIT, ConcurrencyPolicy, ExecutionMode, RecoveryRule
from ksana.domain.retry import MAX_ATTEMPTS
from ksana.domain.schedule import MisfirePolicy

_METHODS = {"enum": ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"]}
_CALLBACK_METHODS = {"enum": ["POST", "PUT"]}
_EXAMPLE: dict[str, JsonValue] = {
    "name": "sync_stats",
    "description": "every five minutes",
    "cron_expr": "0 */5 * * * *",
    "timezone": "UTC",
    "exec_type": "SYNC",
    "http_method": "POST",
    "target_url": "http://svc.internal/api/sync",
    "headers": {"Content-Type": "application/json"},
    "body_template": '{"run_id": "{{run_id}}"}',
    "timeout_seconds": 10,
    "retry_policy": {"max_retries": 3, "initial_delay": 5, "strategy": "exponential", "max_delay": 60},
    "max_concurrency": 1,
    "concurrency_policy": "QUEUE",
    "misfire_policy": "FIRE_NOW",
    "catchup_limit": 5,
}


class Shape(BaseModel):
    model_config = ConfigDict(extra="forbid")


class GivenRetry(Shape):
    """`max_retries` follow the first attempt; a delay is a number of seconds or a duration such as `1m30s`."""

    max_retries: Annotated[Whole, Field(le=MAX_ATTEMPTS - 1)] = 0
    initial_delay: Duration | None = None
    strategy: Strategy = "exponential"
    max_delay: Duration | None = None


class TaskFields(Shape):
    """Every field that has a default. None of a time-out, a retry policy: the settings'."""

    description: Text | None = None
    timezone: Text = "UTC"
    exec_type: ExecutionMode = ExecutionMode.SYNC
    http_method: Annotated[Text, Field(json_schema_extra=_METHODS)] = "GET"
    headers: dict[Text, Any] | None = None
    body_template: Text | None = None
    timeout_seconds: Seconds | None = None
    retry_policy: GivenRetry | None = None
    max_concurrency: Whole = 1
    concurrency_policy: ConcurrencyPolicy = ConcurrencyPolicy.QUEUE
    misfire_policy: MisfirePolicy = MisfirePolicy.FIRE_NOW
    catchup_limit: Whole = 5
    callback_method: Annotated[Text, Field(json_schema_extra=_CALLBACK_METHODS)] = "POST"
    callback_timeout_sec: Seconds | None = None
    status: TaskStatus = "ENABLED"
    recovery: RecoveryRule = RecoveryRule.RETRY
    queue_limit: Whole = DEFAULT_QUEUE_LIMIT
    follow_redirects: StrictBool = False
    connect_timeout: Duration | None = None
    labels: dict[Text, Text] | None = None
    worker_queue: Text | None = None
    """Which workers may do it: those that serve this queue."""
    start_at: Instant | None = None
    end_at: Instant | None = None
    jitter: Duration | None = None


class NewTask(TaskFields):
    """A task as it is created."""

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    name: Text
    cron_expr: Text
    target_url: Text


class WholeTask(NewTask):
    """A task as it is to be: what is not given gets its default."""

    version: Whole | None = None
    """Refuse the change unless the task is at this version."""


def _without_defaults(schema: dict[str, Any]) -> None:
    for each in schema["properties"].values():
        each.pop("default", None)


class TaskChanges(TaskFields):
    """Any of a task's fields: what is not given stays as it is."""

    model_config = ConfigDict(json_schema_extra=_without_defaults)

    name: Text = ""
    cron_expr: Text = ""
    target_url: Text = ""
    version: Whole | None = None


class TriggerRequest(Shape):
    """How this one run differs."""

    override_body: Any = Field(
        default=None, description="Instead of the task's body template, and a template as well; JSON becomes its text."
    )
    force_async: StrictBool = Field(default=False, description="Wait for a callback, whatever the task's exec_type.")


class Report(BaseModel):
    """What the target says about the result. Other fields are kept with the body, and mean nothing."""

    model_config = ConfigDict(extra="ignore")

    status: Literal["SUCCESS", "FAILED"]
    data: Any = None
    error_message: Text | None = None


class ReportByIds(Report):
    """Of a task's run."""

    task_id: GivenId
    run_id: GivenId


class NamesNode(BaseModel):
    """Whether a report is about a node."""

    model_config = ConfigDict(extra="ignore")

    node_id: Any = None


class ReportByNode(Report):
    """Of a node of a workflow's run."""

    run_id: Text
    node_id: Text


class ReportByAnyIds(Report):
    """Of a task's run: `task_id` and `run_id`, both numbers. Of a workflow's node: the run's id, a text, and `node_id`.

    It is what the description shows; `node_id` tells which of the two above is read.
    """

    run_id: int | str
    task_id: int | None = None
    node_id: str | None = None
