"""Plans and the tasks of their tenants: made, begun, paused, resumed, tried again, cancelled."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import orjson

from ksana.domain.clock import Clock
from ksana.domain.dag_reading import read_dag
from ksana.domain.errors import DisabledJob, InvalidDag, InvalidInput, NotFound, UnknownJob
from ksana.domain.events import Actor
from ksana.domain.ids import checked_key, new_key
from ksana.domain.plan import Plan, PlanSpec, Tenant, TenantTask
from ksana.domain.plan_reading import read_plan, stage_field, stages_as_dag
from ksana.domain.workflow import Snapshot
from ksana.engine.commands.definitions import Resolver
from ksana.engine.signals import Signals
from ksana.store.base import Store
from ksana.store.plan_requests import (
    CancelPlan,
    CancelTask,
    CheckpointRemoval,
    ContextChange,
    NewPlan,
    PausePlan,
    PauseTask,
    PlanOrder,
    ResumePlan,
    ResumeTask,
    RetryFailed,
    RetryTask,
    StartPlan,
    Steered,
    TaskOrder,
)

MAX_CONTEXT_KEYS = 1_000
MAX_PARAMS = 1_000_000
"""Bytes of what a tenant's stages see, the plan's and its own together."""


@dataclass(frozen=True, slots=True)
class PlanOptions:
    checkpoint_life: timedelta = timedelta(days=7)


class PlanCommands:
    def __init__(self, store: Store, clock: Clock, resolver: Resolver, signals: Signals, options: PlanOptions) -> None:
        self._store = store
        self._clock = clock
        self._resolver = resolver
        self._signals = signals
        self._options = options

    async def create(self, document: Any, actor: Actor) -> Plan:
        """A plan as it was sent. InvalidInput (also of a stage: UnknownJob, DisabledJob), IdTaken, TenantBusy."""
        spec, tenants = read_plan(document)
        _refuse_large(spec, tenants)
        start, key = document.get("autoStart"), document.get("planId")
        if start is not None and not isinstance(start, bool):
            raise InvalidInput("autoStart", "must be true or false")
        if key is not None and not isinstance(key, str):
            raise InvalidInput("planId", "must be a text")
        now = self._clock.now()
        new = NewPlan(
            key=new_key(now) if key is None else checked_key(key, field="planId"),
            spec=spec,
            snapshot=await self._resolved(spec),
            tenants=[(new_key(now), tenant) for tenant in tenants],
            at=now,
            start=bool(start),
            actor=actor,
        )
        plan = await self._store.create_plan(new)
        self._signals.plans()
        return plan

    async def _resolved(self, spec: PlanSpec) -> Snapshot:
        try:
            return (await self._resolver.resolve(read_dag(stages_as_dag(spec)))).snapshot
        except (UnknownJob, DisabledJob) as error:
            job = error.details.get("jobId")
            raise type(error)(stage_field(error.field), error.reason, jobId=job) from error
        except InvalidDag as error:
            field = stage_field(error.field)
            if field.endswith(".dependsOn"):  # the only thing that can be wrong with what Ksana wrote there itself
                field, told = (
                    field.removesuffix("dependsOn") + "config",
                    "uses what a stage makes that does not come before",
                )
                raise InvalidInput(field, told) from error
            raise InvalidInput(field, error.reason) from error

    # Plans --------------------------------------------------------------------------------------------------------

    async def start(self, key: str, actor: Actor) -> Plan:
        """NotFound, PlanRefused."""
        plan = await self._store.plan_by_key(key)
        await self._steer_plan(StartPlan(plan.id, self._clock.now(), actor))
        return await self._store.plan_by_key(key)

    async def pause(self, key: str, actor: Actor, *, tasks: bool = True) -> Plan:
        """NotFound, PlanRefused."""
        plan = await self._store.plan_by_key(key)
        await self._steer_plan(PausePlan(plan.id, self._clock.now(), tasks, actor))
        return await self._store.plan_by_key(key)

    async def resume(self, key: str, actor: Actor, *, override: bool = False) -> Plan:
        """NotFound, PlanRefused, GateShut, BudgetSpent."""
        plan = await self._store.plan_by_key(key)
        await self._steer_plan(ResumePlan(plan.id, self._clock.now(), override, actor))
        return await self._store.plan_by_key(key)

    async def cancel(self, key: str, actor: Actor) -> Plan:
        """NotFound, PlanRefused."""
        plan = await self._store.plan_by_key(key)
        await self._steer_plan(CancelPlan(plan.id, self._clock.now(), actor))
        return await self._store.plan_by_key(key)

    async def retry_failed(self, key: str, actor: Actor, *, from_checkpoint: bool = True) -> tuple[Plan, Steered]:
        """NotFound, PlanRefused."""
        plan = await self._store.plan_by_key(key)
        life = self._options.checkpoint_life
        steered = await self._steer_plan(RetryFailed(plan.id, self._clock.now(), from_checkpoint, life, actor))
        return await self._store.plan_by_key(key), steered

    # Tasks --------------------------------------------------------------------------------------------------------

    async def pause_task(self, tenant_id: str, plan_key: str | None, actor: Actor) -> TenantTask:
        """NotFound, TaskRefused."""
        task = await self._store.task_of(tenant_id, plan_key)
        return await self._steer_task(task, PauseTask(task.id, self._clock.now(), actor))

    async def resume_task(self, tenant_id: str, plan_key: str | None, actor: Actor) -> TenantTask:
        """NotFound, TaskRefused."""
        task = await self._store.task_of(tenant_id, plan_key)
        return await self._steer_task(task, ResumeTask(task.id, self._clock.now(), actor))

    async def cancel_task(self, tenant_id: str, plan_key: str | None, actor: Actor) -> TenantTask:
        """NotFound, TaskRefused."""
        task = await self._store.task_of(tenant_id, plan_key)
        return await self._steer_task(task, CancelTask(task.id, self._clock.now(), actor))

    async def retry_task(
        self, tenant_id: str, plan_key: str | None, actor: Actor, *, from_checkpoint: bool = True
    ) -> TenantTask:
        """NotFound, TaskRefused, TenantBusy."""
        task = await self._store.task_of(tenant_id, plan_key)
        life = self._options.checkpoint_life
        return await self._steer_task(task, RetryTask(task.id, self._clock.now(), from_checkpoint, life, actor))

    # Checkpoints --------------------------------------------------------------------------------------------------

    async def save_context(
        self, tenant_id: str, plan_key: str | None, context: Mapping[str, Any], version: int | None, actor: Actor
    ) -> TenantTask:
        """NotFound, TaskRefused, CheckpointStale, InvalidInput."""
        if len(context) > MAX_CONTEXT_KEYS:
            raise InvalidInput("contextData", f"may have at most {MAX_CONTEXT_KEYS} keys")
        task = await self._store.task_of(tenant_id, plan_key)
        life = self._options.checkpoint_life
        await self._store.change_context(ContextChange(task.id, context, self._clock.now(), version, life, actor))
        self._signals.plans()
        return (await self._store.task_stages(task.id)).task

    async def remove_checkpoint(
        self, tenant_id: str, plan_key: str | None, version: int | None, actor: Actor
    ) -> TenantTask:
        """NotFound (also of a checkpoint), TaskRefused, CheckpointStale."""
        task = await self._store.task_of(tenant_id, plan_key)
        removal = CheckpointRemoval(task.id, self._clock.now(), version, self._options.checkpoint_life, actor)
        if not await self._store.remove_checkpoint(removal):
            raise NotFound("checkpoint", tenant_id)
        self._signals.plans()
        return await self._store.task_of(tenant_id, plan_key)

    # ----------------------------------------------------------------------------------------------------------------

    async def _steer_plan(self, order: PlanOrder) -> Steered:
        return self._told(await self._store.steer_plan(order))

    async def _steer_task(self, task: TenantTask, order: TaskOrder) -> TenantTask:
        self._told(await self._store.steer_task(order))
        return await self._store.task_of(task.tenant_id, task.plan_key)

    def _told(self, steered: Steered) -> Steered:
        for execution_id in steered.broken_off:
            self._signals.canceled(execution_id)
        self._signals.plans()
        return steered


def _refuse_large(spec: PlanSpec, tenants: Sequence[Tenant]) -> None:
    common = len(orjson.dumps(spec.params))
    if common > MAX_PARAMS:
        raise InvalidInput("params", f"are larger than {MAX_PARAMS} bytes")
    for index, tenant in enumerate(tenants):
        if tenant.params and common + len(orjson.dumps(tenant.params)) > MAX_PARAMS:
            raise InvalidInput(f"tenants[{index}].params", f"are larger than {MAX_PARAMS} bytes, with the plan's")
