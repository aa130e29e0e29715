"""What this instance runs at the moment: a bounded set of tasks, each of which can be stopped.

Three ways to stop one early, told apart by what is written: `cancel` (a person ended it, the store knows: nothing),
`abandon` (our lease is gone: nothing may be written), `drain` (this instance stops: the work is handed back).
"""

import asyncio
from collections.abc import Callable
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
NOWHERE = (0.0, None)


class Workers:
    def __init__(self, runner: Runner, store: Store, clock: Clock, size: int, measures: Measures) -> None:
        self._runner = runner
        self._store = store
        self._clock = clock
        self.size = size
        self._tasks: dict[Claim, asyncio.Task[None]] = {}
        self._claimed: dict[Claim, Claimed] = {}
        self._executing: dict[Claim, tuple[float, str | None]] = {}
        """Since when, by the monotonic clock, and what it leans on."""
        self._leaning: dict[str, int] = {}
        measures.running(lambda: len(self._executing))
        self._handing_back = False
        self.on_end: Callable[[Claimed, Result], None] = _ignored
        """Told whenever one is over, and so its job's next may be let in."""
        self.on_free: Callable[[Claimed], None] = _nothing
        """Told whenever a place is free, because the work on this is done and only its result is still to be written."""

    @property
    def free(self) -> int:
        """Places for more work. Who has done its work and waits for the commit of its result takes none."""
        return self.size - len(self._executing)

    @property
    def lanes(self) -> dict[str, int]:
        """How many executions lean on each lane now. To be asked, as `free`, in any thread."""
        return self._leaning.copy()

    def slow_lanes(self, longer_than: timedelta) -> set[str]:
        """Those that have something run for longer than this."""
        since = self._clock.monotonic() - longer_than.total_seconds()
        return {lane for began, lane in self._executing.values() if began <= since and lane is not None}

    @property
    def draining(self) -> bool:
        """Whether what runs is being handed back."""
        return self._handing_back

    @property
    def claims(self) -> list[Claim]:
        return list(self._tasks)

    def start(self, claimed: Claimed) -> None:
        claim = claim_of(claimed)
        self._claimed[claim] = claimed
        lane = lane_of(claimed.job.spec)
        self._executing[claim] = self._clock.monotonic(), lane
        if lane is not None:
            self._leaning[lane] = self._leaning.get(lane, 0) + 1
        self._tasks[claim] = asyncio.create_task(self._work(claim, claimed), name=f"run {claim.execution_id}")

    def cancel(self, execution_id: int) -> None:
        """Stops the work on it, if it is here. The store has been told already."""
        for claim in [claim for claim in self._tasks if claim.execution_id == execution_id]:
            self.drop(claim)

    def drop(self, claim: Claim) -> None:
        """Stops one whose claim no longer counts."""
        task = self._tasks.get(claim)
        if task is not None:
            self._claimed.pop(claim, None)  # so that nothing is handed back
            task.cancel()

    def abandon(self) -> None:
        """Stops all: others may have them by now."""
        for claim in self.claims:
            self.drop(claim)

    async def drain(self, grace: timedelta) -> None:
        """Lets what runs end within `grace`, then hands the rest back. Called again with less, it ends the sooner."""
        if self._tasks:
            await asyncio.wait(list(self._tasks.values()), timeout=max(0.0, grace.total_seconds()))
        self._handing_back = True
        left = list(self._tasks.values())
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left)

    async def _work(self, claim: Claim, claimed: Claimed) -> None:
        result = FENCED
        try:
            result = await self._runner.run(claimed, lambda: self._executed(claim, claimed))
        except asyncio.CancelledError:
            if self._handing_back and claim in self._claimed:
                await self._hand_back(claimed)
        except Exception as error:  # noqa: BLE001 - a bug in the pipeline must not cost the other runs their instance
            log().error("run failed", action="run.failed", run_id=claim.execution_id, exc_info=error)
            await self._give_up(claimed, error)
        finally:
            self._claimed.pop(claim, None)
            self._leave(claim)
            self._tasks.pop(claim, None)
            self.on_end(claimed, result)

    def _executed(self, claim: Claim, claimed: Claimed) -> None:
        self._leave(claim)
        self.on_free(claimed)

    def _leave(self, claim: Claim) -> None:
        """It takes no place any more, if it still did."""
        _, lane = self._executing.pop(claim, NOWHERE)
        if lane is not None:
            self._leaning[lane] -= 1
            if not self._leaning[lane]:
                del self._leaning[lane]

    async def _hand_back(self, claimed: Claimed) -> None:
        """To the queue, at once; but what must not run twice has failed, since its request may have arrived."""
        claim, now = claim_of(claimed), self._clock.now()
        try:
            if claimed.job.spec.recovery is RecoveryRule.FAIL:
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


def _ignored(_: Claimed, __: Result) -> None:
    """Nobody wants to know."""


def _nothing(_: Claimed) -> None:
    """Nor here."""
