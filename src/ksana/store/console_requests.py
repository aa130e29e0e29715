"""What the console asks of the store beyond what the contracts do: how things stand, what failed, and who did what."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from ksana.domain.events import SYSTEM, Actor
from ksana.domain.execution import Execution
from ksana.domain.workflow_run import WorkflowRun

MOST_HISTORY = 20_000
"""Of how many runs of each kind, the newest, a history is made at the most."""
MOST_FAILURES = 2_000
"""How many failures of each kind, the newest, are looked at."""


class TargetKind(StrEnum):
    """What runs are of, and so can fail."""

    JOB = "job"
    WORKFLOW = "workflow"
    PLAN = "plan"


@dataclass(frozen=True, slots=True)
class Target:
    kind: TargetKind
    id: int


@dataclass(frozen=True, slots=True)
class QueueFigures:
    """A queue that has something to do: what could be taken now, and what runs."""

    queue: str
    ready: int
    running: int


@dataclass(frozen=True, slots=True)
class HistoryCell:
    """So many runs ended within the step that begins at `at`, well or badly, and began that much after their instant."""

    at: datetime
    succeeded: bool
    late_millis: int | None
    """None unless a schedule asked for them."""
    number: int


@dataclass(frozen=True, slots=True)
class RunHistory:
    cells: Sequence[HistoryCell]
    since: datetime | None
    """Runs that were created before were not looked at; None: all were that ended in the time asked for."""


@dataclass(frozen=True, slots=True)
class FailedTarget:
    """Failures of one target that nobody has acknowledged."""

    target: Target
    count: int
    made_since: datetime
    """When the first that was made of them was."""
    first_at: datetime
    last_at: datetime
    last: Execution | WorkflowRun
    """The one that ended last, without its documents."""
    whole: bool
    """False: there may be more, older ones than were looked at."""


@dataclass(frozen=True, slots=True)
class Failures:
    items: Sequence[FailedTarget]
    """Newest first, as many as were asked for."""
    total: int
    whole: bool
    """False: there may be others, whose failures are all older than those that were looked at."""


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """Somebody has seen what failed and ended until then: of one target, or of all."""

    until: datetime
    target: Target | None = None
    actor: Actor = SYSTEM


@dataclass(frozen=True, slots=True)
class AuditFilter:
    subject: str | None = None
    """`kind/id`."""
    actor: str | None = None
    """By name."""
