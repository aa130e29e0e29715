"""The port of executors: what an execution needs to be run, and the closed set of ways in which it ends."""

from collections.abc import Mapping
from dataclasses import field
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, Protocol

from ksana.domain.execution import Execution
from ksana.domain.identity import idempotency_key
from ksana.domain.job import ExecutionMode, Job
from ksana.domain.outcome import Outcome
from ksana.domain.values import immutable


@immutable
class CallbackGrant:
    """Where and with what right the target reports the result of this attempt."""

    url: str
    """The whole address, the token in it."""
    token: str


@immutable
class Place:
    """Where in a workflow an execution stands."""

    run_id: str
    """The workflow run's id."""
    workflow_id: str
    node_id: str
    """As in `load`, or `load[3]` for one item of many."""
    item: Any = None
    index: int | None = None


class Tools(Protocol):
    """What an attempt may do while it runs."""

    async def save_checkpoint(self, value: Any) -> None:
        """JSON for the next attempt, should this one not end well. AttemptLost if the attempt is no longer ours."""

    async def save_artifact(self, value: Any) -> None:
        """JSON for others; what the attempt returns at its end, if anything, takes its place. AttemptLost likewise."""

    def log(self, text: str, stream: str = "stdout") -> None:
        """Keeps text of the attempt, in order, for people to read while it runs. Never blocks; too much is cut."""


class AttemptLost(Exception):
    """The attempt is no longer ours: stop the work, nothing of it counts any more."""


class NoTools:
    """Keeps nothing: for an execution that nobody watches."""

    async def save_checkpoint(self, value: Any) -> None:
        """Not kept."""

    async def save_artifact(self, value: Any) -> None:
        """Not kept."""

    def log(self, text: str, stream: str = "stdout") -> None:
        """Not kept."""


NO_TOOLS = NoTools()


@immutable
class ExecutionContext:
    """One attempt, with everything that its executor may use."""

    execution: Execution
    job: Job
    triggered_at: datetime
    """When this attempt began."""
    timeout: timedelta
    """How long it may take; the executor itself keeps it, so that it can say what it had sent by then."""
    mode: ExecutionMode
    """The job's, unless this run was asked for with another."""
    callback: CallbackGrant | None = None
    """Given if, and only if, the mode is ASYNC."""
    place: Place | None = None
    """Given if it is a node of a workflow."""
    params: Mapping[str, Any] = field(default_factory=dict)
    """The workflow run's parameters; of a job's own run, its input."""
    nodes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Of other nodes that have ended, those it asks for or depends on: `{"load": {"status": "SUCCESS", "artifact": …}}`."""
    checkpoint: Any = None
    """What an earlier attempt saved."""
    tools: Tools = NO_TOOLS
    _key: str | None = field(default=None, compare=False, repr=False)
    """The idempotency key, once somebody has asked for it: not every executor does."""

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt, and for no other run of any Ksana."""
        key = self._key
        if key is None:
            key = idempotency_key(self.execution)
            object.__setattr__(self, "_key", key)
        return key

    @property
    def trace_id(self) -> str:
        """32 hexadecimal digits, the same for every attempt."""
        return self.execution.trace_id or self.idempotency_key

    @property
    def scheduled_at(self) -> str:
        """The instant that it is for, of a node that of its run, as in `2026-01-31T12:00:00Z`."""
        return rfc3339(self.execution.planned_for or self.execution.created_at)


def rfc3339(instant: datetime) -> str:
    """As in `2026-01-31T12:00:00Z`."""
    return (instant if instant.tzinfo is UTC else instant.astimezone(UTC)).isoformat()[:-6] + "Z"


class Executor(Protocol):
    """Runs jobs of one type.

    One that says `keeps_deadline = True` is trusted to end by itself at `context.timeout`; any other is cut off soon after.
    """

    type: ClassVar[str]

    def check(self, config: Mapping[str, Any]) -> Mapping[str, Any]:
        """The config of a job with its defaults filled in. InvalidInput names the part that is wrong, as in `url`."""

    async def execute(self, context: ExecutionContext) -> Outcome:
        """Does the work. Raises nothing; if it is cancelled, it stops what it has begun and lets the cancellation pass."""

    async def close(self) -> None:
        """Lets go of what it holds. Harmless if it never ran."""
