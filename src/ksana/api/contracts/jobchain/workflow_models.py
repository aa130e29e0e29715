"""Document 001's bodies of workflows (§5, §6.1), with what Ksana has beside them."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema
from pydantic.alias_generators import to_camel

from ksana.api.contracts.console.activity_showing import ActivityItem
from ksana.api.contracts.shapes import Strict
from ksana.api.contracts.values import Text
from ksana.domain.ids import LARGEST_INTEGER
from ksana.domain.job import DESCRIPTION_LENGTH, NAME_LENGTH

_CAMEL = ConfigDict(alias_generator=to_camel)
_IGNORED = "Written by Ksana; ignored here, so that a workflow that was read can be sent back."
_ID = "0199f0c4-6a10-7c3e-9b7e-3f0d8f8e2b11"
_AT = "2026-01-31T12:00:00Z"

DAG: dict[str, Any] = {
    "job": "demo",
    "nodes": [
        {"id": "n1", "type": "shell", "cfg": {"cmd": "echo hello"}, "dependsOn": []},
        {
            "id": "n2",
            "type": "http",
            "cfg": {"method": "POST", "url": "https://api.example.com/orders/notify"},
            "dependsOn": ["n1"],
            "retry": {"maxAttempts": 3, "backoffMillis": 1000, "backoffMultiplier": 1.0},
        },
    ],
}
EXAMPLE: dict[str, Any] = {"name": "demo-workflow", "description": "two nodes", "enabled": True, "dag": DAG}
SUMMARY: dict[str, Any] = {
    "workflowId": _ID,
    "name": "demo-workflow",
    "description": "two nodes",
    "enabled": True,
    "version": 1,
    "createdAt": _AT,
    "updatedAt": _AT,
}
STARTED: dict[str, Any] = {"runId": "order-4711", "workflowId": _ID, "status": "PENDING", "createdAt": _AT}

_ANY: dict[str, Any] = {"type": "object", "additionalProperties": True}
Given = Annotated[
    Any,
    WithJsonSchema({**_ANY, "properties": {"nodes": {"type": "array", "items": _ANY}}}),
]
"""A dag, as it was written: what is wrong with it, the commands say."""
Name = Annotated[Text, Field(max_length=NAME_LENGTH)]
Description = Annotated[Text, Field(max_length=DESCRIPTION_LENGTH)]
Version = Annotated[int, Field(ge=1, le=LARGEST_INTEGER)]


class WorkflowBody(Strict):
    """A new workflow (§5.1)."""

    model_config = ConfigDict(alias_generator=to_camel, json_schema_extra={"example": EXAMPLE})

    name: Name
    dag: Given = Field(description="`nodes`, and what holds for the whole: `failFast`, `timeout`, `maxActiveRuns` …")
    description: Description | None = None
    enabled: bool = True
    workflow_id: Text | None = Field(default=None, description="An id of your own; one is made if there is none.")


class WorkflowChange(Strict):
    """The fields that change (§5.2); `dag` is the whole new one. `workflowId` may be sent, but not changed."""

    model_config = ConfigDict(
        alias_generator=to_camel, json_schema_extra={"example": {"description": "as before", "version": 1}}
    )

    name: Name = Field(default_factory=str)
    dag: Given = None
    description: Description | None = None
    enabled: bool = Field(default_factory=bool)
    version: Version | None = Field(default=None, description="Changes it only if this is still its version.")
    workflow_id: Text = Field(default_factory=str)
    created_at: Any = Field(default=None, description=_IGNORED)
    updated_at: Any = Field(default=None, description=_IGNORED)


class ValidateBody(Strict):
    """A dag to be looked at; the rest of a workflow may be with it."""

    model_config = ConfigDict(alias_generator=to_camel, json_schema_extra={"example": {"dag": DAG}})

    dag: Given
    name: Any = None
    description: Any = None
    enabled: Any = None
    workflow_id: Any = None


class ValidateStored(ValidateBody):
    """Likewise; without a dag, the stored one is looked at."""

    dag: Given = None


class Validated(BaseModel):
    """It could be saved, and run."""

    valid: Literal[True]
    nodes: int = Field(examples=[2])


class StartBody(Strict):
    """How this run is known, and what it is given (§6.1)."""

    model_config = ConfigDict(alias_generator=to_camel, json_schema_extra={"example": {"runId": "order-4711"}})

    run_id: Text | None = Field(default=None, description="An id of your own: the same id gives the same run.")
    idempotency_key: Text | None = Field(default=None, description="The same key gives the same run.")
    params: dict[str, Any] | None = None


class Started(BaseModel):
    """A run that has begun, or had before (§6.1)."""

    model_config = ConfigDict(alias_generator=to_camel, json_schema_extra={"example": STARTED})

    run_id: str
    workflow_id: str
    status: str
    created_at: str


class WorkflowSummary(BaseModel):
    """A workflow in a list (§5.3)."""

    model_config = ConfigDict(alias_generator=to_camel, json_schema_extra={"example": SUMMARY})

    workflow_id: str
    name: str
    description: str
    enabled: bool
    version: int
    created_at: str
    updated_at: str


class WorkflowShown(WorkflowSummary):
    """A workflow (§5.1)."""

    model_config = ConfigDict(json_schema_extra={"example": {**SUMMARY, "dag": DAG}})

    dag: dict[str, Any] = Field(description="As it was given.")


class WorkflowListed(WorkflowSummary):
    """A workflow in a list, with `include=runs` also what became of it."""

    recent_runs: list[ActivityItem] | None = Field(default=None, description="Its ten newest runs, newest first.")
    next_run_at: str | None = Field(default=None, description="When the first of its schedules fires next.")
    schedules: int | None = Field(default=None, description="How many it has.")
    paused: bool | None = Field(default=None, description="It has schedules, and all that are not over are paused.")


class WorkflowsShown(BaseModel):
    """A page of them."""

    page: int
    size: int
    total: int
    items: list[WorkflowListed]


class VersionSummary(BaseModel):
    """A definition that a workflow has, or had."""

    model_config = _CAMEL

    version: int
    name: str
    description: str
    created_at: str
    created_by: str


class VersionShown(VersionSummary):
    """The same with its graph."""

    dag: dict[str, Any]


class VersionsShown(BaseModel):
    """A page of them, newest first."""

    page: int
    size: int
    total: int
    items: list[VersionSummary]
