"""Keeps what is shown outside what it should be: locks are renewed, what is missing or wrong there is made anew, what was left
behind goes. Redis may be away, frozen, flushed or tampered with: the store has everything, and this brings it back.
"""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta

from ksana.domain.errors import RuntimeUnavailable
from ksana.domain.plan import TenantTask
from ksana.engine.loop import Round
from ksana.engine.plans.findings import Findings
from ksana.engine.plans.locks import Locks
from ksana.engine.plans.outside import SHARED, Outside
from ksana.engine.plans.showing import (
    WITHOUT_LOCK,
    Shelf,
    not_as_shown,
    plans_not_shown,
    show_anew,
    show_tasks,
    shown_plan,
)
from ksana.engine.signals import Signals
from ksana.runtime.base import RuntimeState
from ksana.store.base import Store
from ksana.store.plan_requests import ShownAfter
from ksana.telemetry import log

Show = Callable[[RuntimeState, Sequence[TenantTask], Shelf, datetime], Awaitable[None]]
AT_ONCE = 200
COMPARED_AT_ONCE = 50
PLANS_AT_ONCE = 10
LOOK = timedelta(seconds=2)
LOOK_AT_OWN = timedelta(seconds=30)
"""What only Ksana writes need not be looked after so closely."""
COUNT_EVERY = timedelta(seconds=30)
RENEW_SHOWN = timedelta(hours=12)


class Keeper:
    name = "runtime_keeper"

    def __init__(
        self, store: Store, outside: Outside, locks: Locks, leads: Callable[[], bool], signals: Signals, shelf: Shelf
    ) -> None:
        self.interval = LOOK if outside.chosen.name == SHARED else LOOK_AT_OWN
        self._store = store
        self._outside = outside
        self._locks = locks
        self._leads = leads
        self._signals = signals
        self._shelf = shelf
        self._after_task = ShownAfter()
        self._after_plan = 0
        self._renew_shown_at: datetime | None = None
        self._renew_at: datetime | None = None
        self._count_at: datetime | None = None
        self._suspects: dict[str, str] = {}
        self.findings = Findings()

    async def run_once(self, now: datetime) -> Round:
        usable = await self._outside.look()
        if not self._leads():
            self.findings.counts, self.findings.leaked_now = {}, 0  # others tell
            if usable:
                self._outside.regain()  # the leader brings it up to date
            return Round()
        try:
            done = await self._keep(now, usable=usable)
            return Round(done, now if self._outside.stale else None)
        except RuntimeUnavailable as error:
            if self._outside.trouble is not None:
                raise  # where the store itself stands in
            self._outside.lose(error)
            return Round()

    async def _keep(self, now: datetime, *, usable: bool) -> int:
        if usable:
            self._outside.regain()
        await self._keep_locks(now)
        if self._outside.stale:
            await self._make_anew(self._outside.now, now)
        elif self._renew_shown_at is not None and now >= self._renew_shown_at:
            await self._renew(self._outside.now, now)
        self._renew_shown_at = self._renew_shown_at or now + RENEW_SHOWN
        done = await self._compare(now)
        await self._count(now)
        return done

    # All of it ----------------------------------------------------------------------------------------------------

    async def _make_anew(self, state: RuntimeState, now: datetime) -> None:
        """Everything that is to be seen, whatever is there. RuntimeUnavailable."""
        shown = await self._show_all(state, now, show_tasks, lambda _: True)
        after, since = 0, now - self._shelf.projection
        while plans := await self._store.all_plans_to_show(after, since, PLANS_AT_ONCE):
            await state.plans.save([shown_plan(each) for each in plans])
            after = plans[-1].plan.id
        self._outside.stale = False
        if shown:
            log().info("runtime state was made anew", action="runtime.made_anew", store=state.name, tasks=shown)

    async def _renew(self, state: RuntimeState, now: datetime) -> None:
        """What has not changed for long, of tasks that have not ended, is shown for another lifetime."""
        self._renew_shown_at = now + RENEW_SHOWN
        await self._show_all(
            state, now, show_anew, lambda task: task.ended_at is None and now - task.updated_at > RENEW_SHOWN
        )

    async def _show_all(
        self, state: RuntimeState, now: datetime, show: Show, wanted: Callable[[TenantTask], bool]
    ) -> int:
        cursor: ShownAfter | None = ShownAfter()
        shown = 0
        while cursor is not None:
            tasks, cursor = await self._store.all_tasks_to_show(cursor, now - self._shelf.projection, AT_ONCE)
            chosen = [task for task in tasks if wanted(task)]
            await show(state, chosen, self._shelf, now)
            shown += len(chosen)
        return shown

    # Locks --------------------------------------------------------------------------------------------------------

    async def _keep_locks(self, now: datetime) -> None:
        """Every task that runs has its tenant's lock, for long enough; one that somebody else has is lost."""
        anew = self._renew_at is None
        renew = anew or now >= (self._renew_at or now)
        after = 0
        while tasks := await self._store.running_tasks(after, AT_ONCE):
            after = tasks[-1][0]
            tenants = [tenant_id for _, _, tenant_id in tasks]
            holders = await self._outside.use(lambda state, t=tenants: state.locks.holders(t))  # type: ignore[misc]
            for task_id, task_key, tenant_id in tasks:
                held = holders.get(tenant_id) == task_key
                if (renew or not held) and not await self._locks.take(tenant_id, task_key):
                    await self._lose(task_id, task_key, tenant_id, now)
                elif not held and not anew:
                    self.findings.repaired += 1
        if renew:
            self._renew_at = now + self._locks.life / 3

    async def _lose(self, task_id: int, task_key: str, tenant_id: str, now: datetime) -> None:
        log().error("a tenant's lock is lost", action="plan.lock_lost", tenant=tenant_id, task=task_key)
        for execution_id in await self._store.lose_lock(task_id, now):
            self._signals.canceled(execution_id)
        self._signals.plans()

    # A part of it at a time ---------------------------------------------------------------------------------------

    async def _compare(self, now: datetime) -> int:
        """Tasks and plans, a portion each time, against what is shown of them; what is not as it should be is shown again."""
        since, state = now - self._shelf.projection, self._outside.now
        tasks, cursor = await self._store.all_tasks_to_show(self._after_task, since, COMPARED_AT_ONCE)
        if cursor is not None and len(tasks) < COMPARED_AT_ONCE:  # none left that goes on: those that have ended
            more, cursor = await self._store.all_tasks_to_show(cursor, since, COMPARED_AT_ONCE - len(tasks))
            tasks = [*tasks, *more]
        self._after_task = cursor or ShownAfter()
        plans = await self._store.all_plans_to_show(self._after_plan, since, PLANS_AT_ONCE)
        self._after_plan = plans[-1].plan.id if len(plans) == PLANS_AT_ONCE else 0
        wrong, most = await not_as_shown(state, tasks, self._shelf, now)
        missing = await plans_not_shown(state, plans, now)
        await show_anew(state, wrong, self._shelf, now)
        await state.plans.save([shown_plan(each) for each in missing])
        found = len(wrong) + len(missing) + await state.repaired()
        self._tell_repairs(state, found, all_gone=most and cursor is not None)
        return found

    def _tell_repairs(self, state: RuntimeState, found: int, *, all_gone: bool) -> None:
        if not found:
            return
        self.findings.repaired += found
        log().warning("what is shown outside was repaired", action="runtime.repaired", store=state.name, number=found)
        if all_gone:  # flushed, it seems: all that is not in this portion, too
            self._outside.stale = True

    # For metrics --------------------------------------------------------------------------------------------------

    async def _count(self, now: datetime) -> None:
        """How much is there; and locks of tasks that do not run, which go."""
        if self._count_at is not None and now < self._count_at:
            return
        self._count_at, state = now + COUNT_EVERY, self._outside.now
        self.findings.counts = await state.counts()
        self.findings.leaked_now = await self._release_leaked(state)
        self.findings.leaked += self.findings.leaked_now

    async def _release_leaked(self, state: RuntimeState) -> int:
        held = await state.locks.all()
        states = await self._store.task_states(list(held.values()))
        # Of one that waits, somebody may just be taking the lock; of one that we do not know, we cannot say.
        idle = {tenant: task for tenant, task in held.items() if states.get(task) in WITHOUT_LOCK}
        # Seen twice: that of one that has just ended is on its way out.
        leaked = {tenant: task for tenant, task in idle.items() if self._suspects.get(tenant) == task}
        self._suspects = idle
        self.findings.strangers = sum(task not in states for task in held.values())
        for tenant, task in leaked.items():
            log().warning("a lock was left behind", action="plan.lock_leaked", tenant=tenant, task=task)
            await state.locks.release(tenant, task)
        return len(leaked)
