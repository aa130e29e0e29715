"""Shows outside what has changed: the rows of the outbox, in order, at least once, from where the last process left off.

A row says that something has changed, not what: what is shown is how the thing stands when the row is read. So a row that is
shown twice, or late, does no harm. The leader does it alone, so that nobody's older view comes last.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

from ksana.domain.errors import RuntimeUnavailable
from ksana.engine.loop import Round
from ksana.engine.plans.outside import Outside
from ksana.engine.plans.showing import Shelf, show_tasks, shown_plan
from ksana.engine.recall import Recalled
from ksana.runtime.base import RuntimeState
from ksana.store.base import Store
from ksana.telemetry import log

AT_ONCE = 500


class Projector:
    name = "projector"

    def __init__(
        self, store: Store, outside: Outside, leads: Callable[[], bool], shelf: Shelf, interval: timedelta
    ) -> None:
        self.interval = interval
        self._shelf = shelf
        self._store = store
        self._outbox = Recalled(store, store.outbox)
        self._outside = outside
        self._leads = leads

    async def run_once(self, now: datetime) -> Round:
        rows = await self._outbox(now, AT_ONCE) if self._leads() else ()
        if not rows:
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
