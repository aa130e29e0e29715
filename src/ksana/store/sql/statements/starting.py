"""New workflow runs, with all their nodes: what every way of asking for one shares."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select

from ksana.domain.clock import to_micros
from ksana.domain.errors import ConcurrencyLimit, IdTaken, KsanaError, NotFound, WorkflowDisabled
from ksana.domain.events import EventType
from ksana.domain.states import ExecutionStatus, RunStatus
from ksana.domain.workflow import Overlap
from ksana.domain.workflow_run import WorkflowRun
from ksana.store.sql import codec, schema
from ksana.store.sql.codec_workflows import workflow_run
from ksana.store.sql.rows import columns, to_json
from ksana.store.sql.statements import admission, idempotency, snapshots, stopping
from ksana.store.sql.statements.journal import record_changes
from ksana.store.sql.tx import Tx
from ksana.store.workflow_requests import NewRun, StartedRun

_RUN = columns(
    public_id="text",
    workflow_id="int",
    workflow_key="text",
    workflow_version="int",
    snapshot="text",
    schedule_id="int",
    planned_for="int",
    parent_execution_id="int",
    depth="int",
    triggered_by="text",
    status="text",
    params="text",
    open_nodes="int",
    failed_nodes="int",
    stopped_nodes="int",
    reason="text",
    deadline_at="int",
    created_at="int",
    updated_at="int",
    plan_id="int",
    task_id="int",
    tenant_id="text",
    fence="int",
)
NODE = columns(
    workflow_run_id="int",
    node_id="text",
    parent_id="int",
    job_id="int",
    planned_for="int",
    triggered_by="text",
    worker_queue="text",
    status="text",
    ready_at="int",
    epoch="int",
    attempt="int",
    open_dependencies="int",
    input="text",
    trace_id="text",
    created_at="int",
    updated_at="int",
    share="text",
)
_runs = schema.workflow_runs.c


@dataclass(frozen=True, slots=True)
class OfTask:
    """The tenant's task that a run is, and the fencing token of the lock that it begins under."""

    plan_id: int | None = None
    task_id: int | None = None
    tenant_id: str | None = None
    fence: int | None = None


@dataclass(frozen=True, slots=True)
class Beginning:
    """A run that is to be, and where it comes from."""

    new: NewRun
    queued: bool = False
    schedule_id: int | None = None
    planned_for: int | None = None
    parent_execution_id: int | None = None
    task: OfTask = OfTask()


def start(tx: Tx, news: list[NewRun]) -> list[StartedRun | KsanaError]:
    found = admission.workflows(tx, (new.workflow_id for new in news))
    return [_start(tx, new, found) for new in news]


def _start(tx: Tx, new: NewRun, found: admission.Workflows) -> StartedRun | KsanaError:
    known = _known(tx, new)
    if known is not None:
        return known
    refused = refusal(new, found)
    if refused is not None:
        return refused
    queued = make_room(tx, new, found)
    (run_id,) = create(tx, [Beginning(new, queued)])
    if new.idempotency_key is not None:
        idempotency.remember(tx, [(_scope(new.workflow_id), new.idempotency_key.strip(), run_id)])
    return StartedRun(_read(tx, run_id), created=True)


def _known(tx: Tx, new: NewRun) -> StartedRun | KsanaError | None:
    """The run that this id or this idempotency key has made before."""
    wrong = None if new.idempotency_key is None else idempotency.refusal(new.idempotency_key)
    if wrong is not None:
        return wrong
    known = known_run(tx, new.workflow_id, new.key, new.idempotency_key)
    if known is not None:
        return StartedRun(known, created=False)
    taken = tx.core(select(_runs.id).where(_runs.public_id == new.key))
    return IdTaken("run", new.key) if taken else None


def known_run(tx: Tx, workflow_id: int, key: str | None, idempotency_key: str | None) -> WorkflowRun | None:
    """Of this workflow; what another made with that id is not told of."""
    if key is not None:
        rows = tx.core(select(schema.workflow_runs).where(_runs.public_id == key, _runs.workflow_id == workflow_id))
        if rows:
            return workflow_run(rows[0])
    if idempotency_key is not None:
        name = (_scope(workflow_id), idempotency_key.strip())
        made = idempotency.known(tx, [name]).get(name)
        found = tx.core(select(schema.workflow_runs).where(_runs.id == made)) if made is not None else []
        return workflow_run(found[0]) if found else None
    return None


def _scope(workflow_id: int) -> str:
    return f"workflow/{workflow_id}"


def refusal(new: NewRun, found: admission.Workflows) -> KsanaError | None:
    """Why it cannot be; None if it can."""
    row = found.rows.get(new.workflow_id)
    if row is None or row.deleted_at is not None:
        return NotFound("workflow", new.workflow_key)
    if not row.enabled:
        return WorkflowDisabled(new.workflow_key)
    if row.overlap == Overlap.SKIP and found.full(new.workflow_id):
        return ConcurrencyLimit(new.workflow_key, limit=row.max_active_runs, kind="workflow")
    return None


def make_room(tx: Tx, new: NewRun, found: admission.Workflows) -> bool:
    """Whether it has to wait for its turn. Those that it replaces are stopped."""
    if found.full(new.workflow_id):
        if found.rows[new.workflow_id].overlap == Overlap.QUEUE:
            return True
        stopping.replace_runs(tx, new.workflow_id, new.actor, to_micros(new.at))
        found.active[new.workflow_id] = 0
    found.let_in(new.workflow_id)
    return False


def create(tx: Tx, beginnings: Sequence[Beginning]) -> list[int]:
    """The ids of the runs. Nodes that depend on nothing are ready at once, unless their run has to wait."""
    if not beginnings:
        return []
    snapshots.keep(tx, (each.new.snapshot for each in beginnings), tx.clock)
    ids = tx.insert_with_ids("workflow_runs", _RUN, [_run_row(each) for each in beginnings])
    nodes = [row for run_id, each in zip(ids, beginnings, strict=True) for row in _node_rows(run_id, each)]
    tx.insert_with_ids("executions", NODE, nodes)
    record_changes(
        tx,
        tx.clock,
        [
            (
                each.new.actor,
                (EventType.RUN_REQUESTED, f"run/{run_id}", {"workflow_id": each.new.workflow_id, "key": each.new.key}),
            )
            for run_id, each in zip(ids, beginnings, strict=True)
        ],
    )
    return ids


def _run_row(each: Beginning) -> tuple[Any, ...]:
    new, at = each.new, to_micros(each.new.at)
    return (
        new.key,
        new.workflow_id,
        new.workflow_key,
        new.workflow_version,
        new.snapshot.digest,
        each.schedule_id,
        at if each.planned_for is None else each.planned_for,
        each.parent_execution_id,
        new.depth,
        new.trigger,
        RunStatus.QUEUED if each.queued else RunStatus.PENDING,
        to_json(new.params) if new.params else None,
        len(new.snapshot.nodes),
        0,
        0,
        "concurrency_limit" if each.queued else None,
        codec.micros(new.deadline),
        at,
        at,
        each.task.plan_id,
        each.task.task_id,
        each.task.tenant_id,
        each.task.fence,
    )


def _node_rows(run_id: int, each: Beginning) -> Iterable[tuple[Any, ...]]:
    new, at = each.new, to_micros(each.new.at)
    planned_for = at if each.planned_for is None else each.planned_for
    share = f"workflow/{new.workflow_id}" if each.task.tenant_id is None else f"tenant/{each.task.tenant_id}"
    for node_id, needed in new.snapshot.graph.dependencies.items():
        made = new.snapshot.nodes[node_id]
        ready = not needed and not each.queued
        yield (
            run_id,
            node_id,
            None,
            # Its items have the job, and the job's slots.
            None if made.node.for_each is not None else made.job_id,
            planned_for,
            "workflow",
            made.spec.worker_queue,
            ExecutionStatus.SCHEDULED if ready else ExecutionStatus.PENDING,
            at if ready else None,
            0,
            0,
            len(needed),
            None,
            new.trace_id,
            at,
            at,
            share,
        )


def _read(tx: Tx, run_id: int) -> WorkflowRun:
    return workflow_run(tx.core(select(schema.workflow_runs).where(_runs.id == run_id))[0])
