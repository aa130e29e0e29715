"""A workflow: a versioned graph of nodes, and the snapshot of everything that a run of it started with."""

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from ksana.domain.dag import Graph, TriggerRule
from ksana.domain.job import JobSpec, RecoveryRule
from ksana.domain.retry import RetryPolicy
from ksana.domain.states import ExecutionStatus
from ksana.domain.values import immutable

WORKFLOW = "workflow"
"""The type of a node that is another workflow."""
WAIT = "wait"
"""The type of a node that waits: for a time, a callback or a person."""
MAX_ITEMS = 10_000
MAX_DEPTH = 16
"""How deep workflows may run workflows."""


class Overlap(StrEnum):
    """What happens to a run that is asked for while its workflow already has `max_active_runs`."""

    QUEUE = "QUEUE"  # it waits its turn, in order
    SKIP = "SKIP"  # it is refused, or recorded as SKIPPED
    PARALLEL = "PARALLEL"  # there is no limit
    REPLACE = "REPLACE"  # it takes the place of those that run: they are stopped


@immutable
class ForEach:
    """One execution for each item of a list: given, or worked out by an expression over params and artifacts."""

    items: str | tuple[Any, ...]
    max_parallel: int | None = None


@immutable
class Node:
    """A node as its author defines it: it names a job, or carries one itself (`type` and `config`)."""

    id: str
    job: str | None = None
    type: str | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    depends_on: tuple[str, ...] = ()
    retry: RetryPolicy | None = None
    timeout: timedelta | None = None
    trigger_rule: TriggerRule = TriggerRule.ALL_SUCCESS
    when: str | None = None
    for_each: ForEach | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    """Parts of the job's config that are different here."""
    recovery: RecoveryRule | None = None
    worker_queue: str | None = None


@immutable
class Dag:
    """A graph that can be run, read from `document`, which is kept as it was given."""

    document: Mapping[str, Any]
    nodes: tuple[Node, ...]
    graph: Graph
    fail_fast: bool = False
    timeout: timedelta | None = None
    max_active_runs: int | None = None
    overlap: Overlap = Overlap.PARALLEL
    params_schema: Mapping[str, Any] | None = None


@immutable
class WorkflowSpec:
    """A workflow as its author defines it; whether it is enabled is not part of its definition."""

    name: str
    dag: Dag
    description: str = ""


@immutable
class Workflow:
    id: int
    key: str
    spec: WorkflowSpec
    enabled: bool
    version: int
    created_at: datetime
    updated_at: datetime


@immutable
class WorkflowSummary:
    """A workflow without its graph, for lists."""

    id: int
    key: str
    name: str
    description: str
    enabled: bool
    version: int
    created_at: datetime
    updated_at: datetime


@immutable
class WorkflowVersion:
    """One definition that a workflow has, or had."""

    version: int
    spec: WorkflowSpec
    created_at: datetime
    created_by: str


ASKS_BY_NAME = frozenset({"http", "shell", WAIT, WORKFLOW})
"""Types that use of other nodes only what their config names; others are shown all that they depend on."""


@immutable
class SnapshotNode:
    """A node with everything that it takes to run it, whatever becomes of its job."""

    node: Node
    spec: JobSpec
    job_id: int | None = None
    job_key: str | None = None
    needs: tuple[str, ...] = ()
    """Other nodes whose artifacts its expressions and templates use."""

    sees: tuple[str, ...] = field(init=False, compare=False, repr=False)
    """The nodes that it is shown."""

    def __post_init__(self) -> None:
        depends_on = () if self.spec.type in ASKS_BY_NAME else self.node.depends_on
        # Mostly one of the two: then it is that itself, and no value more.
        both = self.needs and depends_on
        sees = tuple(dict.fromkeys(self.needs + depends_on)) if both else self.needs or depends_on
        object.__setattr__(self, "sees", sees)


@immutable
class Snapshot:
    """The graph and the jobs, as they were when a run started. `digest` names it: two with one digest are the same."""

    digest: str
    dag: Dag
    nodes: Mapping[str, SnapshotNode]

    @property
    def graph(self) -> Graph:
        return self.dag.graph


@immutable
class TaskOf:
    """The tenant's task that a run is."""

    id: int
    key: str
    tenant_id: str


@immutable
class Ended:
    """A node of a run, as others see it who need what it made."""

    status: ExecutionStatus
    artifact: Any


@immutable
class NodeClaim:
    """What a worker must know of the workflow run whose node it has claimed."""

    run_id: int
    run_key: str
    workflow_key: str
    node_id: str
    snapshot: SnapshotNode
    params: Mapping[str, Any]
    depth: int = 0
    checkpoint: Any = None
    is_item: bool = False
    task: TaskOf | None = None
    seen: Mapping[str, Ended] | None = None
    """What the nodes that it sees made; None: too much to be brought along, it is to be asked for."""


def item_id(node: str, index: int) -> str:
    return f"{node}[{index}]"


def node_of_item(node_id: str) -> str:
    """The node that an item belongs to; a node that is none stands for itself."""
    return node_id.partition("[")[0]
