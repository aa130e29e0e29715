"""An execution: the unit that the queue holds and a worker claims. And its attempts."""

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from enum import StrEnum
from typing import Any

from ksana.domain.job import Job
from ksana.domain.outcome import NO_EVIDENCE, Evidence
from ksana.domain.states import AttemptStatus, ExecutionStatus
from ksana.domain.values import immutable
from ksana.domain.workflow import NodeClaim


class Trigger(StrEnum):
    """What asked for an execution."""

    SCHEDULE = "schedule"
    MANUAL = "manual"
    WORKFLOW = "workflow"
    PLAN = "plan"


@immutable
class Execution:
    """A stored execution. `epoch` grows with each claim; only the holder of the current one may end it."""

    id: int
    status: ExecutionStatus
    trigger: Trigger
    created_at: datetime
    updated_at: datetime
    job_id: int | None = None
    schedule_id: int | None = None
    planned_for: datetime | None = None
    """The instant it is for: its schedule's, or when it was asked for."""
    attempt: int = 0
    """The attempt under way or, while none is, the last one; 0 before the first."""
    epoch: int = 0
    owner: str | None = None
    ready_at: datetime | None = None
    """From when a worker may take it; None unless it is CLAIMABLE."""
    deadline_at: datetime | None = None
    """Until when the callback must have come."""
    started_at: datetime | None = None
    ended_at: datetime | None = None
    input: Mapping[str, Any] = field(default_factory=dict)
    output: Any = None
    error: str | None = None
    reason: str | None = None
    """Why it was skipped, canceled or queued."""
    trace_id: str | None = None
    workflow_run_id: int | None = None
    """The workflow run that it is a node of."""
    node_id: str | None = None
    losses: int = 0
    """How many of its attempts ended with the instance that made them: those do not count against its retries."""


@immutable
class Attempt:
    """One try. Written when it ends; while it runs, the execution's own row tells all there is to tell."""

    execution_id: int
    epoch: int
    number: int
    status: AttemptStatus
    owner: str
    started_at: datetime
    ended_at: datetime
    error: str | None = None
    evidence: Evidence = NO_EVIDENCE


@immutable
class Claimed:
    """An execution that is now this instance's, under `execution.epoch`, with the job as it stands."""

    execution: Execution
    job: Job
    """Of a node: what the run's snapshot says."""
    node: NodeClaim | None = None
    share: str = ""
    """Whose share of the workers it takes."""


@immutable
class Claim:
    """The right to end one attempt: whoever cannot show the current epoch writes nothing."""

    execution_id: int
    epoch: int
    workflow_run_id: int | None = field(default=None, compare=False)
    """Where known, the run it is a node of: so that the store can take locks in order."""

    def __hash__(self) -> int:
        return self.execution_id  # several times for each run; of few executions two epochs are ever met together
