"""Document 001's bodies of runs and nodes (§6, §7), and document 000's (§B2)."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from ksana.api.contracts.jobchain.graph_models import NodeJob, NodeState
from ksana.api.contracts.shapes import Shown, Strict
from ksana.api.contracts.values import Text

REASON_LENGTH = 1_000
Reason = Annotated[Text, Field(max_length=REASON_LENGTH, description="Why; kept with the order.")]
RunName = Literal["PENDING", "RUNNING", "STOPPING", "STOPPED", "SUCCESS", "FAILED", "CLOSED"]
NodeName = Literal["PENDING", "RUNNING", "SUCCESS", "FAILED", "RETRYING", "SKIPPED", "STOPPED"]
_AT = "2026-01-31T12:00:00Z"
_RUN: dict[str, Any] = {"runId": "order-4711", "status": "STOPPING"}
_NODE: dict[str, Any] = {"runId": "order-4711", "nodeId": "n1", "status": "RETRYING", "attempt": 2}


# What comes in ------------------------------------------------------------------------------------------------------


class OrderBody(Strict):
    """Why."""

    model_config = ConfigDict(json_schema_extra={"example": {"reason": "the disk is back"}})

    reason: Reason | None = None


class StopBody(OrderBody):
    """Why, and how."""

    model_config = ConfigDict(json_schema_extra={"example": {"force": True, "reason": "wrong input"}})

    force: bool = Field(default=False, description="Break off what runs, too; else it may end.")


class NodeOrderBody(OrderBody):
    """§7.2. Only `:complete` has use for an artifact and a checkpoint."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        json_schema_extra={"example": {"artifact": {"rows": 3}, "reason": "manual override"}},
    )

    artifact: Any = Field(default=None, description="What came out of it; what it had made already stays if left out.")
    artifact_json: Any = Field(default=None, description="The same as a text that holds JSON (document 000).")
    checkpoint: Any = None


# What goes out --------------------------------------------------------------------------------------------------------


class NodeShown(NodeState):
    """A node of a run (§6.3)."""

    node_id: str
    status: NodeName
    reason: str | None = Field(description="Why it was skipped, stopped or completed by hand.")
    ready_at: str | None = Field(description="When a node that waits for a time, or for its next attempt, goes on.")
    deadline_at: str | None = Field(description="Until when a callback, or a person, is waited for.")
    artifact: Any
    checkpoint: Any
    parent_node_id: str | None = Field(description="Of an item, the node that it belongs to.")
    child_run_id: str | None = Field(description="Of a node that is a workflow, its run.")


class NodeWithJob(NodeShown):
    job: NodeJob


class NodeRow(NodeShown):
    """Document 000's row."""

    artifact_json: str | None = Field(description="The artifact as a text that holds JSON.")


class NodeAttempt(Shown):
    attempt: int
    epoch: int = Field(
        description="Which claim made it: it grows with every one, also where an attempt was lost or handed back."
    )
    owner: str = Field(description="The instance that made it.")
    status: str
    error: str | None
    started_at: str
    ended_at: str
    request: dict[str, Any] = Field(description="What was sent, or started.")
    request_body: str | None
    response_code: int | None
    response_headers: dict[str, Any]
    response_body: str | None


class NodeDetail(NodeRow):
    """One node with its attempts that have ended."""

    attempts: list[NodeAttempt]


class ParentNode(Shown):
    """The node of another run that this one works for."""

    run_id: str
    node_id: str


class RunSummary(Shown):
    """A run in a list (§6.2)."""

    run_id: str
    workflow_id: str
    status: RunName
    created_at: str
    updated_at: str
    started_at: str | None
    ended_at: str | None
    kind: Literal["workflow"]


class RunShown(RunSummary):
    """A run (§6.3)."""

    workflow_version: int
    trigger: str
    params: dict[str, Any]
    error: str | None
    reason: str | None = Field(description="Why it was stopped, closed or queued.")
    schedule_id: str | None
    planned_for: str | None
    plan_id: str | None = Field(description="Of a run that is a tenant's task; its `workflowId` is the same.")
    tenant_id: str | None = Field(description="Likewise.")
    parent: ParentNode | None
    dag: dict[str, Any] = Field(description="The snapshot that it started with.")
    nodes: list[NodeWithJob]


class RunOrdered(Shown):
    """What the order has put the run into."""

    model_config = ConfigDict(json_schema_extra={"example": _RUN})

    run_id: str
    status: RunName


class RunReopened(RunOrdered):
    model_config = ConfigDict(json_schema_extra={"example": {**_RUN, "status": "RUNNING", "reopened": 2}})

    reopened: int = Field(description="How many nodes are done again.")


class NodeOrdered(Shown):
    """Document 000's NodeActionResponse."""

    model_config = ConfigDict(json_schema_extra={"example": _NODE})

    run_id: str
    node_id: str
    status: NodeName
    attempt: int


class EventShown(Shown):
    id: int
    type: str = Field(examples=["run.ended"])
    at: str = Field(examples=[_AT])
    data: dict[str, Any]


class EventsShown(Shown):
    """What happened to a run, in order. Ask for more with the last id as `after`."""

    items: list[EventShown]


class LogPart(Shown):
    epoch: int = Field(description="Which claim wrote it: it grows with every attempt.")
    seq: int
    at: str
    stream: str = Field(examples=["stdout"])
    text: str


class LogShown(BaseModel):
    """What attempts wrote. Ask for more with the cursor as `after`."""

    items: list[LogPart]
    cursor: str | None = Field(examples=["1.42"], description="Null if there is nothing yet.")
    before: str | None = Field(
        default=None,
        examples=["1.7"],
        description="Of what was asked for by `before`: the cursor to go on; null at the beginning.",
    )
