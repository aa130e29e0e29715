"""What the jobs of a simulated world call: it answers as the seed says, and is the witness of what really ran."""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar

from ksana.domain.job import ExecutionMode, RecoveryRule
from ksana.domain.outcome import AwaitingCallback, Failed, Outcome, Succeeded
from ksana.executors.base import ExecutionContext
from tests.simulation.invariants import Violation, require

if TYPE_CHECKING:
    from tests.simulation.process import Process

LONGEST = 1.6
"""How much longer than a job's time something may take: some are cut off."""


@dataclass(frozen=True, slots=True)
class Grant:
    """The right to report that a target was given."""

    token: str
    execution_id: int
    job_id: int
    within: timedelta


@dataclass(slots=True, eq=False)
class Work:
    """An attempt that is being executed somewhere."""

    process: "Process"
    execution_id: int
    epoch: int

    @property
    def excused(self) -> bool:
        """Whether its process was paused since it claimed it: it cannot know that its time was over."""
        return self.process.paused_since(self.execution_id, self.epoch)


@dataclass
class Witness:
    """Everything that was executed, in all processes: the only one who sees what really happened."""

    random: Random
    on_grant: Callable[[Grant], None]
    under_way: dict[int, list[Work]] = field(default_factory=dict)
    starts: Counter[int] = field(default_factory=Counter)
    overlaps: int = 0
    """Executions that two processes were at, at once: only where one of them had been paused for a while."""
    broken: Violation | None = None
    """Kept, not raised: an executor's errors are an outcome like others."""

    def began(self, process: "Process", context: ExecutionContext) -> Work:
        number, epoch = context.execution.id, context.execution.epoch
        self.starts[number] += 1
        work = Work(process, number, epoch)
        others = [other for other in self.under_way.setdefault(number, []) if other.process.alive]
        try:
            once = context.job.spec.recovery is RecoveryRule.FAIL
            require("I3", not once or self.starts[number] == 1, "{} ran twice, and must not", number)
            for other in others:
                self._check_overlap(work, other)
        except Violation as violation:
            self.broken = self.broken or violation
        self.under_way[number].append(work)
        return work

    def _check_overlap(self, work: Work, other: Work) -> None:
        """Two may be at one execution only where a zombie is: one that was paused since it claimed."""
        self.overlaps += 1
        names = f"{other.process.name} ({other.epoch}) and {work.process.name} ({work.epoch})"
        require("I5", work.excused or other.excused, "{} is executed by {} at once", work.execution_id, names)

    def ended(self, context: ExecutionContext, work: Work) -> None:
        self.under_way[context.execution.id].remove(work)


class Target:
    """An executor; each process has its own."""

    type: ClassVar[str] = "scripted"

    def __init__(self, process: "Process", witness: Witness) -> None:
        self._process = process
        self._witness = witness

    def check(self, config: Any) -> Any:
        return config

    async def execute(self, context: ExecutionContext) -> Outcome:
        work = self._witness.began(self._process, context)
        try:
            return await self._work(context)
        finally:
            self._witness.ended(context, work)

    async def _work(self, context: ExecutionContext) -> Outcome:
        random = self._witness.random
        if context.mode is ExecutionMode.ASYNC and context.callback is not None:
            within = context.job.spec.callback_timeout
            grant = Grant(context.callback.token, context.execution.id, context.job.id, within)
            self._witness.on_grant(grant)
        longest = random.uniform(0, LONGEST * context.timeout.total_seconds())
        await asyncio.sleep(random.choice((0.0, random.uniform(0, 1), longest, longest)))
        dice = random.random()
        if dice < 0.05:
            raise RuntimeError("an executor's own fault")
        if dice < 0.1:
            return Failed("no, and never", retryable=False)
        if dice < 0.3:
            return Failed("not now")
        return AwaitingCallback(context.job.spec.callback_timeout) if context.callback else Succeeded({"dice": dice})

    async def close(self) -> None:
        """It holds nothing."""
