"""Plans in a simulation: stages whose outcome a test decides, by tenant, and short ways to ask what became of them."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

from tests.contract.store.world import ANNA
from tests.unit.engine.simulation import Simulation

from ksana.domain.outcome import Failed, Outcome, Succeeded
from ksana.domain.plan import Plan, PlanStatus, TenantTask
from ksana.executors.base import ExecutionContext
from ksana.store.plan_requests import PlanFilter, TaskFilter
from ksana.store.requests import PageRequest

STAGES = ("prepare", "migrate", "verify")


def stage(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": "scripted", "config": {}, **more}


class Rollout:
    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.plans = simulation.plans
        self.order: list[str] = []
        """`tenant/stage`, as they were asked for."""
        self.most_at_once = 0
        self._now: Counter[str] = Counter()
        self.asked: list[ExecutionContext] = []
        self._failing: dict[str, int] = {}
        self._flaky: dict[str, int] = {}
        self._saving: dict[str, Any] = {}
        self._passed: list[tuple[str, str, str]] = []
        self._held: set[str] = set()
        self._gates: dict[str, asyncio.Event] = {}
        simulation.target.execute = self._execute  # type: ignore[method-assign]
        simulation.idle = self._idle  # type: ignore[method-assign]

    async def _execute(self, context: ExecutionContext) -> Outcome:
        assert context.place is not None
        tenant = context.params["tenantId"]
        name = f"{tenant}/{context.place.node_id}"
        self.order.append(name)
        self.asked.append(context)
        self._now[tenant] += 1
        assert self._now[tenant] == 1, f"two stages of {tenant} at once"
        self.most_at_once = max(self.most_at_once, self._now.total())
        try:
            if name in self._held:
                self._gates[name] = asyncio.Event()
                await self._gates[name].wait()
            if name in self._saving and context.tools is not None:
                await context.tools.save_checkpoint(self._saving[name])
            left = self._failing.get(name, 0)
            if left:
                self._failing[name] = left - 1
                return Failed(f"{name} failed", retryable=False)
            if self._flaky.get(name, 0):
                self._flaky[name] -= 1
                return Failed(f"{name} failed, for now")
            self._passed.append((tenant, context.place.run_id, context.place.node_id))
            return Succeeded({"did": name})
        finally:
            self._now[tenant] -= 1
            self._gates.pop(name, None)

    def fails(self, *names: str, times: int = 1_000) -> None:
        self._failing |= dict.fromkeys(names, times)

    def saves(self, name: str, checkpoint: Any) -> None:
        """Its stage saves this, to go on from."""
        self._saving[name] = checkpoint

    def flaky(self, name: str, *, times: int) -> None:
        """It fails so often, and may be tried again."""
        self._flaky[name] = times

    def recovers(self, *names: str) -> None:
        for name in names:
            self._failing.pop(name, None)

    async def heal(self) -> None:
        """Nothing fails any more."""
        self._failing.clear()

    def hold(self, *names: str) -> None:
        self._held |= set(names)

    @property
    def held(self) -> list[str]:
        """Those that would be held, or are."""
        return sorted(self._held)

    def passed(self, tenant: str, run_key: str | None) -> list[str]:
        """The stages of one run that were done, as its targets saw it."""
        return [stage for by, run, stage in self._passed if (by, run) == (tenant, run_key)]

    def release(self, *names: str) -> None:
        for name in names:
            self._held.discard(name)
            if name in self._gates:
                self._gates[name].set()

    async def let_go(self, *names: str) -> None:
        self.release(*names)
        await self.settle()

    async def settle(self) -> None:
        await self._idle()
        await self.simulation.settle()

    async def _idle(self) -> int:
        """Until nothing runs but what is held; how many ended."""
        seen: set[asyncio.Task[Any]] = set()
        while True:
            tasks = {task for task in asyncio.all_tasks() if task.get_name().startswith("run ")}
            seen |= tasks
            held = sum(not gate.is_set() for gate in self._gates.values())
            if len(tasks) <= held:
                return len(seen - tasks)
            await asyncio.wait(tasks, timeout=0.005, return_when=asyncio.FIRST_COMPLETED)

    # Things -------------------------------------------------------------------------------------------------------

    async def plan(self, *tenants: str, stages: Sequence[str | dict[str, Any]] = STAGES, **more: Any) -> str:
        document = {
            "name": "rollout",
            "stages": [stage(each) if isinstance(each, str) else each for each in stages],
            "tenants": list(tenants),
            "maxConcurrency": 2,
            "autoStart": True,
            **more,
        }
        return (await self.plans.create(document, ANNA)).key

    async def run(self, *tenants: str, **more: Any) -> str:
        key = await self.plan(*tenants, **more)
        await self.settle()
        return key

    async def reread(self, key: str) -> Plan:
        return await self.simulation.store.plan_by_key(key)

    async def status(self, key: str) -> PlanStatus:
        return (await self.reread(key)).status

    async def task(self, tenant: str, key: str | None = None) -> TenantTask:
        return await self.simulation.store.task_of(tenant, key)

    async def tasks(self, key: str) -> dict[str, str]:
        plan = await self.reread(key)
        page = await self.simulation.store.tasks(TaskFilter(plan.id), PageRequest(size=500))
        return {task.tenant_id: task.status.value for task in page.items}

    async def tasks_by_plan(self) -> dict[str, dict[str, str]]:
        page = await self.simulation.store.plans(PlanFilter(), PageRequest(size=500))
        return {plan.key: await self.tasks(plan.key) for plan in page.items}
