"""The questions about workflows and their runs. Each is bounded: by an index and a limit, by a page, or by one run."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, func, or_, select

from ksana.domain.clock import from_micros
from ksana.domain.errors import NotFound
from ksana.domain.events import Event
from ksana.domain.job import Job
from ksana.domain.ledger import Schedule
from ksana.domain.states import TERMINAL, ExecutionStatus
from ksana.domain.workflow import Workflow, WorkflowSummary, WorkflowVersion
from ksana.domain.workflow_run import NodeRun, WorkflowRun
from ksana.store.requests import Page, PageRequest
from ksana.store.sql import codec, schema
from ksana.store.sql import codec_workflows as shapes
from ksana.store.sql.reads import Order, page_of
from ksana.store.sql.rows import Statement, columns
from ksana.store.sql.statements import snapshots
from ksana.store.sql.statements.workflows import PRESENT
from ksana.store.sql.tx import Tx
from ksana.store.workflow_requests import Ended, LogLine, RunFilter, RunNodes, WorkflowFilter

_workflows, _versions, _runs = schema.workflows.c, schema.workflow_versions.c, schema.workflow_runs.c
_nodes, _logs = schema.executions.c, schema.execution_logs.c
_ARTIFACTS = Statement(
    "SELECT t.node_id, t.status, t.output FROM {rows} {join} executions t {by_node}"
    " ON t.workflow_run_id = r.run_id AND t.node_id = r.node_id",
    columns(run_id="int", node_id="key"),
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


def workflows(tx: Tx, filters: WorkflowFilter, page: PageRequest) -> Page[WorkflowSummary]:
    conditions: list[ColumnElement[bool]] = [_workflows.deleted_at.is_(None)]
    if filters.keyword:
        conditions.append(_workflows.name.contains(filters.keyword, autoescape=True))
    if filters.enabled is not None:
        conditions.append(_workflows.enabled == filters.enabled)
    conditions += [] if page.before_id is None else [_workflows.id > page.before_id]
    return page_of(tx, schema.workflows, [conditions], (_workflows.id,), page, shapes.workflow_summary)


def workflow_versions(tx: Tx, workflow_id: int, page: PageRequest) -> Page[WorkflowVersion]:
    condition = [_versions.workflow_id == workflow_id]
    return page_of(
        tx, schema.workflow_versions, [condition], (_versions.version.desc(),), page, shapes.workflow_version
    )


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


def schedules_of_workflow(tx: Tx, workflow_id: int) -> list[Schedule]:
    schedules = schema.schedules.c
    wanted = select(schema.schedules).where(schedules.workflow_id == workflow_id, schedules.deleted_at.is_(None))
    return [codec.schedule(row) for row in tx.core(wanted.order_by(schedules.id))]


# Runs -----------------------------------------------------------------------------------------------------------------


def run_row(tx: Tx, run_id: int) -> Row[Any]:
    found = tx.core(select(schema.workflow_runs).where(_runs.id == run_id))
    if not found:
        raise NotFound("run", run_id)
    return found[0]


def workflow_run(tx: Tx, run_id: int) -> WorkflowRun:
    return shapes.workflow_run(run_row(tx, run_id))


def workflow_run_by_key(tx: Tx, key: str) -> WorkflowRun:
    found = tx.core(select(schema.workflow_runs).where(_runs.public_id == key))
    if not found:
        raise NotFound("run", key)
    return shapes.workflow_run(found[0])


_KEYS = Statement("SELECT t.id, t.public_id FROM {rows} {join} workflow_runs t ON t.id = r.id", columns(id="int"))


def workflow_run_keys(tx: Tx, run_ids: Sequence[int]) -> dict[int, str]:
    return {row.id: row.public_id for row in tx.query(_KEYS, [(each,) for each in sorted(set(run_ids))])}


def workflow_runs(tx: Tx, filters: RunFilter, page: PageRequest) -> Page[WorkflowRun]:
    conditions: list[ColumnElement[bool]] = [] if page.before_id is None else [_runs.id < page.before_id]
    if filters.workflow_key is not None:
        conditions.append(_runs.workflow_key == filters.workflow_key)
    order: Order = (_runs.id.desc(),)
    branches = [[*conditions, _runs.status == status] for status in sorted(filters.statuses)] or [conditions]
    return page_of(tx, schema.workflow_runs, branches, order, page, shapes.workflow_run)


def run_nodes(tx: Tx, run_id: int) -> RunNodes:
    row = run_row(tx, run_id)
    snapshot = snapshots.read(tx, [row.snapshot])[row.snapshot]
    rows = tx.core(select(schema.executions).where(_nodes.workflow_run_id == run_id).order_by(_nodes.id))
    children = _child_runs(tx, [each.id for each in rows if each.parent_id is None])
    return RunNodes(shapes.workflow_run(row), snapshot, [shapes.node_run(each, children.get(each.id)) for each in rows])


def node_run(tx: Tx, run_id: int, node_id: str) -> NodeRun:
    found = tx.core(select(schema.executions).where(_nodes.workflow_run_id == run_id, _nodes.node_id == node_id))
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
    events = schema.events.c
    wanted = select(schema.events).where(events.subject == f"run/{run_id}", events.id > after_id)
    return [codec.event(row) for row in tx.core(wanted.order_by(events.id).limit(limit))]


def artifacts(tx: Tx, run_id: int, node_ids: Sequence[str]) -> dict[str, Ended]:
    rows = tx.query(_ARTIFACTS, [(run_id, node) for node in sorted(set(node_ids))])
    ended = [row for row in rows if row.status in TERMINAL]
    return {row.node_id: Ended(ExecutionStatus(row.status), codec.from_json(row.output)) for row in ended}


def next_run_deadline_at(tx: Tx) -> datetime | None:
    earliest = tx.core(select(func.min(_runs.deadline_at)).where(_runs.deadline_at.is_not(None)))[0][0]
    return None if earliest is None else from_micros(earliest)


def logs(tx: Tx, execution_id: int, after: tuple[int, int], limit: int) -> list[LogLine]:
    epoch, seq = after
    later = or_(_logs.epoch > epoch, (_logs.epoch == epoch) & (_logs.seq > seq))
    wanted = select(schema.execution_logs).where(_logs.execution_id == execution_id, later)
    rows = tx.core(wanted.order_by(_logs.epoch, _logs.seq).limit(limit))
    return [LogLine(row.epoch, row.seq, from_micros(row.at), row.stream, row.text) for row in rows]
