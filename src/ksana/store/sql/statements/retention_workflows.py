"""Retention of workflow runs: a run goes with its nodes, a portion of them at a time; then what no run started with any more."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, exists, select, update

from ksana.domain.states import RUN_TERMINAL, RunStatus
from ksana.store.sql import schema
from ksana.store.sql.statements.removing import remove, remove_told_of
from ksana.store.sql.tx import Tx

SNAPSHOTS_AT_A_TIME = 50
# The runs of a plan are what its tasks are: they are kept with it.
_UNPLANNED = ~exists().where(schema.plans.c.id == schema.workflow_runs.c.plan_id)
_runs, _nodes, _snapshots = schema.workflow_runs.c, schema.executions.c, schema.snapshots.c


@dataclass(frozen=True, slots=True)
class RemovedRuns:
    runs: int
    done: bool
    """Whether nothing was left over."""


def remove_workflow_runs(tx: Tx, before: int, limit: int) -> RemovedRuns:
    """Runs that ended before then, oldest first, as far as `limit` nodes go. One that works for a node is kept with it."""
    removed, left = 0, limit
    for run_id in _aged(tx, before, limit):
        if not _begin_removing(tx, run_id, before):
            continue  # somebody has just had it go on
        of_run = select(_nodes.id).where(_nodes.workflow_run_id == run_id).order_by(_nodes.id.desc()).limit(left)
        ids = [row.id for row in tx.core(of_run)]
        if ids:
            remove_told_of(tx, ids)
            remove(tx, schema.executions, _nodes.id.in_(ids))
        left -= len(ids)
        if left <= 0:
            return RemovedRuns(removed, done=False)
        keys = schema.idempotency_keys.c
        remove(tx, schema.idempotency_keys, keys.resource_id == run_id, keys.scope.like("workflow/%"))
        remove(tx, schema.workflow_runs, _runs.id == run_id)
        removed += 1
    _remove_snapshots(tx, before)
    return RemovedRuns(removed, done=removed < limit)


def _begin_removing(tx: Tx, run_id: int, before: int) -> bool:
    """From now on nobody can have it go on: some of its nodes may be gone by then."""
    wanted = select(_runs.status, _runs.ended_at).where(_runs.id == run_id).with_for_update()
    found = tx.core(wanted)
    if not found or found[0].status not in RUN_TERMINAL or (found[0].ended_at or before) >= before:
        return False
    if found[0].status != RunStatus.CLOSED:
        tx.core_run(update(schema.workflow_runs).where(_runs.id == run_id).values(status=RunStatus.CLOSED.value))
    return True


def _aged(tx: Tx, before: int, limit: int) -> list[int]:
    """The oldest of each final state; but not what works for a node of a run that is still kept."""
    found: list[Row[Any]] = []
    for status in sorted(RUN_TERMINAL):
        oldest = select(_runs.id, _runs.ended_at, _runs.parent_execution_id).where(_runs.status == status, _UNPLANNED)
        rows = tx.core(oldest.order_by(_runs.id).limit(limit - len(found)))
        found += [row for row in rows if row.ended_at is not None and row.ended_at < before]
        if len(found) >= limit:
            break
    parents = [row.parent_execution_id for row in found if row.parent_execution_id is not None]
    kept = _kept(tx, parents, before)
    return [row.id for row in found if row.parent_execution_id not in kept]


def _kept(tx: Tx, execution_ids: list[int], before: int) -> set[int]:
    """Those of these nodes whose run has not ended so long ago."""
    if not execution_ids:
        return set()
    wanted = (
        select(_nodes.id)
        .join(schema.workflow_runs, _runs.id == _nodes.workflow_run_id)
        .where(_nodes.id.in_(execution_ids), (_runs.ended_at.is_(None)) | (_runs.ended_at >= before))
    )
    return {row.id for row in tx.core(wanted)}


def _remove_snapshots(tx: Tx, before: int) -> None:
    used = exists().where(_runs.snapshot == _snapshots.digest) | exists().where(
        schema.plans.c.snapshot == _snapshots.digest
    )
    old = select(_snapshots.digest).where(_snapshots.used_at < before, ~used)
    digests = [row.digest for row in tx.core(old.order_by(_snapshots.used_at).limit(SNAPSHOTS_AT_A_TIME))]
    if digests:
        # Asked once more: who starts a run with one has just said that it is in use.
        remove(tx, schema.snapshots, _snapshots.digest.in_(digests), _snapshots.used_at < before)
