"""The smaller services: work of the dead is recovered, deadlines expire, stolen work is stopped, old rows go."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from ksana.domain.errors import NotFound
from ksana.domain.execution import Claim
from ksana.domain.instance import HEARTBEAT
from ksana.domain.states import ExecutionStatus
from ksana.engine.loop import Round
from ksana.engine.measures import Measures
from ksana.engine.recall import Recalled
from ksana.engine.signals import Signals
from ksana.engine.workers import Workers
from ksana.store.base import Store
from ksana.store.requests import Purged, PurgeRequest
from ksana.telemetry import log

AT_ONCE = 1_000
_BY_CALLBACK = frozenset({ExecutionStatus.CALLBACK_SUCCESS, ExecutionStatus.FAILED, ExecutionStatus.RETRYING})


class Recovery:
    """Executions of instances whose heartbeat stopped go back to the queue, or fail if they must not run twice."""

    name = "recovery"
    interval = HEARTBEAT

    def __init__(self, store: Store, signals: Signals, measures: Measures, headstart: Callable[[], timedelta]) -> None:
        self._store = store
        self._measures = measures
        self._signals = signals
        self._headstart = headstart

    async def run_once(self, now: datetime) -> Round:
        due_at = await self._store.next_recovery_at()
        if due_at is None:
            return Round()
        due_at += 4 * self._headstart()
        return await self.recover(now) if due_at <= now else Round(0, due_at)

    async def recover(self, now: datetime) -> Round:
        """At once."""
        found = await self._store.recover(now, AT_ONCE)
        done = found.requeued + found.failed
        if done or found.dead_instances:
            log().warning(
                "recovered",
                action="instance.recovered",
                dead=list(found.dead_instances),
                requeued=found.requeued,
                failed=found.failed,
            )
        if done:
            self._measures.recovered(found)
            self._signals.work()
        return Round(done, now if done else None)


class Deadlines:
    """Runs whose callback did not come in time end FAILED_TIMEOUT."""

    name = "deadlines"

    def __init__(self, store: Store, signals: Signals, measures: Measures, interval: timedelta) -> None:
        self.interval = interval
        self._store = store
        self._next_at = Recalled(store, store.next_deadline_at)
        self._signals = signals
        self._measures = measures

    async def run_once(self, now: datetime) -> Round:
        due_at = await self._next_at(now)
        if due_at is None or due_at > now:
            return Round(0, due_at)
        expired = await self._store.expire_callbacks(now, AT_ONCE)
        self._measures.expired(len(expired))
        for execution_id in expired:
            log().warning("no callback came in time", action="run.callback_timeout", run_id=execution_id)
        if expired:
            self._signals.work()
        return Round(len(expired), now if expired else None)


class RunDeadlines:
    """Workflow runs that have taken too long are stopped, and have failed."""

    name = "run_deadlines"

    def __init__(self, store: Store, signals: Signals, interval: timedelta) -> None:
        self.interval = interval
        self._store = store
        self._next_at = Recalled(store, store.next_run_deadline_at)
        self._signals = signals

    async def run_once(self, now: datetime) -> Round:
        due_at = await self._next_at(now)
        if due_at is None or due_at > now:
            return Round(0, due_at)
        broken_off = await self._store.expire_runs(now, AT_ONCE)
        for execution_id in broken_off:
            log().warning("its workflow run took too long", action="run.workflow_timeout", run_id=execution_id)
            self._signals.canceled(execution_id)
        self._signals.work()
        return Round(max(1, len(broken_off)), now)


class Watch:
    """Keeps what we do and what the store believes that we do the same: work that is no longer ours, because somebody
    cancelled it elsewhere or took it over, is stopped; a claim that nobody here knows of, because its answer was lost, is
    handed back."""

    name = "watch"
    interval = timedelta(seconds=2)

    def __init__(
        self,
        store: Store,
        workers: Workers,
        owner: Callable[[], str | None],
        claim_under_way: Callable[[], int | None] = lambda: None,
    ) -> None:
        self._store = store
        self._still_mine = Recalled(store, store.still_mine)
        self._claims_of = Recalled(store, store.claims_of)
        self._workers = workers
        self._owner = owner
        self._claim_under_way = claim_under_way
        self._strays: frozenset[Claim] = frozenset()
        self._then: int | None = None
        """The claim that was under way when those were seen."""

    async def run_once(self, now: datetime) -> Round:
        return Round(await self._stop_what_is_lost(now) + await self._hand_back_strays(now))

    async def _stop_what_is_lost(self, now: datetime) -> int:
        claims = self._workers.claims
        mine = await self._still_mine(now, claims) if claims else frozenset()
        # Under load, hundreds have ended while that was asked, and are nobody's any more.
        doubtful = [claim for claim in claims if claim not in mine and self._workers.has(claim)]
        lost = [claim for claim in doubtful if not await self._reported(claim)]
        for claim in lost:
            self._workers.drop(claim)
        return len(lost)

    async def _reported(self, claim: Claim) -> bool:
        """Ended by its own callback: the target is just about to answer, and is let."""
        try:
            execution = await self._store.execution(claim.execution_id)
        except NotFound:
            return False  # purged: it ended long ago, elsewhere
        return execution.epoch == claim.epoch and execution.status in _BY_CALLBACK

    async def _hand_back_strays(self, now: datetime) -> int:
        """Only those seen twice, once the claim that was under way at first has been answered: what it took is not with the
        workers before, however long its answer takes, and would be run twice if it were handed back."""
        owner = self._owner()
        if owner is None:
            return 0
        owned = frozenset(await self._claims_of(now, owner, AT_ONCE))
        if self._owner() != owner or self._workers.draining:
            # What was dropped with the lease, or is just being handed back, may have been begun: it is no stray.
            return 0
        now_under_way = self._claim_under_way()
        answered = self._then is None or now_under_way != self._then
        strays = owned - frozenset(self._workers.claims)
        again = strays & self._strays if answered else frozenset()
        self._strays, self._then = strays, now_under_way
        for claim in again:
            log().warning("a claim that nobody works on is handed back", action="run.stray", run_id=claim.execution_id)
            await self._store.hand_back(claim, now)
        return len(again)


@dataclass(frozen=True, slots=True)
class RetentionOptions:
    max_age: timedelta = timedelta(days=30)
    max_runs: int = 100_000
    interval: timedelta = timedelta(hours=1)
    batch: int = 500

    def request(self, now: datetime, last: Purged) -> PurgeRequest:
        """What to remove next, from where the last call left off."""
        begun = Purged() if last.done else last
        return PurgeRequest(now - self.max_age, self.max_runs, self.batch, begun.after_job, begun.after_schedule)


async def purge_all(store: Store, options: RetentionOptions, now: datetime) -> Purged:
    """Everything that may go, in one go; the sum."""
    total = last = Purged(done=False)
    while not last.done:
        last = await store.purge(options.request(now, last))
        total = Purged(
            total.runs + last.runs,
            total.instants + last.instants,
            total.events + last.events,
            total.instances + last.instances,
        )
    return total


class Retention:
    """What has been kept long enough goes, a portion at a time."""

    name = "retention"

    def __init__(self, store: Store, options: RetentionOptions) -> None:
        self.interval = options.interval
        self._store = store
        self._options = options
        self._last = Purged()

    async def run_once(self, now: datetime) -> Round:
        purged = self._last = await self._store.purge(self._options.request(now, self._last))
        done = purged.runs + purged.instants + purged.events + purged.instances
        if done:
            log().debug("purged", action="retention.purged", runs=purged.runs, instants=purged.instants)
        # With more to do, go on soon, but let others write in between.
        return Round(done, None if purged.done else now + timedelta(milliseconds=100))
