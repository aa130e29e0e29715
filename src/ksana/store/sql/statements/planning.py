"""New plans, with a task for each of their tenants."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import select

from ksana.domain.clock import to_micros
from ksana.domain.errors import IdTaken, KsanaError, TenantBusy
from ksana.domain.events import EventType
from ksana.domain.plan import OnBusy, Plan, PlanStatus, TaskStatus, wave_of
from ksana.store.plan_requests import NewPlan
from ksana.store.sql import schema
from ksana.store.sql.codec_plans import plan as plan_of
from ksana.store.sql.codec_plans import plan_spec_json
from ksana.store.sql.rows import Statement, columns, insert_rows, to_json
from ksana.store.sql.statements import outbox, plan_rows, snapshots
from ksana.store.sql.statements.journal import fitting, record_change, record_events
from ksana.store.sql.statements.tenant_tasks import LOCK_TENANTS, TAKE_TENANTS
from ksana.store.sql.tx import Tx

_PLAN = columns(
    public_id="text",
    name="text",
    status="text",
    spec="text",
    snapshot="text",
    tenants="int",
    wave="int",
    cleared="int",
    forgiven="int",
    version="int",
    created_at="int",
    updated_at="int",
)
_TASK = columns(
    public_id="text",
    plan_id="int",
    tenant_id="text",
    position="int",
    wave="int",
    status="text",
    asked_for="int",
    params="text",
    generation="int",
    last_completed="int",
    checkpoint_version="int",
    fence="int",
    version="int",
    created_at="int",
    updated_at="int",
)
_NEW_TENANTS = insert_rows("tenants", columns(tenant_id="text", task_id="int", fence="int"))
_TAKEN = Statement(
    "SELECT t.id, t.public_id, t.tenant_id, p.public_id AS plan_key FROM {rows} {join} tenant_tasks t {by_id}"
    " ON t.id = r.id JOIN plans p ON p.id = t.plan_id ORDER BY t.tenant_id",
    columns(id="int"),
)
_plans, _tasks = schema.plans.c, schema.tenant_tasks.c
NAMED = 100
"""How many busy tenants are named in a refusal."""


def create(tx: Tx, news: list[NewPlan]) -> list[Plan | KsanaError]:
    return [_create(tx, new) for new in news]


def _create(tx: Tx, new: NewPlan) -> Plan | KsanaError:
    if tx.core(select(_plans.id).where(_plans.public_id == new.key)):
        return IdTaken("plan", new.key)
    known = {row.tenant_id: row.task_id for row in tx.query(LOCK_TENANTS, sorted((t.id,) for _, t in new.tenants))}
    if new.spec.on_busy is OnBusy.REJECT:
        taken = [task_id for task_id in known.values() if task_id is not None]
        if taken:
            return busy(tx, taken)
    snapshots.keep(tx, [new.snapshot], tx.clock)
    at = to_micros(new.at)
    (plan_id,) = tx.insert_with_ids("plans", _PLAN, [_plan_row(new, at)])
    task_ids = tx.insert_with_ids("tenant_tasks", _TASK, _task_rows(new, plan_id, at))
    _take_tenants(tx, new, task_ids, known)
    _tell(tx, new, plan_id, task_ids, at)
    if new.start:
        plan = plan_rows.lock(tx, plan_id)
        if plan is not None:
            plan.move(PlanStatus.RUNNING, at, EventType.PLAN_STARTED)
            plan_rows.write(tx, plan, at)
    return plan_of(tx.core(select(schema.plans).where(_plans.id == plan_id))[0])


def busy(tx: Tx, task_ids: Sequence[int]) -> TenantBusy:
    """These tasks have their tenants."""
    rows = tx.query(_TAKEN, [(each,) for each in sorted(task_ids)])
    first, *others = rows
    named = [{"tenantId": r.tenant_id, "planId": r.plan_key, "taskId": r.public_id} for r in others[:NAMED]]
    return TenantBusy(first.tenant_id, plan=first.plan_key, task=first.public_id, others=named)


def _plan_row(new: NewPlan, at: int) -> tuple[Any, ...]:
    spec = plan_spec_json(new.spec)
    name = fitting(new.spec.name, 128)
    return (new.key, name, PlanStatus.READY, spec, new.snapshot.digest, len(new.tenants), 0, -1, 0, 1, at, at)


def _task_rows(new: NewPlan, plan_id: int, at: int) -> list[tuple[Any, ...]]:
    waves = wave_of(new.spec, len(new.tenants))
    return [
        (
            key,
            plan_id,
            tenant.id,
            position,
            waves[position],
            TaskStatus.CREATED,
            0,
            to_json(dict(tenant.params)) if tenant.params else None,
            0,
            -1,
            0,
            0,
            1,
            at,
            at,
        )
        for position, (key, tenant) in enumerate(new.tenants)
    ]


def _take_tenants(tx: Tx, new: NewPlan, task_ids: list[int], known: dict[str, int | None]) -> None:
    """Each tenant has its task from now on. A plan that waits for tenants takes one only when it begins it: two of them, each
    with a tenant that the other wants first, would wait for ever."""
    at_once = new.spec.on_busy is OnBusy.REJECT
    theirs = {tenant.id: task_id for task_id, (_, tenant) in zip(task_ids, new.tenants, strict=True)}
    unknown = sorted(theirs.keys() - known.keys())
    if unknown:
        tx.run(_NEW_TENANTS, [(each, theirs[each] if at_once else None, 0) for each in unknown])
    if at_once and known:
        tx.run(TAKE_TENANTS, [(each, theirs[each]) for each in sorted(known)])


def _tell(tx: Tx, new: NewPlan, plan_id: int, task_ids: list[int], at: int) -> None:
    data = {"key": new.key, "name": new.spec.name, "tenants": len(task_ids)}
    record_change(tx, at, new.actor, (EventType.PLAN_CREATED, f"plan/{plan_id}", data))
    told = EventType.TASK_CREATED
    about = [(told, f"task/{task_id}", {"tenant": t.id}) for task_id, (_, t) in zip(task_ids, new.tenants, strict=True)]
    record_events(tx, at, about)
    outbox.add(tx, at, [(EventType.PLAN_CREATED, plan_id, None), *((told, plan_id, each) for each in task_ids)])
