"""The states of everything that moves, who moves it out of each, and the names each contract shows.

One state machine serves every execution (a job's run, a workflow's node, a tenant's stage) and one every workflow run.
An edge that is not in the table cannot be built: `ExecutionMove` and `RunMove` are what the store's verbs are made of, and
their constructors refuse it.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from ksana.domain.errors import IllegalTransition


class Mover(StrEnum):
    """Who moves a thing from one state to the next."""

    ADVANCE = "advance"  # the end of a node, in the same transaction
    DISPATCHER = "dispatcher"  # the claim
    RUNNER = "runner"  # the outcome of an attempt
    CALLBACK = "callback"  # the target, later
    TIMER = "timer"  # a deadline that passed
    RECOVERY = "recovery"  # the owner died, or stopped and handed its work back
    PERSON = "person"  # an API call


class ExecutionStatus(StrEnum):
    PENDING = "PENDING"
    """Waits for the nodes it depends on. Moved out by ADVANCE."""
    SCHEDULED = "SCHEDULED"
    """In the queue, to be run from `ready_at` on. Moved out by DISPATCHER."""
    QUEUED = "QUEUED"
    """Would run, but its job already runs as often as it may. Moved back by the end of one of those."""
    RUNNING = "RUNNING"
    """An instance (`owner`) works on it under `epoch`. Moved out by RUNNER, or by RECOVERY if that instance is gone."""
    RETRYING = "RETRYING"
    """The last attempt failed, the next begins at `ready_at`. Keeps its job's slot. Moved out by DISPATCHER."""
    CALLBACK_PENDING = "CALLBACK_PENDING"
    """The target accepted it and will report. Keeps its job's slot. Moved out by CALLBACK, or TIMER at `deadline_at`."""
    DELEGATED = "DELEGATED"
    """Others work for it: its items (`forEach`), or a workflow run of its own. Moved out by ADVANCE when the last has ended."""
    SUCCESS = "SUCCESS"
    CALLBACK_SUCCESS = "CALLBACK_SUCCESS"
    FAILED = "FAILED"
    TIMEOUT = "TIMEOUT"
    """The last attempt took longer than its time."""
    FAILED_TIMEOUT = "FAILED_TIMEOUT"
    """The callback did not come in time."""
    CANCELED = "CANCELED"
    STOPPED = "STOPPED"
    """Its workflow run was stopped before it could end."""
    SKIPPED = "SKIPPED"
    """It was decided not to run it; `reason` says why."""


class RunStatus(StrEnum):
    """States of a workflow run. (A job's run is an execution.)"""

    QUEUED = "QUEUED"
    """Its workflow already runs as often as it may. Moved out by the end of one of those."""
    PENDING = "PENDING"
    """Created, no node has started. Moved out by the first claim."""
    RUNNING = "RUNNING"
    """Moved out when every node has ended."""
    STOPPING = "STOPPING"
    """Nothing new starts: a person stopped it, a node failed (`failFast`), or its time is over. Moved out when the last running
    node has ended: to STOPPED if a person asked for it, else to FAILED."""
    STOPPED = "STOPPED"
    SUCCESS = "SUCCESS"
    FAILED = "FAILED"
    CLOSED = "CLOSED"
    """Ended by force; nothing moves afterwards."""


class ScheduleStatus(StrEnum):
    ACTIVE = "ACTIVE"
    """Fires at `next_fire_at`."""
    PAUSED = "PAUSED"
    """Does not fire until a person resumes it; what it passes meanwhile is in the ledger."""
    PARKED = "PARKED"
    """Its next instant could not be worked out; `error` says why. Moved out by a person's change."""
    FINISHED = "FINISHED"
    """It has no further instant."""


class OccurrenceOutcome(StrEnum):
    """What became of a planned instant."""

    FIRED = "FIRED"  # there is an execution or a workflow run
    SKIPPED = "SKIPPED"  # on purpose: concurrency, misfire policy, paused
    MISSED = "MISSED"  # a `once` whose time had passed


class AttemptStatus(StrEnum):
    """How one try of an execution ended."""

    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    TIMED_OUT = "TIMED_OUT"
    AWAITING_CALLBACK = "AWAITING_CALLBACK"
    CANCELED = "CANCELED"
    LOST = "LOST"  # its instance died
    HANDED_BACK = "HANDED_BACK"  # its instance stopped and gave it back


E_ = ExecutionStatus
M = Mover

_UNSUCCESSFUL = frozenset({E_.FAILED, E_.TIMEOUT, E_.FAILED_TIMEOUT, E_.CANCELED, E_.STOPPED})
_AGAIN = (E_.PENDING, E_.SCHEDULED, E_.SUCCESS, E_.SKIPPED)

_EXECUTION_EDGES: dict[tuple[E_, E_], Mover] = {
    (E_.PENDING, E_.SCHEDULED): M.ADVANCE,
    (E_.PENDING, E_.SKIPPED): M.ADVANCE,  # or a person
    (E_.PENDING, E_.STOPPED): M.PERSON,
    (E_.PENDING, E_.CANCELED): M.PERSON,
    (E_.SCHEDULED, E_.RUNNING): M.DISPATCHER,
    (E_.SCHEDULED, E_.QUEUED): M.DISPATCHER,
    (E_.SCHEDULED, E_.FAILED): M.DISPATCHER,  # what it is cannot be read
    (E_.SCHEDULED, E_.STOPPED): M.PERSON,
    (E_.SCHEDULED, E_.CANCELED): M.PERSON,
    (E_.SCHEDULED, E_.SKIPPED): M.PERSON,
    (E_.SCHEDULED, E_.SUCCESS): M.PERSON,  # one that waits for a time
    (E_.QUEUED, E_.SCHEDULED): M.RUNNER,
    (E_.QUEUED, E_.STOPPED): M.PERSON,
    (E_.QUEUED, E_.CANCELED): M.PERSON,
    (E_.QUEUED, E_.SKIPPED): M.PERSON,
    (E_.RUNNING, E_.SUCCESS): M.RUNNER,
    (E_.RUNNING, E_.FAILED): M.RUNNER,
    (E_.RUNNING, E_.TIMEOUT): M.RUNNER,
    (E_.RUNNING, E_.RETRYING): M.RUNNER,
    (E_.RUNNING, E_.CALLBACK_PENDING): M.RUNNER,
    (E_.RUNNING, E_.CALLBACK_SUCCESS): M.CALLBACK,  # it came before the target had answered
    (E_.RUNNING, E_.DELEGATED): M.RUNNER,
    (E_.RUNNING, E_.SKIPPED): M.RUNNER,  # its condition (`when`) is false
    (E_.RUNNING, E_.SCHEDULED): M.RECOVERY,  # or the runner, for one that waits for a time
    (E_.RUNNING, E_.CANCELED): M.PERSON,
    (E_.RUNNING, E_.STOPPED): M.PERSON,
    (E_.RETRYING, E_.RUNNING): M.DISPATCHER,
    (E_.RETRYING, E_.FAILED): M.DISPATCHER,
    (E_.RETRYING, E_.CANCELED): M.PERSON,
    (E_.RETRYING, E_.STOPPED): M.PERSON,
    (E_.RETRYING, E_.SKIPPED): M.PERSON,
    (E_.CALLBACK_PENDING, E_.CALLBACK_SUCCESS): M.CALLBACK,
    (E_.CALLBACK_PENDING, E_.FAILED): M.CALLBACK,
    (E_.CALLBACK_PENDING, E_.RETRYING): M.CALLBACK,
    (E_.CALLBACK_PENDING, E_.FAILED_TIMEOUT): M.TIMER,
    (E_.CALLBACK_PENDING, E_.SUCCESS): M.PERSON,
    (E_.CALLBACK_PENDING, E_.CANCELED): M.PERSON,
    (E_.CALLBACK_PENDING, E_.STOPPED): M.PERSON,
    (E_.CALLBACK_PENDING, E_.SKIPPED): M.PERSON,
    (E_.DELEGATED, E_.SUCCESS): M.ADVANCE,
    (E_.DELEGATED, E_.FAILED): M.ADVANCE,
    (E_.DELEGATED, E_.STOPPED): M.ADVANCE,
    (E_.DELEGATED, E_.CANCELED): M.PERSON,
    # What has ended moves again only when a person says so, and only as a node of a workflow run.
    **{(source, target): M.PERSON for source in _UNSUCCESSFUL for target in _AGAIN},
    (E_.SKIPPED, E_.PENDING): M.ADVANCE,
    (E_.SKIPPED, E_.SCHEDULED): M.ADVANCE,
    # The items of a node that goes on, and so it does itself.
    **{(source, E_.DELEGATED): M.PERSON for source in _UNSUCCESSFUL},
}

R_ = RunStatus
_RUN_EDGES: dict[tuple[R_, R_], Mover] = {
    (R_.QUEUED, R_.PENDING): M.ADVANCE,
    (R_.QUEUED, R_.STOPPED): M.PERSON,
    (R_.QUEUED, R_.CLOSED): M.PERSON,
    (R_.PENDING, R_.RUNNING): M.DISPATCHER,
    (R_.PENDING, R_.STOPPING): M.PERSON,
    (R_.PENDING, R_.STOPPED): M.PERSON,
    (R_.PENDING, R_.FAILED): M.TIMER,
    (R_.PENDING, R_.SUCCESS): M.PERSON,
    (R_.PENDING, R_.CLOSED): M.PERSON,
    (R_.RUNNING, R_.SUCCESS): M.ADVANCE,
    (R_.RUNNING, R_.FAILED): M.ADVANCE,
    (R_.RUNNING, R_.STOPPED): M.ADVANCE,  # it was stopped before, and only a part of it went on
    (R_.RUNNING, R_.STOPPING): M.PERSON,
    (R_.RUNNING, R_.CLOSED): M.PERSON,
    (R_.STOPPING, R_.STOPPED): M.ADVANCE,
    (R_.STOPPING, R_.FAILED): M.ADVANCE,
    (R_.STOPPING, R_.SUCCESS): M.ADVANCE,  # a tenant's task that was to pause after its last stage
    (R_.STOPPING, R_.CLOSED): M.PERSON,
    (R_.STOPPED, R_.RUNNING): M.PERSON,
    (R_.STOPPED, R_.CLOSED): M.PERSON,
    (R_.FAILED, R_.RUNNING): M.PERSON,
    (R_.FAILED, R_.CLOSED): M.PERSON,
    (R_.SUCCESS, R_.CLOSED): M.PERSON,
}

DEFERRED = "deferred"
"""The reason of an execution that is SCHEDULED because it waits for a time of its own."""

EXECUTION_EDGES = frozenset(_EXECUTION_EDGES)
RUN_EDGES = frozenset(_RUN_EDGES)

# Groups of execution states -------------------------------------------------------------------------------------------

CLAIMABLE = frozenset({E_.SCHEDULED, E_.RETRYING})
"""A worker may take it once `ready_at` has come."""
WAITING = frozenset({E_.PENDING, E_.SCHEDULED, E_.QUEUED, E_.RETRYING, E_.CALLBACK_PENDING, E_.DELEGATED})
"""Not ended, and nobody works on it."""
ACTIVE = WAITING | {E_.RUNNING}
"""Not ended."""
TERMINAL = frozenset(E_) - ACTIVE
"""Ended."""
HOLDS_SLOT = frozenset({E_.RUNNING, E_.RETRYING, E_.CALLBACK_PENDING})
"""Counts against its job's concurrency limit: from its first attempt until its end, so that queued runs keep their order."""
SUCCEEDED = frozenset({E_.SUCCESS, E_.CALLBACK_SUCCESS})
UNSUCCESSFUL = _UNSUCCESSFUL
STOPS = frozenset({E_.CANCELED, E_.STOPPED})
"""Ended because somebody asked for it."""
FAILURES = UNSUCCESSFUL - STOPS
"""Ended badly, and nobody asked for it."""
RETRYABLE_BY_HAND = UNSUCCESSFUL
COMPLETABLE_BY_HAND = UNSUCCESSFUL | {E_.RUNNING, E_.CALLBACK_PENDING, E_.DELEGATED}
SKIPPABLE_BY_HAND = UNSUCCESSFUL | {E_.PENDING, E_.SCHEDULED, E_.QUEUED, E_.RETRYING, E_.CALLBACK_PENDING}
UNSTARTED = frozenset({E_.PENDING, E_.SCHEDULED, E_.QUEUED, E_.RETRYING})
"""Nobody works for it now: a soft stop ends it."""
CANCELABLE = ACTIVE

RUN_ADMITTED = frozenset({R_.PENDING, R_.RUNNING, R_.STOPPING})
"""Counts against its workflow's limit."""
RUN_ACTIVE = RUN_ADMITTED | {R_.QUEUED}
RUN_TERMINAL = frozenset(R_) - RUN_ACTIVE
RUN_REOPENABLE = frozenset({R_.FAILED, R_.STOPPED})
"""A node's retry or completion by hand re-opens it."""

# Moves: what the store's verbs are made of --------------------------------------------------------------------------

S = TypeVar("S", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class Move(Generic[S]):
    """One target state and every state from which one verb reaches it. Built only if the table has all those edges."""

    sources: frozenset[S]
    target: S

    @classmethod
    def _edges(cls) -> frozenset[tuple[S, S]]:
        raise TypeError("build an ExecutionMove or a RunMove")

    def __post_init__(self) -> None:
        edges = self._edges()
        for source in sorted(self.sources):
            if (source, self.target) not in edges:
                raise IllegalTransition(type(self.target).__name__, source, self.target)


class ExecutionMove(Move[ExecutionStatus]):
    @classmethod
    def _edges(cls) -> frozenset[tuple[ExecutionStatus, ExecutionStatus]]:
        return EXECUTION_EDGES


class RunMove(Move[RunStatus]):
    @classmethod
    def _edges(cls) -> frozenset[tuple[RunStatus, RunStatus]]:
        return RUN_EDGES


def execution_mover(source: ExecutionStatus, target: ExecutionStatus) -> Mover:
    """Who moves an execution along this edge; IllegalTransition if there is none."""
    try:
        return _EXECUTION_EDGES[source, target]
    except KeyError:
        raise IllegalTransition("ExecutionStatus", source, target) from None


def run_mover(source: RunStatus, target: RunStatus) -> Mover:
    """Who moves a workflow run along this edge; IllegalTransition if there is none."""
    try:
        return _RUN_EDGES[source, target]
    except KeyError:
        raise IllegalTransition("RunStatus", source, target) from None


# Names: what each contract shows ------------------------------------------------------------------------------------

CRONJOB_NAMES: dict[ExecutionStatus, str] = {
    **{status: status.value for status in E_},
    E_.PENDING: "SCHEDULED",
    E_.QUEUED: "SCHEDULED",
    E_.STOPPED: "CANCELED",
    E_.DELEGATED: "RUNNING",
}
"""Document 003's RunStatus."""

CRONJOB_FINAL_NAMES: dict[ExecutionStatus, str] = {
    status: "SUCCESS" if status in SUCCEEDED else CRONJOB_NAMES[status] for status in TERMINAL
}
"""Document 003's `final_status` in the answer to a callback."""

JOBCHAIN_NODE_NAMES: dict[ExecutionStatus, str] = {
    E_.PENDING: "PENDING",
    E_.SCHEDULED: "PENDING",
    E_.QUEUED: "PENDING",
    E_.RUNNING: "RUNNING",
    E_.CALLBACK_PENDING: "RUNNING",
    E_.DELEGATED: "RUNNING",
    E_.RETRYING: "RETRYING",
    E_.SUCCESS: "SUCCESS",
    E_.CALLBACK_SUCCESS: "SUCCESS",
    E_.FAILED: "FAILED",
    E_.TIMEOUT: "FAILED",
    E_.FAILED_TIMEOUT: "FAILED",
    E_.CANCELED: "STOPPED",
    E_.STOPPED: "STOPPED",
    E_.SKIPPED: "SKIPPED",
}
"""Documents 000 and 001, NodeStatus."""

JOBCHAIN_RUN_NAMES: dict[RunStatus, str] = {**{status: status.value for status in R_}, R_.QUEUED: "PENDING"}
"""Documents 000 (with STOPPED) and 001 (with CLOSED), RunStatus."""

KSANA_LAST_STATUS_NAMES: dict[ExecutionStatus, str] = {
    E_.SUCCESS: "success",
    E_.CALLBACK_SUCCESS: "success",
    E_.FAILED: "failed",
    E_.CANCELED: "failed",
    E_.STOPPED: "failed",
    E_.TIMEOUT: "timeout",
    E_.FAILED_TIMEOUT: "timeout",
    E_.SKIPPED: "skipped",
}
"""Document 002's `last_status`; a run that has not ended has none."""

KSANA_OCCURRENCE_NAMES: dict[OccurrenceOutcome, str] = {
    OccurrenceOutcome.SKIPPED: "skipped",
    OccurrenceOutcome.MISSED: "missed",
}
"""Document 002's `last_status` when the last planned instant was not run."""

KSANA_SCHEDULE_NAMES: dict[ScheduleStatus, str] = {ScheduleStatus.PAUSED: "paused"}
"""Document 002's `last_status` of a job whose schedule is paused."""
