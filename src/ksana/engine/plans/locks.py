"""Tenants' locks as others see them. The store's fencing token is what keeps late work out; this keeps others away."""

from collections.abc import Sequence
from datetime import timedelta

from ksana import failpoints
from ksana.domain.plan import TaskStatus
from ksana.engine.plans.outside import Outside
from ksana.runtime.base import RuntimeState
from ksana.store.base import Store
from ksana.store.plan_requests import Candidate


class Locks:
    def __init__(self, store: Store, outside: Outside, life: timedelta) -> None:
        self._store = store
        self._outside = outside
        self.life = life

    async def take(self, tenant_id: str, task_key: str) -> bool:
        """Whether it is this task's now: taken, kept, or taken from a task of ours that does not run. False: others have it.
        RuntimeUnavailable."""
        taken = await self._outside.use(lambda state: self._take(state, tenant_id, task_key))
        failpoints.reach("lock.taken")
        return taken

    async def _take(self, state: RuntimeState, tenant_id: str, task_key: str) -> bool:
        if await state.locks.try_acquire(tenant_id, task_key, self.life):
            return True
        holder = (await state.locks.holders([tenant_id])).get(tenant_id)
        if holder is not None and not await self._left_behind(holder):
            return False
        if holder is not None:
            await state.locks.release(tenant_id, holder)
        return await state.locks.try_acquire(tenant_id, task_key, self.life)

    async def _left_behind(self, task_key: str) -> bool:
        """A task of ours that does not run needs no lock; of one that is not ours, nobody here can say."""
        found = (await self._store.task_states([task_key])).get(task_key)
        return found is not None and found is not TaskStatus.RUNNING

    async def still_mine(self, tenant_id: str, task_key: str) -> bool:
        """Whether nobody else has it. One that is gone is taken again. RuntimeUnavailable."""
        if not self._outside.shared:
            return True  # whoever could take it there is fenced by the store
        holders = await self._outside.use(lambda state: state.locks.holders([tenant_id]))
        return holders.get(tenant_id) == task_key or await self.take(tenant_id, task_key)

    async def drop(self, tasks: Sequence[Candidate]) -> None:
        """Of these, the locks of those that do not run after all."""
        if not tasks:
            return
        states = await self._store.task_states([task.task_key for task in tasks])
        for task in tasks:
            if states.get(task.task_key) is not TaskStatus.RUNNING:
                tenant, key = task.tenant_id, task.task_key
                await self._outside.use(lambda state, t=tenant, k=key: state.locks.release(t, k))  # type: ignore[misc]
                failpoints.reach("lock.released")
