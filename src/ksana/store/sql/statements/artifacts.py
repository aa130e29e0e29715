"""What the nodes of a run made, for those that come after them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson
from sqlalchemy import Row

from ksana.domain.states import TERMINAL
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


def note(tx: Tx, ended: Iterable[tuple[Row[Any], str, str | None]]) -> None:
    """How nodes ended in this transaction and what they made, for those that are claimed in it."""
    made = tx.fresh.made
    for row, status, output in ended:
        if output is not None and row.workflow_run_id is not None and len(output) <= SMALL:
            made[row.workflow_run_id, row.node_id] = status, output


def at_hand(tx: Tx, seeing: Iterable[tuple[int, int, Sequence[str]]]) -> dict[int, dict[str, Ended] | None]:
    """For each of these executions (its id, its run, the nodes that it sees) what those made; None if that is too much."""
    seen: dict[int, dict[str, Ended] | None] = {}
    others: dict[int, list[tuple[int, str]]] = {}
    fresh = tx.fresh.made
    for each, run_id, nodes in seeing:
        if len(nodes) > FEW:
            seen[each] = None
            continue
        pairs = [(run_id, node) for node in nodes]
        if fresh.keys() >= set(pairs):
            seen[each] = {pair[1]: _ended(*fresh[pair]) for pair in pairs}
        else:
            others[each] = pairs
    if others:
        found = _asked_for(tx, {pair for pairs in others.values() for pair in pairs if pair not in fresh})
        seen |= {each: _of_one(pairs, fresh, found) for each, pairs in others.items()}
    return seen


def _asked_for(tx: Tx, pairs: set[tuple[int, str]]) -> dict[tuple[int, str], _Made]:
    rows = tx.query(_SMALL_ARTIFACTS, sorted(pairs), small=SMALL)
    return {
        (row.workflow_run_id, row.node_id): (row.status, row.output, row.large)
        for row in rows
        if row.status in TERMINAL
    }


def _of_one(
    pairs: list[tuple[int, str]],
    fresh: Mapping[tuple[int, str], tuple[str, str]],
    found: Mapping[tuple[int, str], _Made],
) -> dict[str, Ended] | None:
    seen: dict[str, Ended] = {}
    for pair in pairs:
        if pair in fresh:
            seen[pair[1]] = _ended(*fresh[pair])
        elif pair in found:
            status, output, large = found[pair]
            if large:
                return None
            seen[pair[1]] = _ended(status, output)
    return seen


def _ended(status: str, output: str | None) -> Ended:
    return Ended(codec.STATUSES[status], None if output is None else orjson.loads(output))
