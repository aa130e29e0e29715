"""A person's orders to plans and to the tasks of their tenants. The plan is locked first, then runs, tasks and tenants."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from sqlalchemy import select

from ksana.domain.clock import to_micros
from ksana.domain.errors import BudgetSpent, GateShut, KsanaError, NotFound, PlanRefused, TaskRefused
from ksana.domain.events import Actor, EventType
from ksana.domain.plan import (
    PAUSED_BY_PERSON,
    PLAN_ENDED,
    TASK_RETRYABLE,
    TASK_WAITING,
    OnBusy,
    Pause,
    PlanStatus,
    TaskStatus,
    Wish,
    at_boundary,
    at_gate,
    over_budget,
)
from ksana.domain.workflow_run import AT_BOUNDARY, OWN_REASONS
from ksana.store.plan_requests import (
    CancelPlan,
    CancelTask,
    CheckpointRemoval,
    ContextChange,
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
from ksana.store.sql import schema
from ksana.store.sql.statements import plan_rows, runs, stopping, tenant_tasks
from ksana.store.sql.statements.checkpoints import change_context, expired, remove_checkpoint
from ksana.store.sql.statements.journal import record_audit, why
from ksana.store.sql.statements.plan_rows import PlanNow
from ksana.store.sql.statements.planning import busy
from ksana.store.sql.statements.tenant_tasks import LOCK_TENANTS, TAKE_TENANTS, TaskNow
from ksana.store.sql.tx import Tx

_tasks = schema.tenant_tasks.c
_P, _T = PlanStatus, TaskStatus
CANCELLED = "cancelled"


# Plans ------------------------------------------------------------------------------------------------------------------


def steer_plans(tx: Tx, orders: list[PlanOrder]) -> list[Steered | KsanaError]:
    return [_steer_plan(tx, each) for each in orders]


def _steer_plan(tx: Tx, order: PlanOrder) -> Steered | KsanaError:
    plan, at = plan_rows.lock(tx, order.plan_id), to_micros(order.at)
    if plan is None:
        return NotFound("plan", order.plan_id)
    match order:
        case StartPlan():
            steered = _start(plan, order.actor, at)
        case PausePlan():
            steered = _pause(tx, plan, order, at)
        case ResumePlan():
            steered = _resume(tx, plan, order, at)
        case CancelPlan():
            steered = _cancel(tx, plan, order, at)
        case RetryFailed():
            steered = _retry_failed(tx, plan, order, at)
    record_audit(tx, at, order.actor, f"plan.{_NAMES[type(order)]}", f"plan/{plan.id}", {"from": plan.row.status})
    plan_rows.write(tx, plan, at)
    return steered


_NAMES: dict[type[Any], str] = {
    StartPlan: "start",
    PausePlan: "pause",
    ResumePlan: "resume",
    CancelPlan: "cancel",
    RetryFailed: "retry_failed",
    PauseTask: "pause",
    ResumeTask: "resume",
    RetryTask: "retry",
    CancelTask: "cancel",
}


def _start(plan: PlanNow, actor: Actor, at: int) -> Steered:
    if plan.now.status is not _P.READY:
        raise PlanRefused(plan.now.key, plan.now.status, "started")
    plan.move(_P.RUNNING, at, EventType.PLAN_STARTED, why(actor))
    return Steered()


def _pause(tx: Tx, plan: PlanNow, order: PausePlan, at: int) -> Steered:
    if plan.now.status not in {_P.RUNNING, _P.PAUSED}:
        raise PlanRefused(plan.now.key, plan.now.status, "paused")
    if plan.now.status is _P.RUNNING:
        halt = Pause(PAUSED_BY_PERSON, order.actor.reason or "paused by a person")
        plan.move(_P.PAUSED, at, EventType.PLAN_PAUSED, why=halt)
    if order.tasks:
        for task in _locked(tx, _ids(tx, plan.id, {_T.RUNNING})):
            if task.wish is None:
                _ask_to_pause(tx, task, Wish.PAUSE_WITH_PLAN, order.actor, at)
    return Steered()


def _resume(tx: Tx, plan: PlanNow, order: ResumePlan, at: int) -> Steered:
    if plan.now.status is not _P.PAUSED:
        raise PlanRefused(plan.now.key, plan.now.status, "resumed")
    waves = plan_rows.tallies(tx, plan.now)
    spent = over_budget(plan.now, waves)
    if spent is not None and not order.override:
        raise BudgetSpent(plan.now.key, spent.message)
    forgiven = plan.now.forgiven if spent is None else sum(wave.failed for wave in waves)
    cleared = plan.now.cleared
    if at_boundary(plan.now, waves):
        shut = at_gate(plan.now, waves[plan.now.wave])
        if shut is not None and not order.override:
            raise GateShut(plan.now.key, shut.message)
        cleared = max(cleared, plan.now.wave)
    plan.move(_P.RUNNING, at, EventType.PLAN_RESUMED, {"override": order.override} | why(order.actor))
    plan.now = replace(plan.now, forgiven=forgiven, cleared=cleared)
    tasks = _locked(tx, _ids(tx, plan.id, {_T.PAUSED, _T.RUNNING}))
    for task in tasks:
        _resume_with_plan(task, at)
    tenant_tasks.write(tx, tasks, at)
    return Steered()


def _resume_with_plan(task: TaskNow, at: int) -> None:
    if task.status is _T.PAUSED and task.reason == Wish.PAUSE_WITH_PLAN:
        task.reason = None
        task.move(_T.CREATED, at)
    elif task.status is _T.RUNNING and task.wish is Wish.PAUSE_WITH_PLAN:
        task.wish = None
        task.tell(EventType.TASK_RESUMED)


def _cancel(tx: Tx, plan: PlanNow, order: CancelPlan, at: int) -> Steered:
    if plan.now.status is _P.CANCELLED:
        return Steered()
    if plan.now.status in PLAN_ENDED:
        raise PlanRefused(plan.now.key, plan.now.status, "cancelled")
    plan.move(_P.CANCELLED, at, EventType.PLAN_CANCELLED, why(order.actor))
    plan.now = replace(plan.now, message=order.actor.reason or None)
    broken_off: list[int] = []
    tasks = _locked(tx, _ids(tx, plan.id, {*TASK_WAITING, _T.PAUSED, _T.RUNNING}))
    for task in tasks:
        broken_off += _cancel_task(tx, task, order.actor, at)
    tenant_tasks.write(tx, tasks, at)
    return Steered(tuple(broken_off))


def _retry_failed(tx: Tx, plan: PlanNow, order: RetryFailed, at: int) -> Steered:
    if plan.now.status in {_P.READY, _P.CANCELLED}:
        raise PlanRefused(plan.now.key, plan.now.status, "retried")
    tasks = _locked(tx, _ids(tx, plan.id, {_T.FAILED}))
    taken = _taken(tx, tasks) if plan.now.spec.on_busy is OnBusy.REJECT else {}
    again = [task for task in tasks if task.id not in taken]
    for task in again:
        _again(task, order, at)
    tenant_tasks.write(tx, again, at)
    _take_tenants(tx, plan, again)
    if again:
        _reopen(plan, at)
        told = plan.now.message and f"{plan.now.message}; {len(again)} of them are tried again"
        data = {"tenants": len(again)} | why(order.actor)
        plan.change(EventType.PLAN_RETRIED, data, message=told, forgiven=_still_forgiven(plan, len(again)))
    return Steered(retried=len(again), busy=tuple(task.row.tenant_id for task in tasks if task.id in taken))


def _still_forgiven(plan: PlanNow, retried: int) -> int:
    """A failure that is put right was not accepted for nothing: it does not widen the budget for others."""
    return max(0, plan.now.forgiven - retried)


def _take_tenants(tx: Tx, plan: PlanNow, tasks: list[TaskNow]) -> None:
    """They are their tenants' tasks again; those that wait for tenants are when they begin."""
    if tasks and plan.now.spec.on_busy is OnBusy.REJECT:
        tx.run(TAKE_TENANTS, sorted((task.row.tenant_id, task.id) for task in tasks))


def _reopen(plan: PlanNow, at: int) -> None:
    if plan.now.status in PLAN_ENDED:
        plan.move(_P.RUNNING, at, EventType.PLAN_REOPENED)


# Tasks ------------------------------------------------------------------------------------------------------------------


def steer_tasks(tx: Tx, orders: list[TaskOrder]) -> list[Steered | KsanaError]:
    return [_steer_task(tx, each) for each in orders]


def _steer_task(tx: Tx, order: TaskOrder) -> Steered | KsanaError:
    found = tx.core(select(_tasks.plan_id).where(_tasks.id == order.task_id))
    plan = plan_rows.lock(tx, found[0].plan_id) if found else None
    tasks = _locked(tx, [order.task_id]) if plan is not None else []
    if plan is None or not tasks:
        return NotFound("task", order.task_id)
    (task,), at = tasks, to_micros(order.at)
    before, broken_off = task.status, []
    match order:
        case PauseTask():
            _pause_task(tx, task, order.actor, at)
        case ResumeTask():
            _resume_task(task, order.actor, at)
        case RetryTask():
            _retry_task(tx, plan, task, order, at)
        case CancelTask():
            if task.has_ended and task.status is not _T.CANCELLED:
                raise _refused(task, "cancelled")
            broken_off = _cancel_task(tx, task, order.actor, at)
    record_audit(tx, at, order.actor, f"task.{_NAMES[type(order)]}", f"task/{task.id}", {"from": before})
    tenant_tasks.write(tx, [task], at)
    plan_rows.write(tx, plan, at)
    return Steered(tuple(broken_off), retried=int(isinstance(order, RetryTask)))


def _pause_task(tx: Tx, task: TaskNow, actor: Actor, at: int) -> None:
    if task.status is _T.PAUSED:
        task.reason, task.changed = Wish.PAUSE, True  # from now on its own, whatever its plan does
    elif task.status in TASK_WAITING:
        task.reason = Wish.PAUSE
        task.move(_T.PAUSED, at, why(actor))
    elif task.status is _T.RUNNING and task.wish is not Wish.CANCEL:
        _ask_to_pause(tx, task, Wish.PAUSE, actor, at)
    else:
        raise _refused(task, "paused")


def _ask_to_pause(tx: Tx, task: TaskNow, wish: Wish, actor: Actor, at: int) -> None:
    """At the next stage boundary: its run starts nothing new. If it is at one already, it pauses now."""
    asked = task.wish is not None
    task.wish, task.changed = wish, True
    if not asked:
        task.tell(EventType.TASK_PAUSE_REQUESTED, why(actor))
    tenant_tasks.write(tx, [task], at)
    if task.run_id is not None:
        run = runs.lock(tx, [task.run_id])[task.run_id]
        stopping.stop(tx, run, actor, at, AT_BOUNDARY, force=False)


def _resume_task(task: TaskNow, actor: Actor, at: int) -> None:
    if task.status is _T.PAUSED:
        task.asked_for, task.reason = True, None
        task.move(_T.CREATED, at, why(actor))
    elif task.status is _T.RUNNING and task.wish in {Wish.PAUSE, Wish.PAUSE_WITH_PLAN}:
        task.wish = None
        task.tell(EventType.TASK_RESUMED, why(actor))
    else:
        raise _refused(task, "resumed")


def _retry_task(tx: Tx, plan: PlanNow, task: TaskNow, order: RetryTask, at: int) -> None:
    if plan.now.status is _P.CANCELLED:
        raise PlanRefused(plan.now.key, plan.now.status, "gone on with")
    if task.status not in TASK_RETRYABLE:
        raise _refused(task, "retried")
    taken = _taken(tx, [task])
    if taken and plan.now.spec.on_busy is OnBusy.REJECT:
        raise busy(tx, list(taken.values()))
    failed = task.status is _T.FAILED
    _again(task, order, at)
    _take_tenants(tx, plan, [task])
    _reopen(plan, at)
    if failed and plan.now.forgiven:
        plan.change(EventType.PLAN_RETRIED, {"tenants": 1} | why(order.actor), forgiven=_still_forgiven(plan, 1))


def _taken(tx: Tx, tasks: Iterable[TaskNow]) -> dict[int, int]:
    """Of these tasks, those whose tenant has another one: that."""
    by_tenant = {task.row.tenant_id: task.id for task in tasks}
    rows = tx.query(LOCK_TENANTS, sorted((tenant_id,) for tenant_id in by_tenant)) if by_tenant else []
    return {
        by_tenant[row.tenant_id]: row.task_id for row in rows if row.task_id not in {None, by_tenant[row.tenant_id]}
    }


def _again(task: TaskNow, order: RetryTask | RetryFailed, at: int) -> None:
    """FAILED, CANCELLED → CREATED."""
    if not order.from_checkpoint or expired(task, order.checkpoint_life, at):
        task.forget_checkpoint()
    if task.checkpoint_at is None:
        task.run_id, task.last_completed = None, -1
    task.asked_for, task.error, task.reason = True, None, None
    told = {"from_stage": task.last_completed + 1} | why(order.actor)
    task.move(_T.CREATED, at, told, EventType.TASK_RETRIED)


def _cancel_task(tx: Tx, task: TaskNow, actor: Actor, at: int) -> list[int]:
    """Now, whatever it does. The executions whose work is broken off."""
    if task.has_ended:
        return []
    if task.status is not _T.RUNNING or task.run_id is None:
        task.reason = actor.reason or CANCELLED
        task.move(_T.CANCELLED, at, why(actor))
        return []
    task.wish, task.reason, task.changed = Wish.CANCEL, actor.reason or CANCELLED, True
    tenant_tasks.write(tx, [task], at)
    run = runs.lock(tx, [task.run_id])[task.run_id]
    reason = CANCELLED if actor.reason in OWN_REASONS else actor.reason or CANCELLED
    return stopping.stop(tx, run, actor, at, reason, force=True)


def _refused(task: TaskNow, asked: str) -> TaskRefused:
    return TaskRefused(task.row.tenant_id, task.row.public_id, task.status, asked)


def _ids(tx: Tx, plan_id: int, states: Iterable[TaskStatus]) -> list[int]:
    wanted = select(_tasks.id).where(_tasks.plan_id == plan_id, _tasks.status.in_(sorted(states)))
    return [row.id for row in tx.core(wanted)]


def _locked(tx: Tx, task_ids: list[int]) -> list[TaskNow]:
    return list(plan_rows.lock_tasks(tx, task_ids).values())


# Checkpoints ------------------------------------------------------------------------------------------------------------


def change_contexts(tx: Tx, changes: list[ContextChange]) -> list[bool | KsanaError]:
    return [_changed(tx, each) for each in changes]


def remove_checkpoints(tx: Tx, removals: list[CheckpointRemoval]) -> list[bool | KsanaError]:
    return [_changed(tx, each) for each in removals]


def _changed(tx: Tx, wanted: ContextChange | CheckpointRemoval) -> bool | KsanaError:
    tasks = _locked(tx, [wanted.task_id])
    if not tasks:
        return NotFound("task", wanted.task_id)
    (task,), at = tasks, to_micros(wanted.at)
    done = (
        change_context(task, wanted, at) if isinstance(wanted, ContextChange) else remove_checkpoint(task, wanted, at)
    )
    if done:
        record_audit(tx, at, wanted.actor, "task.checkpoint", f"task/{task.id}", None)
    tenant_tasks.write(tx, [task], at)
    return done
