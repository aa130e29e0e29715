"""Workflows: made, changed, switched, deleted, checked, started."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from ksana.domain.clock import Clock
from ksana.domain.dag_reading import read_dag
from ksana.domain.errors import (
    ConcurrencyLimit,
    InvalidDag,
    InvalidInput,
    NotFound,
    VersionMismatch,
    WorkflowDisabled,
)
from ksana.domain.events import Actor
from ksana.domain.execution import Trigger
from ksana.domain.ids import checked_key, new_key
from ksana.domain.job import DESCRIPTION_LENGTH, checked_name
from ksana.domain.workflow import Dag, Workflow, WorkflowSpec
from ksana.engine.commands.anew import until_it_fits
from ksana.engine.commands.definitions import KEPT, Resolver
from ksana.engine.params import check_params
from ksana.engine.signals import Signals
from ksana.store.base import Store
from ksana.store.workflow_requests import NewRun, NewWorkflow, StartedRun, WorkflowChange


@dataclass(frozen=True, slots=True)
class WorkflowDraft:
    """`dag` is the document of 000 and 001, as JSON."""

    name: str
    dag: Any
    description: str = ""
    enabled: bool = True
    key: str | None = None


@dataclass(frozen=True, slots=True)
class WorkflowEdit:
    """What a workflow becomes: None leaves a part as it is."""

    name: str | None = None
    dag: Any = None
    description: str | None = None
    enabled: bool | None = None
    expected_version: int | None = None
    always_new: bool = False


@dataclass(frozen=True, slots=True)
class StartRequest:
    key: str | None = None
    """The client's own id of the run: asked for again, it gives the same run."""
    idempotency_key: str | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    trace_id: str | None = None


REFUSALS = (NotFound, WorkflowDisabled, ConcurrencyLimit, VersionMismatch, InvalidInput)
"""Why nothing was started; certainly nothing was."""


class WorkflowCommands:
    def __init__(self, store: Store, clock: Clock, resolver: Resolver, signals: Signals) -> None:
        self._store = store
        self._clock = clock
        self._resolver = resolver
        self._signals = signals
        self._known: dict[str, Workflow] = {}
        """Those that were lately made, or that runs were started of. The store refuses a run of one that has changed since."""

    async def create(self, draft: WorkflowDraft, actor: Actor) -> Workflow:
        """InvalidInput, InvalidDag, UnknownJob, DisabledJob, NameTaken, IdTaken."""
        key = new_key(self._clock.now()) if draft.key is None else checked_key(draft.key)
        spec = await _spec(draft.name, draft.dag, draft.description)
        resolved = await self._resolver.resolve(spec.dag)
        new = NewWorkflow(key, spec, draft.enabled, resolved.references, actor)
        workflow = self._remember(await self._store.create_workflow(new))
        self._resolver.keep(workflow, resolved)
        return workflow

    async def change(self, key: str, amendment: Callable[[Workflow], WorkflowEdit], actor: Actor) -> Workflow:
        """What is given changes; worked out anew if somebody else changes it first, unless the edit says which version it is
        for. As `create`; NotFound, VersionMismatch."""
        given: int | None = None

        async def attempt() -> Workflow:
            nonlocal given
            workflow = await self._store.workflow_by_key(key)
            edit = amendment(workflow)
            given = edit.expected_version
            if given not in {None, workflow.version}:
                raise VersionMismatch("workflow", key, expected=given or 0, actual=workflow.version)
            return await self._changed(workflow, edit, actor)

        changed = await until_it_fits(attempt, lambda _: given is None)
        self._signals.work()
        return changed

    async def _changed(self, workflow: Workflow, edit: WorkflowEdit, actor: Actor) -> Workflow:
        old = workflow.spec
        name = old.name if edit.name is None else edit.name
        description = old.description if edit.description is None else edit.description
        spec = await _spec(name, old.dag.document if edit.dag is None else edit.dag, description)
        resolved = await self._resolver.resolve(spec.dag, workflow.id)
        return await self._store.change_workflow(
            WorkflowChange(
                workflow.id,
                spec,
                resolved.references,
                enabled=edit.enabled,
                expected_version=workflow.version,
                always_new=edit.always_new,
                actor=actor,
            )
        )

    async def switch(self, key: str, actor: Actor, *, enabled: bool) -> Workflow:
        """NotFound."""
        workflow = await self._store.workflow_by_key(key)
        return await self._store.switch_workflow(workflow.id, actor, enabled=enabled)

    async def delete(self, key: str, actor: Actor) -> None:
        """Its runs go on. NotFound, WorkflowInUse."""
        workflow = await self._store.workflow_by_key(key)
        if not await self._store.delete_workflow(workflow.id, actor):
            raise NotFound("workflow", key)

    async def validate(self, document: Any, key: str | None = None) -> Dag:
        """Everything that saving it would check, without saving it. As `create`."""
        workflow = None if key is None else await self._store.workflow_by_key(key)
        dag = await _read(document)
        await self._resolver.resolve(dag, None if workflow is None else workflow.id)
        return dag

    async def start(self, key: str, request: StartRequest, actor: Actor) -> StartedRun:
        """A run, now. NotFound, WorkflowDisabled, ConcurrencyLimit, InvalidInput, IdTaken; InvalidDag if a job that it names was
        switched off or changed since it was saved."""
        known = self._known.get(key) if request.key is None and request.idempotency_key is None else None
        if known is not None:
            with suppress(*REFUSALS):  # which may be of what it was: then it is looked at
                return await self._started(known, request, actor, remembered=True)
        return await self._started_anew(key, request, actor)

    async def _started_anew(self, key: str, request: StartRequest, actor: Actor) -> StartedRun:
        """By what the workflow is now."""
        workflow = await self._store.workflow_by_key(key)
        run_key = None if request.key is None else checked_key(request.key, field="runId")
        # Whatever has become of the workflow: who asks again is told of the run that there is.
        if run_key is not None or request.idempotency_key is not None:
            known = await self._store.known_run(workflow.id, run_key, request.idempotency_key)
            if known is not None:
                return StartedRun(known, created=False)
        if not workflow.enabled:
            raise WorkflowDisabled(key)
        return await self._started(self._remember(workflow), replace(request, key=run_key), actor)

    def _remember(self, workflow: Workflow) -> Workflow:
        if len(self._known) >= KEPT:
            self._known.clear()
        self._known[workflow.key] = workflow
        return workflow

    async def _started(
        self, workflow: Workflow, request: StartRequest, actor: Actor, *, remembered: bool = False
    ) -> StartedRun:
        schema, now = workflow.spec.dag.params_schema, self._clock.now()
        params = request.params if schema is None else check_params(schema, request.params)
        new = await self.beginning(
            workflow,
            now,
            request.key,
            params=params,
            idempotency_key=request.idempotency_key,
            trace_id=request.trace_id,
            actor=actor,
            remembered=remembered,
        )
        self._signals.work_coming()
        started = await self._store.start_run(new)
        self._signals.work_came()
        return started

    async def beginning(self, workflow: Workflow, now: datetime, key: str | None = None, **given: Any) -> NewRun:
        """What a run of it starts with: what it is, and what else is given. InvalidDag."""
        snapshot = (await self._resolver.of_workflow(workflow)).snapshot
        key = new_key(now) if key is None else key
        return NewRun(key, workflow.id, workflow.key, workflow.version, snapshot, now, **given)

    async def planned(self, workflow_id: int, params: Mapping[str, Any], now: datetime) -> NewRun | str:
        """What its scheduled runs start with; or, in a word, why they cannot."""
        try:
            workflow = await self._store.workflow(workflow_id)
            new = await self.beginning(workflow, now)
            schema = workflow.spec.dag.params_schema
            checked = params if schema is None else check_params(schema, params)
        except NotFound:
            return "workflow_deleted"
        except InvalidDag as error:
            return error.code.lower()
        except InvalidInput:
            return "params_invalid"  # the schema has changed since the schedule was made
        return replace(new, trigger=Trigger.SCHEDULE, params=checked)

    async def child(self, key: str, params: Mapping[str, Any], depth: int, now: datetime) -> NewRun:
        """A run for a node of another. NotFound, InvalidInput."""
        workflow = await self._store.workflow_by_key(key)
        schema = workflow.spec.dag.params_schema
        checked = params if schema is None else check_params(schema, params)
        new = await self.beginning(workflow, now)
        return replace(new, params=checked, depth=depth, trigger=Trigger.WORKFLOW)


LARGE = 500
"""Nodes from which on a graph is read in a thread, so that nobody waits for it."""


async def _spec(name: str, document: Any, description: str) -> WorkflowSpec:
    if len(description) > DESCRIPTION_LENGTH:
        raise InvalidInput("description", f"is longer than {DESCRIPTION_LENGTH} characters")
    return WorkflowSpec(checked_name(name), await _read(document), description)


async def _read(document: Any) -> Dag:
    nodes = document.get("nodes") if isinstance(document, Mapping) else None
    if isinstance(nodes, list) and len(nodes) > LARGE:
        return await asyncio.to_thread(read_dag, document)
    return read_dag(document)
