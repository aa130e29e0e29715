"""Claiming: what is ready becomes this instance's, never more of a job than its limit allows.

Two instances must not both find a job's last free slot, and the end of a run must not overlook the execution that a claim
is just about to queue. On a database with row locks, in this order and never waiting for a job:

1. the ready executions, passing over those that another claim has locked;
2. the rows of their jobs that have a limit, passing over those that another claim is counting;
3. the rows that hold those jobs' slots, shared: whoever is ending one of them is waited for, or waits.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Row

from ksana.domain.clock import to_micros
from ksana.domain.errors import KsanaError
from ksana.domain.execution import Claimed, Execution
from ksana.domain.job import ConcurrencyPolicy, Job
from ksana.domain.states import CLAIMABLE, ExecutionMove, ExecutionStatus, RunStatus
from ksana.domain.workflow import NodeClaim, Snapshot, SnapshotNode, TaskOf, node_of_item
from ksana.store.requests import ClaimRequest
from ksana.store.sql import codec
from ksana.store.sql.rows import Statement, columns, update_by_id
from ksana.store.sql.statements import snapshots
from ksana.store.sql.statements.settling import Moved, apply_moves
from ksana.store.sql.statements.slots import holders
from ksana.store.sql.tx import Tx

GIVE_UP = ExecutionMove(CLAIMABLE, ExecutionStatus.FAILED)
CLAIM = ExecutionMove(CLAIMABLE, ExecutionStatus.RUNNING)
PARK = ExecutionMove(frozenset({ExecutionStatus.SCHEDULED}), ExecutionStatus.QUEUED)
DROP = ExecutionMove(CLAIMABLE, ExecutionStatus.CANCELED)
LOOKS = (1, 64, 256, 1_024, 4_096)
"""How many a claim looks at: further each time that it met a full job, so that one such does not hide the others."""

_IDS = columns(id="int")
_READY = Statement(
    "SELECT t.* FROM executions t {by_ready} WHERE t.worker_queue = :queue AND t.ready_at <= :now"
    " ORDER BY t.ready_at, t.id LIMIT :look {skip_locked}"
)
_JOBS = Statement("SELECT t.* FROM {rows} {join} jobs t ON t.id = r.id", _IDS)
_LIMITS = Statement(
    "SELECT t.id, t.max_concurrency FROM {rows} {join} jobs t {by_id} ON t.id = r.id ORDER BY t.id {for_update_jobs}",
    _IDS,
)
_RUNS = Statement(
    "SELECT t.id, t.public_id, t.workflow_key, t.snapshot, t.params, t.status, t.depth, t.task_id, t.tenant_id"
    " FROM {rows} {join} workflow_runs t ON t.id = r.id",
    _IDS,
)
_START_RUNS = update_by_id(
    "workflow_runs",
    _IDS,
    # Only if it has not moved since: somebody may just be stopping it.
    status=f"CASE WHEN t.status = '{RunStatus.PENDING}' THEN '{RunStatus.RUNNING}' ELSE t.status END",
    started_at="COALESCE(t.started_at, :now)",
    updated_at=":now",
)
_CLAIM = update_by_id(
    "executions",
    _IDS,
    status=f"'{CLAIM.target}'",
    owner=":owner",
    epoch="t.epoch + 1",
    attempt="t.attempt + 1",
    ready_at="NULL",
    reason="NULL",
    started_at="COALESCE(t.started_at, :now)",
    attempt_started_at=":now",
    updated_at=":now",
)
_PARK = update_by_id(
    "executions", _IDS, status=f"'{PARK.target}'", ready_at="NULL", reason="'concurrency_limit'", updated_at=":now"
)


@dataclass(frozen=True, slots=True)
class Wish:
    request: ClaimRequest
    now: datetime


def claim(tx: Tx, wishes: list[Wish]) -> list[list[Claimed] | KsanaError]:
    return [_claim(tx, wish) for wish in wishes]


def _claim(tx: Tx, wish: Wish) -> list[Claimed]:
    claimed: list[Claimed] = []
    for queue in wish.request.queues:
        for look in LOOKS:
            capacity = wish.request.capacity - len(claimed)
            if capacity <= 0:
                return claimed
            look = max(look, capacity)  # noqa: PLW2901
            ready = tx.query(_READY, queue=queue, now=to_micros(wish.now), look=look)
            taken, parked = _take(tx, ready, capacity, wish)
            claimed += taken
            if not parked or len(ready) < look:
                break
    return claimed


def _take(tx: Tx, ready: list[Row[Any]], capacity: int, wish: Wish) -> tuple[list[Claimed], list[int]]:
    if not ready:
        return [], []
    job_rows = {row.id: row for row in tx.query(_JOBS, _id_rows(row.job_id for row in ready if row.job_id is not None))}
    ready = _without_deleted(tx, ready, job_rows, wish)
    flows = _flows(tx, ready)
    ready = _without_unreadable(tx, ready, flows, wish)
    room = _room(tx, ready, job_rows)
    mine: list[Row[Any]] = []
    parked: list[int] = []
    for row in ready:
        if len(mine) == capacity:
            break
        if _fits(row, room):
            mine.append(row)
        elif row.job_id in room:
            parked.append(row.id)
    if parked:
        tx.run(_PARK, _id_rows(parked), now=to_micros(wish.now))
    if mine:
        tx.run(_CLAIM, _id_rows(row.id for row in mine), owner=wish.request.instance_id, now=to_micros(wish.now))
    nodes = _nodes(tx, [row for row in mine if row.workflow_run_id is not None], flows, wish)
    return [_claimed(row, job_rows, nodes.get(row.id), wish) for row in mine], parked


def _claimed(row: Row[Any], jobs: dict[int, Row[Any]], node: NodeClaim | None, wish: Wish) -> Claimed:
    if node is None:
        return Claimed(_running(row, wish), codec.job(jobs[row.job_id]))
    made = node.snapshot
    job = Job(row.job_id or 0, made.job_key or "", made.spec, 0, wish.now, wish.now)
    return Claimed(_running(row, wish), job, node)


@dataclass(frozen=True, slots=True)
class _Flows:
    """The workflow runs of what is ready, and what they started with."""

    runs: dict[int, Row[Any]]
    snapshots: dict[str, Snapshot]

    def made(self, row: Row[Any]) -> SnapshotNode | None:
        """What a node is; None if nobody can read it any more."""
        run = self.runs.get(row.workflow_run_id)
        return None if run is None else self.snapshots[run.snapshot].nodes.get(node_of_item(row.node_id))


def _flows(tx: Tx, ready: list[Row[Any]]) -> _Flows:
    ids = {row.workflow_run_id for row in ready if row.workflow_run_id is not None}
    found = {run.id: run for run in tx.query(_RUNS, _id_rows(ids))} if ids else {}
    return _Flows(found, snapshots.read(tx, (run.snapshot for run in found.values())))


def _without_unreadable(tx: Tx, ready: list[Row[Any]], flows: _Flows, wish: Wish) -> list[Row[Any]]:
    """A node of which nobody can read what it is has failed; it must not keep the others from running."""
    broken = {row.id for row in ready if row.workflow_run_id is not None and flows.made(row) is None}
    error = "what its run started with cannot be read"
    apply_moves(tx, [Moved(row, GIVE_UP.target, to_micros(wish.now), error=error) for row in ready if row.id in broken])
    return [row for row in ready if row.id not in broken]


def _nodes(tx: Tx, rows: list[Row[Any]], flows: _Flows, wish: Wish) -> dict[int, NodeClaim]:
    """What each of these nodes is by the run that it belongs to; those runs have begun now."""
    runs = {row.workflow_run_id: flows.runs[row.workflow_run_id] for row in rows}
    beginning = [run.id for run in runs.values() if run.status == RunStatus.PENDING]
    if beginning:
        tx.run(_START_RUNS, _id_rows(beginning), now=to_micros(wish.now))
    params = {run.id: codec.from_json(run.params) or {} for run in runs.values()}
    claims = ((row, flows.made(row)) for row in rows)
    return {
        row.id: _node_claim(row, made, runs[row.workflow_run_id], params[row.workflow_run_id])
        for row, made in claims
        if made is not None
    }


def _node_claim(row: Row[Any], made: SnapshotNode, run: Row[Any], params: dict[str, Any]) -> NodeClaim:
    return NodeClaim(
        run_id=run.id,
        run_key=run.public_id,
        workflow_key=run.workflow_key,
        node_id=row.node_id,
        snapshot=made,
        params=params,
        depth=run.depth,
        checkpoint=codec.from_json(row.checkpoint),
        is_item=row.parent_id is not None,
        task=None if run.task_id is None else TaskOf(run.task_id, str(params.get("taskId")), run.tenant_id),
    )


def _without_deleted(tx: Tx, ready: list[Row[Any]], jobs: dict[int, Row[Any]], wish: Wish) -> list[Row[Any]]:
    """What was asked for while its job was being deleted does not run; nor what nobody can read any more, which must not keep
    the others from running. A node runs with what its run started with, whatever has become of the job."""
    reasons = {job.id: reason for job in jobs.values() if (reason := _unfit(job)) is not None}
    gone = [row for row in ready if row.job_id in reasons and row.workflow_run_id is None]
    apply_moves(tx, [Moved(row, DROP.target, to_micros(wish.now), reason=reasons[row.job_id]) for row in gone])
    dropped = {row.id for row in gone}
    return [row for row in ready if row.id not in dropped]


def _unfit(job: Row[Any]) -> str | None:
    if job.deleted_at is not None:
        return "job_deleted"
    try:
        codec.job(job)
    except (KsanaError, ValueError, KeyError, TypeError):
        return "job_unreadable"
    return None


def _room(tx: Tx, ready: list[Row[Any]], jobs: dict[int, Row[Any]]) -> dict[int | None, int | None]:
    """How many more may start of each job: None is any number; a job that another claim is counting is left out."""
    starting = {row.job_id for row in ready if row.status == ExecutionStatus.SCHEDULED}
    limited = [job_id for job_id in starting & jobs.keys() if jobs[job_id].concurrency != ConcurrencyPolicy.PARALLEL]
    # A job that was purged, and a node that carries its job itself (None), have no limit.
    room: dict[int | None, int | None] = dict.fromkeys({row.job_id for row in ready} - set(limited))
    if limited:
        limits = {row.id: row.max_concurrency for row in tx.query(_LIMITS, _id_rows(limited))}
        held = holders(tx, list(limits)) if limits else {}
        room |= {job_id: limit - held[job_id] for job_id, limit in limits.items()}
    return room


def _fits(row: Row[Any], room: dict[int | None, int | None]) -> bool:
    if row.status == ExecutionStatus.RETRYING:
        return True  # it has kept its slot
    if row.job_id not in room:
        return False
    places = room[row.job_id]
    if places is None:
        return True
    room[row.job_id] = places - 1
    return places > 0


def _running(row: Row[Any], wish: Wish) -> Execution:
    before = codec.execution(row)
    return replace(
        before,
        status=CLAIM.target,
        owner=wish.request.instance_id,
        epoch=before.epoch + 1,
        attempt=before.attempt + 1,
        ready_at=None,
        reason=None,
        started_at=before.started_at or wish.now,
        updated_at=wish.now,
    )


def _id_rows(ids: Iterable[int]) -> list[tuple[int]]:
    return [(row_id,) for row_id in sorted(set(ids))]
