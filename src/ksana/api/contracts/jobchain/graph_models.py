"""Document 001's graphs (§3), of a workflow and of a run."""

from typing import Any, Literal

from pydantic import Field

from ksana.api.contracts.jobchain.retries import RetryShown
from ksana.api.contracts.shapes import Shown


class EdgeShown(Shown):
    """§3.1."""

    source: str = Field(alias="from", examples=["n1"])
    to: str = Field(examples=["n2"])
    type: Literal["DEPENDS_ON"]
    index: int = Field(description="Its place among what its node depends on.")


class NodeJob(Shown):
    """The job of a node (§3.2). Of a node that carries its own, `jobId` is null and the name is the node's."""

    job_id: str | None
    name: str
    type: str | None
    enabled: bool = Field(description="False, too, if it was deleted.")
    description: str


class GraphNode(Shown):
    """§3.3."""

    node_id: str
    job: NodeJob
    depends_on: list[str]
    retry: RetryShown
    trigger_rule: str
    when: str | None


class WorkflowGraph(Shown):
    """§3.4."""

    workflow_id: str
    version: int
    nodes: list[GraphNode]
    edges: list[EdgeShown]


class NodeState(Shown):
    status: str
    attempt: int
    last_error: str | None
    started_at: str | None
    ended_at: str | None


class RunGraphNode(GraphNode):
    """A node, and where it stands."""

    state: NodeState
    artifact: Any
    checkpoint: Any


class RunGraph(Shown):
    """§3.5."""

    run_id: str
    workflow_id: str
    status: str
    nodes: list[RunGraphNode]
    edges: list[EdgeShown]
