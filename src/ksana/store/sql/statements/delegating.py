"""Delegating: others work for a node. Its items, or a workflow run of its own; they end it when the last of them has ended."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row

from ksana.domain.clock import to_micros
from ksana.domain.errors import KsanaError
from ksana.domain.execution import Claim
from ksana.domain.states import ExecutionStatus
from ksana.domain.workflow import SnapshotNode, item_id
from ksana.store.sql.rows import columns, to_json, update_by_id
from ksana.store.sql.statements import admission, runs, starting
from ksana.store.sql.statements.runs import RunNow
from ksana.store.sql.statements.settling import DELEGATE, STOP, Moved, apply_moves, lock_claims
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


@dataclass(frozen=True, slots=True)
class Spreading:
    """A node that becomes one execution for each item."""

    claim: Claim
    items: Sequence[Any]
    at: datetime


@dataclass(frozen=True, slots=True)
class Handing:
    """A node that becomes a workflow run."""

    claim: Claim
    new: NewRun


def spread(tx: Tx, spreadings: list[Spreading]) -> list[bool | KsanaError]:
    held = runs.lock(tx, [each.claim.workflow_run_id for each in spreadings])
    mine = lock_claims(tx, [each.claim for each in spreadings])
    return [_spread(tx, each, mine.pop(each.claim, None), held) for each in spreadings]


def _spread(tx: Tx, wanted: Spreading, row: Row[Any] | None, held: dict[int, RunNow]) -> bool:
    if row is None:
        return False
    at, run = to_micros(wanted.at), held[row.workflow_run_id]
    if not run.going_on:
        apply_moves(tx, [Moved(row, STOP.target, at, attempt=row.attempt - 1, reason=run.reason)])
        return True
    made = run.snapshot.nodes[row.node_id]
    tx.insert_with_ids("executions", starting.NODE, list(_item_rows(row, made, wanted.items, at)))
    tx.run(_SET_COUNT, [(row.id, len(wanted.items), to_json({"items": len(wanted.items)}))])
    apply_moves(tx, [Moved(row, DELEGATE.target, at)])
    return True


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
        )


def hand_over(tx: Tx, handings: list[Handing]) -> list[bool | KsanaError]:
    held = runs.lock(tx, [each.claim.workflow_run_id for each in handings])
    mine = lock_claims(tx, [each.claim for each in handings])
    return [_hand_over(tx, each, mine.pop(each.claim, None), held) for each in handings]


def _hand_over(tx: Tx, wanted: Handing, row: Row[Any] | None, held: dict[int, RunNow]) -> bool | KsanaError:
    if row is None:
        return False
    at, run = to_micros(wanted.new.at), held[row.workflow_run_id]
    if not run.going_on:
        apply_moves(tx, [Moved(row, STOP.target, at, attempt=row.attempt - 1, reason=run.reason)])
        return True
    found = admission.workflows(tx, [wanted.new.workflow_id])
    refused = starting.refusal(wanted.new, found)
    if refused is not None:
        return refused
    queued = starting.make_room(tx, wanted.new, found)
    starting.create(tx, [starting.Beginning(wanted.new, queued, parent_execution_id=row.id)])
    tx.run(_SET_COUNT, [(row.id, 1, None)])
    apply_moves(tx, [Moved(row, DELEGATE.target, at)])
    return True
