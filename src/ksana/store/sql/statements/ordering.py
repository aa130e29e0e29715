"""A person's orders to a workflow run: stopping.py ends what goes on, rewriting.py does again what has ended.

Each is a transaction that has the run locked: whoever ends one of its nodes at the same moment comes before or after.
"""

from sqlalchemy import select

from ksana.domain.clock import to_micros
from ksana.domain.errors import KsanaError, NotFound, RunNotRunning, RunOfPlan
from ksana.domain.states import RUN_TERMINAL
from ksana.domain.workflow_run import OWN_REASONS
from ksana.store.sql import schema
from ksana.store.sql.codec_workflows import workflow_run
from ksana.store.sql.statements import rewriting, runs, stopping
from ksana.store.sql.statements.runs import RunNow
from ksana.store.sql.tx import Tx
from ksana.store.workflow_requests import Close, Complete, Order, Ordered, Reopen, SkipNode, Stop


def order(tx: Tx, orders: list[Order]) -> list[Ordered | KsanaError]:
    return [_order(tx, each) for each in orders]


def _order(tx: Tx, wanted: Order) -> Ordered | KsanaError:
    run = runs.lock(tx, [wanted.run_id]).get(wanted.run_id)
    if run is None:
        return NotFound("run", wanted.run_id)
    if run.row.plan_id is not None and not (run.going_on and isinstance(wanted, Complete | SkipNode)):
        return _of_plan(tx, run)
    broken_off: list[int] = []
    reopened = 0
    match wanted:
        case Stop():
            if run.status in RUN_TERMINAL:
                return RunNotRunning(run.row.public_id, run.status)
            reason = wanted.actor.reason
            if not reason or reason in OWN_REASONS:  # those words mean something else
                reason = stopping.STOPPED_BY_HAND
            broken_off = stopping.stop(tx, run, wanted.actor, to_micros(wanted.at), reason, force=wanted.force)
        case Close():
            broken_off = stopping.close(tx, run, wanted.actor, to_micros(wanted.at))
        case Reopen():
            reopened = rewriting.reopen(tx, run, wanted)
        case Complete():
            broken_off = rewriting.complete(tx, run, wanted)
        case SkipNode():
            rewriting.skip(tx, run, wanted)
    row = tx.core(select(schema.workflow_runs).where(schema.workflow_runs.c.id == wanted.run_id))[0]
    return Ordered(workflow_run(row), tuple(broken_off), reopened)


def _of_plan(tx: Tx, run: RunNow) -> RunOfPlan:
    plan = tx.core(select(schema.plans.c.public_id).where(schema.plans.c.id == run.row.plan_id))
    return RunOfPlan(run.row.public_id, plan[0].public_id if plan else "", run.row.tenant_id)
