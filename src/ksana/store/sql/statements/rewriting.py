"""A person's orders to nodes: do again, complete, leave out.

What has ended is written anew; what was skipped because of it is decided anew; the run, if it had ended, goes on. The whole
graph is evaluated once (`domain.dag.evaluate`): these are rare, and must be right rather than quick.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Row, select

from ksana.domain.clock import to_micros
from ksana.domain.dag import (
    SKIPPED_BY_HAND,
    Evaluation,
    NodeNow,
    Standing,
    Tally,
    evaluate,
    standing_of,
    stopped_before,
    undone_by,
)
from ksana.domain.errors import (
    NodeNotCompletable,
    NodeNotRetryable,
    NodeNotSkippable,
    NotFound,
    RunNotRunning,
    RunNotStopped,
    RunTerminal,
)
from ksana.domain.events import Actor, EventType
from ksana.domain.states import (
    COMPLETABLE_BY_HAND,
    DEFERRED,
    FAILURES,
    JOBCHAIN_NODE_NAMES,
    RETRYABLE_BY_HAND,
    RUN_REOPENABLE,
    SKIPPABLE_BY_HAND,
    STOPS,
    UNSUCCESSFUL,
    AttemptStatus,
    ExecutionStatus,
    RunStatus,
)
from ksana.domain.workflow import node_of_item
from ksana.store.sql import schema
from ksana.store.sql.rows import Statement, columns, to_json, update_by_id
from ksana.store.sql.statements import admission, runs, stopping
from ksana.store.sql.statements.advancing import (
    WRITE_DECIDED,
    decided_row,
    fill,
    item_count,
    max_parallel,
    outputs_of,
    parent_end,
    skip_told,
)
from ksana.store.sql.statements.journal import Happening, record_change, record_events, why
from ksana.store.sql.statements.moves import Moved
from ksana.store.sql.statements.runs import RunNow
from ksana.store.sql.statements.settling import apply_moves, delegators, end_attempt, lock_one
from ksana.store.sql.tx import Tx
from ksana.store.workflow_requests import Complete, Reopen, SkipNode

_S = ExecutionStatus
COMPLETED_BY_HAND = "completed_by_hand"
# Not locked: only those are written that have ended or wait, which nobody moves without having the run; a node that is locked
# could be passed over by the one who would start it.
_NODES = Statement(
    "SELECT t.* FROM executions t {by_node} WHERE t.workflow_run_id = :run_id AND t.parent_id IS NULL ORDER BY t.id"
)
_ITEMS = Statement("SELECT t.* FROM executions t WHERE t.parent_id = :parent_id ORDER BY t.id {for_update}")
_SAID = columns(id="int", status="text", output="text", checkpoint="text", reason="text", ended_at="int")
_SAY = update_by_id(
    "executions",
    _SAID,
    status="r.status",
    output="COALESCE(r.output, t.output)",
    checkpoint="COALESCE(r.checkpoint, t.checkpoint)",
    reason="r.reason",
    error="NULL",
    ready_at="NULL",
    ended_at="r.ended_at",
    updated_at=":at",
)
# A person wants it: what it lost before was looked at.
_BEGIN_AGAIN = update_by_id("executions", columns(id="int"), started_at="NULL", losses="0")
# Nobody claims a node whose helpers go on, and so nobody counts.
_COUNT_ATTEMPT = update_by_id("executions", columns(id="int"), attempt="t.attempt + 1")
_nodes, _runs = schema.executions.c, schema.workflow_runs.c


@dataclass(frozen=True, slots=True)
class Said:
    """What a person says that a node has become."""

    status: ExecutionStatus
    reason: str
    output: Any = None
    checkpoint: Any = None


@dataclass(slots=True)
class Rewriting:
    """The nodes of a run that are to be written anew."""

    run: RunNow
    at: int
    said: dict[str, Said] = field(default_factory=dict)
    """Ended by a person's word."""
    delegated: set[str] = field(default_factory=set)
    """Others work for them again."""
    again: set[str] = field(default_factory=set)
    """Decided anew, and run if nothing keeps them."""


# The orders ---------------------------------------------------------------------------------------------------------


def reopen(tx: Tx, run: RunNow, wanted: Reopen) -> int:
    """How many nodes are done again. RunTerminal, RunNotStopped, RunNotRunning, NotFound, NodeNotRetryable."""
    _refuse_closed(run)
    at = to_micros(wanted.at)
    rewriting = Rewriting(run, at)
    if wanted.nodes is not None:
        for node_id in sorted(wanted.nodes):
            _ask_again(tx, rewriting, node_id)
        data: dict[str, Any] = {"nodes": sorted(wanted.nodes)}
        happened: Happening = (EventType.NODE_RETRIED, f"run/{run.id}", data | why(wanted.actor))
    else:
        if run.status not in RUN_REOPENABLE:
            raise RunNotStopped(run.row.public_id, run.status)
        states = UNSUCCESSFUL if wanted.stopped else FAILURES
        rewriting.again = {row.node_id for row in _rows(tx, run).values() if row.status in states}
        data = {"nodes": len(rewriting.again)}
        happened = (EventType.RUN_REOPENED, f"run/{run.id}", data | why(wanted.actor))
    asked = len(rewriting.again) + len(rewriting.delegated)
    record_change(tx, at, wanted.actor, happened)
    _rewrite(tx, rewriting, wanted.actor, asked=wanted.nodes or frozenset())
    return asked


def complete(tx: Tx, run: RunNow, wanted: Complete) -> list[int]:
    """The executions whose work is to be broken off. RunTerminal, NotFound, NodeNotCompletable."""
    _refuse_closed(run, but_stopping=True)
    row, at = _node(tx, run, wanted.node_id), to_micros(wanted.at)
    if row.status == _S.SUCCESS and row.reason == COMPLETED_BY_HAND:
        return []  # somebody has said so already
    deferred = row.status == _S.SCHEDULED and row.reason == DEFERRED
    if row.status not in COMPLETABLE_BY_HAND and not deferred:
        raise NodeNotCompletable(run.row.public_id, wanted.node_id, _shown(row))
    data = {"node": wanted.node_id, "from": row.status} | why(wanted.actor)
    record_change(tx, at, wanted.actor, (EventType.NODE_COMPLETED, f"run/{run.id}", data))
    said = Said(_S.SUCCESS, COMPLETED_BY_HAND, wanted.artifact, wanted.checkpoint)
    if row.status in UNSUCCESSFUL:
        _say(tx, run, row, said, wanted.actor, at)
        return []
    broken_off = [row.id] if row.status == _S.RUNNING else []
    end_attempt(tx, row, AttemptStatus.CANCELED, at, COMPLETED_BY_HAND)
    if wanted.checkpoint is not None:
        tx.run(_SAY, [(row.id, row.status, None, to_json(wanted.checkpoint), None, None)], at=at)
    apply_moves(tx, [Moved(row, _S.SUCCESS, at, output=wanted.artifact, reason=COMPLETED_BY_HAND)])
    return broken_off + stopping.drop_helpers(tx, row, wanted.actor, at)


def skip(tx: Tx, run: RunNow, wanted: SkipNode) -> None:
    """RunTerminal, NotFound, NodeNotSkippable."""
    _refuse_closed(run, but_stopping=True)
    row, at = _node(tx, run, wanted.node_id), to_micros(wanted.at)
    if row.status == _S.SKIPPED and row.reason == SKIPPED_BY_HAND.reason:
        return
    if row.status not in SKIPPABLE_BY_HAND:
        raise NodeNotSkippable(run.row.public_id, wanted.node_id, _shown(row))
    data = {"node": wanted.node_id, "from": row.status} | why(wanted.actor)
    record_change(tx, at, wanted.actor, (EventType.NODE_SKIPPED, f"run/{run.id}", data))
    if row.status in UNSUCCESSFUL:
        _say(tx, run, row, Said(_S.SKIPPED, SKIPPED_BY_HAND.reason), wanted.actor, at)
    else:
        end_attempt(tx, row, AttemptStatus.CANCELED, at, SKIPPED_BY_HAND.reason)
        apply_moves(tx, [Moved(row, _S.SKIPPED, at, reason=SKIPPED_BY_HAND.reason)])


def _refuse_closed(run: RunNow, *, but_stopping: bool = False) -> None:
    if run.status is RunStatus.CLOSED:
        raise RunTerminal(run.row.public_id, run.status)
    if run.status is RunStatus.QUEUED or (run.status is RunStatus.STOPPING and not but_stopping):
        raise RunNotRunning(run.row.public_id, run.status)


def _node(tx: Tx, run: RunNow, node_id: str) -> Row[Any]:
    wanted = select(_nodes.id).where(_nodes.workflow_run_id == run.id, _nodes.node_id == node_id)
    found = tx.core(wanted)
    row = lock_one(tx, found[0].id) if found else None
    if row is None:
        raise NotFound("node", node_id)
    return row


def _shown(row: Row[Any]) -> str:
    return JOBCHAIN_NODE_NAMES[ExecutionStatus(row.status)]


# One node, or one item ------------------------------------------------------------------------------------------------


def _ask_again(tx: Tx, rewriting: Rewriting, node_id: str) -> None:
    row = _node(tx, rewriting.run, node_id)
    if row.status not in RETRYABLE_BY_HAND:
        raise NodeNotRetryable(rewriting.run.row.public_id, node_id, _shown(row))
    if row.parent_id is None:
        rewriting.again.add(node_id)
        return
    if not _parent_is_open(tx, row):
        raise NodeNotRetryable(rewriting.run.row.public_id, node_id, _shown(row))
    tx.run(WRITE_DECIDED, [decided_row(row.id, _S.PENDING, Tally(0), rewriting.at)], at=rewriting.at)
    _recount(tx, rewriting, node_of_item(node_id), row.parent_id)
    fill(tx, {row.parent_id: max_parallel(rewriting.run, node_of_item(node_id))}, rewriting.at)


def _parent_is_open(tx: Tx, item: Row[Any]) -> bool:
    """Whether it still counts what becomes of an item: its node goes on, or has not succeeded."""
    parent = tx.core(select(_nodes.status).where(_nodes.id == item.parent_id))
    return bool(parent) and (parent[0].status == _S.DELEGATED or parent[0].status in UNSUCCESSFUL)


def _say(tx: Tx, run: RunNow, row: Row[Any], said: Said, actor: Actor, at: int) -> None:
    """A node that had ended otherwise is what a person says. RunNotRunning while its run stops."""
    if run.status is RunStatus.STOPPING:
        raise RunNotRunning(run.row.public_id, run.status)
    if row.parent_id is not None and not _parent_is_open(tx, row):
        raise NodeNotCompletable(run.row.public_id, row.node_id, _shown(row))
    rewriting = Rewriting(run, at)
    if row.parent_id is None:
        rewriting.said[row.node_id] = said
    else:
        tx.run(_SAY, [_said_row(row.id, said, at)], at=at)
        _recount(tx, rewriting, node_of_item(row.node_id), row.parent_id)
    _rewrite(tx, rewriting, actor)


def _recount(tx: Tx, rewriting: Rewriting, node_id: str, parent_id: int) -> None:
    """What becomes of a node by the states that its items have now."""
    items = tx.query(_ITEMS, parent_id=parent_id)
    open_ = sum(item.ended_at is None for item in items)
    failed = sum(item.status in FAILURES for item in items)
    stopped = sum(item.status in STOPS for item in items)
    tally = Tally(open_, 0, failed, stopped)
    if open_:
        rewriting.delegated.add(node_id)
        _write_delegated(tx, parent_id, tally, rewriting.at)
    elif not failed and not stopped:
        rewriting.said[node_id] = Said(_S.SUCCESS, COMPLETED_BY_HAND, outputs_of(tx, [parent_id])[parent_id])


def _write_delegated(tx: Tx, execution_id: int, tally: Tally, at: int) -> None:
    tx.run(WRITE_DECIDED, [decided_row(execution_id, _S.DELEGATED, tally, at)], at=at)


def _said_row(execution_id: int, said: Said, at: int) -> tuple[Any, ...]:
    checkpoint = None if said.checkpoint is None else to_json(said.checkpoint)
    return (execution_id, said.status, to_json(said.output), checkpoint, said.reason, at)


# The graph ------------------------------------------------------------------------------------------------------------


def _rewrite(tx: Tx, rewriting: Rewriting, actor: Actor, asked: Iterable[str] = ()) -> None:
    run, at = rewriting.run, rewriting.at
    rows = _rows(tx, run)
    nodes = {row.node_id: _now(row) for row in rows.values()}
    anew, evaluation = _evaluated(rewriting, nodes)
    for node_id in asked:
        if node_id in evaluation.skipped:
            raise NodeNotRetryable(run.row.public_id, node_id, "waiting for nodes that have failed")
    if rewriting.said:
        tx.run(_SAY, [_said_row(rows[node].id, said, at) for node, said in sorted(rewriting.said.items())], at=at)
    _write_decided(tx, rewriting, rows, anew, evaluation)
    runs.recount(tx, run)
    _go_on(run, at)
    ended = run.end_if_done(at)
    runs.write(tx, [run], at)
    _resume_helpers(tx, rewriting, rows, evaluation, actor)
    _reopen_delegator(tx, run, actor, at)
    if ended:
        admission.let_in(tx, [run.row.workflow_id], at)
        apply_moves(tx, delegators(tx, [run], at))


def _rows(tx: Tx, run: RunNow) -> dict[str, Row[Any]]:
    return {row.node_id: row for row in tx.query(_NODES, run_id=run.id)}


def _now(row: Row[Any]) -> NodeNow:
    return NodeNow(ExecutionStatus(row.status), row.reason, row.attempt)


def _evaluated(rewriting: Rewriting, nodes: Mapping[str, NodeNow]) -> tuple[frozenset[str], Evaluation]:
    """Which nodes are decided anew, and what becomes of every one that waits."""
    graph = rewriting.run.snapshot.graph
    again = rewriting.again | stopped_before(graph, nodes, rewriting.again)
    changed = again | rewriting.said.keys() | rewriting.delegated
    anew = frozenset(again | undone_by(graph, nodes, changed)) - rewriting.said.keys() - rewriting.delegated
    standings = {node: now.standing for node, now in nodes.items()}
    standings |= dict.fromkeys(anew, Standing.PENDING)
    standings |= dict.fromkeys(rewriting.delegated, Standing.ACTIVE)
    standings |= {node: standing_of(said.status, said.reason) for node, said in rewriting.said.items()}
    return anew, evaluate(graph, standings)


def _write_decided(
    tx: Tx, rewriting: Rewriting, rows: Mapping[str, Row[Any]], anew: frozenset[str], evaluation: Evaluation
) -> None:
    waiting = anew | {node for node, row in rows.items() if row.status == _S.PENDING}
    written: list[tuple[Any, ...]] = []
    for node in waiting:
        skip_ = evaluation.skipped.get(node)
        tally = evaluation.tallies.get(node, Tally(0))
        status = _S.PENDING if node in evaluation.tallies else _S.SKIPPED if skip_ is not None else _S.SCHEDULED
        written.append(decided_row(rows[node].id, status, tally, rewriting.at, skip_))
    if written:
        tx.run(WRITE_DECIDED, sorted(written), at=rewriting.at)
        tx.run(_BEGIN_AGAIN, sorted((rows[node].id,) for node in anew))
    told = [skip_told(rewriting.run.id, node, skip_) for node, skip_ in evaluation.skipped.items()]
    record_events(tx, rewriting.at, told)


def _go_on(run: RunNow, at: int) -> None:
    """A run that had ended goes on, with all its time before it again."""
    if run.status not in RUN_REOPENABLE:
        return
    run.move(RunStatus.RUNNING)
    run.reason = run.error = run.ended_at = None
    timeout = run.snapshot.dag.timeout
    run.deadline_at = None if timeout is None else at + round(timeout.total_seconds() * 1_000_000)


# Items and runs of nodes that go on -------------------------------------------------------------------------------------


def _resume_helpers(
    tx: Tx, rewriting: Rewriting, rows: Mapping[str, Row[Any]], evaluation: Evaluation, actor: Actor
) -> None:
    """Of nodes that had helpers, those go on that had not succeeded; the others are not asked again."""
    for node in evaluation.ready:
        row = rows[node]
        if row.status == _S.PENDING or row.attempt == 0:
            continue
        if resume_items(tx, rewriting.run, row, rewriting.at) or resume_child(tx, row, actor, rewriting.at):
            tx.run(_COUNT_ATTEMPT, [(row.id,)])


def resume_items(tx: Tx, run: RunNow, row: Row[Any], at: int) -> bool:
    """Whether a node has items, of which those go on that have not succeeded. The list is worked out once: it stays."""
    if not item_count(row):
        return False
    items = tx.query(_ITEMS, parent_id=row.id)
    left = [item.id for item in items if item.status in UNSUCCESSFUL]
    if not left:
        _write_delegated(tx, row.id, Tally(0), at)
        fresh = tx.core(select(schema.executions).where(_nodes.id == row.id))[0]
        end = parent_end(fresh, 0, 0, outputs_of(tx, [row.id])[row.id])
        apply_moves(tx, [Moved(fresh, end.target, at, output=end.output, error=end.error)])
        return True
    tx.run(WRITE_DECIDED, [decided_row(item_id, _S.PENDING, Tally(0), at) for item_id in left], at=at)
    _write_delegated(tx, row.id, Tally(len(left)), at)
    fill(tx, {row.id: max_parallel(run, row.node_id)}, at)
    return True


def resume_child(tx: Tx, row: Row[Any], actor: Actor, at: int) -> bool:
    """Whether a node has a run of its own that can go on, or has succeeded meanwhile."""
    wanted = select(_runs.id, _runs.status).where(_runs.parent_execution_id == row.id)
    newest = tx.core(wanted.order_by(_runs.id.desc()).limit(1))
    if not newest or newest[0].status not in RUN_REOPENABLE | {RunStatus.SUCCESS}:
        return False
    _write_delegated(tx, row.id, Tally(1), at)
    child = runs.lock(tx, [newest[0].id])[newest[0].id]
    if child.status is RunStatus.SUCCESS:
        apply_moves(tx, delegators(tx, [child], at))
    else:
        again = {each.node_id for each in _rows(tx, child).values() if each.status in UNSUCCESSFUL}
        _rewrite(tx, Rewriting(child, at, again=again), actor)
    return True


def _reopen_delegator(tx: Tx, run: RunNow, actor: Actor, at: int) -> None:
    """The node that a re-opened run works for is open again, too, and so is the run that it belongs to."""
    if run.row.parent_execution_id is None:
        return
    row = lock_one(tx, run.row.parent_execution_id)
    if row is None or row.status not in UNSUCCESSFUL:
        return
    above = runs.lock(tx, [row.workflow_run_id])[row.workflow_run_id]
    _refuse_closed(above)
    _write_delegated(tx, row.id, Tally(1), at)
    rewriting = Rewriting(above, at)
    if row.parent_id is None:
        rewriting.delegated.add(row.node_id)
    elif _parent_is_open(tx, row):
        _recount(tx, rewriting, node_of_item(row.node_id), row.parent_id)
    _rewrite(tx, rewriting, actor)
