"""How many runs of a workflow may go on at once, and which is next when one of them has ended."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Row

from ksana.domain.states import RUN_ADMITTED, ExecutionStatus, RunMove, RunStatus
from ksana.domain.workflow import Overlap
from ksana.store.sql.rows import Statement, columns, update_by_id
from ksana.store.sql.tx import Tx

ADMIT = RunMove(frozenset({RunStatus.QUEUED}), RunStatus.PENDING)
_IDS = columns(id="int")
_WORKFLOWS = Statement(
    "SELECT t.id, t.public_id, t.enabled, t.deleted_at, t.version, t.max_active_runs, t.overlap"
    " FROM {rows} {join} workflows t {by_id} ON t.id = r.id ORDER BY t.id",
    _IDS,
)
# Whoever lets a run in and whoever ends one take turns: two must not both find the last place.
_LOCK_LIMITED = Statement(
    "SELECT t.id, t.public_id, t.enabled, t.deleted_at, t.version, t.max_active_runs, t.overlap"
    " FROM {rows} {join} workflows t {by_id} ON t.id = r.id ORDER BY t.id {for_update}",
    _IDS,
)
_WITH_QUEUE = Statement(
    "SELECT r.id FROM {rows} WHERE EXISTS (SELECT 1 FROM workflow_runs q"
    f" WHERE q.workflow_id = r.id AND q.status = '{RunStatus.QUEUED}')",
    _IDS,
)
_COUNTS = Statement(
    "SELECT t.workflow_id, count(*) AS active FROM {rows} {join} workflow_runs t"
    " ON t.workflow_id = r.id AND t.status = r.status GROUP BY t.workflow_id",
    columns(id="int", status="key"),
)
_OLDEST_QUEUED = Statement(
    f"SELECT t.id FROM workflow_runs t WHERE t.workflow_id = :workflow_id AND t.status = '{RunStatus.QUEUED}'"
    " ORDER BY t.id LIMIT :places {for_update}"
)
_ADMIT = update_by_id("workflow_runs", _IDS, status=f"'{ADMIT.target}'", reason="NULL", updated_at=":at")
_BEGIN = Statement(
    f"UPDATE executions SET status = '{ExecutionStatus.SCHEDULED}', ready_at = :at, updated_at = :at"
    f" WHERE workflow_run_id = :run_id AND status = '{ExecutionStatus.PENDING}' AND open_dependencies = 0"
    " AND parent_id IS NULL"
)


@dataclass(slots=True)
class Workflows:
    """The workflows that runs are asked of, and how many go on of each that has a limit. Counts what it lets in."""

    rows: dict[int, Row[Any]]
    active: dict[int, int] = field(default_factory=dict)

    def full(self, workflow_id: int) -> bool:
        row = self.rows[workflow_id]
        return bool(limited(row) and self.active.get(workflow_id, 0) >= row.max_active_runs)

    def let_in(self, workflow_id: int) -> None:
        self.active[workflow_id] = self.active.get(workflow_id, 0) + 1


def limited(row: Row[Any]) -> bool:
    return row.max_active_runs is not None and row.overlap != Overlap.PARALLEL


def workflows(tx: Tx, workflow_ids: Iterable[int]) -> Workflows:
    """These workflows, those with a limit locked."""
    rows = {row.id: row for row in tx.query(_WORKFLOWS, [(each,) for each in sorted(set(workflow_ids))])}
    bounded = [(row.id,) for row in rows.values() if limited(row)]
    if not bounded:
        return Workflows(rows)
    # As they are now that nobody else can change them.
    rows |= {row.id: row for row in tx.query(_LOCK_LIMITED, bounded)}
    pairs = [(workflow_id, status) for (workflow_id,) in bounded for status in sorted(RUN_ADMITTED)]
    return Workflows(rows, {row.workflow_id: row.active for row in tx.query(_COUNTS, pairs)})


def let_in(tx: Tx, workflow_ids: Iterable[int], at: int) -> None:
    """QUEUED → PENDING for as many of each workflow's oldest as it has places again."""
    ids = sorted(set(workflow_ids))
    if not ids:
        return
    # Locked first, looked at after: whoever is just about to queue a run has done so then.
    found = workflows(tx, ids)
    for waiting_for in tx.query(_WITH_QUEUE, [(each,) for each in ids]):
        row = found.rows[waiting_for.id]
        places = row.max_active_runs - found.active.get(row.id, 0) if limited(row) else MOST_AT_ONCE
        waiting = tx.query(_OLDEST_QUEUED, workflow_id=row.id, places=places) if places > 0 else []
        _admit(tx, [each.id for each in waiting], at)


MOST_AT_ONCE = 10_000


def _admit(tx: Tx, run_ids: list[int], at: int) -> None:
    if run_ids:
        tx.run(_ADMIT, [(run_id,) for run_id in sorted(run_ids)], at=at)
        for run_id in run_ids:
            tx.run(_BEGIN, run_id=run_id, at=at)
