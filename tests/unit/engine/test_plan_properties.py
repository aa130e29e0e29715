"""Random rollouts: whatever people ask for and however stages end, what must always hold does, and in the end all is done."""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from tests.contract.store.world import ANNA
from tests.unit.engine.conftest import simulated
from tests.unit.engine.plan_world import STAGES, Rollout

from ksana.domain.errors import Conflict
from ksana.domain.plan import TaskStatus
from ksana.engine.plans.showing import shown_plan, shown_task
from ksana.runtime.base import Kind
from ksana.store.plan_requests import TaskFilter
from ksana.store.requests import PageRequest

TENANTS = ["a", "b", "c", "d", "e"]
ORDERS = ["pause_task", "resume_task", "retry_task", "retry_anew", "cancel_task"]
PLAN_ORDERS = ["pause", "pause_only", "resume", "override", "retry_failed", "let_go", "let_go", "let_go", "heal"]
NAMES = [f"{tenant}/{stage}" for tenant in TENANTS for stage in STAGES]
steps = st.one_of(
    st.tuples(st.sampled_from(ORDERS), st.sampled_from(TENANTS)),
    st.tuples(st.sampled_from(PLAN_ORDERS), st.just("")),
)


class Life:
    """One plan, from outside."""

    def __init__(self, rollout: Rollout, key: str, concurrency: int) -> None:
        self.rollout = rollout
        self.key = key
        self.concurrency = concurrency

    async def take(self, step: str, tenant: str) -> None:
        plans, rollout = self.rollout.plans, self.rollout
        orders: dict[str, Callable[[], Awaitable[object]]] = {
            "pause_task": lambda: plans.pause_task(tenant, None, ANNA),
            "resume_task": lambda: plans.resume_task(tenant, None, ANNA),
            "retry_task": lambda: plans.retry_task(tenant, None, ANNA),
            "retry_anew": lambda: plans.retry_task(tenant, None, ANNA, from_checkpoint=False),
            "cancel_task": lambda: plans.cancel_task(tenant, None, ANNA),
            "pause": lambda: plans.pause(self.key, ANNA),
            "pause_only": lambda: plans.pause(self.key, ANNA, tasks=False),
            "resume": lambda: plans.resume(self.key, ANNA),
            "override": lambda: plans.resume(self.key, ANNA, override=True),
            "retry_failed": lambda: plans.retry_failed(self.key, ANNA),
            "let_go": lambda: rollout.let_go(*rollout.held[:2]),
            "heal": rollout.heal,
        }
        try:
            await orders[step]()
        except Conflict as refused:
            note(f"refused: {refused}")
        await rollout.settle()
        await self.check()

    async def check(self) -> None:
        store, state = self.rollout.simulation.store, self.rollout.simulation.outside.now
        plan = await self.rollout.reread(self.key)
        tasks = (await store.tasks(TaskFilter(plan.id), PageRequest(size=100))).items
        running = {task.tenant_id: task.key for task in tasks if task.status is TaskStatus.RUNNING}
        assert len(running) <= self.concurrency
        assert await state.locks.all() == running
        begun = {task.wave for task in tasks if task.generation}
        assert all(wave <= plan.wave for wave in begun)
        for task in tasks:
            # Of its present pass, every stage that is done was done once, and in order.
            assert self.rollout.passed(task.tenant_id, task.run_key) == list(STAGES[: task.last_completed + 1])
        shown = await state.tasks.get([task.key for task in tasks])
        assert shown == {task.key: shown_task(task) for task in tasks}
        (whole,) = await store.plans_to_show([plan.id])
        assert (await state.plans.get([self.key]))[self.key] == shown_plan(whole)
        index = await state.index.get(TENANTS)
        assert index == {task.tenant_id: task.key for task in tasks if task.ended_at is None}

    async def finish(self) -> None:
        """Everything that can be done to have it end, and so it does."""
        self.rollout.recovers(*NAMES)
        for _ in range(4 * len(TENANTS)):
            self.rollout.release(*NAMES)
            await self.take("override", "")
            for tenant, status in (await self.rollout.tasks(self.key)).items():
                if status == "PAUSED":
                    await self.take("resume_task", tenant)
                elif status in {"FAILED", "CANCELLED"}:
                    await self.take("retry_task", tenant)
        assert set((await self.rollout.tasks(self.key)).values()) == {"COMPLETED"}
        assert await self.rollout.status(self.key) == "COMPLETED"
        assert not (await self.rollout.simulation.outside.now.counts()).get(Kind.CHECKPOINT)


@st.composite
def plans(draw: st.DrawFn) -> dict[str, object]:
    waves = st.fixed_dictionaries(
        {"size": st.integers(1, 2), "pauseAfter": st.booleans()},
        optional={"gate": st.integers(0, 60).map(lambda most: {"maxFailedPercent": most})},
    )
    more: dict[str, object] = {"maxConcurrency": draw(st.integers(1, 3)), "waves": draw(st.lists(waves, max_size=2))}
    if draw(st.booleans()):
        more["failureBudget"] = draw(st.integers(0, 3))
    return more


async def live(
    more: dict[str, object], failing: set[str], held: set[str], orders: list[tuple[str, str]], where: Path
) -> None:
    async with simulated(where) as simulation:
        rollout = Rollout(simulation)
        rollout.fails(*failing)
        rollout.hold(*held)
        key = await rollout.run(*TENANTS, **more)
        life = Life(rollout, key, int(str(more["maxConcurrency"])))
        await life.check()
        for step, tenant in orders:
            await life.take(step, tenant)
        await life.finish()


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(
    more=plans(),
    failing=st.sets(st.sampled_from(NAMES), max_size=4),
    held=st.sets(st.sampled_from(NAMES), max_size=6),
    orders=st.lists(steps, max_size=12),
)
def test_whatever_happens_to_a_rollout_what_must_hold_does(
    more: dict[str, object], failing: set[str], held: set[str], orders: list[tuple[str, str]]
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(live(more, failing, held, orders, Path(directory)))
