"""Recovery: what dead instances, and those that left, were running is put back, or failed if it must not run twice."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row

from ksana.domain.clock import to_micros
from ksana.domain.errors import KsanaError
from ksana.domain.events import EventType
from ksana.domain.instance import InstanceStatus
from ksana.domain.job import RecoveryRule
from ksana.domain.states import AttemptStatus, ExecutionMove, ExecutionStatus
from ksana.domain.workflow import node_of_item
from ksana.store.requests import Recovered
from ksana.store.sql.rows import Statement, columns, update_by_id
from ksana.store.sql.statements import runs
from ksana.store.sql.statements.journal import record_events
from ksana.store.sql.statements.moves import Moved
from ksana.store.sql.statements.runs import RunNow
from ksana.store.sql.statements.settling import apply_moves, attempt_row, record_attempts
from ksana.store.sql.tx import Tx

_RUNNING = frozenset({ExecutionStatus.RUNNING})
REQUEUE = ExecutionMove(_RUNNING, ExecutionStatus.SCHEDULED)
FAIL_LOST = ExecutionMove(_RUNNING, ExecutionStatus.FAILED)
LOST = "its instance was lost while it ran"
LOST_TOO_OFTEN = "its instance was lost while it ran, {} times: it may be what ends them"

_EXPIRED = Statement(
    f"SELECT t.id FROM instances t WHERE t.status = '{InstanceStatus.ALIVE}' AND t.expires_at <= {{now}}"
    # One that is just beating, or was frozen while it did, must not keep the others from being buried.
    " ORDER BY t.id {skip_locked}"
)
_BURY = update_by_id("instances", columns(id="key"), status=f"'{InstanceStatus.DEAD}'")
# Whoever is not known any more is dead too.
_ORPHANS = Statement(
    "SELECT t.* FROM executions t {by_owner} WHERE t.owner IS NOT NULL"
    f" AND NOT EXISTS (SELECT 1 FROM instances i WHERE i.id = t.owner AND i.status = '{InstanceStatus.ALIVE}')"
    " ORDER BY t.id LIMIT :most {skip_locked}"
)
_COUNT_LOSSES = update_by_id("executions", columns(id="int"), losses="t.losses + 1")
_ANY_ORPHAN = Statement(
    "SELECT 1 FROM executions t {by_owner} WHERE t.owner IS NOT NULL"
    f" AND NOT EXISTS (SELECT 1 FROM instances i WHERE i.id = t.owner AND i.status = '{InstanceStatus.ALIVE}') LIMIT 1"
)
_NEXT_EXPIRY = Statement(f"SELECT min(t.expires_at) FROM instances t WHERE t.status = '{InstanceStatus.ALIVE}'")
_RULES = Statement("SELECT t.id, t.recovery FROM {rows} {join} jobs t ON t.id = r.id", columns(id="int"))


@dataclass(frozen=True, slots=True)
class Sweep:
    now: datetime
    limit: int
    most_losses: int


def recover(tx: Tx, sweeps: list[Sweep]) -> list[Recovered | KsanaError]:
    return [_recover(tx, sweep) for sweep in sweeps]


def _recover(tx: Tx, sweep: Sweep) -> Recovered:
    at = to_micros(sweep.now)
    dead = _bury(tx, at)
    orphans = tx.query(_ORPHANS, most=sweep.limit)
    at_most_once = _at_most_once(tx, orphans)
    record_attempts(tx, [attempt_row(row, AttemptStatus.LOST, at, LOST) for row in orphans])
    tx.run(_COUNT_LOSSES, [(row.id,) for row in orphans])
    errors = {
        row.id: error for row in orphans if (error := _given_up(row, at_most_once, sweep.most_losses)) is not None
    }
    failed = [Moved(row, FAIL_LOST.target, at, error=errors[row.id]) for row in orphans if row.id in errors]
    requeued = [
        Moved(row, REQUEUE.target, at, ready_at=row.planned_for or row.created_at)
        for row in orphans
        if row.id not in errors
    ]
    apply_moves(tx, failed + requeued)
    return Recovered(dead, requeued=len(requeued), failed=len(failed))


def next_at(tx: Tx) -> int | None:
    """When the next lease ends; 0 if somebody's work is there to be taken already."""
    if tx.query(_ANY_ORPHAN):
        return 0
    expiry: int | None = tx.query(_NEXT_EXPIRY)[0][0]
    return expiry


def _given_up(row: Row[Any], at_most_once: set[int], most_losses: int) -> str | None:
    """Why it is not tried again; None: it is."""
    if row.id in at_most_once:
        return LOST
    lost = row.losses + 1
    return LOST_TOO_OFTEN.format(lost) if lost >= most_losses else None


def _bury(tx: Tx, at: int) -> tuple[str, ...]:
    dead = tuple(row.id for row in tx.query(_EXPIRED))
    if dead:
        tx.run(_BURY, [(instance_id,) for instance_id in dead])
        record_events(tx, at, [(EventType.INSTANCE_LOST, f"instance/{instance_id}", None) for instance_id in dead])
    return dead


def _at_most_once(tx: Tx, orphans: list[Row[Any]]) -> set[int]:
    """Those that must not run twice: by their job or, nodes, by what their run started with."""
    job_ids = sorted({row.job_id for row in orphans if row.job_id is not None and row.workflow_run_id is None})
    rules = tx.query(_RULES, [(job_id,) for job_id in job_ids]) if job_ids else []
    once = {row.id for row in rules if row.recovery == RecoveryRule.FAIL}
    held = runs.lock(tx, [row.workflow_run_id for row in orphans])
    return {row.id for row in orphans if row.workflow_run_id is None and row.job_id in once} | {
        row.id
        for row in orphans
        if row.workflow_run_id is not None and _rule(held[row.workflow_run_id], row) is RecoveryRule.FAIL
    }


def _rule(run: RunNow, row: Row[Any]) -> RecoveryRule:
    made = run.snapshot.nodes.get(node_of_item(row.node_id))
    return RecoveryRule.RETRY if made is None else made.spec.recovery
