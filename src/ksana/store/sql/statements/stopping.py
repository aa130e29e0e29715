"""Ending what goes on: runs are stopped, closed or replaced, and so are the runs that work for their nodes."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row, select

from ksana.domain.clock import to_micros
from ksana.domain.errors import KsanaError
from ksana.domain.events import SYSTEM, Actor, EventType
from ksana.domain.states import ACTIVE, RUN_ACTIVE, RUN_TERMINAL, AttemptStatus, ExecutionStatus, RunStatus
from ksana.domain.workflow_run import RUN_TIMEOUT
from ksana.store.sql import schema
from ksana.store.sql.statements import admission, runs
from ksana.store.sql.statements.journal import record_change, why
from ksana.store.sql.statements.moves import Moved
from ksana.store.sql.statements.runs import RunNow
from ksana.store.sql.statements.settling import (
    apply_moves,
    begin_stopping,
    delegators,
    end_attempt,
    halted,
    runs_for,
    soft_stops,
)
from ksana.store.sql.tx import Tx

_S = ExecutionStatus
_runs = schema.workflow_runs.c
STOPPED_BY_HAND = "stopped"
CLOSED = "closed"
REPLACED = "replaced"
NOT_NEEDED = "not_needed"
WORKED_ON = frozenset({_S.RUNNING, _S.CALLBACK_PENDING})


def stop(tx: Tx, run: RunNow, actor: Actor, at: int, reason: str, *, force: bool) -> list[int]:
    """The executions whose work is broken off. A run that stops already can still be forced."""
    if run.status in RUN_TERMINAL:
        return []
    if run.status is not RunStatus.STOPPING:
        begin_stopping(run, reason)
        record_change(tx, at, actor, (EventType.RUN_STOPPING, f"run/{run.id}", {"force": force} | why(actor)))
    runs.write(tx, [run], at)
    helpers = _children(tx, run) if force else []
    moves = soft_stops(tx, [run], at)
    apply_moves(tx, moves)
    if not force:
        return []
    broken_off = break_off(tx, halted(tx, run, WORKED_ON, at), at)
    for child in helpers:
        broken_off += stop(tx, runs.lock(tx, [child.id])[child.id], actor, at, reason, force=True)
    return broken_off


def close(tx: Tx, run: RunNow, actor: Actor, at: int) -> list[int]:
    if run.status is RunStatus.CLOSED:
        return []
    record_change(tx, at, actor, (EventType.RUN_CLOSED, f"run/{run.id}", {"from": run.status} | why(actor)))
    run.move(RunStatus.CLOSED)
    run.reason = actor.reason or CLOSED
    if run.ended_at is None:
        run.finish(at)
    runs.write(tx, [run], at)
    children = _children(tx, run)
    broken_off = break_off(tx, halted(tx, run, ACTIVE, at), at)
    for child in children:
        broken_off += close(tx, runs.lock(tx, [child.id])[child.id], actor, at)
    # It ended by order, and not with its last node: others take its place, and the node that it worked for stops.
    admission.let_in(tx, [run.row.workflow_id], at)
    apply_moves(tx, delegators(tx, [run], at))
    return broken_off


def close_children(tx: Tx, execution_id: int, actor: Actor, at: int) -> list[int]:
    """The runs that work for a node, when it needs them no more."""
    return [each for child in runs_for(tx, [execution_id]) for each in close(tx, child, actor, at)]


def drop_helpers(tx: Tx, row: Row[Any], actor: Actor, at: int) -> list[int]:
    """Items and runs that worked for a node which needs them no more; those whose work is broken off."""
    if row.status != _S.DELEGATED:
        return []
    nodes = schema.executions.c
    items = tx.core(select(schema.executions).where(nodes.parent_id == row.id, nodes.ended_at.is_(None)))
    moves = [Moved(item, _S.STOPPED, at, reason=NOT_NEEDED) for item in items]
    return break_off(tx, moves, at) + close_children(tx, row.id, actor, at)


def break_off(tx: Tx, moves: list[Moved], at: int) -> list[int]:
    """These stop; the executions among them that somebody works on."""
    for move in moves:
        end_attempt(tx, move.row, AttemptStatus.CANCELED, at, move.reason or STOPPED_BY_HAND)
    apply_moves(tx, moves)
    return [move.row.id for move in moves if move.row.status == _S.RUNNING]


def _children(tx: Tx, run: RunNow) -> list[RunNow]:
    """The runs that work for nodes of this one."""
    nodes = schema.executions.c
    delegated = select(nodes.id).where(nodes.workflow_run_id == run.id, nodes.status == _S.DELEGATED)
    return runs_for(tx, [row.id for row in tx.core(delegated)])


def replace_runs(tx: Tx, workflow_id: int, actor: Actor, at: int) -> None:
    """A new run takes the place of those that go on."""
    wanted = select(_runs.id).where(_runs.workflow_id == workflow_id, _runs.status.in_(sorted(RUN_ACTIVE)))
    for row in tx.core(wanted.order_by(_runs.id)):
        stop(tx, runs.lock(tx, [row.id])[row.id], actor, at, REPLACED, force=True)


@dataclass(frozen=True, slots=True)
class Expiry:
    now: datetime
    limit: int


def expire(tx: Tx, expiries: list[Expiry]) -> list[list[int] | KsanaError]:
    return [_expire(tx, expiry) for expiry in expiries]


def _expire(tx: Tx, expiry: Expiry) -> list[int]:
    """Runs that have taken too long stop by themselves, and so have failed."""
    at = to_micros(expiry.now)
    late = select(_runs.id).where(_runs.deadline_at <= at).order_by(_runs.deadline_at, _runs.id).limit(expiry.limit)
    broken_off: list[int] = []
    for row in tx.core(late):
        # One at a time: what stops one may end others of them.
        run = runs.lock(tx, [row.id]).get(row.id)
        if run is None or run.deadline_at is None or run.deadline_at > at:
            continue  # it has ended, or goes on, since we looked
        run.deadline_at, run.error, run.changed = None, "took longer than it may", True
        broken_off += stop(tx, run, SYSTEM, at, RUN_TIMEOUT, force=True)
    return broken_off
