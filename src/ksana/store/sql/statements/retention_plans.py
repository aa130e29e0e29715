"""Retention of plans: one goes with its tasks, a portion of them at a time; its runs follow as others do."""

from sqlalchemy import select, update

from ksana.domain.plan import PLAN_ENDED, PlanStatus
from ksana.store.sql import schema
from ksana.store.sql.statements.removing import remove
from ksana.store.sql.tx import Tx

_plans, _tasks = schema.plans.c, schema.tenant_tasks.c
PLANS_AT_A_TIME = 20


def remove_plans(tx: Tx, before: int, limit: int) -> bool:
    """Those that ended before then, oldest first, as far as `limit` tasks go. Whether nothing was left over."""
    aged = select(_plans.id).where(_plans.status.in_(sorted(PLAN_ENDED)), _plans.ended_at < before)
    ids = [row.id for row in tx.core(aged.order_by(_plans.id).limit(PLANS_AT_A_TIME))]
    left = limit
    for plan_id in ids:
        if not _still_aged(tx, plan_id, before):
            continue  # somebody has just had it go on
        # From now on nobody can have it go on: some of its tasks may be gone by then.
        tx.core_run(update(schema.plans).where(_plans.id == plan_id).values(status=PlanStatus.CANCELLED.value))
        of_plan = select(_tasks.id).where(_tasks.plan_id == plan_id).limit(left)
        tasks = [row.id for row in tx.core(of_plan)]
        if tasks:
            remove(tx, schema.tenant_tasks, _tasks.id.in_(tasks))
        left -= len(tasks)
        if left <= 0:
            return False
        remove(tx, schema.plans, _plans.id == plan_id)
    return len(ids) < PLANS_AT_A_TIME


def _still_aged(tx: Tx, plan_id: int, before: int) -> bool:
    found = tx.core(select(_plans.status, _plans.ended_at).where(_plans.id == plan_id).with_for_update())
    return bool(found) and found[0].status in PLAN_ENDED and found[0].ended_at < before
