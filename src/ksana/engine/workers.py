"""What this instance runs at the moment: a bounded set of tasks, each of which can be stopped.

Three ways to stop one early, told apart by what is written: `cancel` (a person ended it, the store knows: nothing),
`abandon` (our lease is gone: nothing may be written), `drain` (this instance stops: the work is handed back).
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from ksana.domain.clock import Clock
from ksana.domain.errors import KsanaError
from ksana.domain.execution import Claim, Claimed
from ksana.domain.job import RecoveryRule
from ksana.domain.lanes import lane_of
from ksana.engine.measures import Measures
from ksana.engine.runner import FENCED, Result, Runner, claim_of
from ksana.store.base import Store
from ksana.store.requests import Ending
from ksana.telemetry import log

STOPPED = "its instance stopped while it ran"


@dataclass(slots=True, eq=False)
class _Work:
    """One that this instance has claimed, until its result is written."""

    claimed: Claimed
    lane: str | None
    """What it leans on."""
    began: float
    """By the monotonic clock."""
    executing: bool = True
    """It takes a place. Who has done its work and waits for the commit of its result takes none."""
    dropped: bool = False
    """Its claim no longer counts: nothing is handed back."""
    begun: bool = False
    """Its task has taken its first step."""
    called_off: bool = False
    """It is not to begin. (A task that is cancelled before its first step never takes it, and could clear nothing away.)"""


class Workers:
    def __init__(self, runner: Runner, store: Store, clock: Clock, size: int, measures: Measures) -> None:
        self._runner = runner
        self._store = store
        self._clock = clock
        self.size = size
        self._tasks: dict[Claim, tuple[asyncio.Task[None], _Work]] = {}
        self._executing = 0
        self._leaning: dict[str, int] = {}
        measures.running(lambda: self._executing)
        self._handing_back = False
        self.on_end: Callable[[Claimed, Result], None] = _ignored
        """Told whenever one is over, and so its job's next may be let in."""
        self.on_free: Callable[[Claimed], None] = _nothing
        """Told whenever a place is free, because the work on this is done and only its result is still to be written."""

    @property
    def free(self) -> int:
        """Places for more work."""
        return self.size - self._executing

    @property
    def lanes(self) -> dict[str, int]:
        """How many executions lean on each lane now. To be asked, as `free`, in any thread."""
        return self._leaning.copy()

    def slow_lanes(self, longer_than: timedelta) -> set[str]:
        """Those that have something run for longer than this."""
        since = self._clock.monotonic() - longer_than.total_seconds()
        works = (work for _, work in self._tasks.values() if work.executing and work.began <= since)
        return {work.lane for work in works if work.lane is not None}

    @property
    def draining(self) -> bool:
        """Whether what runs is being handed back."""
        return self._handing_back

    @property
    def claims(self) -> list[Claim]:
        return list(self._tasks)

    def has(self, claim: Claim) -> bool:
        return claim in self._tasks

    def start(self, claimed: Claimed) -> None:
        claim, lane = claim_of(claimed), lane_of(claimed.job.spec)
        work = _Work(claimed, lane, self._clock.monotonic())
        self._executing += 1
        if lane is not None:
            self._leaning[lane] = self._leaning.get(lane, 0) + 1
        loop = asyncio.get_running_loop()
        self._tasks[claim] = loop.create_task(self._run(claim, work), name=f"run {claim.execution_id}"), work

    def cancel(self, execution_id: int) -> None:
        """Stops the work on it, if it is here. The store has been told already."""
        for claim in [claim for claim in self._tasks if claim.execution_id == execution_id]:
            self.drop(claim)

    def drop(self, claim: Claim) -> None:
        """Stops one whose claim no longer counts."""
        if claim in self._tasks:
            task, work = self._tasks[claim]
            work.dropped = True
            _stop(task, work)

    def abandon(self) -> None:
        """Stops all: others may have them by now."""
        for claim in self.claims:
            self.drop(claim)

    async def drain(self, grace: timedelta) -> None:
        """Lets what runs end within `grace`, then hands the rest back. Called again with less, it ends the sooner."""
        if self._tasks:
            await asyncio.wait([task for task, _ in self._tasks.values()], timeout=max(0.0, grace.total_seconds()))
        if left := self.hand_back():
            await asyncio.wait(left)

    def hand_back(self) -> "list[asyncio.Task[None]]":
        """Stops all, each of which hands its work back; it has, when its task has ended."""
        self._handing_back = True
        for task, work in self._tasks.values():
            _stop(task, work)
        return [task for task, _ in self._tasks.values()]

    async def _run(self, claim: Claim, work: _Work) -> None:
        claimed, result = work.claimed, FENCED
        work.begun = True
        try:
            if work.called_off:
                raise asyncio.CancelledError  # noqa: TRY301 - as one that had begun would meet it
            result = await self._runner.run(claimed, claim, lambda: self._executed(work))
        except asyncio.CancelledError:
            if self._handing_back and not work.dropped:
                await self._hand_back(work)
        except Exception as error:  # noqa: BLE001 - a bug in the pipeline must not cost the other runs their instance
            log().error("run failed", action="run.failed", run_id=claim.execution_id, exc_info=error)
            await self._give_up(claimed, error)
        finally:
            self._leave(work)
            del self._tasks[claim]
            self.on_end(claimed, result)

    def _executed(self, work: _Work) -> None:
        self._leave(work)
        self.on_free(work.claimed)

    def _leave(self, work: _Work) -> None:
        """It takes no place any more, if it still did."""
        if not work.executing:
            return
        work.executing = False
        self._executing -= 1
        if work.lane is not None:
            self._leaning[work.lane] -= 1
            if not self._leaning[work.lane]:
                del self._leaning[work.lane]

    async def _hand_back(self, work: _Work) -> None:
        """To the queue, at once; but what must not run twice has failed, since its request may have arrived."""
        claimed = work.claimed
        claim, now = claim_of(claimed), self._clock.now()
        try:
            if claimed.job.spec.recovery is RecoveryRule.FAIL and not work.called_off:
                await self._store.fail(Ending(claim, now, error=STOPPED))
            else:
                await self._store.hand_back(claim, now)
            log().info("handed back", action="run.handed_back", run_id=claim.execution_id, job=claimed.job.spec.name)
        except KsanaError as error:
            log().warning(
                "not handed back; recovery will",
                action="run.not_handed_back",
                run_id=claim.execution_id,
                err=error.message,
            )

    async def _give_up(self, claimed: Claimed, error: Exception) -> None:
        """The pipeline itself broke: the attempt failed for good, rather than be stuck for ever or, since it may have been begun,
        be handed back as if it had not."""
        ending = Ending(claim_of(claimed), self._clock.now(), error=f"internal error: {type(error).__name__}")
        try:
            await self._runner.insisted(lambda: self._store.fail(ending))
        except KsanaError as again:
            log().error("not recorded", action="run.not_recorded", run_id=claimed.execution.id, err=again.message)


def _stop(task: asyncio.Task[None], work: _Work) -> None:
    if work.begun:
        task.cancel()
    else:
        work.called_off = True


def _ignored(_: Claimed, __: Result) -> None:
    """Nobody wants to know."""


def _nothing(_: Claimed) -> None:
    """Nor here."""
