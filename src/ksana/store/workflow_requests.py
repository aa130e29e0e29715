"""What the store's verbs about workflows take and give back."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import datetime, timedelta
from typing import Any

from ksana.domain.events import SYSTEM, Actor
from ksana.domain.execution import Claim, Trigger
from ksana.domain.states import RunStatus
from ksana.domain.values import immutable
from ksana.domain.workflow import Snapshot, WorkflowSpec
from ksana.domain.workflow_run import NodeRun, WorkflowRun


@immutable
class References:
    """What a definition names: ids of jobs and of other workflows."""

    jobs: frozenset[int] = frozenset()
    workflows: frozenset[int] = frozenset()


@immutable
class NewWorkflow:
    key: str
    spec: WorkflowSpec
    enabled: bool = True
    references: References = field(default_factory=References)
    actor: Actor = SYSTEM


@immutable
class WorkflowChange:
    """The whole new definition; `enabled` of None leaves that as it is."""

    workflow_id: int
    spec: WorkflowSpec
    references: References
    enabled: bool | None = None
    expected_version: int | None = None
    always_new: bool = False
    """A new version even if nothing is different (document 000's update)."""
    actor: Actor = SYSTEM


@immutable
class WorkflowFilter:
    keyword: str | None = None
    """Part of the name."""
    enabled: bool | None = None


@immutable
class NewRun:
    """A run of a workflow with everything it starts with. `key` is the client's own id for it, or a new one."""

    key: str
    workflow_id: int
    workflow_key: str
    workflow_version: int
    snapshot: Snapshot
    at: datetime
    params: Mapping[str, Any] = field(default_factory=dict)
    trigger: Trigger = Trigger.MANUAL
    idempotency_key: str | None = None
    trace_id: str | None = None
    depth: int = 0
    timeout: timedelta | None = None
    """Of the whole run, if shorter than its dag's own."""
    actor: Actor = SYSTEM
    remembered: bool = False
    """Made of what was known of its workflow, without a look: refused with VersionMismatch if that has changed since."""

    @property
    def deadline(self) -> datetime | None:
        limits = [each for each in (self.timeout, self.snapshot.dag.timeout) if each is not None]
        return self.at + min(limits) if limits else None


@immutable
class StartedRun:
    run: WorkflowRun
    created: bool
    """False: the id or the idempotency key was known, and this is the run that it made."""


@immutable
class EndedRun:
    """A workflow run that has just ended, and after how long."""

    status: RunStatus
    seconds: float
    of_plan: bool = False
    """Whether it was a tenant's task."""


@immutable
class RunFilter:
    workflow_key: str | None = None
    """Of the workflow with this id, also if that was deleted."""
    statuses: frozenset[RunStatus] = frozenset()


@immutable
class Stop:
    """Nothing new starts; with `force`, what runs is broken off as well."""

    run_id: int
    at: datetime
    force: bool = False
    actor: Actor = SYSTEM


@immutable
class Close:
    run_id: int
    at: datetime
    actor: Actor = SYSTEM


@immutable
class Reopen:
    """What is not done is done again: these nodes; None: all that failed, and with `stopped` all that were stopped too."""

    run_id: int
    at: datetime
    nodes: frozenset[str] | None = None
    stopped: bool = False
    actor: Actor = SYSTEM


@immutable
class Complete:
    """A person says that a node is done, and what came out of it."""

    run_id: int
    node_id: str
    at: datetime
    artifact: Any = None
    checkpoint: Any = None
    actor: Actor = SYSTEM


@immutable
class SkipNode:
    """A person says that a node is to be left out."""

    run_id: int
    node_id: str
    at: datetime
    actor: Actor = SYSTEM


Order = Stop | Close | Reopen | Complete | SkipNode


@immutable
class Ordered:
    """The run after an order, and the executions whose work is to be broken off now."""

    run: WorkflowRun
    broken_off: tuple[int, ...] = ()
    reopened: int = 0
    """How many nodes are done again."""


@immutable
class LogChunk:
    claim: Claim
    seq: int
    at: datetime
    stream: str
    text: str


@immutable
class LogLine:
    """A chunk of what an attempt wrote. (`epoch`, `seq`) tells where it stands."""

    epoch: int
    seq: int
    at: datetime
    stream: str
    text: str


@immutable
class RunNodes:
    """A run with what it started with and where its nodes stand; items after the node that they belong to."""

    run: WorkflowRun
    snapshot: Snapshot
    nodes: Sequence[NodeRun]
