"""What the store's questions for overviews give back: whose an event is, what is planned, a ledger in days, runs by nodes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from ksana.domain.job import Contract
from ksana.domain.ledger import Schedule
from ksana.domain.states import ExecutionStatus, OccurrenceOutcome
from ksana.domain.workflow import Snapshot
from ksana.domain.workflow_run import WorkflowRun


class TargetKind(StrEnum):
    """What runs are of."""

    JOB = "job"
    WORKFLOW = "workflow"
    PLAN = "plan"


@dataclass(frozen=True, slots=True)
class Origin:
    """What the subject of an event is to clients: the id of the run, and what that is of; None where it is neither."""

    run: str | None
    kind: TargetKind | None
    key: str | None


@dataclass(frozen=True, slots=True)
class PlannedSchedule:
    """A schedule that will fire, and what it fires."""

    schedule: Schedule
    kind: TargetKind
    key: str
    name: str
    contract: Contract | None = None
    """Of a job."""


@dataclass(frozen=True, slots=True)
class LedgerCount:
    """How many planned instants of one day ended so."""

    day: int
    outcome: OccurrenceOutcome
    count: int
    failed: int = 0
    """How many of them ran and ended badly."""


@dataclass(frozen=True, slots=True)
class LedgerRange:
    """An unbroken range of instants with one fate; it may reach over several days, and begin before the first of them."""

    schedule_id: int
    first: datetime
    last: datetime
    count: int
    outcome: OccurrenceOutcome


@dataclass(frozen=True, slots=True)
class JobLedger:
    """The ledger of all schedules that a job has, or had, counted by days."""

    counts: Sequence[LedgerCount]
    ranges: Sequence[LedgerRange]
    whole_from: int
    """The first of the days on which it is whole: all rows of those before it were too many to count."""


@dataclass(frozen=True, slots=True)
class NodeCell:
    """How one node of a run stands."""

    node_id: str
    status: ExecutionStatus
    attempt: int
    started_at: datetime | None
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class HowFar:
    """What the name of a node's or an item's state depends on."""

    status: ExecutionStatus
    tried: bool
    deferred: bool
    """It has begun to wait for a time of its own, if it is SCHEDULED."""


@dataclass(frozen=True, slots=True)
class NodeBrief:
    """How one node or one item stands and why, without what it made."""

    node_id: str
    status: ExecutionStatus
    attempt: int
    error: str | None
    reason: str | None
    started_at: datetime | None
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class RunStanding:
    """A run with what it started with and where its nodes stand."""

    run: WorkflowRun
    snapshot: Snapshot
    nodes: Sequence[NodeBrief]
    items: Mapping[str, Mapping[HowFar, int]]
    """How many of those of a node stand how."""
