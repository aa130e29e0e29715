"""New workflow runs, with all their nodes: what every way of asking for one shares."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from ksana.domain.clock import to_micros
from ksana.domain.errors import ConcurrencyLimit, IdTaken, KsanaError, NotFound, VersionMismatch, WorkflowDisabled
from ksana.domain.events import EventType
from ksana.domain.states import ExecutionStatus, RunStatus
from ksana.domain.values import immutable
from ksana.domain.workflow import Overlap, Snapshot
from ksana.domain.workflow_run import WorkflowRun
from ksana.store.sql import codec
from ksana.store.sql.codec_workflows import workflow_run
from ksana.store.sql.dialects.base import Dialect
from ksana.store.sql.live import Waiting, waiting_of
from ksana.store.sql.rows import Statement, columns, row_of, to_json
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
_as_read = row_of(("id", *(name for name, _ in _RUN), "error", "started_at", "ended_at"))
# As texts: the driver would look for how to take a value of any other type, each time.
_PENDING, _QUEUED = RunStatus.PENDING.value, RunStatus.QUEUED.value
_NODE_READY, _NODE_WAITS = ExecutionStatus.SCHEDULED.value, ExecutionStatus.PENDING.value
_RUN_OF_NODES = columns(
    place="int",
    graph="int",
    run_id="int",
    planned_for="int",
    at="int",
    share="text",
    trace_id="text",
    state="text",
    since="int",
)
"""A run, with its place among those that begin together; the state of its nodes that depend on nothing, and since when."""
_NODE_OF_GRAPH = columns(place="int", graph="int", node_id="text", job_id="int", queue="text", needed="int")
"""A node, with its place in its graph and how many it depends on."""
TOGETHER, MOST_NODES = 128, 10_000
"""Runs whose nodes lie together, with so many nodes in all their graphs at the most, unless one graph alone has more."""
_NODES = {
    "workflow_run_id": "r.run_id",
    "node_id": "n.node_id",
    "job_id": "n.job_id",
    "planned_for": "r.planned_for",
    "triggered_by": "'workflow'",
    "worker_queue": "n.queue",
    "status": f"CASE WHEN n.needed > 0 THEN '{_NODE_WAITS}' ELSE r.state END",
    "ready_at": "CASE WHEN n.needed > 0 THEN NULL ELSE r.since END",
    "epoch": "0",
    "attempt": "0",
    "open_dependencies": "n.needed",
    "trace_id": "r.trace_id",
    "created_at": "r.at",
    "updated_at": "r.at",
    "share": "r.share",
}


def _insert_nodes(dialect: Dialect, runs: str) -> str:
    """All nodes of all these runs: each run, and each node of a graph, is given once, not each node of each run. The first nodes
    of all runs, then their second ones: what is begun together often goes on together, and lies together then. (And so, with more
    that is ready at once than there are places, the first of all runs come first.)"""
    made, order = dict(_NODES), " ORDER BY n.place, r.place"
    if not dialect.shared:
        # Whoever alone gives ids knows them all by the first one; and so the order.
        made, order = {"id": ":first + n.place * :runs + r.place", **made}, ""
    nodes, marks = dialect.rows_table(_NODE_OF_GRAPH, "nodes", "given"), dialect.marks
    return (
        f"INSERT {dialect.or_fail} INTO executions ({', '.join(made)})"
        f" WITH n AS {marks['once']} (SELECT * FROM {nodes})"
        f" SELECT {', '.join(made.values())} FROM n {marks['join']} {runs} ON r.graph = n.graph{order}"
    )


_INSERT_NODES = Statement(_insert_nodes, _RUN_OF_NODES)
_RUNS = Statement("SELECT t.* FROM {rows} {join} workflow_runs t ON t.id = r.id", columns(id="int"))
_RUNS_BY_KEY = Statement(
    "SELECT t.* FROM {rows} {join} workflow_runs t ON t.public_id = r.public_id", columns(public_id="key")
)


@immutable
class OfTask:
    """The tenant's task that a run is, and the fencing token of the lock that it begins under."""

    plan_id: int | None = None
    task_id: int | None = None
    tenant_id: str | None = None
    fence: int | None = None


@immutable
class Beginning:
    """A run that is to be, and where it comes from."""

    new: NewRun
    queued: bool = False
    schedule_id: int | None = None
    planned_for: int | None = None
    parent_execution_id: int | None = None
    task: OfTask = OfTask()


_Numbered = tuple[int, Beginning]
"""With the id of its run."""


def start(tx: Tx, news: list[NewRun]) -> list[StartedRun | KsanaError]:
    found = admission.workflows(tx, (new.workflow_id for new in news))
    if _independent(news, found):
        return _start_together(tx, news, found)
    return [answer for new in news for answer in _start_together(tx, [new], found)]


def _independent(news: list[NewRun], found: admission.Workflows) -> bool:
    """Whether none has anything to do with another: then all are made with the statements of one."""
    alone = len({new.key for new in news}) == len(news) and all(new.idempotency_key is None for new in news)
    return alone and not any(admission.limited(row) for row in found.rows.values())


def _start_together(tx: Tx, news: list[NewRun], found: admission.Workflows) -> list[StartedRun | KsanaError]:
    answers = _known(tx, news)
    beginnings: dict[int, Beginning] = {}
    for position, new in enumerate(news):
        if position not in answers:
            refused = refusal(new, found)
            if refused is None:
                beginnings[position] = Beginning(new, make_room(tx, new, found))
            else:
                answers[position] = refused
    made = dict(zip(beginnings, _create(tx, list(beginnings.values())), strict=True))
    _remember(tx, {row.id: news[position] for position, row in made.items()})
    answers |= {position: StartedRun(workflow_run(row), created=True) for position, row in made.items()}
    return [answers[position] for position in range(len(news))]


def _known(tx: Tx, news: list[NewRun]) -> dict[int, StartedRun | KsanaError]:
    """By their place, those that need no run: their id or idempotency key has made one before, or cannot make any."""
    # Asked once: between two questions, another instance's start of the same run could be committed.
    brought = [(new.key,) for new in news if not new.remembered]  # the others have keys that were just made
    taken = {row.public_id: row for row in tx.query(_RUNS_BY_KEY, brought)} if brought else {}
    found: dict[int, StartedRun | KsanaError] = {}
    for position, new in enumerate(news):
        wrong = None if new.idempotency_key is None else idempotency.refusal(new.idempotency_key)
        row = taken.get(new.key)
        if wrong is not None:
            found[position] = wrong
        elif row is not None and row.workflow_id == new.workflow_id:
            found[position] = StartedRun(workflow_run(row), created=False)
        elif (known := _known_by(tx, new.workflow_id, new.idempotency_key)) is not None:
            found[position] = StartedRun(known, created=False)
        elif row is not None:
            found[position] = IdTaken("run", new.key)
    return found


def known_run(tx: Tx, workflow_id: int, key: str | None, idempotency_key: str | None) -> WorkflowRun | None:
    """Of this workflow; what another made with that id is not told of."""
    if key is not None:
        rows = [row for row in tx.query(_RUNS_BY_KEY, [(key,)]) if row.workflow_id == workflow_id]
        if rows:
            return workflow_run(rows[0])
    return _known_by(tx, workflow_id, idempotency_key)


def _known_by(tx: Tx, workflow_id: int, idempotency_key: str | None) -> WorkflowRun | None:
    """The run that this idempotency key has made."""
    if idempotency_key is None:
        return None
    name = (_scope(workflow_id), idempotency_key.strip())
    made = idempotency.known(tx, [name]).get(name)
    found = tx.query(_RUNS, [(made,)]) if made is not None else []
    return workflow_run(found[0]) if found else None


def _remember(tx: Tx, made: dict[int, NewRun]) -> None:
    """The idempotency keys of new runs."""
    idempotency.remember(
        tx,
        [
            (_scope(new.workflow_id), new.idempotency_key.strip(), run_id)
            for run_id, new in made.items()
            if new.idempotency_key is not None
        ],
    )


def _scope(workflow_id: int) -> str:
    return f"workflow/{workflow_id}"


def refusal(new: NewRun, found: admission.Workflows) -> KsanaError | None:
    """Why it cannot be; None if it can."""
    row = found.rows.get(new.workflow_id)
    if row is None or row.deleted_at is not None:
        return NotFound("workflow", new.workflow_key)
    if not row.enabled:
        return WorkflowDisabled(new.workflow_key)
    if new.remembered and row.version != new.workflow_version:
        return VersionMismatch("workflow", new.workflow_key, expected=new.workflow_version, actual=row.version)
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
    return [row.id for row in _create(tx, beginnings)]


def _create(tx: Tx, beginnings: Sequence[Beginning]) -> list[Any]:
    """The runs as they would be read."""
    if not beginnings:
        return []
    started_with = {each.new.snapshot.digest: each.new.snapshot for each in beginnings}
    snapshots.keep(tx, started_with.values(), tx.clock)
    runs = [_run_row(each) for each in beginnings]
    ids = tx.insert_with_ids("workflow_runs", _RUN, runs)
    for together in _together(list(zip(ids, beginnings, strict=True))):
        _create_nodes(tx, together)
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
    return [_as_read((run_id, *run, None, None, None)) for run_id, run in zip(ids, runs, strict=True)]


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
        new.trigger._value_,
        _QUEUED if each.queued else _PENDING,
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


def _together(beginnings: Sequence[_Numbered]) -> Iterator[list[_Numbered]]:
    """Parts of them, each of which one statement has room for."""
    part: list[_Numbered] = []
    sizes: dict[str, int] = {}
    for each in beginnings:
        snapshot = each[1].new.snapshot
        more = 0 if snapshot.digest in sizes else len(snapshot.nodes)
        if part and (len(part) == TOGETHER or sum(sizes.values()) + more > MOST_NODES):
            yield part
            part, sizes = [], {}
        part.append(each)
        sizes[snapshot.digest] = len(snapshot.nodes)
    if part:
        yield part


def _create_nodes(tx: Tx, beginnings: Sequence[_Numbered]) -> None:
    """Those of runs, with their ids."""
    number = sum(len(each.new.snapshot.nodes) for _, each in beginnings)
    tx.about(number)
    graphs = {each.new.snapshot.digest: each.new.snapshot for _, each in beginnings}
    places = {digest: place for place, digest in enumerate(graphs)}
    in_order = sorted((places[each.new.snapshot.digest], run_id, each) for run_id, each in beginnings)
    runs = [_run_of_nodes(place, *of_run) for place, of_run in enumerate(in_order)]
    nodes = [_nodes_of(graph, snapshot) for graph, snapshot in enumerate(graphs.values())]
    given: dict[str, Any] = {"nodes": to_json(sorted(chain.from_iterable(nodes)))}
    if not tx.dialect.shared:
        given |= {"first": tx.next_id("executions"), "runs": len(runs)}
    tx.run(_INSERT_NODES, runs, **given)
    if tx.live is not None and tx.live.has_room_for(number):
        tx.live.waits(list(_waiting(given["first"], nodes, runs)))


def _run_of_nodes(place: int, graph: int, run_id: int, each: Beginning) -> tuple[Any, ...]:
    at = to_micros(each.new.at)
    planned_for = at if each.planned_for is None else each.planned_for
    share = f"workflow/{each.new.workflow_id}" if each.task.tenant_id is None else f"tenant/{each.task.tenant_id}"
    state, since = (_NODE_WAITS, None) if each.queued else (_NODE_READY, at)
    return (place, graph, run_id, planned_for, at, share, each.new.trace_id, state, since)


def _nodes_of(graph: int, snapshot: Snapshot) -> list[tuple[Any, ...]]:
    made = snapshot.nodes
    return [
        # Its items have the job, and the job's slots.
        (
            place,
            graph,
            node,
            None if made[node].node.for_each else made[node].job_id,
            made[node].spec.worker_queue,
            len(needed),
        )
        for place, (node, needed) in enumerate(snapshot.graph.dependencies.items())
    ]


def _waiting(first: int, graphs: list[list[tuple[Any, ...]]], runs: list[tuple[Any, ...]]) -> Iterator[Waiting]:
    """The nodes that depend on others, as they would be read when one of those has ended."""
    waiting = [[node for node in nodes if node[-1]] for nodes in graphs]
    for place, graph, run_id, planned_for, at, share, trace, _, _ in runs:
        since = (None, planned_for, 0, 0, at, None, None, None, None, trace, run_id)
        rest = (None, None, share, 0)
        for row, _, node, job_id, queue, needed in waiting[graph]:
            beginning = (first + row * len(runs) + place, _NODE_READY, "workflow", job_id, *since)
            yield waiting_of((*beginning, node, *rest, queue, needed, 0, 0))
