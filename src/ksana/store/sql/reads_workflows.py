"""The questions about workflows and their runs. Each is bounded: by an index and a limit, by a page, or by one run."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, func, or_, select, tuple_

from ksana.domain.clock import from_micros
from ksana.domain.errors import NotFound
from ksana.domain.events import Event
from ksana.domain.job import Job
from ksana.domain.ledger import Schedule
from ksana.domain.workflow import Workflow, WorkflowSummary, WorkflowVersion
from ksana.domain.workflow_run import NodeRun, WorkflowRun
from ksana.store.requests import Page, PageRequest
from ksana.store.sql import codec, schema
from ksana.store.sql import codec_workflows as shapes
from ksana.store.sql.paging import Listing, containing, page_of
from ksana.store.sql.rows import Statement, columns, id_rows
from ksana.store.sql.statements import snapshots
from ksana.store.sql.statements.workflows import PRESENT
from ksana.store.sql.tx import Tx
from ksana.store.workflow_requests import LogLine, RunNodes, WorkflowFilter

_workflows, _versions, _runs = schema.workflows.c, schema.workflow_versions.c, schema.workflow_runs.c
_nodes, _logs = schema.executions.c, schema.execution_logs.c
_RUN = Statement("SELECT t.* FROM workflow_runs t WHERE t.id = :id")
_RUN_BY_KEY = Statement("SELECT t.* FROM workflow_runs t WHERE t.public_id = :key")
_NODES = Statement("SELECT t.* FROM executions t WHERE t.workflow_run_id = :run_id ORDER BY t.id")
_NODE = Statement("SELECT t.* FROM executions t {by_node} WHERE t.workflow_run_id = :run_id AND t.node_id = :node_id")
_EVENTS = Statement("SELECT t.* FROM events t WHERE t.subject = :subject AND t.id > :after ORDER BY t.id LIMIT :most")
_WORKFLOWS = Statement(
    "SELECT t.* FROM {rows} {join} workflows t ON t.id = r.id WHERE t.deleted_at IS NULL",
    columns(id="int"),
)
_SCHEDULES_OF = Statement(
    "SELECT t.* FROM {rows} {join} schedules t ON t.workflow_id = r.id WHERE t.deleted_at IS NULL ORDER BY t.id",
    columns(id="int"),
)
# From and up to its key, not equal to it: or PostgreSQL walks back by id, past all runs since, where a workflow had many once.
_NEWEST = Statement(
    "SELECT t.* FROM workflow_runs t WHERE t.workflow_key >= :key AND t.workflow_key <= :key"
    " ORDER BY t.workflow_key DESC, t.id DESC LIMIT :most"
)
_JOBS = Statement(
    "SELECT t.* FROM {rows} {join} jobs t ON t.public_id = r.public_id WHERE t.deleted_at IS NULL",
    columns(public_id="key"),
)


def workflow(tx: Tx, condition: ColumnElement[bool], key: object) -> Workflow:
    found = tx.core(PRESENT.where(condition, _workflows.deleted_at.is_(None)))
    if not found:
        raise NotFound("workflow", key)
    return shapes.workflow(found[0])


def by_id(workflow_id: int) -> ColumnElement[bool]:
    return _workflows.id == workflow_id


def by_key(key: str) -> ColumnElement[bool]:
    return _workflows.public_id == key


def workflows_by_ids(tx: Tx, workflow_ids: Sequence[int]) -> dict[int, WorkflowSummary]:
    return {row.id: shapes.workflow_summary(row) for row in tx.query(_WORKFLOWS, id_rows(workflow_ids))}


def workflows(tx: Tx, filters: WorkflowFilter, page: PageRequest) -> Page[WorkflowSummary]:
    asked: dict[str, tuple[str, Any]] = {
        "keyword": ("t.name LIKE :keyword ESCAPE '/'", containing(filters.keyword) if filters.keyword else None),
        "enabled": ("t.enabled = :enabled", filters.enabled),
        "after": ("t.id > :after", page.before_id),
    }
    given = {name: each for name, each in asked.items() if each[1] is not None}
    conditions = ("t.deleted_at IS NULL", *(condition for condition, _ in given.values()))
    values = {name: value for name, (_, value) in given.items()}
    return page_of(tx, Listing("workflows", ("id",), conditions), page, shapes.workflow_summary, values)


def workflow_versions(tx: Tx, workflow_id: int, page: PageRequest) -> Page[WorkflowVersion]:
    listing = Listing("workflow_versions", ("version DESC",), ("t.workflow_id = :workflow_id",))
    return page_of(tx, listing, page, shapes.workflow_version, {"workflow_id": workflow_id})


def workflow_version(tx: Tx, workflow_id: int, version: int) -> WorkflowVersion:
    wanted = select(schema.workflow_versions).where(_versions.workflow_id == workflow_id, _versions.version == version)
    found = tx.core(wanted)
    if not found:
        raise NotFound("version", version)
    return shapes.workflow_version(found[0])


def workflows_named_by(tx: Tx, workflow_ids: Sequence[int]) -> dict[int, frozenset[int]]:
    references = schema.workflow_references.c
    wanted = select(references.workflow_id, references.target_id).where(
        references.workflow_id.in_(sorted(set(workflow_ids))), references.kind == "workflow"
    )
    named: dict[int, set[int]] = {}
    for row in tx.core(wanted):
        named.setdefault(row.workflow_id, set()).add(row.target_id)
    return {workflow_id: frozenset(ids) for workflow_id, ids in named.items()}


def jobs_by_keys(tx: Tx, keys: Sequence[str]) -> dict[str, Job]:
    return {row.public_id: codec.job(row) for row in tx.query(_JOBS, [(key,) for key in sorted(set(keys))])}


def schedules_of_workflows(tx: Tx, workflow_ids: Sequence[int]) -> dict[int, list[Schedule]]:
    found: dict[int, list[Schedule]] = {}
    for row in tx.query(_SCHEDULES_OF, id_rows(workflow_ids)):
        found.setdefault(row.workflow_id, []).append(codec.schedule(row))
    return found


# Runs -----------------------------------------------------------------------------------------------------------------


def run_row(tx: Tx, run_id: int) -> Row[Any]:
    found = tx.query(_RUN, id=run_id)
    if not found:
        raise NotFound("run", run_id)
    return found[0]


def workflow_run(tx: Tx, run_id: int) -> WorkflowRun:
    return shapes.workflow_run(run_row(tx, run_id))


def newest_runs(tx: Tx, workflow_keys: Sequence[str], each: int) -> dict[str, list[WorkflowRun]]:
    found = {key: tx.query(_NEWEST, key=key, most=each) for key in workflow_keys}
    return {key: [shapes.workflow_run(row) for row in rows] for key, rows in found.items() if rows}


def workflow_run_by_key(tx: Tx, key: str) -> WorkflowRun:
    found = tx.query(_RUN_BY_KEY, key=key)
    if not found:
        raise NotFound("run", key)
    return shapes.workflow_run(found[0])


_KEYS = Statement("SELECT t.id, t.public_id FROM {rows} {join} workflow_runs t ON t.id = r.id", columns(id="int"))


def workflow_run_keys(tx: Tx, run_ids: Sequence[int]) -> dict[int, str]:
    return {row.id: row.public_id for row in tx.query(_KEYS, [(each,) for each in sorted(set(run_ids))])}


def run_nodes(tx: Tx, run_id: int) -> RunNodes:
    row = run_row(tx, run_id)
    snapshot = snapshots.read(tx, [row.snapshot])[row.snapshot]
    rows = tx.query(_NODES, run_id=run_id)
    children = _child_runs(tx, [each.id for each in rows if each.parent_id is None])
    return RunNodes(shapes.workflow_run(row), snapshot, [shapes.node_run(each, children.get(each.id)) for each in rows])


def node_run(tx: Tx, run_id: int, node_id: str) -> NodeRun:
    found = tx.query(_NODE, run_id=run_id, node_id=node_id)
    if not found:
        raise NotFound("node", node_id)
    return shapes.node_run(found[0], _child_runs(tx, [found[0].id]).get(found[0].id))


_CHILDREN = Statement(
    "SELECT t.parent_execution_id, t.public_id FROM {rows} {join} workflow_runs t ON t.parent_execution_id = r.id"
    " ORDER BY t.id",
    columns(id="int"),
)


def _child_runs(tx: Tx, execution_ids: Sequence[int]) -> dict[int, str]:
    """The newest run that works for each of these."""
    rows = tx.query(_CHILDREN, [(each,) for each in execution_ids])
    return {row.parent_execution_id: row.public_id for row in rows}


def run_events(tx: Tx, run_id: int, after_id: int, limit: int) -> list[Event]:
    rows = tx.query(_EVENTS, subject=f"run/{run_id}", after=after_id, most=limit)
    return [codec.event(row) for row in rows]


def next_run_deadline_at(tx: Tx) -> datetime | None:
    earliest = tx.core(select(func.min(_runs.deadline_at)).where(_runs.deadline_at.is_not(None)))[0][0]
    return None if earliest is None else from_micros(earliest)


def logs(tx: Tx, execution_id: int, after: tuple[int, int], limit: int) -> list[LogLine]:
    epoch, seq = after
    later = or_(_logs.epoch > epoch, (_logs.epoch == epoch) & (_logs.seq > seq))
    if tx.dialect.seeks_pairs:
        later = tuple_(_logs.epoch, _logs.seq) > after
    wanted = select(schema.execution_logs).where(_logs.execution_id == execution_id, later)
    return _lines(tx, wanted.order_by(_logs.epoch, _logs.seq).limit(limit))


def logs_before(tx: Tx, execution_id: int, before: tuple[int, int], limit: int) -> list[LogLine]:
    epoch, seq = before
    earlier = or_(_logs.epoch < epoch, (_logs.epoch == epoch) & (_logs.seq < seq))
    if tx.dialect.seeks_pairs:
        earlier = tuple_(_logs.epoch, _logs.seq) < before
    wanted = select(schema.execution_logs).where(_logs.execution_id == execution_id, earlier)
    return _lines(tx, wanted.order_by(_logs.epoch.desc(), _logs.seq.desc()).limit(limit))


def _lines(tx: Tx, wanted: Select[Any]) -> list[LogLine]:
    rows = tx.core(wanted)
    return [LogLine(row.epoch, row.seq, from_micros(row.at), row.stream, row.text) for row in rows]
