"""How a run stands, without what its nodes made: its items are counted, and looked at a page at a time."""

from collections import defaultdict
from collections.abc import Collection
from typing import Any

from sqlalchemy import ColumnElement, Row, and_, func, or_, select

from ksana.domain.errors import NotFound
from ksana.domain.states import DEFERRED, ExecutionStatus
from ksana.store.requests import Page, PageRequest
from ksana.store.sql import codec, schema
from ksana.store.sql import codec_workflows as shapes
from ksana.store.sql.reads_workflows import run_row
from ksana.store.sql.rows import Statement
from ksana.store.sql.statements import snapshots
from ksana.store.sql.tx import Tx
from ksana.store.view_requests import HowFar, NodeBrief, RunStanding

_nodes = schema.executions.c
_BRIEF = (
    *(_nodes.id, _nodes.node_id, _nodes.status, _nodes.attempt, _nodes.error, _nodes.reason),
    *(_nodes.started_at, _nodes.ended_at),
)
_COUNTS = Statement(
    "SELECT t.parent_id, t.status, CASE WHEN t.attempt > 0 THEN 1 ELSE 0 END AS was_tried,"
    f" CASE WHEN t.reason = '{DEFERRED}' THEN 1 ELSE 0 END AS is_deferred, COUNT(*) AS number FROM executions t"
    " WHERE t.workflow_run_id = :run_id AND t.parent_id IS NOT NULL"
    " GROUP BY t.parent_id, t.status, was_tried, is_deferred"
)


def run_standing(tx: Tx, run_id: int) -> RunStanding:
    row = run_row(tx, run_id)
    snapshot = snapshots.read(tx, [row.snapshot])[row.snapshot]
    nodes = tx.core(select(*_BRIEF).where(_nodes.workflow_run_id == run_id, _nodes.parent_id.is_(None)))
    names = {each.id: each.node_id for each in nodes}
    items: dict[str, dict[HowFar, int]] = defaultdict(dict)
    for each in tx.query(_COUNTS, run_id=run_id):
        how_far = HowFar(ExecutionStatus(each.status), bool(each.was_tried), bool(each.is_deferred))
        items[names[each.parent_id]][how_far] = int(each.number)
    return RunStanding(shapes.workflow_run(row), snapshot, [_brief(each) for each in nodes], items)


def node_items(
    tx: Tx, run_id: int, node_id: str, wanted: Collection[HowFar] | None, page: PageRequest
) -> Page[NodeBrief]:
    found = tx.core(select(_nodes.id).where(_nodes.workflow_run_id == run_id, _nodes.node_id == node_id))
    if not found:
        raise NotFound("node", node_id)
    where = [_nodes.parent_id == found[0].id]
    if wanted is not None:
        where.append(or_(*(_stands(each) for each in wanted)))
    total = tx.core(select(func.count()).select_from(schema.executions).where(*where))[0][0]
    skipped = (page.page - 1) * page.size
    rows = tx.core(select(*_BRIEF).where(*where).order_by(_nodes.id).limit(page.size).offset(skipped))
    return Page([_brief(row) for row in rows], int(total), page.page, page.size)


def _stands(how_far: HowFar) -> ColumnElement[bool]:
    deferred = func.coalesce(_nodes.reason, "")
    return and_(
        _nodes.status == how_far.status.value,
        _nodes.attempt > 0 if how_far.tried else _nodes.attempt == 0,
        deferred == DEFERRED if how_far.deferred else deferred != DEFERRED,
    )


def _brief(row: Row[Any]) -> NodeBrief:
    return NodeBrief(
        node_id=row.node_id,
        status=ExecutionStatus(row.status),
        attempt=row.attempt,
        error=row.error,
        reason=row.reason,
        started_at=codec.instant(row.started_at),
        ended_at=codec.instant(row.ended_at),
    )
