"""What the nodes of a run made, for those that come after them."""

from collections.abc import Iterable, Sequence

from ksana.domain.states import TERMINAL, ExecutionStatus
from ksana.domain.workflow import Ended
from ksana.store.sql import codec
from ksana.store.sql.rows import Statement, columns
from ksana.store.sql.tx import Tx

SMALL = 4_000
"""Characters of an artifact that a claim brings along; more would hold up everybody who writes."""
FEW = 64
"""The same of nodes that one node sees."""

_NODES = columns(run_id="int", node_id="key")
_ARTIFACTS = Statement(
    "SELECT t.node_id, t.status, t.output FROM {rows} {join} executions t {by_node}"
    " ON t.workflow_run_id = r.run_id AND t.node_id = r.node_id",
    _NODES,
)
_SMALL_ARTIFACTS = Statement(
    "SELECT t.workflow_run_id, t.node_id, t.status, CASE WHEN length(t.output) > :small THEN NULL ELSE t.output END AS output,"
    " CASE WHEN length(t.output) > :small THEN 1 ELSE 0 END AS large"
    " FROM {rows} {join} executions t {by_node} ON t.workflow_run_id = r.run_id AND t.node_id = r.node_id",
    _NODES,
)

_Made = tuple[str, str | None, int]
"""How a node ended, what it made as JSON, and whether that is too much (and not there)."""


def artifacts(tx: Tx, run_id: int, node_ids: Sequence[str]) -> dict[str, Ended]:
    """Of these nodes, those that have ended."""
    rows = tx.query(_ARTIFACTS, [(run_id, node) for node in sorted(set(node_ids))])
    return {row.node_id: _ended(row.status, row.output) for row in rows if row.status in TERMINAL}


def note(tx: Tx, ended: Iterable[tuple[int | None, str, str, str | None]]) -> None:
    """How nodes (their run, their id) ended in this transaction and what they made, for those that are claimed in it."""
    for run_id, node, status, output in ended:
        if run_id is not None and output is not None and len(output) <= SMALL:
            tx.fresh.made[run_id, node] = status, output


def at_hand(tx: Tx, seeing: Iterable[tuple[int, int, frozenset[str]]]) -> dict[int, dict[str, Ended] | None]:
    """For each of these executions (its id, its run, the nodes that it sees) what those made; None if that is too much."""
    wanted = {each: (run_id, nodes) for each, run_id, nodes in seeing}
    pairs = {(run_id, node) for run_id, nodes in wanted.values() if len(nodes) <= FEW for node in nodes}
    found: dict[tuple[int, str], _Made] = {}
    if unknown := sorted(pairs - tx.fresh.made.keys()):
        rows = tx.query(_SMALL_ARTIFACTS, unknown, small=SMALL)
        found = {
            (row.workflow_run_id, row.node_id): (row.status, row.output, row.large)
            for row in rows
            if row.status in TERMINAL
        }
    found |= {pair: (*tx.fresh.made[pair], 0) for pair in pairs & tx.fresh.made.keys()}
    return {each: _of_one(run_id, nodes, found) for each, (run_id, nodes) in wanted.items()}


def _of_one(run_id: int, nodes: frozenset[str], found: dict[tuple[int, str], _Made]) -> dict[str, Ended] | None:
    seen = {node: found[run_id, node] for node in nodes if (run_id, node) in found}
    if len(nodes) > FEW or any(large for _, _, large in seen.values()):
        return None
    return {node: _ended(status, output) for node, (status, output, _) in seen.items()}


def _ended(status: str, output: str | None) -> Ended:
    return Ended(ExecutionStatus(status), codec.from_json(output))
