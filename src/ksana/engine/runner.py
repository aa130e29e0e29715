"""One execution from claim to verb: prepare → execute under a deadline → outcome → settle.

The store's fence decides every race: if it says that the attempt is no longer ours, the work is dropped and nothing is
written. A store that cannot be reached is waited for, since the work is done and only its result is missing.
"""

import asyncio
import logging
import random
import secrets
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Protocol, TypeVar

from ksana.domain.clock import Clock
from ksana.domain.errors import (
    Conflict,
    InvalidInput,
    KsanaError,
    RuntimeUnavailable,
    StoreFull,
    StoreUnavailable,
)
from ksana.domain.execution import Claim, Claimed
from ksana.domain.identity import trace_id
from ksana.domain.job import ExecutionMode
from ksana.domain.outcome import AwaitingCallback, Cancelled, Deferred, Failed, Outcome, Succeeded, TimedOut
from ksana.domain.retry import RetryAt, decide_retry
from ksana.domain.states import TERMINAL, ExecutionStatus
from ksana.domain.values import immutable
from ksana.domain.workflow import NodeClaim, TaskOf
from ksana.engine.commands.runs import token_hash
from ksana.engine.measures import Measures
from ksana.engine.nodes import HandOver, LeaveOut, Nodes, SpreadOver, Surroundings, is_plain_work, surroundings
from ksana.engine.plans.locks import Locks
from ksana.engine.tools import AttemptTools
from ksana.executors.base import AttemptLost, CallbackGrant, ExecutionContext, Executor
from ksana.store.base import Store
from ksana.store.requests import Ending, NewCallback
from ksana.telemetry import log

T = TypeVar("T")
BACKSTOP = timedelta(seconds=2)
"""How long after its own deadline an executor that does not keep it is cut off."""
TOKEN_BYTES = 32
NOWHERE_TO_CALL_BACK = (
    "the worker has no API of its own for the callback: set callback.base_url to where targets find one"
)
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0


class ExecutorSource(Protocol):
    def get(self, job_type: str) -> Executor:
        """InvalidInput if there is none of that type."""


@immutable
class CallbackOptions:
    base_url: str
    """Where targets reach the callback interface; a token is appended. Empty: nobody knows."""
    token_ttl: timedelta = timedelta(hours=1)


@immutable
class Result:
    """Where an execution went."""

    status: ExecutionStatus | None
    """None: it was no longer ours, and nothing was written."""
    retry_at: datetime | None = None


FENCED = Result(None)
SUCCESS = Result(ExecutionStatus.SUCCESS)
DELEGATED = Result(ExecutionStatus.DELEGATED)
Verb = Callable[[], Awaitable[bool]]
"""Tells the store; whether it still counted."""


class Runner:
    """Runs one execution at a time for whoever calls; it keeps nothing between calls."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        executors: ExecutorSource,
        callback: CallbackOptions,
        measures: Measures,
        nodes: Nodes,
        locks: Locks,
    ) -> None:
        self._locks = locks
        self._nodes = nodes
        self._store = store
        self._clock = clock
        self._executors = executors
        self._callback = callback
        self._measures = measures

    async def run(self, claimed: Claimed, claim: Claim, executed: Callable[[], None]) -> Result:
        """The whole way; `executed` is called when the work is done and only its result is still to be written. Raises only
        CancelledError, and then has written nothing."""
        began, at = self._clock.monotonic(), self._clock.now()
        self._measures.started(claimed, at)
        mode = mode_of(claimed)
        if needs_nobody(claimed, mode):
            prepared: ExecutionContext | Result | Outcome = self._context(claimed, claim, mode, at)
        else:
            prepared = await self._prepared(claimed, claim, mode, at, executed)
        if isinstance(prepared, Result):
            return prepared
        if isinstance(prepared, ExecutionContext):
            outcome = await self._executed(prepared)
        else:
            outcome = prepared  # decided without any work
        executed()
        seconds = self._clock.monotonic() - began
        if claimed.node is not None and claimed.node.task is not None:
            await self._keep_to_tenant(claimed.node.task)
        verb, result = self._verb_for(claimed, claim, outcome)
        try:
            written = await self.insisted(verb)
        except InvalidInput as error:  # a result that no store can keep
            outcome = Failed(f"its result cannot be kept: {error.reason}", retryable=False)
            verb, result = self._verb_for(claimed, claim, outcome)
            written = await self.insisted(verb)
        if not written:
            result = FENCED
        self._account(claimed, outcome, result, seconds)
        return result

    # Prepare ----------------------------------------------------------------------------------------------------

    async def _prepared(
        self, claimed: Claimed, claim: Claim, mode: ExecutionMode, at: datetime, executed: Callable[[], None]
    ) -> "ExecutionContext | Result | Outcome":
        """What it takes to execute it; or, of a node, what it became instead."""
        seen = None
        if claimed.node is not None:
            node = claimed.node
            ended = node.seen
            if ended is None:
                ended = await self.insisted(lambda: self._nodes.ended_before(node))
            seen = surroundings(claimed, node, ended)
            decision = None if is_plain_work(node) else await self.insisted(lambda: self._nodes.decide(node, seen, at))
            if decision is not None:
                executed()
                return await self._turned(claim, decision, at)
        grant = None
        if mode is ExecutionMode.ASYNC:
            if not self._callback.base_url:
                return Failed(NOWHERE_TO_CALL_BACK, retryable=False)
            grant = await self._granted(claimed, claim, at)
            if grant is None:
                return FENCED
        return self._context(claimed, claim, mode, at, seen, grant)

    def _context(
        self,
        claimed: Claimed,
        claim: Claim,
        mode: ExecutionMode,
        at: datetime,
        seen: Surroundings | None = None,
        grant: CallbackGrant | None = None,
    ) -> ExecutionContext:
        execution, job, node = claimed.execution, claimed.job, claimed.node
        if node is not None and seen is None:
            seen = surroundings(claimed, node, node.seen or {})
        return ExecutionContext(
            execution=execution,
            job=job,
            triggered_at=at,
            timeout=job.spec.timeout,
            mode=mode,
            callback=grant,
            place=None if seen is None else seen.place,
            params=execution.input if seen is None else seen.params,
            nodes={} if seen is None else seen.nodes,
            checkpoint=None if node is None else node.checkpoint,
            tools=AttemptTools(self._store, self._clock, claim),
        )

    async def _turned(
        self, claim: Claim, decision: "LeaveOut | SpreadOver | HandOver | Outcome", at: datetime
    ) -> "Result | Outcome":
        """A node that is no work of its own becomes what it is; an outcome is settled like that of an executor."""
        match decision:
            case LeaveOut(reason=reason):
                return await self._written(lambda: self._store.skip(claim, reason, at), Result(ExecutionStatus.SKIPPED))
            case SpreadOver(items=items):
                return await self._written(lambda: self._store.spread(claim, items, at), DELEGATED)
            case HandOver(run=run):
                try:
                    return await self._written(lambda: self._store.hand_over(claim, run), DELEGATED)
                except Conflict as error:
                    return Failed(error.message)
            case _:
                return decision

    async def _granted(self, claimed: Claimed, claim: Claim, at: datetime) -> CallbackGrant | None:
        """A token that is valid before anything is sent: the callback may come before the answer. None: no longer ours."""
        spec = claimed.job.spec
        expires_at = at + max(self._callback.token_ttl, spec.timeout + spec.callback_timeout)
        token = ""

        async def opened() -> bool:
            nonlocal token  # a new one each time: whether the last is known is not known
            token = secrets.token_urlsafe(TOKEN_BYTES)
            return await self._store.open_callback(NewCallback(claim, token_hash(token), expires_at))

        if not await self.insisted(opened):
            return None
        return CallbackGrant(f"{self._callback.base_url.rstrip('/')}/{token}", token)

    # Execute ----------------------------------------------------------------------------------------------------

    async def _executed(self, context: ExecutionContext) -> Outcome:
        try:
            executor = self._executors.get(context.job.spec.type)
            if getattr(executor, "keeps_deadline", False):
                return await executor.execute(context)
            async with asyncio.timeout((context.timeout + BACKSTOP).total_seconds()):
                return await executor.execute(context)
        except AttemptLost:
            return Cancelled("the attempt was no longer ours")
        except TimeoutError:
            return TimedOut(f"took longer than {context.timeout.total_seconds():g}s")
        except KsanaError as error:
            return Failed(error.message, retryable=False)
        except Exception as error:  # noqa: BLE001 - whatever an executor raises ends this attempt, not the instance
            log().error("executor failed", action="run.executor_failed", run_id=context.execution.id, exc_info=error)
            return Failed(f"the executor failed: {type(error).__name__}")
        finally:
            if isinstance(context.tools, AttemptTools) and context.tools.used:
                await context.tools.close()

    async def _keep_to_tenant(self, task: TaskOf) -> None:
        """What a stage did counts only while its tenant is its task's. If somebody else has it, the task stops, and so the
        fence keeps the stage out."""
        try:
            if not await self._locks.still_mine(task.tenant_id, task.key):
                log().error("a tenant's lock is lost", action="plan.lock_lost", tenant=task.tenant_id, task=task.key)
                await self.insisted(lambda: self._store.lose_lock(task.id, self._clock.now()))
        except RuntimeUnavailable as error:
            # The store's own fence is what it hangs on then.
            log().warning(
                "a lock was not asked for", action="plan.lock_unknown", tenant=task.tenant_id, err=error.message
            )

    # Settle -----------------------------------------------------------------------------------------------------

    def _verb_for(self, claimed: Claimed, claim: Claim, outcome: Outcome) -> tuple[Verb, Result]:
        """How the store is told of it, and what it is then."""
        now, evidence = self._clock.now(), outcome.evidence
        match outcome:
            case Succeeded(output=output):
                return partial(self._store.succeed, Ending(claim, now, None, output, evidence)), SUCCESS
            case AwaitingCallback(within=within):
                ending = Ending(claim, now, evidence=evidence)
                deadline = None if within is None else now + within
                return partial(self._store.await_callback, ending, deadline), Result(ExecutionStatus.CALLBACK_PENDING)
            case Deferred(until=until):
                return partial(self._store.defer, claim, until, now), Result(ExecutionStatus.SCHEDULED, until)
            case Failed(error=error, retryable=retryable, retry_after=retry_after):
                ending = Ending(claim, now, error=error, evidence=evidence)
                return self._verb_for_failure(claimed, ending, retryable=retryable, retry_after=retry_after)
            case TimedOut(error=error):
                ending = Ending(claim, now, error=error, evidence=evidence)
                return self._verb_for_failure(claimed, ending, timed_out=True)
            case Cancelled(reason=reason):
                ending = Ending(claim, now, error=reason, evidence=evidence)
                return self._verb_for_failure(claimed, ending, retryable=False)

    def _verb_for_failure(
        self,
        claimed: Claimed,
        ending: Ending,
        *,
        retryable: bool = True,
        retry_after: timedelta | None = None,
        timed_out: bool = False,
    ) -> tuple[Verb, Result]:
        decision = decide_retry(
            claimed.job.spec.retry,
            attempt=max(1, claimed.execution.attempt - claimed.execution.losses),
            retryable=retryable,
            now=ending.at,
            retry_after=retry_after,
        )
        if isinstance(decision, RetryAt):
            at = decision.instant
            return partial(self._store.retry, ending, at, timed_out=timed_out), Result(ExecutionStatus.RETRYING, at)
        if timed_out:
            return partial(self._store.time_out, ending), Result(ExecutionStatus.TIMEOUT)
        return partial(self._store.fail, ending), Result(ExecutionStatus.FAILED)

    async def _written(self, verb: Verb, result: Result) -> Result:
        """The result, once the store knows of it."""
        return result if await self.insisted(verb) else FENCED

    async def insisted(self, verb: Callable[[], Awaitable[T]]) -> T:
        """The verb's answer, however long the store is away: the fence tells whether it still counts then."""
        pause = _FIRST_PAUSE
        while True:
            try:
                return await verb()
            except (StoreUnavailable, StoreFull):
                await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 - spread, not secret
                pause = min(pause * 2, _LONGEST_PAUSE)

    def _account(self, claimed: Claimed, outcome: Outcome, result: Result, seconds: float) -> None:
        measures, status = self._measures, result.status
        measures.attempted(outcome.evidence)
        if claimed.node is not None:
            measures.node_attempted(claimed.job.spec.type, seconds)
        if status is None:
            measures.fenced()
        elif status is ExecutionStatus.RETRYING:
            measures.retried(claimed)
        elif claimed.node is None and status in TERMINAL:
            measures.ended(status, claimed.execution, self._clock.now())
        tell(claimed, outcome, result, seconds)


def claim_of(claimed: Claimed) -> Claim:
    execution = claimed.execution
    return Claim(execution.id, execution.epoch, execution.workflow_run_id)


def mode_of(claimed: Claimed) -> ExecutionMode:
    """The job's, unless this run was asked for with another."""
    forced = claimed.execution.input.get("force_async")
    return ExecutionMode.ASYNC if forced else claimed.job.spec.mode


def needs_nobody(claimed: Claimed, mode: ExecutionMode) -> bool:
    """Whether it can be executed without asking the store for anything before, as most can."""
    node = claimed.node
    return mode is not ExecutionMode.ASYNC and (node is None or (node.seen is not None and is_plain_work(node)))


def tell(claimed: Claimed, outcome: Outcome, result: Result, seconds: float) -> None:
    """One line an attempt, with the fields that document 003 asks for."""
    error = getattr(outcome, "error", None)
    logger = log()
    if error is None and not logger.is_enabled_for(logging.INFO):
        return
    fields = {} if claimed.node is None else _place(claimed.node)
    tell_it = logger.info if error is None else partial(logger.warning, err=error)
    tell_it(
        "attempt ended" if error is None else "attempt failed",
        action="run.attempted",
        trace_id=trace_id(claimed.execution),
        task_id=claimed.job.id,
        job=claimed.job.spec.name,
        run_id=claimed.execution.id,
        attempt=claimed.execution.attempt,
        status="FENCED" if result.status is None else result.status.value,
        latency_ms=round(seconds * 1000, 1),
        target_url=outcome.evidence.request.get("url", ""),
        **fields,
    )


def _place(node: NodeClaim) -> dict[str, str]:
    return {"workflow_run_id": node.run_key, "node_id": node.node_id}
