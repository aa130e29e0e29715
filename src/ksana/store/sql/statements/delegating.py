"""Delegating: others work for a node. Its items, or a workflow run of its own; they end it when the last of them has ended."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Row

from ksana.domain.clock import to_micros
from ksana.domain.errors import KsanaError
from ksana.domain.execution import Claim
from ksana.domain.states import ExecutionStatus
from ksana.domain.values import immutable
from ksana.domain.workflow import SnapshotNode, item_id
from ksana.store.sql.rows import columns, to_json, update_by_id
from ksana.store.sql.statements import admission, rewriting, runs, starting
from ksana.store.sql.statements.moves import Moved
from ksana.store.sql.statements.runs import RunNow
from ksana.store.sql.statements.settling import DELEGATE, STOP, apply_moves, lock_claims
from ksana.store.sql.tx import Tx
from ksana.store.workflow_requests import NewRun

_COUNT = columns(id="int", open_dependencies="int", input="text")
_SET_COUNT = update_by_id(
    "executions",
    _COUNT,
    open_dependencies="r.open_dependencies",
    failed_dependencies="0",
    skipped_dependencies="0",
    input="r.input",
)


@immutable
class Spreading:
    """A node that becomes one execution for each item."""

    claim: Claim
    items: Sequence[Any]
    at: datetime


@immutable
class Handing:
    """A node that becomes a workflow run."""

    claim: Claim
    new: NewRun


def spread(tx: Tx, spreadings: list[Spreading]) -> list[bool | KsanaError]:
    # One at a time, each from what the ones before it have left.
    return [_spread(tx, each) for each in spreadings]


def _spread(tx: Tx, wanted: Spreading) -> bool:
    row, run = _mine(tx, wanted.claim)
    if row is None or run is None:
        return False
    at = to_micros(wanted.at)
    if not run.going_on:
        _stop(tx, row, run, at)
        return True
    apply_moves(tx, [Moved(row, DELEGATE.target, at)])
    if rewriting.resume_items(tx, run, row, at):
        return True
    made = run.snapshot.nodes[row.node_id]
    tx.insert_with_ids("executions", starting.NODE, list(_item_rows(row, made, wanted.items, at)))
    tx.run(_SET_COUNT, [(row.id, len(wanted.items), to_json({"items": len(wanted.items)}))])
    return True


def _mine(tx: Tx, claim: Claim) -> tuple[Row[Any] | None, RunNow | None]:
    """The node, if it is still the claim's, and its run, both locked."""
    held = runs.lock(tx, [claim.workflow_run_id])
    row = lock_claims(tx, [claim]).get(claim)
    return row, None if row is None else held[row.workflow_run_id]


def _stop(tx: Tx, row: Row[Any], run: RunNow, at: int) -> None:
    apply_moves(tx, [Moved(row, STOP.target, at, attempt=row.attempt - 1, reason=run.reason)])


def _item_rows(row: Row[Any], made: SnapshotNode, items: Sequence[Any], at: int) -> Iterator[tuple[Any, ...]]:
    for_each = made.node.for_each
    parallel = len(items) if for_each is None or for_each.max_parallel is None else for_each.max_parallel
    for index, item in enumerate(items):
        ready = index < parallel
        yield (
            row.workflow_run_id,
            item_id(row.node_id, index),
            row.id,
            made.job_id,
            row.planned_for,
            "workflow",
            made.spec.worker_queue,
            ExecutionStatus.SCHEDULED if ready else ExecutionStatus.PENDING,
            at if ready else None,
            0,
            0,
            0,
            to_json({"item": item, "index": index}),
            row.trace_id,
            at,
            at,
            row.share,
        )


def hand_over(tx: Tx, handings: list[Handing]) -> list[bool | KsanaError]:
    return [_hand_over(tx, each) for each in handings]


def _hand_over(tx: Tx, wanted: Handing) -> bool | KsanaError:
    row, run = _mine(tx, wanted.claim)
    if row is None or run is None:
        return False
    at = to_micros(wanted.new.at)
    if not run.going_on:
        _stop(tx, row, run, at)
        return True
    found = admission.workflows(tx, [wanted.new.workflow_id])
    refused = starting.refusal(wanted.new, found)
    if refused is not None:
        return refused
    apply_moves(tx, [Moved(row, DELEGATE.target, at)])
    if rewriting.resume_child(tx, row, wanted.new.actor, at):
        return True
    tx.run(_SET_COUNT, [(row.id, 1, None)])
    queued = starting.make_room(tx, wanted.new, found)
    starting.create(tx, [starting.Beginning(wanted.new, queued, parent_execution_id=row.id)])
    return True
