"""What the store's questions about runs of both kinds take and give back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from ksana.domain.execution import Execution, Trigger
from ksana.domain.job import Contract
from ksana.domain.states import ExecutionStatus, RunStatus
from ksana.domain.workflow_run import WorkflowRun

LOOKED_AT = 10_000
"""How many rows of each state one page looks at, at the most, where no index tells which of them are meant; and of how many the
longest are found."""


class RunKind(StrEnum):
    JOB = "job"
    WORKFLOW = "workflow"


class Sort(StrEnum):
    NEWEST = "newest"
    LONGEST = "longest"
    SHORTEST = "shortest"


@dataclass(frozen=True, slots=True)
class ActivityFilter:
    """Which runs. Nodes of workflows' runs are none; a job's id leaves only its runs, a workflow's key only that one's, and a
    tenant has none but workflows'."""

    kinds: frozenset[RunKind] = frozenset(RunKind)
    job_statuses: frozenset[ExecutionStatus] = frozenset()
    """Of runs of jobs; none: any."""
    workflow_statuses: frozenset[RunStatus] = frozenset()
    job_id: int | None = None
    workflow_key: str | None = None
    tenant_id: str | None = None
    trigger: Trigger | None = None
    since: datetime | None = None
    """Made at this instant or later."""
    until: datetime | None = None
    """Made before."""

    def of_kind(self, kind: RunKind) -> bool:
        """Whether a run of this kind can be among them."""
        named = {
            RunKind.JOB: self.workflow_key is not None or self.tenant_id is not None,
            RunKind.WORKFLOW: self.job_id is not None,
        }
        return kind in self.kinds and not named[kind]


@dataclass(frozen=True, slots=True)
class NewestAfter:
    """How far a list by age has come: of each kind the last id that was looked at. None: it has not begun, 0: it is at its end."""

    job: int | None = None
    workflow: int | None = None
    planned_for: int | None = None
    """Of one job's runs: also the instant that the last one was for, in microseconds."""


@dataclass(frozen=True, slots=True)
class LengthAfter:
    """How far a list by length has come: the last run of it, and how long that took, at the moment of the first page."""

    at: int
    took: int
    kind: RunKind
    id: int


@dataclass(frozen=True, slots=True)
class ActivityRequest:
    """A page; `after` is what the page before it gave as `next`, for the same question."""

    size: int = 50
    sort: Sort = Sort.NEWEST
    after: NewestAfter | LengthAfter | None = None


@dataclass(frozen=True, slots=True)
class ActivityPage:
    """It may have fewer runs than were asked for, or none, while there is a `next`: then so many were looked at."""

    items: Sequence[Execution | WorkflowRun]
    next: NewestAfter | LengthAfter | None
    total: int | None
    """Counted up to MAX_PAGED_ROWS, and among LOOKED_AT where no index tells which are meant; None for a later page."""
    total_is_exact: bool = False


@dataclass(frozen=True, slots=True)
class TargetName:
    """What clients call a job, a workflow or a plan; also one that was deleted."""

    key: str
    name: str
    contract: Contract | None = None
    """Of a job, through which it was made."""
    deleted: bool = False


@dataclass(frozen=True, slots=True)
class TargetNames:
    """By id. One that is gone altogether is left out, and so is a schedule that was deleted."""

    jobs: Mapping[int, TargetName] = field(default_factory=dict)
    workflows: Mapping[int, TargetName] = field(default_factory=dict)
    plans: Mapping[int, TargetName] = field(default_factory=dict)
    schedules: Mapping[int, str] = field(default_factory=dict)
    """Their keys."""
