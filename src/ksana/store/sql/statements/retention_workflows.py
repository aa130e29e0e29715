"""Retention of workflow runs: a run goes with its nodes, a portion of them at a time; then what no run started with any more."""

from dataclasses import dataclass

from sqlalchemy import exists, select

from ksana.domain.states import RUN_TERMINAL
from ksana.store.sql import schema
from ksana.store.sql.statements.removing import remove, remove_told_of
from ksana.store.sql.tx import Tx

SNAPSHOTS_AT_A_TIME = 50
_runs, _nodes, _snapshots = schema.workflow_runs.c, schema.executions.c, schema.snapshots.c


@dataclass(frozen=True, slots=True)
class RemovedRuns:
    runs: int
    done: bool
    """Whether nothing was left over."""


def remove_workflow_runs(tx: Tx, before: int, limit: int) -> RemovedRuns:
    """Runs that ended before then, oldest first, as far as `limit` nodes go. One that works for a node goes after it."""
    removed, left = 0, limit
    for run_id in _aged(tx, before, limit):
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


def _aged(tx: Tx, before: int, limit: int) -> list[int]:
    found: list[int] = []
    delegator = exists().where(_nodes.id == _runs.parent_execution_id)
    for status in sorted(RUN_TERMINAL):
        oldest = select(_runs.id, _runs.ended_at).where(_runs.status == status, ~delegator)
        rows = tx.core(oldest.order_by(_runs.id).limit(limit - len(found)))
        found += [row.id for row in rows if row.ended_at is not None and row.ended_at < before]
        if len(found) >= limit:
            break
    return found


def _remove_snapshots(tx: Tx, before: int) -> None:
    used = exists().where(_runs.snapshot == _snapshots.digest)
    old = select(_snapshots.digest).where(_snapshots.used_at < before, ~used)
    digests = [row.digest for row in tx.core(old.order_by(_snapshots.used_at).limit(SNAPSHOTS_AT_A_TIME))]
    if digests:
        # Asked once more: who starts a run with one has just said that it is in use.
        remove(tx, schema.snapshots, _snapshots.digest.in_(digests), _snapshots.used_at < before)
