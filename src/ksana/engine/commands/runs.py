"""Runs: cancelled by a person, their failures acknowledged by one, reported on by their targets."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from ksana import failpoints
from ksana.domain.clock import Clock
from ksana.domain.errors import InvalidInput
from ksana.domain.events import Actor
from ksana.domain.execution import Execution
from ksana.domain.states import TERMINAL, ExecutionStatus
from ksana.engine.measures import Measures
from ksana.engine.signals import Signals
from ksana.store.base import Store
from ksana.store.console_requests import Acknowledgement, Target
from ksana.store.requests import CallbackAnswer, CallbackReport

CLOCKS_APART = timedelta(minutes=1)
"""By how much the clock of whoever says a time may be ahead."""


@dataclass(frozen=True, slots=True)
class Canceled:
    """The run afterwards, and whether it was this that ended it: what had ended before stays as it is."""

    execution: Execution
    by_this: bool


@dataclass(frozen=True, slots=True)
class CallbackMessage:
    """What a target reports, with the token of its attempt or, in document 003's second way, with both ids."""

    succeeded: bool
    token: str | None = None
    job_id: int | None = None
    execution_id: int | None = None
    output: Any = None
    error: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str = ""


class RunCommands:
    def __init__(self, store: Store, clock: Clock, signals: Signals, measures: Measures) -> None:
        self._store = store
        self._clock = clock
        self._signals = signals
        self._measures = measures

    async def cancel(self, execution_id: int, actor: Actor) -> Canceled:
        """Whatever has not ended is CANCELED, and the work on it stopped. NotFound."""
        before = await self._store.execution(execution_id)
        if before.status in TERMINAL:
            return Canceled(before, by_this=False)
        now = self._clock.now()
        after = await self._store.cancel(execution_id, actor, now)
        self._signals.canceled(execution_id)
        self._signals.work()
        by_this = after.status is ExecutionStatus.CANCELED
        if by_this:
            self._measures.ended(after.status, after, now)
        return Canceled(after, by_this=by_this)

    async def acknowledge(self, target: Target | None, until: datetime | None, actor: Actor) -> datetime:
        """Somebody has seen what of this target, or of all, failed until then, or until now; until when that holds by now.
        InvalidInput for a time to come: what fails by then nobody can have seen."""
        now = self._clock.now()
        if until is not None and until > now + CLOCKS_APART:
            raise InvalidInput("until", "is in the future")
        return await self._store.acknowledge(Acknowledgement(until or now, target, actor))

    async def report(self, message: CallbackMessage) -> CallbackAnswer:
        """The result of an asynchronous run. NotFound for an unknown token, run or pair of ids."""
        failpoints.reach("callback.before")
        self._signals.work_coming()
        answer = await self._store.report_callback(
            CallbackReport(
                target=ExecutionStatus.CALLBACK_SUCCESS if message.succeeded else ExecutionStatus.FAILED,
                at=self._clock.now(),
                token_hash=None if message.token is None else token_hash(message.token),
                execution_id=message.execution_id,
                job_id=message.job_id,
                error=message.error,
                output=message.output,
                headers=message.headers,
                body=message.body,
            )
        )
        failpoints.reach("callback.after")
        if answer.accepted:
            # A request that is still under way is let end: its target is just about to answer it.
            self._signals.work_came()
            self._measures.ended(answer.execution.status, answer.execution, self._clock.now())
        return answer


def token_hash(token: str) -> str:
    """How a callback token is kept: who reads the database cannot report with it."""
    return sha256(token.encode("utf-8", "replace")).hexdigest()
