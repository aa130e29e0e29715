"""What a claim must know of the workflow runs whose nodes it takes, so that a worker need not ask again."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Row

from ksana.domain.clock import to_micros
from ksana.domain.states import RunStatus
from ksana.domain.values import immutable
from ksana.domain.workflow import Ended, NodeClaim, SnapshotNode, TaskOf, node_of_item
from ksana.store.sql import codec
from ksana.store.sql.rows import Statement, columns, id_rows, keeping, update_by_id
from ksana.store.sql.statements import artifacts, snapshots
from ksana.store.sql.tx import Tx

MOST = 2_000
"""Runs that are kept,"""
SMALL = 4_000
"""with parameters of so many characters at the most."""
NO_NODES: Mapping[str, SnapshotNode] = {}
_IDS = columns(id="int")
_RUNS = Statement(
    "SELECT t.id, t.public_id, t.workflow_key, t.snapshot, t.params, t.status, t.depth, t.task_id, t.tenant_id"
    " FROM {rows} {join} workflow_runs t ON t.id = r.id",
    _IDS,
)
_START_RUNS = keeping(
    update_by_id(
        "workflow_runs",
        _IDS,
        # Only if it has not moved since: somebody may just be stopping it.
        status=f"CASE WHEN t.status = '{RunStatus.PENDING}' THEN '{RunStatus.RUNNING}' ELSE t.status END",
        started_at="COALESCE(t.started_at, :now)",
        updated_at=":now",
    )
)


@immutable
class Flows:
    """The workflow runs of what is ready, and what its nodes are."""

    runs: dict[int, Row[Any]]
    nodes: dict[int, SnapshotNode]
    """By the ids of what is ready; those that nobody can read any more are not there."""


class KnownRuns:
    """The runs that claims meet, kept as they were read: except for its state, nothing of it changes. Used by the writer alone,
    which does one thing at a time."""

    def __init__(self) -> None:
        self._known: dict[int, Row[Any]] = {}

    def meet(self, tx: Tx, run_ids: set[int]) -> dict[int, Row[Any]]:
        """Their rows; the states of those that `tx` knows to have begun may be old."""
        known = self._known
        found = {each: known[each] for each in run_ids & tx.fresh.begun & known.keys()}
        if len(found) < len(run_ids):
            read = {run.id: run for run in tx.query(_RUNS, id_rows(run_ids - found.keys()))}
            found |= read
            if len(known) > MOST:
                known.clear()
            for each, run in read.items():
                known.pop(each, None)  # the number of one that was rolled back is given again
                if len(run.params or "") <= SMALL:
                    known[each] = run
        return found


def flows_of(tx: Tx, ready: list[Row[Any]], known: KnownRuns) -> Flows:
    ids = {row.workflow_run_id for row in ready} - {None}
    if not ids:
        return Flows({}, {})
    found = known.meet(tx, ids)
    started_with = snapshots.read(tx, (run.snapshot for run in found.values()))
    of_runs = {run.id: started_with[run.snapshot].nodes for run in found.values()}
    nodes = {}
    for row in ready:
        node, of_run = row.node_id, of_runs.get(row.workflow_run_id, NO_NODES)
        made = of_run.get(node) or (of_run.get(node_of_item(node)) if node else None)
        if made is not None:
            nodes[row.id] = made
    return Flows(found, nodes)


def node_claims(tx: Tx, rows: list[Row[Any]], flows: Flows, now: datetime) -> dict[int, NodeClaim]:
    """What each of these nodes is by the run that it belongs to; those runs have begun now."""
    runs = {row.workflow_run_id: flows.runs[row.workflow_run_id] for row in rows}
    beginning = [run.id for run in runs.values() if run.status == RunStatus.PENDING and run.id not in tx.fresh.begun]
    if beginning:
        tx.run(_START_RUNS, id_rows(beginning), now=to_micros(now))
        if tx.live is not None:
            tx.live.turned(beginning)
    params = {run.id: codec.from_json(run.params) or {} for run in runs.values()}
    claims = [(row, flows.nodes[row.id]) for row in rows if row.id in flows.nodes]
    seen = artifacts.at_hand(tx, [(row.id, row.workflow_run_id, made.sees) for row, made in claims])
    return {
        row.id: _node_claim(row, made, runs[row.workflow_run_id], params[row.workflow_run_id], seen[row.id])
        for row, made in claims
    }


def _node_claim(
    row: Row[Any], made: SnapshotNode, run: Row[Any], params: dict[str, Any], seen: dict[str, Ended] | None
) -> NodeClaim:
    return NodeClaim(
        run.id,
        run.public_id,
        run.workflow_key,
        row.node_id,
        made,
        params,
        run.depth,
        None if row.checkpoint is None else codec.from_json(row.checkpoint),
        row.parent_id is not None,
        None if run.task_id is None else TaskOf(run.task_id, str(params.get("taskId")), run.tenant_id),
        seen,
    )
