"""A person's orders to workflow runs and their nodes. Who, why and what is recorded with each."""

from typing import Any

from ksana.domain.clock import Clock
from ksana.domain.events import Actor
from ksana.domain.workflow_run import NodeRun, WorkflowRun
from ksana.engine.signals import Signals
from ksana.store.base import Store
from ksana.store.workflow_requests import Close, Complete, Order, Ordered, Reopen, SkipNode, Stop


class WorkflowRunCommands:
    def __init__(self, store: Store, clock: Clock, signals: Signals) -> None:
        self._store = store
        self._clock = clock
        self._signals = signals

    async def stop(self, key: str, actor: Actor, *, force: bool = False) -> WorkflowRun:
        """Nothing new starts; with `force`, what runs is broken off. NotFound, RunNotRunning."""
        run = await self._store.workflow_run_by_key(key)
        return (await self._give(Stop(run.id, self._clock.now(), force, actor))).run

    async def close(self, key: str, actor: Actor) -> WorkflowRun:
        """It has ended, for good. NotFound."""
        run = await self._store.workflow_run_by_key(key)
        return (await self._give(Close(run.id, self._clock.now(), actor))).run

    async def resume(self, key: str, actor: Actor) -> Ordered:
        """A stopped or failed run goes on with what is not done. NotFound, RunTerminal, RunNotStopped."""
        run = await self._store.workflow_run_by_key(key)
        return await self._give(Reopen(run.id, self._clock.now(), stopped=True, actor=actor))

    async def retry_failed(self, key: str, actor: Actor) -> Ordered:
        """All nodes that failed, again. NotFound, RunTerminal, RunNotStopped."""
        run = await self._store.workflow_run_by_key(key)
        return await self._give(Reopen(run.id, self._clock.now(), actor=actor))

    async def retry_node(self, key: str, node_id: str, actor: Actor) -> NodeRun:
        """NotFound, RunTerminal, RunNotRunning, NodeNotRetryable."""
        run = await self._store.workflow_run_by_key(key)
        await self._give(Reopen(run.id, self._clock.now(), frozenset({node_id}), actor=actor))
        return await self._store.node_run(run.id, node_id)

    async def complete_node(self, key: str, node_id: str, actor: Actor, artifact: Any, checkpoint: Any) -> NodeRun:
        """NotFound, RunTerminal, RunNotRunning, NodeNotCompletable."""
        run = await self._store.workflow_run_by_key(key)
        await self._give(Complete(run.id, node_id, self._clock.now(), artifact, checkpoint, actor))
        return await self._store.node_run(run.id, node_id)

    async def skip_node(self, key: str, node_id: str, actor: Actor) -> NodeRun:
        """NotFound, RunTerminal, RunNotRunning, NodeNotSkippable."""
        run = await self._store.workflow_run_by_key(key)
        await self._give(SkipNode(run.id, node_id, self._clock.now(), actor))
        return await self._store.node_run(run.id, node_id)

    async def _give(self, order: Order) -> Ordered:
        ordered = await self._store.order(order)
        for execution_id in ordered.broken_off:
            self._signals.canceled(execution_id)
        self._signals.work()
        return ordered
