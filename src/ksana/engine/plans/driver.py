"""Keeps plans going: tenants are begun as there is room for them; waves, gates, budgets and ends follow from counting.

Any instance may do it, and all do: the plan's row is locked while anything about it is decided.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta

from ksana.domain.errors import StoreFull, StoreUnavailable
from ksana.domain.plan import Nothing, Plan, decide
from ksana.engine.loop import Round
from ksana.engine.plans.locks import Locks
from ksana.engine.recall import Recalled
from ksana.engine.signals import Signals
from ksana.store.base import Store
from ksana.store.plan_requests import Admission, Candidate
from ksana.telemetry import log

TRY_LOCK_AGAIN = timedelta(seconds=5)


class PlanDriver:
    name = "plans"

    def __init__(self, store: Store, locks: Locks, signals: Signals, interval: timedelta) -> None:
        self.interval = interval
        self._store = store
        self._standings = Recalled(store, store.plan_standings)
        self._locks = locks
        self._signals = signals

    async def run_once(self, now: datetime) -> Round:
        done = 0
        for standing in await self._standings(now):
            if not isinstance(decide(standing.plan, standing.waves), Nothing):
                done += await self._drive(standing.plan, now)
                self._signals.shown()
        if done:
            self._signals.work()
        return Round(done)

    async def _drive(self, plan: Plan, now: datetime) -> int:
        """How many tenants were begun. A plan that cannot be driven does not hold up the others."""
        try:
            return await self._step(plan.id, now)
        except (StoreUnavailable, StoreFull):
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, it is about this plan
            log().error("a plan cannot go on", action="plan.failed", plan=plan.key, exc_info=error)
            return 0

    async def _step(self, plan_id: int, now: datetime) -> int:
        """How many tenants were begun."""
        begun = 0
        while candidates := await self._store.step_plan(plan_id, now):
            admission = await self._with_locks(plan_id, candidates, now)
            admitted = set(await self._store.admit(admission))
            begun += len(admitted)
            await self._locks.drop([each for each in candidates if each.task_id not in admitted])
            if not admitted and not admission.refused:
                break  # another instance was quicker
        return begun

    async def _with_locks(self, plan_id: int, candidates: Sequence[Candidate], now: datetime) -> Admission:
        taken = await asyncio.gather(*(self._locks.take(each.tenant_id, each.task_key) for each in candidates))
        admitted = [each.task_id for each, got in zip(candidates, taken, strict=True) if got]
        refused = [each for each, got in zip(candidates, taken, strict=True) if not got]
        for each in refused:
            log().warning(
                "somebody else has the tenant's lock",
                action="plan.lock_held",
                tenant=each.tenant_id,
                task=each.task_key,
            )
        return Admission(plan_id, now, tuple(admitted), tuple(each.task_id for each in refused), now + TRY_LOCK_AGAIN)


class Progress:
    """Tasks that run tell how far they are, however slow their stage is."""

    name = "plan_progress"
    every = timedelta(seconds=10)
    AT_ONCE = 1_000

    def __init__(self, store: Store, signals: Signals) -> None:
        self.interval = timedelta(seconds=5)
        self._store = store
        self._running = Recalled(store, store.running_tasks)
        """A look that writes nothing, where there is nothing to tell."""
        self._signals = signals

    async def run_once(self, now: datetime) -> Round:
        told = await self._store.tell_progress(now, self.every, self.AT_ONCE) if await self._running(now, 0, 1) else 0
        if told:
            self._signals.shown()
        return Round(told, now if told >= self.AT_ONCE else None)
