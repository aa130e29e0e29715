"""Shows outside what has changed: the rows of the outbox, in order, at least once, from where the last process left off.

A row says that something has changed, not what: what is shown is how the thing stands when the row is read. So a row that is
shown twice, or late, does no harm. One instance does it at a time (a lease), so that nobody's older view comes last.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

from ksana.domain.errors import RuntimeUnavailable
from ksana.domain.instance import Lease
from ksana.engine.loop import Round
from ksana.engine.plans.outside import Outside
from ksana.engine.plans.showing import Shelf, show_tasks, shown_plan
from ksana.runtime.base import RuntimeState
from ksana.store.base import Store
from ksana.telemetry import log

AT_ONCE = 500
LEASE = timedelta(seconds=6)
LEASE_NAME = "runtime"
RENEW_AFTER = timedelta(seconds=2)


class Turn:
    """Whether this instance is the one that shows things."""

    def __init__(self, store: Store, owner: Callable[[], str | None]) -> None:
        self._store = store
        self._owner = owner
        self._lease: Lease | None = None
        self._until: datetime | None = None

    async def mine(self, now: datetime) -> bool:
        owner = self._owner()
        if owner is None:
            return False
        if self._until is None or now >= self._until:
            self._lease = await self._store.acquire_lock(LEASE_NAME, owner, LEASE)
            self._until = None if self._lease is None else now + RENEW_AFTER
        return self._until is not None

    async def end(self) -> None:
        """Somebody else's, at once."""
        if self._lease is not None:
            await self._store.release_lock(self._lease)


class Projector:
    name = "projector"

    def __init__(self, store: Store, outside: Outside, turn: Turn, shelf: Shelf, interval: timedelta) -> None:
        self.interval = interval
        self._shelf = shelf
        self._store = store
        self._outside = outside
        self._turn = turn

    async def run_once(self, now: datetime) -> Round:
        rows = await self._store.outbox(AT_ONCE)
        if not rows or not await self._turn.mine(now):
            return Round()
        tasks = await self._store.tasks_to_show(sorted({row.task_id for row in rows if row.task_id is not None}))
        plans = await self._store.plans_to_show(sorted({row.plan_id for row in rows}))

        async def show(state: RuntimeState) -> None:
            await show_tasks(state, tasks, self._shelf, now)
            await state.plans.save([shown_plan(each) for each in plans])

        try:
            await self._outside.use(show)
        except RuntimeUnavailable as error:
            log().warning("not shown outside yet", action="runtime.not_shown", rows=len(rows), err=error.message)
            raise
        await self._store.shown([row.id for row in rows])
        return Round(len(rows), now if len(rows) >= AT_ONCE else None)
