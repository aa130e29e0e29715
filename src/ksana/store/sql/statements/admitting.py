"""Plans going on: what is to be done next is decided from counts (`domain.plan.decide`), and done.

Two steps, because a tenant's lock may be honoured outside the store as well: `step` finds out whose turn it is, whoever
drives the plan takes their locks outside, and `admit` begins those that it got, if it still is their turn.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, or_, select

from ksana.domain.clock import from_micros, to_micros
from ksana.domain.errors import KsanaError, RunNotRunning
from ksana.domain.events import SYSTEM, EventType
from ksana.domain.execution import Trigger
from ksana.domain.ids import new_key
from ksana.domain.plan import (
    PLAN_GOING_ON,
    TASK_WAITING,
    Admit,
    Decision,
    End,
    NextWave,
    OnBusy,
    Pause,
    Plan,
    PlanStatus,
    TaskStatus,
    Wish,
    decide,
)
from ksana.domain.states import ExecutionStatus
from ksana.domain.workflow import Snapshot
from ksana.store.plan_requests import Admission, Candidate, PlanStanding
from ksana.store.sql import codec, schema
from ksana.store.sql.rows import Statement, columns, update_by, update_by_id
from ksana.store.sql.statements import plan_rows, rewriting, runs, snapshots, starting, stopping, tenant_tasks
from ksana.store.sql.statements.plan_rows import PlanNow
from ksana.store.sql.statements.tenant_tasks import LOCK_TENANTS, TaskNow
from ksana.store.sql.tx import Tx
from ksana.store.workflow_requests import NewRun, Reopen

_SET_FENCE = update_by_id("workflow_runs", columns(id="int", fence="int"), fence="r.fence")
_TAKE = update_by(
    "t.tenant_id = r.tenant_id",
    "tenants",
    columns(tenant_id="key", task_id="int", fence="int"),
    task_id="r.task_id",
    fence="r.fence",
)
# A task that goes on may try its stages as often as if it had just come to them.
_TRY_ANEW = Statement(
    "UPDATE executions SET attempt = 0 WHERE workflow_run_id = :run_id"
    f" AND status IN ('{ExecutionStatus.SCHEDULED}', '{ExecutionStatus.PENDING}')"
)
_tasks, _tenants = schema.tenant_tasks.c, schema.tenants.c
_ENDED = {PlanStatus.COMPLETED: EventType.PLAN_COMPLETED, PlanStatus.FAILED: EventType.PLAN_FAILED}
MOST_AT_ONCE = 500
PORTIONS = 10
"""How often one transaction looks for more who wait; the rest is for the next."""
BUSY = "tenant_busy"
HELD_OUTSIDE = "lock_held_outside"
"""Why a task waits: another of ours has its tenant, or somebody whom the store does not know."""


def standings(tx: Tx) -> list[PlanStanding]:
    """Every plan that goes on, with how its tasks stand."""
    return [PlanStanding(plan, plan_rows.tallies(tx, plan)) for plan in plan_rows.going_on(tx, PLAN_GOING_ON)]


@dataclass(frozen=True, slots=True)
class Step:
    plan_id: int
    at: datetime


def step(tx: Tx, steps: list[Step]) -> list[list[Candidate] | KsanaError]:
    return [_step(tx, each) for each in steps]


def _step(tx: Tx, wanted: Step) -> list[Candidate]:
    """Whose turn it is. Whatever comes before that, ends, pauses and waves, has happened then."""
    plan, at = plan_rows.lock(tx, wanted.plan_id), to_micros(wanted.at)
    if plan is None:
        return []
    decision = settled(tx, plan, at)
    plan_rows.write(tx, plan, at)
    if not isinstance(decision, Admit):
        return []
    if plan.now.spec.on_busy is OnBusy.WAIT:
        _mark_waiting(tx, plan.now, decision, at)
    return [Candidate(row.id, row.public_id, row.tenant_id) for row in _next(tx, plan.now, decision, at)]


def settled(tx: Tx, plan: PlanNow, at: int) -> Decision:
    """Applies what is decided until there is nothing more, or tasks to be begun."""
    while True:
        decision = decide(plan.now, plan_rows.tallies(tx, plan.now))
        match decision:
            case End(status=status):
                plan.move(status, at, _ENDED[status])
            case Pause():
                plan.move(PlanStatus.PAUSED, at, EventType.PLAN_PAUSED, why=decision)
            case NextWave():
                wave = plan.now.wave + 1
                plan.change(
                    EventType.PLAN_WAVE_STARTED, {"wave": wave + 1}, wave=wave, cleared=max(plan.now.cleared, wave - 1)
                )
            case _:
                return decision


def _next(tx: Tx, plan: Plan, decision: Admit, at: int) -> list[Row[Any]]:
    """The first of those that wait and whose tenant is free, or theirs."""
    mine = or_(_tenants.task_id.is_(None), _tenants.task_id == _tasks.id)
    # Each state by itself: so both are read in the order of the index, and no further than there are places.
    found = [
        row
        for status in sorted(TASK_WAITING)
        for row in _in_order(tx, plan, decision, status, mine, or_(_tasks.ready_at.is_(None), _tasks.ready_at <= at))
    ]
    return sorted(found, key=lambda row: (row.wave, row.position))[: decision.places]


def _in_order(
    tx: Tx, plan: Plan, decision: Admit, status: TaskStatus, *conditions: ColumnElement[bool]
) -> Sequence[Row[Any]]:
    """The first tasks in a state, of the waves that have begun."""
    joined = schema.tenant_tasks.join(schema.tenants, _tenants.tenant_id == _tasks.tenant_id)
    shown = (_tasks.id, _tasks.public_id, _tasks.tenant_id, _tasks.wave, _tasks.position)
    asked_for = [_tasks.asked_for == 1] if decision.asked_for else []
    wanted = select(*shown, _tenants.task_id.label("taken_by")).select_from(joined)
    wanted = wanted.where(_tasks.plan_id == plan.id, _tasks.status == status, _tasks.wave <= plan.wave)
    wanted = wanted.where(*asked_for, *conditions).order_by(_tasks.wave, _tasks.position)
    return tx.core(wanted.limit(min(decision.places, MOST_AT_ONCE)))


def _mark_waiting(tx: Tx, plan: Plan, decision: Admit, at: int) -> None:
    """CREATED → WAITING_FOR_LOCK for those whose turn it would be, if another task did not have their tenant."""
    for _ in range(PORTIONS):
        found = _in_order(tx, plan, decision, TaskStatus.CREATED)
        taken = [row.id for row in found if row.taken_by not in {None, row.id}]
        if not taken:
            return
        tasks = tenant_tasks.lock(tx, taken)
        for task in tasks.values():
            if task.status is TaskStatus.CREATED:
                task.reason = BUSY
                task.move(TaskStatus.WAITING_FOR_LOCK, at, {"reason": BUSY})
        tenant_tasks.write(tx, tasks.values(), at)


# Admitting --------------------------------------------------------------------------------------------------------------


def admit(tx: Tx, admissions: list[Admission]) -> list[tuple[int, ...] | KsanaError]:
    return [_admit(tx, each) for each in admissions]


def _admit(tx: Tx, wanted: Admission) -> tuple[int, ...]:
    """Those that have begun: of those that were found before, as many as there still is room for."""
    plan, at = plan_rows.lock(tx, wanted.plan_id), to_micros(wanted.at)
    if plan is None:
        return ()
    decision = decide(plan.now, plan_rows.tallies(tx, plan.now))
    tasks = plan_rows.lock_tasks(tx, (*wanted.admitted, *wanted.refused))
    _put_off(tx, [tasks[each] for each in wanted.refused if each in tasks], wanted, at)
    if not isinstance(decision, Admit):
        return ()
    ready = [tasks[each] for each in wanted.admitted if each in tasks]
    ready = [task for task in ready if _may_begin(task, plan.now, decision)]
    begun = _with_tenant(tx, ready[: decision.places], at)
    _begin(tx, plan, begun, at)
    tenant_tasks.write(tx, [task for task, _ in begun], at)
    return tuple(task.id for task, _ in begun)


def _put_off(tx: Tx, tasks: list[TaskNow], wanted: Admission, at: int) -> None:
    for task in tasks:
        if task.status in TASK_WAITING:
            task.ready_at, task.changed = codec.micros(wanted.retry_at), True
            if task.status is TaskStatus.CREATED:
                task.move(TaskStatus.WAITING_FOR_LOCK, at, {"reason": HELD_OUTSIDE})
            task.reason = HELD_OUTSIDE
    tenant_tasks.write(tx, tasks, at)


def _may_begin(task: TaskNow, plan: Plan, decision: Admit) -> bool:
    if task.row.plan_id != plan.id or task.status not in TASK_WAITING or task.row.wave > plan.wave:
        return False
    return task.asked_for or not decision.asked_for


def _with_tenant(tx: Tx, tasks: list[TaskNow], at: int) -> list[tuple[TaskNow, int]]:
    """Those whose tenant is free or theirs, each with a fence greater than any that the tenant had."""
    rows = tx.query(LOCK_TENANTS, sorted((task.row.tenant_id,) for task in tasks)) if tasks else []
    tenants = {row.tenant_id: row for row in rows}
    begun: list[tuple[TaskNow, int]] = []
    for task in tasks:
        tenant = tenants[task.row.tenant_id]
        if tenant.task_id in {None, task.id}:
            begun.append((task, tenant.fence + 1))
        elif task.status is TaskStatus.CREATED:
            task.reason = BUSY
            task.move(TaskStatus.WAITING_FOR_LOCK, at, {"reason": BUSY})
            tenant_tasks.write(tx, [task], at)
    if begun:
        tx.run(_TAKE, sorted((task.row.tenant_id, task.id, fence) for task, fence in begun))
    return begun


def _begin(tx: Tx, plan: PlanNow, begun: list[tuple[TaskNow, int]], at: int) -> None:
    if not begun:
        return
    snapshot = snapshots.read(tx, [plan.row.snapshot])[plan.row.snapshot]
    for task, fence in begun:
        task.fence, task.ready_at, task.asked_for, task.wish = fence, None, False, None
        task.error = task.reason = None
        task.started_at = task.started_at or at
        task.move(TaskStatus.RUNNING, at, {"fence": fence, "from_stage": task.last_completed + 1})
    # Written first: what becomes of the runs in this transaction finds the tasks as they are now.
    anew = [(task, fence) for task, fence in begun if not _reopened(tx, task, fence, at)]
    news = [starting.Beginning(_run(plan.now, snapshot, task, at), task=_of_task(task, fence)) for task, fence in anew]
    for (task, _), run_id in zip(anew, starting.create(tx, news), strict=True):
        task.run_id, task.generation, task.changed = run_id, task.generation + 1, True


def _reopened(tx: Tx, task: TaskNow, fence: int, at: int) -> bool:
    """Whether its run goes on from where it was; not if it has none, or none that could."""
    if task.run_id is None:
        return False
    run = runs.lock(tx, [task.run_id]).get(task.run_id)
    if run is None:
        return False
    tenant_tasks.write(tx, [task], at)
    tx.run(_SET_FENCE, [(task.run_id, fence)])
    try:
        rewriting.reopen(tx, run, Reopen(run.id, from_micros(at), stopped=True))
        tx.run(_TRY_ANEW, run_id=run.id)
    except RunNotRunning:
        task.last_completed = -1
        return False
    return True


def _of_task(task: TaskNow, fence: int) -> starting.OfTask:
    return starting.OfTask(task.row.plan_id, task.id, task.row.tenant_id, fence)


def _run(plan: Plan, snapshot: Snapshot, task: TaskNow, at: int) -> NewRun:
    own = codec.from_json(task.row.params) or {}
    named = {"planId": plan.key, "taskId": task.row.public_id, "tenantId": task.row.tenant_id}
    return NewRun(
        key=new_key(from_micros(at)),
        workflow_id=0,
        workflow_key=plan.key,
        workflow_version=1,
        snapshot=snapshot,
        at=from_micros(at),
        params={**plan.spec.params, **own, **named},
        trigger=Trigger.PLAN,
        actor=SYSTEM,
    )


# Losing the lock --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Loss:
    task_id: int
    at: datetime


def lose(tx: Tx, losses: list[Loss]) -> list[tuple[int, ...] | KsanaError]:
    return [_lose(tx, each) for each in losses]


def _lose(tx: Tx, loss: Loss) -> tuple[int, ...]:
    """RUNNING → WAITING_FOR_LOCK: somebody else has the tenant's lock. Whatever its run still does counts no more. The
    executions that are to be broken off."""
    at = to_micros(loss.at)
    task = plan_rows.lock_tasks(tx, [loss.task_id]).get(loss.task_id)
    if task is None or task.status is not TaskStatus.RUNNING or task.run_id is None:
        return ()
    (tenant,) = tx.query(LOCK_TENANTS, [(task.row.tenant_id,)])
    tx.run(_TAKE, [(task.row.tenant_id, task.id, tenant.fence + 1)])
    task.wish, task.changed = task.wish or Wish.LOCK_LOST, True  # who was to pause, pauses now
    tenant_tasks.write(tx, [task], at)
    run = runs.lock(tx, [task.run_id])[task.run_id]
    return tuple(stopping.stop(tx, run, SYSTEM, at, Wish.LOCK_LOST, force=True))
