"""Document 001's bodies of jobs (§4), with what Ksana has beside them. What a client leaves out of a PUT stays as it is."""

from typing import Annotated, Any

import orjson
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from ksana.api.contracts.console.activity_showing import ActivityItem
from ksana.api.contracts.jobchain.retries import RetryBody, RetryShown
from ksana.api.contracts.ksana_models import TYPE
from ksana.api.contracts.shapes import Strict
from ksana.api.contracts.values import Duration, Text
from ksana.domain.job import DESCRIPTION_LENGTH, MAX_CONCURRENCY, NAME_LENGTH, ConcurrencyPolicy, Contract, RecoveryRule

_CAMEL = ConfigDict(alias_generator=to_camel)
_IGNORED = "Written by Ksana; ignored here, so that a job that was read can be sent back."

EXAMPLE: dict[str, Any] = {
    "name": "demo-job",
    "description": "tells the warehouse",
    "type": "http",
    "configJson": {"method": "POST", "url": "https://api.example.com/orders/notify", "body": '{"run": "{{run_id}}"}'},
    "enabled": True,
}
SUMMARY: dict[str, Any] = {
    "jobId": "0199f0c4-6a10-7c3e-9b7e-3f0d8f8e2b11",
    "name": "demo-job",
    "description": "tells the warehouse",
    "type": "http",
    "enabled": True,
    "createdAt": "2026-01-31T12:00:00Z",
    "updatedAt": "2026-01-31T12:00:00Z",
}
SHOWN: dict[str, Any] = {
    **SUMMARY,
    "configJson": EXAMPLE["configJson"],
    "timeout": "15s",
    "retry": {"maxAttempts": 1, "backoffMillis": 0, "backoffMultiplier": 1.0},
    "maxConcurrency": 1,
    "concurrencyPolicy": "PARALLEL",
    "recovery": "retry",
    "labels": {},
    "workerQueue": "default",
}


def _object(value: object) -> object:
    """An object, or a text that holds one: `dagJson` of document 000 is such a text, and clients write this likewise."""
    if not isinstance(value, str):
        return value
    try:
        held = orjson.loads(value)
    except orjson.JSONDecodeError as error:
        raise PydanticCustomError("config", "is not JSON: {reason}", {"reason": str(error)}) from None
    if not isinstance(held, dict):
        raise PydanticCustomError("config", "must be an object, or a text that holds one")
    return held


Config = Annotated[
    dict[str, Any],
    BeforeValidator(_object, json_schema_input_type=dict[str, Any] | str),
    Field(
        description="What the executor of that type reads. For `http`: `method`, `url`, `headers`, `body`, and `mode` (`sync`,"
        " `async`) and `callback_timeout`."
    ),
]
Name = Annotated[Text, Field(max_length=NAME_LENGTH)]
Type = Annotated[str, Field(pattern=TYPE, description="The executor.")]
Policy = Annotated[ConcurrencyPolicy, Field(strict=False)]
Recovery = Annotated[RecoveryRule, Field(strict=False)]
Limit = Annotated[int, Field(ge=1, le=MAX_CONCURRENCY)]


class _JobParts(Strict):
    """What has a default. Null is the same as leaving it out; in a change, it takes the part back to its default."""

    model_config = _CAMEL

    description: Annotated[Text, Field(max_length=DESCRIPTION_LENGTH)] | None = None
    timeout: Duration | None = Field(
        default=None,
        description="Of one attempt: `30s`, or seconds. `executor.request_timeout` for type `http`, else an hour.",
    )
    retry: RetryBody | None = None
    max_concurrency: Limit | None = Field(default=None, description="Counts where the policy is QUEUE or SKIP; 1.")
    concurrency_policy: Policy | None = Field(
        default=None, description="What becomes of a run while as many run as may; `PARALLEL`."
    )
    recovery: Recovery | None = Field(
        default=None, description="What becomes of a run whose instance died: `retry` (the default) or `fail`."
    )
    labels: dict[Text, Text] | None = None
    worker_queue: Text | None = Field(
        default=None, description="Which workers may do it: those that serve this queue; `default`."
    )


class JobBody(_JobParts):
    """A new job (§4.1)."""

    model_config = ConfigDict(json_schema_extra={"example": EXAMPLE})

    name: Name
    type: Type
    config_json: Config = Field(default_factory=dict)
    enabled: bool = True


class JobChange(_JobParts):
    """The fields that change (§4.2); `configJson` is the whole new one. `jobId` may be sent, but not changed."""

    model_config = ConfigDict(json_schema_extra={"example": {"description": "tells nobody", "enabled": False}})

    name: Name = Field(default_factory=str)
    type: Type = Field(default_factory=str)
    config_json: Config = Field(default_factory=dict)
    enabled: bool = Field(default_factory=bool)
    job_id: Text = Field(default_factory=str)
    created_at: Any = Field(default=None, description=_IGNORED)
    updated_at: Any = Field(default=None, description=_IGNORED)


class JobSummary(BaseModel):
    """A job in a list (§4.3)."""

    model_config = ConfigDict(alias_generator=to_camel, json_schema_extra={"example": SUMMARY})

    job_id: str
    name: str
    description: str
    type: str
    enabled: bool
    created_at: str
    updated_at: str


class JobShown(JobSummary):
    """A job (§4.1)."""

    model_config = ConfigDict(json_schema_extra={"example": SHOWN})

    config_json: dict[str, Any]
    timeout: str = Field(examples=["15s"])
    retry: RetryShown
    max_concurrency: int
    concurrency_policy: ConcurrencyPolicy
    recovery: RecoveryRule
    labels: dict[str, str]
    worker_queue: str


class _Became(BaseModel):
    """What became of a job: with `include=runs` only."""

    model_config = _CAMEL

    task_id: int | None = Field(default=None, description="The number of a job that was made as a task.")
    contract: Contract | None = Field(default=None, description="Through which it was made.")
    version: int | None = Field(default=None, description="Which it is: each change makes it one more.")
    last_run: ActivityItem | None = Field(
        default=None, description="Of those that have ended, the one for the latest instant; not as a node."
    )
    next_run_at: str | None = Field(default=None, description="When the first of its schedules fires next.")
    schedules: int | None = Field(default=None, description="How many it has.")
    paused: bool | None = Field(default=None, description="It has schedules, and all that are not over are paused.")


class JobListed(_Became, JobSummary):
    """A job in a list, with `include=runs` also what became of it."""


class JobFound(_Became, JobShown):
    """A job, with `include=runs` also what became of it."""


class JobsShown(BaseModel):
    """A page of them."""

    page: int
    size: int
    total: int
    items: list[JobListed]
