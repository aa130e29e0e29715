"""Settling: an attempt ends, and its execution moves on. The fence is `lock_claims`, and nowhere else."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from operator import attrgetter
from typing import Any

from sqlalchemy import Row, select

from ksana.domain.clock import to_micros
from ksana.domain.errors import KsanaError
from ksana.domain.events import EventType
from ksana.domain.execution import Claim
from ksana.domain.outcome import NO_EVIDENCE, Evidence
from ksana.domain.states import (
    ACTIVE,
    CLAIMABLE,
    DEFERRED,
    HOLDS_SLOT,
    RUN_ACTIVE,
    TERMINAL,
    UNSTARTED,
    AttemptStatus,
    ExecutionMove,
    ExecutionStatus,
    RunStatus,
)
from ksana.domain.values import immutable
from ksana.domain.workflow import WAIT, node_of_item
from ksana.store.requests import Ending
from ksana.store.sql import codec, schema
from ksana.store.sql.rows import Statement, brief, columns, insert_rows, keeping, storable, to_json, update_by_id
from ksana.store.sql.statements import admission, artifacts, runs
from ksana.store.sql.statements.advancing import advance, results_of
from ksana.store.sql.statements.journal import Happening, fitting, record_events
from ksana.store.sql.statements.moves import Moved
from ksana.store.sql.statements.runs import RunNow
from ksana.store.sql.statements.slots import release, status_list
from ksana.store.sql.statements.tenant_tasks import fenced_out
from ksana.store.sql.tx import NO_ROWS, Tx

_ID = attrgetter("row.id")
_RUNNING = frozenset({ExecutionStatus.RUNNING})
SUCCEED = ExecutionMove(_RUNNING, ExecutionStatus.SUCCESS)
FAIL = ExecutionMove(_RUNNING, ExecutionStatus.FAILED)
TIME_OUT = ExecutionMove(_RUNNING, ExecutionStatus.TIMEOUT)
RETRY = ExecutionMove(_RUNNING, ExecutionStatus.RETRYING)
AWAIT_CALLBACK = ExecutionMove(_RUNNING, ExecutionStatus.CALLBACK_PENDING)
HAND_BACK = ExecutionMove(_RUNNING, ExecutionStatus.SCHEDULED)
LEAVE_OUT = ExecutionMove(_RUNNING, ExecutionStatus.SKIPPED)
DEFER = ExecutionMove(_RUNNING, ExecutionStatus.SCHEDULED)
DELEGATE = ExecutionMove(_RUNNING, ExecutionStatus.DELEGATED)
STOP = ExecutionMove(ACTIVE, ExecutionStatus.STOPPED)

_LOCK_CLAIMS = Statement(
    "SELECT t.id, r.epoch AS claimed_epoch, t.job_id, t.epoch, t.attempt, t.owner, t.attempt_started_at, t.planned_for, t.share,"
    " t.created_at, t.trace_id, t.status, t.workflow_run_id, t.node_id, t.parent_id, t.input"
    " FROM {rows} {join} executions t {by_id} ON t.id = r.id"
    f" WHERE t.epoch = r.epoch AND t.status = '{ExecutionStatus.RUNNING}' ORDER BY t.id {{for_update}}",
    columns(id="int", epoch="int"),
    many=True,
)
_SETTLED = columns(
    id="int",
    status="text",
    attempt="int",
    ready_at="int",
    deadline_at="int",
    output="text",
    error="text",
    reason="text",
    ended_at="int",
    updated_at="int",
)
_SETTLE = keeping(
    update_by_id(
        "executions",
        _SETTLED,
        owner="NULL",
        # What was saved while it ran stays, unless its end says something else.
        output="COALESCE(r.output, t.output)",
        **{name: f"r.{name}" for name, _ in _SETTLED if name not in {"id", "output"}},
    )
)
_ENDED = columns(id="int", status="text", output="text", error="text", reason="text", at="int")
# What ran has neither a time to be ready at nor a deadline: to leave those alone leaves their indexes alone.
_END = keeping(
    update_by_id(
        "executions",
        _ENDED,
        owner="NULL",
        status="r.status",
        output="COALESCE(r.output, t.output)",
        error="r.error",
        reason="r.reason",
        ended_at="r.at",
        updated_at="r.at",
    )
)
_ACTIVE_NODES = Statement(
    "SELECT t.* FROM {rows} {join} executions t {by_node} ON t.workflow_run_id = r.id"
    f" WHERE {{status}} IN ({status_list(ACTIVE)}) ORDER BY t.id {{for_update}}",
    columns(id="int"),
)
_RUNS_FOR = Statement(
    "SELECT t.id FROM {rows} {join} workflow_runs t ON t.parent_execution_id = r.id ORDER BY t.id", columns(id="int")
)
WITH_ITS_NODE = "with_its_node"
"""Why a run stops that works for a node of a run that stops."""
_EXECUTIONS = Statement(
    "SELECT t.* FROM {rows} {join} executions t {by_id} ON t.id = r.id ORDER BY t.id", columns(id="int")
)
_PLAIN_ATTEMPT = columns(
    execution_id="int",
    epoch="int",
    number="int",
    status="text",
    owner="text",
    started_at="int",
    ended_at="int",
    error="text",
)
_ATTEMPT = _PLAIN_ATTEMPT + columns(
    request="text",
    request_body="text",
    response_code="int",
    response_headers="text",
    response_body="text",
)
_INSERT_ATTEMPTS = insert_rows("attempts", _ATTEMPT)
_INSERT_PLAIN_ATTEMPTS = insert_rows("attempts", _PLAIN_ATTEMPT)
"""Of which nothing was sent, and nothing answered: of most nodes."""

_CLOSE_ATTEMPT = Statement(
    "UPDATE attempts SET status = :status, ended_at = :at, error = :error"
    " WHERE execution_id = :execution_id AND epoch = :epoch"
)
_ADD_EVIDENCE = Statement(
    "UPDATE attempts SET request = :request, request_body = :request_body, response_code = :response_code,"
    " response_headers = :response_headers, response_body = :response_body"
    " WHERE execution_id = :execution_id AND epoch = :epoch AND request IS NULL AND response_code IS NULL"
)

_EVENTS = {
    ExecutionStatus.DELEGATED: EventType.NODE_DELEGATED,
    ExecutionStatus.RETRYING: EventType.EXECUTION_RETRYING,
    ExecutionStatus.CALLBACK_PENDING: EventType.EXECUTION_AWAITING_CALLBACK,
    ExecutionStatus.SCHEDULED: EventType.EXECUTION_RECOVERED,
}


@immutable
class Settlement:
    """The end of one attempt and the move that follows from it."""

    ending: Ending
    move: ExecutionMove
    attempt: AttemptStatus | None
    """None: nothing was tried, and it does not count as an attempt."""
    ready_at: datetime | None = None
    deadline_at: datetime | None = None
    reason: str | None = None


def lock_claims(tx: Tx, claims: Iterable[Claim]) -> dict[Claim, Row[Any]]:
    """Those that are still RUNNING under their epoch, locked until the end of the transaction."""
    found: dict[Claim, Any] = {}
    asked: set[tuple[int, int]] = set()
    for claim in claims:
        known = None if tx.live is None else tx.live.running(claim)
        if known is None:
            asked.add((claim.execution_id, claim.epoch))
        else:
            found[claim] = known
    rows = tx.query(_LOCK_CLAIMS, sorted(asked)) if asked else ()
    return found | {Claim(row.id, row.claimed_epoch): row for row in rows}


def settle(tx: Tx, settlements: list[Settlement]) -> list[bool | KsanaError]:
    claims = [settlement.ending.claim for settlement in settlements]
    held = runs.lock(tx, [claim.workflow_run_id for claim in claims])
    mine = lock_claims(tx, claims)
    stale = fenced_out(tx, held.values())
    if stale:
        mine = {claim: row for claim, row in mine.items() if row.workflow_run_id not in stale}
    answers: list[bool | KsanaError] = []
    moved: list[Moved] = []
    attempts: list[tuple[Any, ...]] = []
    for settlement in settlements:
        ending = settlement.ending
        # Taken out, so that a second word about the same claim in the same batch comes too late.
        row = mine.pop(ending.claim, None)
        answers.append(row is not None)
        if row is not None:
            at = to_micros(ending.at)
            moved.append(_moved(row, settlement, at))
            if settlement.attempt is not None:
                attempts.append(attempt_row(row, settlement.attempt, at, ending.error, ending.evidence))
        elif settlement.attempt is not None and settlement.move is not HAND_BACK:
            _add_evidence(tx, ending)
    record_attempts(tx, attempts)
    apply_moves(tx, moved, held)
    return answers


def apply_moves(tx: Tx, moved: list[Moved], held: dict[int, RunNow] | None = None) -> None:
    """Writes where locked executions go, tells of it, gives back the slots of those that ended, and carries on what that means
    for the workflow runs that they belong to: from items to their node, from runs to the node that they work for. `held` are
    runs that are locked already."""
    while moved:
        moved = _apply(tx, moved, held or {})
        held = None


def _apply(tx: Tx, moved: list[Moved], held: dict[int, RunNow]) -> list[Moved]:
    """What has to move next."""
    missing = {move.row.workflow_run_id for move in moved} - held.keys() - {None}
    concerned = held | runs.lock(tx, missing) if missing else held
    if any(not run.going_on for run in concerned.values()):
        moved = [_unless_stopping(move, concerned) for move in moved]
    moved = sorted(moved, key=_ID)
    _write(tx, moved)
    at = max([move.at for move in moved])
    record_events(tx, at, [_happening(move) for move in moved])
    freed = [move.row.job_id for move in moved if move.row.job_id is not None and move.target not in HOLDS_SLOT]
    if freed:
        release(tx, Counter(freed), at)
    ended = [move for move in moved if move.row.workflow_run_id is not None and move.target in TERMINAL]
    if not ended:
        runs.leave(tx, concerned.values())
        return []
    follow = advance(tx, concerned, ended, at)
    runs.write(tx, concerned.values(), at)
    admission.let_in(tx, {run.row.workflow_id for run in follow.ended}, at)
    parents = [Moved(end.row, end.target, at, output=end.output, error=end.error) for end in follow.parents]
    return [*soft_stops(tx, follow.halted, at), *parents, *delegators(tx, follow.ended, at)]


def _write(tx: Tx, moved: list[Moved]) -> None:
    """Where they are from now on."""
    if tx.live is not None:
        tx.live.moved([move.row for move in moved])
    ends = [move for move in moved if _only_ends(move)]
    if ends:
        rows = [_ended_row(move) for move in ends]
        tx.run(_END, rows)
        artifacts.note(tx, [(move.row, row[1], row[2]) for move, row in zip(ends, rows, strict=True)])
    if len(ends) < len(moved):
        tx.run(_SETTLE, [_settled_row(move) for move in moved if not _only_ends(move)])


def _only_ends(move: Moved) -> bool:
    """It ran, and that is over: nearly every move."""
    return move.attempt is None and move.target in TERMINAL and bool(move.row.status == ExecutionStatus.RUNNING)


def _unless_stopping(move: Moved, concerned: dict[int, RunNow]) -> Moved:
    """Nothing of a run that stops begins again, or begins to wait."""
    run = concerned.get(move.row.workflow_run_id)
    if run is None or run.going_on:
        return move
    waits = move.target is ExecutionStatus.CALLBACK_PENDING and only_waits(run, move.row)
    if not waits and move.target not in CLAIMABLE:
        return move
    return replace(move, target=STOP.target, ready_at=None, deadline_at=None, reason=run.reason)


def only_waits(run: RunNow, row: Row[Any]) -> bool:
    """Whether nobody works for a node that waits: no target will report, only a person might."""
    made = run.snapshot.nodes.get(node_of_item(row.node_id))
    return made is not None and made.spec.type == WAIT


def soft_stops(tx: Tx, stopping: Sequence[RunNow], at: int) -> list[Moved]:
    """What of these runs ends because they stop: whatever nobody works on, also in the runs that work for their nodes, which
    stop as well. Their attempts, if they have one, are closed."""
    if not stopping:
        return []
    by_id = {run.id: run for run in stopping}
    rows = tx.query(_ACTIVE_NODES, [(run_id,) for run_id in sorted(by_id)])
    ending = [
        row
        for row in rows
        if row.status in UNSTARTED
        or (row.status == ExecutionStatus.CALLBACK_PENDING and only_waits(by_id[row.workflow_run_id], row))
    ]
    for row in ending:
        end_attempt(tx, row, AttemptStatus.CANCELED, at, by_id[row.workflow_run_id].reason)
    moves = [Moved(row, STOP.target, at, error=row.error, reason=by_id[row.workflow_run_id].reason) for row in ending]
    delegated = [row.id for row in rows if row.status == ExecutionStatus.DELEGATED]
    return moves + soft_stops(tx, _stopping_children(tx, delegated, at), at)


def halted(tx: Tx, run: RunNow, states: frozenset[ExecutionStatus], at: int) -> list[Moved]:
    """What of a run is in one of these states, and so stops."""
    rows = tx.query(_ACTIVE_NODES, [(run.id,)])
    return [Moved(row, STOP.target, at, error=row.error, reason=run.reason) for row in rows if row.status in states]


def _stopping_children(tx: Tx, execution_ids: Sequence[int], at: int) -> list[RunNow]:
    """The runs that work for these, from now on stopping."""
    children = [run for run in runs_for(tx, execution_ids) if run.status is not RunStatus.STOPPING]
    for run in children:
        begin_stopping(run, WITH_ITS_NODE)
    runs.write(tx, children, at)
    return children


def begin_stopping(run: RunNow, reason: str) -> None:
    """A run that has not ended starts nothing new. One that still waited for its turn needs it no more."""
    if run.status is RunStatus.QUEUED:
        run.move(RunStatus.PENDING)
    if run.going_on:
        run.move(RunStatus.STOPPING)
        run.reason = reason


def runs_for(tx: Tx, execution_ids: Iterable[int]) -> list[RunNow]:
    """The runs that work for these executions and have not ended, locked."""
    ids = [(each,) for each in sorted(set(execution_ids))]
    found = [row.id for row in tx.query(_RUNS_FOR, ids)] if ids else []
    return [run for run in runs.lock(tx, found).values() if run.status in RUN_ACTIVE]


def delegators(tx: Tx, ended: Iterable[RunNow], at: int) -> list[Moved]:
    """The nodes that ended runs worked for."""
    made = {run.row.parent_execution_id: run for run in ended if run.row.parent_execution_id is not None}
    if not made:
        return []
    ids = [(execution_id,) for execution_id in sorted(made)]
    runs.lock(tx, {row.workflow_run_id for row in tx.query(_EXECUTIONS, ids)})
    rows = [row for row in tx.query(_EXECUTIONS, ids) if row.status == ExecutionStatus.DELEGATED]
    return [_delegator_end(tx, row, made[row.id], at) for row in rows]


def _delegator_end(tx: Tx, row: Row[Any], run: RunNow, at: int) -> Moved:
    made = results_of(tx, run)
    output = {"runId": run.row.public_id, "status": run.status, "artifacts": made}
    if made is None:
        return Moved(row, ExecutionStatus.FAILED, at, output=output, error=f"run {run.row.public_id} made too much")
    if run.status is RunStatus.SUCCESS:
        return Moved(row, ExecutionStatus.SUCCESS, at, output=output)
    if run.status is RunStatus.FAILED:
        error = f"run {run.row.public_id} failed: {run.error}"
        return Moved(row, ExecutionStatus.FAILED, at, output=output, error=error)
    return Moved(row, STOP.target, at, output=output, reason=f"run {run.row.public_id} is {run.status}")


def record_attempts(tx: Tx, attempts: list[tuple[Any, ...]]) -> None:
    plain = [row for row in attempts if len(row) == len(_PLAIN_ATTEMPT)]
    if plain:
        tx.run(_INSERT_PLAIN_ATTEMPTS, plain)
    if len(plain) < len(attempts):
        tx.run(_INSERT_ATTEMPTS, [row for row in attempts if len(row) == len(_ATTEMPT)])


def end_attempt(tx: Tx, row: Row[Any], status: AttemptStatus, at: int, error: str | None) -> None:
    """Of one that runs, the attempt is written now; of one that waits for its callback, it is there already."""
    if row.status == ExecutionStatus.RUNNING:
        record_attempts(tx, [attempt_row(row, status, at, error)])
    elif row.status == ExecutionStatus.CALLBACK_PENDING:
        told = {"status": status.value, "at": at, "error": brief(error)}
        tx.run(_CLOSE_ATTEMPT, NO_ROWS, execution_id=row.id, epoch=row.epoch, **told)


def lock_one(tx: Tx, execution_id: int) -> Row[Any] | None:
    """The execution, locked; the run that it is a node of before it."""
    wanted = select(schema.executions).where(schema.executions.c.id == execution_id)
    found = tx.core(wanted)
    if not found:
        return None
    runs.lock(tx, [found[0].workflow_run_id])
    found = tx.core(wanted.with_for_update())
    return found[0] if found else None


def read_one(tx: Tx, execution_id: int) -> Row[Any]:
    return tx.core(select(schema.executions).where(schema.executions.c.id == execution_id))[0]


def attempt_row(
    row: Row[Any], status: AttemptStatus, ended_at: int, error: str | None, evidence: Evidence = NO_EVIDENCE
) -> tuple[Any, ...]:
    told = None if error is None else brief(error)
    plain = (row.id, row.epoch, row.attempt, status._value_, row.owner, row.attempt_started_at, ended_at, told)
    if evidence is NO_EVIDENCE:
        return plain
    return (
        *plain,
        to_json(evidence.request) if evidence.request else None,
        storable(evidence.request_body),
        evidence.response_code,
        to_json(evidence.response_headers) if evidence.response_headers else None,
        storable(evidence.response_body),
    )


def _add_evidence(tx: Tx, ending: Ending) -> None:
    """The callback came first and ended the attempt: what was sent and answered is still to be told."""
    evidence = ending.evidence
    tx.run(
        _ADD_EVIDENCE,
        NO_ROWS,
        execution_id=ending.claim.execution_id,
        epoch=ending.claim.epoch,
        request=to_json(evidence.request) if evidence.request else None,
        request_body=storable(evidence.request_body),
        response_code=evidence.response_code,
        response_headers=to_json(evidence.response_headers) if evidence.response_headers else None,
        response_body=storable(evidence.response_body),
    )


def _moved(row: Row[Any], settlement: Settlement, at: int) -> Moved:
    handed_back = settlement.move is HAND_BACK
    # What is handed back goes before whatever came after it, and its attempt does not count.
    ready_at = (row.planned_for or row.created_at) if handed_back else codec.micros(settlement.ready_at)
    return Moved(
        row,
        settlement.move.target,
        at,
        ready_at,
        codec.micros(settlement.deadline_at),
        row.attempt - 1 if handed_back or settlement.attempt is None else None,
        # That an instance stopped is told with the attempt; the run itself has not failed.
        None if handed_back else settlement.ending.error,
        settlement.ending.output,
        settlement.reason,
    )


def _ended_row(move: Moved) -> tuple[Any, ...]:
    return (
        move.row.id,
        move.target._value_,
        to_json(move.output),
        None if move.error is None else brief(move.error),
        fitting(move.reason, 255) if move.reason else None,
        move.at,
    )


def _settled_row(move: Moved) -> tuple[Any, ...]:
    return (
        move.row.id,
        move.target.value,
        move.row.attempt if move.attempt is None else move.attempt,
        move.ready_at,
        move.deadline_at,
        to_json(move.output),
        brief(move.error),
        fitting(move.reason, 255) if move.reason else None,
        move.at if move.target in TERMINAL else None,
        move.at,
    )


def _happening(move: Moved) -> Happening:
    """What happens to a node is told of its run."""
    kind = _EVENTS.get(move.target, EventType.EXECUTION_ENDED)
    if move.reason == DEFERRED:
        kind = EventType.EXECUTION_DEFERRED
    row = move.row
    data = {"status": move.target, "attempt": row.attempt, "job_id": row.job_id}
    if row.workflow_run_id is None:
        return (kind, f"execution/{row.id}", data)
    if move.reason:
        data["reason"] = move.reason
    data["node"] = row.node_id
    return (kind, f"run/{row.workflow_run_id}", data)
