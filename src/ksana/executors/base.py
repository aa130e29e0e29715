"""The port of executors: what an execution needs to be run, and the closed set of ways in which it ends."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar, Protocol

from ksana.domain.execution import Execution
from ksana.domain.job import ExecutionMode, Job
from ksana.domain.outcome import Outcome


@dataclass(frozen=True, slots=True)
class CallbackGrant:
    """Where and with what right the target reports the result of this attempt."""

    url: str
    """The whole address, the token in it."""
    token: str


@dataclass(frozen=True, slots=True)
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
    trace_id: str
    """32 hexadecimal digits, the same for every attempt."""
    idempotency_key: str
    """The same for every attempt, and for no other run of any Ksana."""
    callback: CallbackGrant | None = None
    """Given if, and only if, the mode is ASYNC."""


class Executor(Protocol):
    """Runs jobs of one type."""

    type: ClassVar[str]

    def check(self, config: Mapping[str, Any]) -> Mapping[str, Any]:
        """The config of a job with its defaults filled in. InvalidInput names the part that is wrong, as in `url`."""

    async def execute(self, context: ExecutionContext) -> Outcome:
        """Does the work. Raises nothing; if it is cancelled, it stops what it has begun and lets the cancellation pass."""

    async def close(self) -> None:
        """Lets go of what it holds. Harmless if it never ran."""
