"""What the store's verbs take and give back, where it is more than a value or two."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar

from ksana.domain.errors import InvalidInput
from ksana.domain.events import SYSTEM, Actor
from ksana.domain.execution import Claim, Execution, Trigger
from ksana.domain.job import JobSpec
from ksana.domain.ledger import Schedule
from ksana.domain.outcome import NO_EVIDENCE, Evidence
from ksana.domain.schedule import ScheduleKind, ScheduleSpec, SkippedRange
from ksana.domain.states import ExecutionStatus, RunStatus, ScheduleStatus
from ksana.domain.values import immutable

T = TypeVar("T")

MAX_PAGE_SIZE = 500
MAX_PAGED_ROWS = 10_000
"""How far a page number can reach, and how far a total is counted: past it, narrow the question or go on by cursor."""


@immutable
class StoreOptions:
    """How a store is opened."""

    connect_timeout: timedelta = timedelta(seconds=3)
    """How long one attempt to connect may take, and how long a connection of the pool is waited for. One that began while the
    database was silent is not answered when it is back, so this is how late a store goes on."""
    readers: int = 4
    """Connections for reading; writing has its own."""
    idle_readers: int = 4
    """How many of them are kept open while nobody asks."""
    connection_age: timedelta = timedelta(minutes=5)
    """After how long a connection is replaced, so that a server which moved behind its name is found."""
    max_batch: int = 1_000
    """How many commands one transaction takes at the most."""


@immutable
class StoreHealth:
    reachable: bool
    latency_seconds: float
    message: str = ""


@immutable
class Diagnosis:
    """One line of `ksana doctor`."""

    name: str
    level: str
    """ok, warn or fail."""
    message: str


@immutable
class PageRequest:
    """Page `page` (from 1) of `size` rows; or the rows that follow the one with `before_id`, however many there are."""

    page: int = 1
    size: int = 20
    before_id: int | None = None

    def __post_init__(self) -> None:
        if self.page < 1:
            raise InvalidInput("page", "begins at 1")
        if not 1 <= self.size <= MAX_PAGE_SIZE:
            raise InvalidInput("size", f"must be between 1 and {MAX_PAGE_SIZE}")
        if self.page * self.size > MAX_PAGED_ROWS:
            raise InvalidInput("page", f"reaches past {MAX_PAGED_ROWS} rows: narrow the question instead")

    @property
    def offset(self) -> int:
        return (self.page - 1) * self.size


@immutable
class Page(Generic[T]):
    items: Sequence[T]
    total: int | None
    """Counted up to MAX_PAGED_ROWS; None for a page by cursor."""
    page: int
    size: int


@immutable
class Basis:
    """What a change of a schedule was worked out from: the moment from which on it holds, and the cursor that was there. If
    the schedule has fired since, the change must be worked out anew, or instants would fall between the two."""

    at: datetime
    next_planned_for: datetime | None


@immutable
class NewSchedule:
    key: str
    spec: ScheduleSpec
    next_planned_for: datetime | None
    """Its first instant, worked out by the caller; None if it has none."""
    paused: bool = False
    input: Mapping[str, Any] = field(default_factory=dict)
    passed: SkippedRange | None = None
    """Instants that were over when it was made, and are not run."""
    at: datetime | None = None
    """From when on it holds: its first instant is later. The time of the transaction unless it is given."""


@immutable
class NewJob:
    key: str
    spec: JobSpec
    schedule: NewSchedule | None = None
    actor: Actor = SYSTEM


@immutable
class ScheduleChange:
    """The whole new definition with the cursor that follows from it; `passed` are instants that went by without a row: of the
    old one because it was paused or overdue, of the new one because they were over already."""

    schedule_id: int
    spec: ScheduleSpec
    next_planned_for: datetime | None
    expected_version: int | None = None
    actor: Actor = SYSTEM
    passed: tuple[SkippedRange, ...] = ()
    input: Mapping[str, Any] | None = None
    """What its runs are given from now on; None leaves that as it is."""
    basis: Basis | None = None


@immutable
class Resumption:
    """A paused or parked schedule goes on at this cursor; `passed` are the instants that went by meanwhile."""

    schedule_id: int
    expected_version: int
    next_planned_for: datetime | None
    passed: SkippedRange | None = None
    actor: Actor = SYSTEM
    basis: Basis | None = None


@immutable
class Pausing:
    schedule_id: int


ScheduleStep = NewSchedule | ScheduleChange | Pausing | Resumption


@immutable
class JobChange:
    """The whole new spec of a job, and what follows for its schedules, in this order and in the same transaction."""

    job_id: int
    spec: JobSpec
    expected_version: int | None = None
    actor: Actor = SYSTEM
    steps: tuple[ScheduleStep, ...] = ()


@immutable
class Unreadable:
    """A schedule whose stored definition can no longer be read (say, its zone is gone): to be parked."""

    schedule_id: int
    version: int
    error: str


@immutable
class DueSchedules:
    schedules: Sequence[Schedule]
    unreadable: Sequence[Unreadable] = ()


@immutable
class NewExecution:
    """A run asked for by a person or a program."""

    job_id: int
    ready_at: datetime
    trigger: Trigger = Trigger.MANUAL
    input: Mapping[str, Any] = field(default_factory=dict)
    idempotency_key: str | None = None
    trace_id: str | None = None
    retry_of: int | None = None
    """The execution of which this is another try; told with the event."""
    actor: Actor = SYSTEM


@immutable
class Enqueued:
    execution: Execution
    created: bool
    """False: the idempotency key was known, and this is the execution that it made."""


@immutable
class Room:
    """What an instance can take."""

    places: int
    lanes: Mapping[str, int]
    """How many lean on each lane already."""


@immutable
class ClaimRequest:
    instance_id: str
    capacity: int
    queues: tuple[str, ...] = ("default",)
    in_turn_after: str | None = None
    """Not the earliest first, but one of each share in turn, beginning after this one: for when more is ready than there is
    room for, so that nobody's backlog keeps the others waiting. Places that are left go to the earliest."""
    per_lane: int | None = None
    """How many of one lane may run at this instance."""
    lanes: Mapping[str, int] = field(default_factory=dict)
    """How many run there now."""
    search: bool = True
    """Whether to look far for something that fits when what comes first does not."""
    latest: Callable[[], Room] | None = None
    """Who knows better than `capacity` and `lanes`, asked by whatever thread carries it out: work ends while a claim waits for
    its turn, and what it can take then it need not ask for again."""

    def room(self) -> Room:
        return Room(self.capacity, self.lanes) if self.latest is None else self.latest()


@immutable
class Ending:
    """How an attempt ended: what is written about it, whatever state it leads to."""

    claim: Claim
    at: datetime
    error: str | None = None
    output: Any = None
    evidence: Evidence = NO_EVIDENCE


@immutable
class NewCallback:
    """The right to report the result of one attempt, kept as the SHA-256 of its token."""

    claim: Claim
    token_hash: str
    expires_at: datetime


@immutable
class CallbackReport:
    """What the target reported. Found by `token_hash`, or by `execution_id` and `job_id` (document 003's second way)."""

    target: ExecutionStatus
    """CALLBACK_SUCCESS, FAILED or RETRYING."""
    at: datetime
    token_hash: str | None = None
    execution_id: int | None = None
    job_id: int | None = None
    error: str | None = None
    output: Any = None
    retry_at: datetime | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str = ""

    def __post_init__(self) -> None:
        if self.target not in {ExecutionStatus.CALLBACK_SUCCESS, ExecutionStatus.FAILED, ExecutionStatus.RETRYING}:
            raise ValueError(f"a callback cannot report {self.target}")
        if (self.retry_at is not None) != (self.target is ExecutionStatus.RETRYING):
            raise ValueError("retry_at belongs to RETRYING, and to nothing else")


@immutable
class CallbackAnswer:
    """The execution after the report, and whether the report moved it (RECEIVED) or came too late (IGNORED)."""

    execution: Execution
    accepted: bool


@immutable
class ReceivedCallback:
    """A report as it came in: RECEIVED if it moved its execution, IGNORED if it came too late."""

    id: int
    execution_id: int
    received_at: datetime
    headers: Mapping[str, str]
    body: str
    status: str


@immutable
class Figures:
    """How much there is of what changes by itself."""

    jobs_enabled: int
    jobs_disabled: int
    active: Mapping[ExecutionStatus, int]
    """Executions in each state that has not ended; a state that is missing has none."""
    workflow_runs: Mapping[RunStatus, int] = field(default_factory=dict)
    """Likewise, of workflow runs."""


@immutable
class AuditedSchedule:
    """A schedule, also one that was deleted, as an audit needs it."""

    schedule: Schedule
    deleted_at: datetime | None
    definitions: Sequence[tuple[datetime, ScheduleSpec]]
    """Each definition that it had, and since when, as far back as events are kept; never empty."""


@immutable
class PurgeRequest:
    """What may go: whatever ended, or was recorded, before `before`; of each job's runs also all but the newest `keep`."""

    before: datetime
    keep: int
    limit: int = 500
    """How many rows of a kind one call removes."""
    after_job: int | None = 0
    """Jobs and schedules are looked at in portions: those that follow these ids. None: they have all been."""
    after_schedule: int | None = 0


@immutable
class Purged:
    """What one call removed, and where the next one goes on; `done` when every job and schedule has been looked at and
    nothing was left over."""

    runs: int = 0
    instants: int = 0
    events: int = 0
    instances: int = 0
    after_job: int | None = 0
    after_schedule: int | None = 0
    done: bool = True


@immutable
class ExecutionFilter:
    job_id: int | None = None
    statuses: frozenset[ExecutionStatus] = frozenset()
    planned_from: datetime | None = None
    """With `planned_to`, a span of planned instants of one job."""
    planned_to: datetime | None = None
    nodes: bool = True
    """Whether nodes of workflow runs are among them."""
    documents: bool = True
    """Whether what they were given and what they made (`input`, `output`) is read, too: it may be large."""

    def __post_init__(self) -> None:
        if self.spans_time and self.job_id is None:
            raise InvalidInput("from", "a span of time can be asked of one job only")

    @property
    def spans_time(self) -> bool:
        return self.planned_from is not None or self.planned_to is not None


@immutable
class JobFilter:
    keyword: str | None = None
    """Part of the name."""
    name: str | None = None
    enabled: bool | None = None
    type: str | None = None
    contract: str | None = None


@immutable
class ScheduleFilter:
    keyword: str | None = None
    """Part of the name of its job or workflow."""
    status: ScheduleStatus | None = None
    kind: ScheduleKind | None = None


EVERY_SCHEDULE = ScheduleFilter()


@immutable
class NewInstance:
    id: str
    name: str
    version: str
    roles: tuple[str, ...]
    lease: timedelta
    queues: tuple[str, ...] = ()
    places: int = 0
    address: str = ""


@immutable
class Recovered:
    """What `recover` did."""

    dead_instances: tuple[str, ...] = ()
    requeued: int = 0
    failed: int = 0
    """Those that must not run twice, and those that were lost too often."""


@immutable
class AuditEntry:
    id: int
    at: datetime
    actor: Actor
    action: str
    subject: str
    data: Mapping[str, Any]
