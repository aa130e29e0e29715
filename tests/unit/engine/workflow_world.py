"""Workflows in a simulation: nodes whose outcome a test decides, and short ways to ask what became of them."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any

from tests.contract.store.world import ANNA
from tests.unit.engine.simulation import Simulation

from ksana.domain.outcome import Failed, Outcome, Succeeded
from ksana.domain.states import JOBCHAIN_NODE_NAMES, ExecutionStatus
from ksana.domain.workflow import Workflow
from ksana.domain.workflow_run import NodeRun, WorkflowRun
from ksana.engine.commands import JobEdit, StartRequest, WorkflowDraft
from ksana.executors.base import ExecutionContext


def node(key: str, *depends_on: str, **more: Any) -> dict[str, Any]:
    return {"id": key, "type": "scripted", "cfg": {}, "dependsOn": list(depends_on), **more}


class Flow:
    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.orders = simulation.workflow_runs
        self.order: list[str] = []
        """Nodes, as they were asked for."""
        self._failing: dict[str, int] = {}
        self._given: dict[str, Callable[[ExecutionContext], Any]] = {}
        self._held: set[str] | None = None
        self._gates: dict[int, tuple[str, asyncio.Event]] = {}
        self._names = count(1)
        simulation.target.execute = self._execute  # type: ignore[method-assign]
        simulation.idle = self._idle  # type: ignore[method-assign]

    # What nodes do ------------------------------------------------------------------------------------------------

    async def _execute(self, context: ExecutionContext) -> Outcome:
        self.simulation.target.asked.append(context)
        assert context.place is not None
        key = context.place.node_id
        self.order.append(key)
        if self._held is not None and (not self._held or key in self._held):
            await self._gate(context.execution.id, key)
        left = self._failing.get(key, 0)
        if left:
            self._failing[key] = left - 1
            return Failed(f"{key} failed")
        if key in self._given:
            return Succeeded(self._given[key](context))
        plain = key.partition("[")[0]
        if plain in self._given:
            return Succeeded(self._given[plain](context))
        return self.simulation.target.answer(context)

    def fails(self, *keys: str, times: int = 1_000) -> None:
        self._failing |= dict.fromkeys(keys, times)

    def recovers(self, *keys: str) -> None:
        for key in keys:
            self._failing.pop(key, None)

    def gives(self, key: str, output: Any) -> None:
        self._given[key] = lambda _: output

    def computes(self, key: str, output: Callable[[ExecutionContext], Any]) -> None:
        self._given[key] = output

    async def _gate(self, execution_id: int, key: str) -> None:
        gate = self._gates[execution_id] = (key, asyncio.Event())
        try:
            await gate[1].wait()
        finally:
            self._gates.pop(execution_id, None)

    def hold(self, *keys: str) -> None:
        """These do not end before they are let go; all, if none are named."""
        self._held = set(keys)

    def free(self) -> None:
        """Nobody is held from now on."""
        self._held = None
        for _, gate in self._gates.values():
            gate.set()

    async def let_go(self, *keys: str) -> None:
        """Those that are held with these names, all if there are none, and whatever follows."""
        if not keys:
            self.free()
        for key, gate in self._gates.values():
            if key in keys:
                gate.set()
        await self._idle()
        await self.simulation.settle()

    async def end_one(self) -> None:
        """The first that is held."""
        next(iter(self._gates.values()))[1].set()
        await self._idle()
        await self.simulation.settle()

    async def end(self, key: str, *, failed: bool = False) -> None:
        """One that is held, so or so."""
        if failed:
            self.fails(key, times=1)
        await self.let_go(key)

    async def _idle(self) -> int:
        """Until nothing runs but what is held; how many ended."""
        seen: set[asyncio.Task[Any]] = set()
        while True:
            tasks = {task for task in asyncio.all_tasks() if task.get_name().startswith("run ")}
            seen |= tasks
            held = sum(not gate.is_set() for _, gate in self._gates.values())
            if len(tasks) <= held:
                return len(seen - tasks)
            await asyncio.wait(tasks, timeout=0.005, return_when=asyncio.FIRST_COMPLETED)

    # Things -------------------------------------------------------------------------------------------------------

    async def define(self, nodes: list[dict[str, Any]], name: str | None = None, **options: Any) -> Workflow:
        draft = WorkflowDraft(name or f"flow-{next(self._names)}", {"nodes": nodes, **options})
        return await self.simulation.workflows.create(draft, ANNA)

    async def start_of(self, workflow: Workflow, **params: Any) -> str:
        started = await self.simulation.workflows.start(workflow.key, StartRequest(params=params), ANNA)
        return started.run.key

    async def start(self, nodes: list[dict[str, Any]], params: dict[str, Any] | None = None, **options: Any) -> str:
        return await self.start_of(await self.define(nodes, **options), **(params or {}))

    async def run(self, nodes: list[dict[str, Any]], params: dict[str, Any] | None = None, **options: Any) -> str:
        key = await self.start(nodes, params, **options)
        await self.simulation.settle()
        return key

    async def reread(self, key: str) -> WorkflowRun:
        return await self.simulation.store.workflow_run_by_key(key)

    async def nodes(self, key: str) -> list[NodeRun]:
        return list((await self.simulation.store.run_nodes((await self.reread(key)).id)).nodes)

    async def node(self, key: str, node_id: str) -> NodeRun:
        return await self.simulation.store.node_run((await self.reread(key)).id, node_id)

    async def statuses(self, key: str) -> dict[str, str]:
        return {each.node_id: JOBCHAIN_NODE_NAMES[each.execution.status] for each in await self.nodes(key)}

    async def running(self, key: str) -> int:
        return sum(each.execution.status is ExecutionStatus.RUNNING for each in await self.nodes(key))

    async def change_job(self, job_id: int, config: dict[str, Any]) -> None:
        view = await self.simulation.queries.job(job_id)
        await self.simulation.jobs.change(job_id, JobEdit(replace(view.job.spec, config=config)), ANNA)
