"""How all of it stands: queues, and what ended lately. Each question is bounded: by what is under way, or by a number of runs."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import Row

from ksana.domain.clock import from_micros
from ksana.domain.states import FAILURES, SUCCEEDED, RunStatus
from ksana.store.console_requests import MOST_HISTORY, HistoryCell, QueueFigures, RunHistory
from ksana.store.sql.paging import Listing, rows_of
from ksana.store.sql.rows import Statement
from ksana.store.sql.tx import Tx

_MICROSECOND = timedelta(microseconds=1)
MOST_QUEUES = 1_000

# From one queue to the next by the index.
_NEXT_QUEUE = Statement(
    "SELECT t.worker_queue FROM executions t {by_ready} WHERE t.worker_queue > :after AND {in_ready_index}"
    " ORDER BY t.worker_queue LIMIT 1"
)
_READY = Statement(
    "SELECT count(*) AS number FROM executions t {by_ready}"
    " WHERE t.worker_queue = :queue AND t.ready_at > 0 AND t.ready_at <= :now"
)
_RUNNING = Statement(
    "SELECT t.worker_queue, count(*) AS number FROM executions t {by_owner} WHERE t.owner IS NOT NULL"
    " GROUP BY t.worker_queue"
)


def _listed(states: Sequence[str]) -> str:
    return ", ".join(f"'{state}'" for state in states)


_WELL, _BADLY = sorted(SUCCEEDED), sorted(FAILURES)
_ALONE = "t.workflow_run_id IS NULL AND t.node_id IS NULL"
_LATE = "CASE WHEN t.schedule_id IS NOT NULL THEN (t.started_at - t.planned_for) - (t.started_at - t.planned_for) % 1000 END"
_EDGE = "t.id, t.created_at"
_JOBS = Listing(
    "executions",
    ("id DESC",),
    (_ALONE,),
    columns=_EDGE,
    index="ix_executions_node",
    same=("workflow_run_id DESC", "node_id DESC"),
)
_WORKFLOWS = Listing("workflow_runs", ("id DESC",), columns=_EDGE)
_CELLS = (
    "SELECT t.ended_at - t.ended_at % :step AS at, CASE WHEN t.status IN ({well}) THEN 1 ELSE 0 END AS well, {late} AS late,"
    " count(*) AS number FROM {source} AND t.id >= :edge AND t.ended_at >= :since AND t.status IN ({all})"
    " GROUP BY 1, 2, 3"
)
_CELLS_OF_JOBS = Statement(
    _CELLS.format(
        well=_listed(_WELL),
        all=_listed([*_WELL, *_BADLY]),
        late=_LATE,
        source=f"executions t {{by_node}} WHERE {_ALONE}",
    )
)
_CELLS_OF_WORKFLOWS = Statement(
    _CELLS.format(
        well=_listed([RunStatus.SUCCESS]),
        all=_listed([RunStatus.SUCCESS, RunStatus.FAILED]),
        late=_LATE,
        source="workflow_runs t {by_id} WHERE t.parent_execution_id IS NULL",
    )
)


def queue_figures(tx: Tx, now: int) -> list[QueueFigures]:
    running = {row.worker_queue: row.number for row in tx.query(_RUNNING)}
    figures = []
    for queue in sorted(running.keys() | _queues(tx)):
        ready = tx.query(_READY, queue=queue, now=now)[0].number
        figures.append(QueueFigures(queue, ready, running.get(queue, 0)))
    return [each for each in figures if each.ready or each.running]


def _queues(tx: Tx) -> set[str]:
    """Those in which something waits for a worker; on MySQL, all that ever were."""
    found: list[str] = []
    while len(found) < MOST_QUEUES:
        following = tx.query(_NEXT_QUEUE, after=found[-1] if found else "")
        if not following:
            break
        found.append(following[0].worker_queue)
    return set(found)


def run_history(tx: Tx, since: int, step: timedelta) -> RunHistory:
    cells: list[HistoryCell] = []
    edges: list[int] = []
    for listing, cells_of in ((_JOBS, _CELLS_OF_JOBS), (_WORKFLOWS, _CELLS_OF_WORKFLOWS)):
        edge = rows_of(tx, listing, 1, {}, offset=MOST_HISTORY - 1)
        edges += [row.created_at for row in edge if row.created_at > since]
        first = edge[0].id if edge else 0
        cells += [_cell(row) for row in tx.query(cells_of, since=since, edge=first, step=step // _MICROSECOND)]
    return RunHistory(cells, from_micros(max(edges)) if edges else None)


def _cell(row: Row[Any]) -> HistoryCell:
    """What began before its instant, by another clock, was not late."""
    late = None if row.late is None else max(0, int(row.late) // 1000)
    return HistoryCell(from_micros(int(row.at)), bool(row.well), late, row.number)
