"""Advancing: what the end of nodes means for the nodes after them, for the node they are items of, and for their runs.

It is part of the transaction that ends them, so that no run lives in a process's memory. Its statements are as many for one
node of one run as for a thousand nodes of hundreds: the tallies of those that come after are read together and written
together. `domain/dag.py` decides; here it is only asked, and written down.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Row

from ksana.domain.dag import Advance, Skip, Standing, Tally, standing_of
from ksana.domain.events import EventType
from ksana.domain.states import ACTIVE, FAILURES, STOPS, ExecutionMove, ExecutionStatus, RunStatus
from ksana.domain.values import immutable
from ksana.domain.workflow import MAX_ITEMS
from ksana.domain.workflow_run import FAIL_FAST
from ksana.store.sql import codec
from ksana.store.sql.live import waiting_of
from ksana.store.sql.rows import Statement, columns, keeping, update_by_id
from ksana.store.sql.statements.journal import Happening, record_events
from ksana.store.sql.statements.moves import Moved
from ksana.store.sql.statements.runs import RunNow
from ksana.store.sql.tx import Held, Tx

_S = ExecutionStatus
READY = ExecutionMove(frozenset({_S.PENDING}), _S.SCHEDULED)
SKIP = ExecutionMove(frozenset({_S.PENDING}), _S.SKIPPED)
STEPS = 3
"""How far skips are followed node by node; what is further away is read all at once."""

_NODES = columns(run_id="int", node_id="key")
_BESIDE_STATUS = (
    "t.triggered_by, t.job_id, t.schedule_id, t.planned_for, t.attempt, t.epoch, t.created_at, t.started_at,"
    " t.input, t.output, t.error, t.trace_id, t.workflow_run_id, t.node_id, t.parent_id, t.checkpoint, t.share, t.losses"
)
WANTED = f"t.id, t.status, {_BESIDE_STATUS}"
"""What a claim wants to know of an execution: it may take what becomes ready before that is written."""
# With the status that those have which become ready, as a claim wants to see it; in the order of `Waiting`.
_PENDING = Statement(
    f"SELECT t.id, '{READY.target}' AS status, {_BESIDE_STATUS}, t.worker_queue,"
    " t.open_dependencies, t.failed_dependencies, t.skipped_dependencies"
    " FROM {rows} {join} executions t {by_node} ON t.workflow_run_id = r.run_id AND t.node_id = r.node_id"
    f" WHERE {{status}} = '{_S.PENDING}'",
    _NODES,
)
_DECIDED = columns(
    id="int",
    status="text",
    ready_at="int",
    open_dependencies="int",
    failed_dependencies="int",
    skipped_dependencies="int",
    reason="text",
    ended_at="int",
)
WRITE_DECIDED = update_by_id(
    "executions", _DECIDED, updated_at=":at", **{name: f"r.{name}" for name, _ in _DECIDED if name != "id"}
)
_WRITE_SKIPPED = keeping(WRITE_DECIDED)
"""Of those that were PENDING, and so did not run."""
_PARENTS = Statement("SELECT t.* FROM {rows} {join} executions t {by_id} ON t.id = r.id", columns(id="int"))
COUNTS = columns(id="int", open_dependencies="int", failed_dependencies="int", skipped_dependencies="int")
COUNTED = {name: f"r.{name}" for name, _ in COUNTS if name != "id"}
"""How the nodes that one depends on stand, or its items."""
# No more than that changes of most: to leave their states alone leaves the indexes of those alone.
_WRITE_COUNTS = keeping(update_by_id("executions", COUNTS, updated_at=":at", **COUNTED))
_WRITE_READY = keeping(
    update_by_id(
        "executions",
        COUNTS,
        status=f"'{READY.target}'",
        ready_at=":at",
        updated_at=":at",
        **COUNTED,
    )
)
_GOING_ON = ACTIVE - {_S.PENDING}
_IN_FLIGHT = Statement(
    "SELECT t.parent_id, count(*) AS number FROM {rows} {join} executions t"
    " ON t.parent_id = r.id AND t.status = r.status GROUP BY t.parent_id",
    columns(id="int", status="key"),
)
_NEXT_ITEMS = Statement(
    f"SELECT t.id FROM executions t WHERE t.parent_id = :parent_id AND t.status = '{_S.PENDING}' ORDER BY t.id LIMIT :places"
)
_OUTPUT_SIZES = Statement(
    "SELECT t.parent_id, sum(length(t.output)) AS size FROM {rows} {join} executions t ON t.parent_id = r.id"
    " GROUP BY t.parent_id",
    columns(id="int"),
)
_OUTPUTS = Statement(
    "SELECT t.parent_id, t.output FROM {rows} {join} executions t ON t.parent_id = r.id ORDER BY t.parent_id, t.id",
    columns(id="int"),
)


@dataclass(slots=True)
class FollowUp:
    """What has to move next, because of what has ended."""

    halted: list[RunNow] = field(default_factory=list)
    """Runs of which nothing more may start."""
    parents: list["ParentEnd"] = field(default_factory=list)
    ended: list[RunNow] = field(default_factory=list)


@immutable
class ParentEnd:
    """A node whose items have all ended."""

    row: Row[Any]
    target: ExecutionStatus
    output: Any = None
    error: str | None = None


def advance(tx: Tx, runs: dict[int, RunNow], ended: Sequence[Moved], at: int) -> FollowUp:
    """Carries these ends on. The runs are locked; what they have become is theirs to be written by the caller."""
    follow = FollowUp()
    nodes = [each for each in ended if each.row.parent_id is None]
    _count(runs, nodes)
    _halt_failed(runs, [each for each in nodes if each.target in FAILURES], follow)
    _ready(tx, runs, nodes, at)
    if len(nodes) < len(ended):
        _items(tx, [each for each in ended if each.row.parent_id is not None], runs, at, follow)
    follow.ended = [run for run in runs.values() if run.end_if_done(at)]
    return follow


def _count(runs: dict[int, RunNow], nodes: Iterable[Moved]) -> None:
    for each in nodes:
        run = runs[each.row.workflow_run_id]
        run.open -= 1
        run.changed = True
        if each.target in STOPS:
            run.stopped += 1
        elif each.target in FAILURES:
            run.failed += 1
            if run.error is None:
                run.error = f"node {each.row.node_id}: {each.error}"  # the first one; the others are with their nodes


def _halt_failed(runs: dict[int, RunNow], failed: Iterable[Moved], follow: FollowUp) -> None:
    for each in failed:
        run = runs[each.row.workflow_run_id]
        if run.snapshot.dag.fail_fast and run.going_on:
            if run.status is RunStatus.PENDING:
                run.move(RunStatus.RUNNING)
            run.move(RunStatus.STOPPING)
            run.reason = FAIL_FAST
            follow.halted.append(run)


def _ready(tx: Tx, runs: dict[int, RunNow], nodes: Sequence[Moved], at: int) -> None:
    ends = _ends(runs, nodes)
    reaching = {run_id: Advance(runs[run_id].snapshot.graph, of_run) for run_id, of_run in ends.items()}
    found = _carry(tx, reaching)
    skipped, told = [], []
    counts: list[tuple[Row[Any], Tally]] = []
    ready: dict[int, tuple[int, ...]] = {}
    rows: dict[int, Row[Any]] = {}
    for run_id, reached in reaching.items():
        started, skips = reached.started, reached.skipped
        if skips:
            runs[run_id].open -= len(skips)
            told += [skip_told(run_id, node, skip) for node, skip in skips.items()]
        for node, tally in reached.tallies.items():
            row = found[run_id, node]
            row_id = row.id
            if node in started:
                ready[row_id] = (row_id, tally.open, tally.failed, tally.skipped)
                rows[row_id] = row
            elif node in skips:
                skipped.append(decided_row(row_id, SKIP.target, tally, at, skips[node]))
            else:
                counts.append((row, tally))
    if counts:
        _write_waiting(tx, counts, at)
    if skipped:
        tx.run(_WRITE_SKIPPED, sorted(skipped), at=at)
    record_events(tx, at, told)
    if ready:
        tx.hold(Held(_WRITE_READY, ready, {"at": at}, rows))


def _write_waiting(tx: Tx, waiting: Iterable[tuple[Row[Any], Tally]], at: int) -> None:
    """How the nodes stand that these wait for."""
    rows = sorted((row.id, tally.open, tally.failed, tally.skipped) for row, tally in waiting)
    tx.run(_WRITE_COUNTS, rows, at=at)
    if tx.live is not None:
        tx.live.waits([waiting_of((*row[:-3], tally.open, tally.failed, tally.skipped)) for row, tally in waiting])


def _ends(runs: dict[int, RunNow], nodes: Iterable[Moved]) -> dict[int, dict[str, Standing]]:
    """How nodes stand that have ended, by run; of runs of which others may still start."""
    ends: dict[int, dict[str, Standing]] = {}
    for each in nodes:
        run_id = each.row.workflow_run_id
        if runs[run_id].going_on:
            ends.setdefault(run_id, {})[each.row.node_id] = standing_of(each.target, each.reason)
    return ends


def _carry(tx: Tx, reaching: dict[int, Advance]) -> dict[tuple[int, str], Row[Any]]:
    """Tells each what it wants to know, until none wants anything; the nodes that they were told of."""
    rows: dict[tuple[int, str], Row[Any]] = {}
    for step in range(STEPS + 1):
        open_ = {run_id: reached for run_id, reached in reaching.items() if reached.wants_more}
        if not open_:
            break
        wanted = [
            (run_id, node)
            for run_id, reached in open_.items()
            for node in (reached.wanted if step < STEPS else reached.beyond())
        ]
        found: dict[int, dict[str, Tally]] = {run_id: {} for run_id in open_}
        for row in _waiting(tx, wanted):
            run_id, node = row.workflow_run_id, row.node_id
            rows[run_id, node] = row
            found[run_id][node] = tally_of_row(row, len(open_[run_id].graph.dependencies[node]))
        for run_id, reached in open_.items():
            reached.learn(found[run_id])
    return rows


def _waiting(tx: Tx, wanted: Sequence[tuple[int, str]]) -> Sequence[Any]:
    """Of these nodes, those that wait, to be written by whoever asks."""
    known, asked = [], wanted
    if tx.live is not None:
        taken = [(each, tx.live.take_waiting(*each)) for each in wanted]
        known = [row for _, row in taken if row is not None]
        asked = [each for each, row in taken if row is None]
    return [*known, *tx.query(_PENDING, sorted(asked))] if asked else known


def tally_of_row(row: Row[Any], total: int) -> Tally:
    open_, failed, skipped = row.open_dependencies, row.failed_dependencies, row.skipped_dependencies
    return Tally(open_, total - open_ - failed - skipped, failed, skipped)


def decided_row(
    row_id: int, status: ExecutionStatus, tally: Tally, at: int, skip: Skip | None = None
) -> tuple[Any, ...]:
    """A row of WRITE_DECIDED."""
    return (
        row_id,
        status._value_,
        at if status is READY.target else None,
        tally.open,
        tally.failed,
        tally.skipped,
        None if skip is None else skip.reason,
        None if skip is None else at,
    )


def skip_told(run_id: int, node: str, skip: Skip) -> Happening:
    data = {"node": node, "status": SKIP.target, "reason": skip.reason}
    return (EventType.EXECUTION_ENDED, f"run/{run_id}", data)


# Items --------------------------------------------------------------------------------------------------------------


def _items(tx: Tx, items: Sequence[Moved], runs: dict[int, RunNow], at: int, follow: FollowUp) -> None:
    """The ends of items, counted with the node that they belong to; as many more may start, and the last one ends it."""
    parents = {row.id: row for row in tx.query(_PARENTS, sorted({(each.row.parent_id,) for each in items}))}
    counts: list[tuple[int, int, int, int]] = []
    freed: dict[int, int | None] = {}
    done: list[tuple[Row[Any], int, int]] = []
    for parent in parents.values():
        if parent.status != _S.DELEGATED:
            continue  # somebody has said already what becomes of it
        mine = [each.target for each in items if each.row.parent_id == parent.id]
        open_ = parent.open_dependencies - len(mine)
        failed = parent.failed_dependencies + sum(status in FAILURES for status in mine)
        stopped = parent.skipped_dependencies + sum(status in STOPS for status in mine)
        counts.append((parent.id, open_, failed, stopped))
        run = runs[parent.workflow_run_id]
        if open_ == 0:
            done.append((parent, failed, stopped))
        elif run.going_on and (most := max_parallel(run, parent.node_id)) is not None:
            freed[parent.id] = most
    if counts:
        tx.run(_WRITE_COUNTS, sorted(counts), at=at)
    fill(tx, freed, at)
    follow.parents += _parent_ends(tx, done)


def item_count(parent: Row[Any]) -> int:
    return int((codec.from_json(parent.input) or {}).get("items", 0))


def max_parallel(run: RunNow, node_id: str) -> int | None:
    made = run.snapshot.nodes.get(node_id)
    return None if made is None or made.node.for_each is None else made.node.for_each.max_parallel


def fill(tx: Tx, parents: Mapping[int, int | None], at: int) -> None:
    """PENDING → SCHEDULED for the first waiting items of each of these nodes, until as many go on as it says; None: all."""
    pairs = [(parent_id, status) for parent_id in sorted(parents) for status in sorted(_GOING_ON)]
    going_on = {row.parent_id: row.number for row in tx.query(_IN_FLIGHT, pairs)} if pairs else {}
    rows: list[tuple[Any, ...]] = []
    for parent_id, most in parents.items():
        places = MAX_ITEMS if most is None else most - going_on.get(parent_id, 0)
        waiting = tx.query(_NEXT_ITEMS, parent_id=parent_id, places=places) if places > 0 else []
        rows += [decided_row(row.id, READY.target, Tally(0), at) for row in waiting]
    if rows:
        tx.run(WRITE_DECIDED, sorted(rows), at=at)


def _parent_ends(tx: Tx, done: Sequence[tuple[Row[Any], int, int]]) -> list[ParentEnd]:
    if not done:
        return []
    outputs = outputs_of(tx, [parent.id for parent, _, _ in done])
    return [parent_end(parent, failed, stopped, outputs[parent.id]) for parent, failed, stopped in done]


def outputs_of(tx: Tx, parent_ids: Sequence[int]) -> dict[int, list[Any] | None]:
    """What the items of each of these made, in order; None where it is too much to be put together."""
    ids = sorted({(each,) for each in parent_ids})
    sizes = {row.parent_id: row.size or 0 for row in tx.query(_OUTPUT_SIZES, ids)}
    found: dict[int, list[Any] | None] = {each: [] if sizes.get(each, 0) <= MAX_GATHERED else None for (each,) in ids}
    for row in tx.query(_OUTPUTS, [(each,) for each, outputs in found.items() if outputs is not None]):
        gathered = found[row.parent_id]
        if gathered is not None:
            gathered.append(codec.from_json(row.output))
    return found


MAX_GATHERED = 4_000_000
"""Characters of what items, or a run's last nodes, made, up to which it is put together."""
TOO_MUCH = f"its items made more than {MAX_GATHERED} characters in all: too much for one artifact"


def parent_end(parent: Row[Any], failed: int, stopped: int, outputs: list[Any] | None) -> ParentEnd:
    """What a node becomes whose items have ended; what they made is its artifact, in their order."""
    if outputs is None:
        return ParentEnd(parent, _S.FAILED, None, TOO_MUCH)
    if failed:
        error = f"{failed} of {len(outputs)} items failed"
        return ParentEnd(parent, _S.FAILED, outputs, error)
    if stopped:
        return ParentEnd(parent, _S.STOPPED, outputs)
    return ParentEnd(parent, _S.SUCCESS, outputs)


_SIZE = Statement(
    "SELECT sum(length(t.output)) FROM {rows} {join} executions t {by_node}"
    " ON t.workflow_run_id = r.run_id AND t.node_id = r.node_id",
    _NODES,
)
_MADE = Statement(
    "SELECT t.node_id, t.output FROM {rows} {join} executions t {by_node}"
    " ON t.workflow_run_id = r.run_id AND t.node_id = r.node_id",
    _NODES,
)


def results_of(tx: Tx, run: RunNow) -> dict[str, Any] | None:
    """What a run made: the artifacts of the nodes that nothing depends on; None if that is too much to be put together."""
    last = [(run.id, node) for node, after in run.snapshot.graph.successors.items() if not after]
    if sum(row[0] or 0 for row in tx.query(_SIZE, last)) > MAX_GATHERED:
        return None
    return {row.node_id: codec.from_json(row.output) for row in tx.query(_MADE, last)}
