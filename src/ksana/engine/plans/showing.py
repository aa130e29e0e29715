"""From what the store has to what is shown outside."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import orjson

from ksana.domain.errors import RuntimeUnavailable, UnreadableState
from ksana.domain.plan import TASK_ENDED, TaskStatus, TenantTask
from ksana.runtime.base import Checkpoint, PlanProjection, RuntimeState, TaskProjection
from ksana.store.plan_requests import ShownPlan
from ksana.telemetry import log


def shown_task(task: TenantTask) -> TaskProjection:
    return TaskProjection(
        task_id=task.key,
        tenant_id=task.tenant_id,
        plan_id=task.plan_key,
        status=task.status.value,
        pause_requested=task.pause_requested,
        stage_names=task.stage_names,
        last_completed_stage_index=task.last_completed,
        created_at=task.created_at,
        updated_at=task.updated_at,
    )


def shown_plan(shown: ShownPlan) -> PlanProjection:
    plan = shown.plan
    return PlanProjection(
        plan_id=plan.key,
        status=plan.status.value,
        task_ids=shown.task_keys,
        progress=round(shown.completed / plan.tenants, 4) if plan.tenants else 0.0,
        max_concurrency=plan.spec.max_concurrency,
        created_at=plan.created_at,
        updated_at=shown.updated_at,
    )


@dataclass(frozen=True, slots=True)
class Shelf:
    """How long things are shown: checkpoints of tasks that failed, and whatever has ended."""

    checkpoint: timedelta
    projection: timedelta
    reread: Callable[[Sequence[int]], Awaitable[Sequence[TenantTask]]]
    """These tasks as they are now."""

    def checkpoint_of(self, task: TenantTask, now: datetime) -> Checkpoint | None:
        saved = task.checkpoint_at(now, self.checkpoint)
        if saved is None:
            return None
        return Checkpoint(saved.last_completed, saved.completed, saved.saved_at, _brief(saved.context), saved.version)


MAX_SHOWN = 256_000
"""Bytes of a checkpoint's context up to which it is shown outside. The store, and the API, have all of it."""


def _brief(context: Mapping[str, Any]) -> Mapping[str, Any]:
    size = len(orjson.dumps(context, option=orjson.OPT_NON_STR_KEYS))
    return context if size <= MAX_SHOWN else {"ksana": f"{size} bytes are not shown here: ask Ksana for the checkpoint"}


SETTLED = timedelta(seconds=3)
"""A change that is younger is on its way by the outbox."""
_FORGETFUL = frozenset({TaskStatus.COMPLETED, TaskStatus.CANCELLED})
"""Their checkpoints were removed when they ended."""
WITHOUT_LOCK = TASK_ENDED | {TaskStatus.PAUSED}
"""Of those that wait, somebody may just be taking the lock."""


async def show_tasks(state: RuntimeState, tasks: Sequence[TenantTask], shelf: Shelf, now: datetime) -> None:
    """All that is shown of these tasks. Can be done again, and in any order: what is there and newer stays. One that cannot be
    shown does not keep the others from being. RuntimeUnavailable."""
    if not tasks:
        return
    try:
        await _show_tasks(state, tasks, shelf, now)
    except RuntimeUnavailable:
        raise
    except Exception as error:  # noqa: BLE001 - one of them, whatever it is
        if len(tasks) == 1:
            log().error("a task cannot be shown", action="runtime.task_failed", task=tasks[0].key, exc_info=error)
            return
        middle = len(tasks) // 2
        await show_tasks(state, tasks[:middle], shelf, now)
        await show_tasks(state, tasks[middle:], shelf, now)


async def _show_tasks(state: RuntimeState, tasks: Sequence[TenantTask], shelf: Shelf, now: datetime) -> None:
    # All at once: whoever keeps them takes many together.
    saved = [task for task in tasks if task.checkpoint_version]
    await asyncio.gather(*(_show_checkpoint(state, task, shelf.checkpoint_of(task, now)) for task in saved))
    await state.tasks.save([shown_task(task) for task in tasks])
    await state.index.put({task.tenant_id: task.key for task in tasks if task.has_tenant})
    leaving = [task.id for task in tasks if not task.has_tenant or task.status in WITHOUT_LOCK]
    # As they are by now: one that goes on again has its lock, and keeps it.
    gone = await shelf.reread(leaving) if leaving else []
    await state.index.remove({task.tenant_id: task.key for task in gone if not task.has_tenant})
    done = [task for task in gone if task.status in WITHOUT_LOCK]
    await asyncio.gather(*(state.locks.release(task.tenant_id, task.key) for task in done))


async def _show_checkpoint(state: RuntimeState, task: TenantTask, wanted: Checkpoint | None) -> None:
    if wanted is None:
        await state.checkpoints.remove(task.key)
        return
    stages = wanted.completed_stages
    # One stage more is the usual case, and only that travels then.
    if stages and await state.checkpoints.append(task.key, stages[-1], wanted):
        return
    await state.checkpoints.put(task.key, wanted)


async def not_as_shown(
    state: RuntimeState, tasks: Sequence[TenantTask], shelf: Shelf, now: datetime
) -> tuple[list[TenantTask], bool]:
    """Those of these tasks of which something else is shown than there is, and not only because it is about to be; and whether
    that is most of them. RuntimeUnavailable."""
    settled = [task for task in tasks if now - task.updated_at > SETTLED]
    seen = await _seen(state, [task.key for task in settled])
    index = await state.index.get([task.tenant_id for task in settled])
    wrong = []
    for task in settled:
        in_index = index.get(task.tenant_id) == task.key
        right = seen.get(task.key) == shown_task(task) and in_index == task.has_tenant
        asked = task.checkpoint_version > 0 and task.status not in _FORGETFUL
        if not right or (asked and not await _has_checkpoint(state, task, shelf.checkpoint_of(task, now))):
            wrong.append(task)
    return wrong, bool(wrong) and 2 * len(wrong) >= len(settled)


async def _seen(state: RuntimeState, keys: Sequence[str]) -> dict[str, TaskProjection]:
    try:
        return dict(await state.tasks.get(keys))
    except UnreadableState:
        if len(keys) == 1:
            return {}
    middle = len(keys) // 2
    return {**await _seen(state, keys[:middle]), **await _seen(state, keys[middle:])}


async def _has_checkpoint(state: RuntimeState, task: TenantTask, wanted: Checkpoint | None) -> bool:
    try:
        found = await state.checkpoints.get(task.key)
    except UnreadableState:
        return False
    return found == wanted


async def plans_not_shown(state: RuntimeState, plans: Sequence[ShownPlan], now: datetime) -> list[ShownPlan]:
    """Likewise, of plans. RuntimeUnavailable."""
    wrong = []
    for each in plans:
        if now - each.updated_at <= SETTLED:
            continue
        try:
            found = (await state.plans.get([each.plan.key])).get(each.plan.key)
        except UnreadableState:
            found = None
        if found != shown_plan(each):
            wrong.append(each)
    return wrong


async def show_anew(state: RuntimeState, tasks: Sequence[TenantTask], shelf: Shelf, now: datetime) -> None:
    """Shows these whatever is there, and for another lifetime: a checkpoint that somebody forged would stay otherwise. Only for
    what has not changed for a while: nothing keeps an older view from replacing a newer one."""
    kept = [task.key for task in tasks if task.checkpoint_version]
    await asyncio.gather(*(state.checkpoints.remove(key) for key in kept))
    await show_tasks(state, tasks, shelf, now)
