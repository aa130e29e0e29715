"""The lists of runs: of jobs, of workflows, and of both. They are looked at most, and have the longest history."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from ksana.domain.clock import to_micros
from ksana.domain.execution import Execution
from ksana.domain.states import RUN_TERMINAL, TERMINAL, ExecutionStatus
from ksana.domain.workflow_run import WorkflowRun
from ksana.store.requests import ExecutionFilter, Page, PageRequest
from ksana.store.sql import codec, schema
from ksana.store.sql.codec_workflows import workflow_run
from ksana.store.sql.dialects.base import Dialect
from ksana.store.sql.paging import Listing, counted, ordering, page_of, state_values, together
from ksana.store.sql.rows import Statement, columns, id_rows
from ksana.store.sql.tx import Tx
from ksana.store.workflow_requests import RunFilter

Values = dict[str, Any]
_DOCUMENTS = frozenset({"input", "output"})
_UNUSED = frozenset({"checkpoint", "share", "worker_queue", "tenant_id", "parent_id", "attempt_started_at"})
_EXECUTIONS = ", ".join(
    f"NULL AS {name}" if name in _DOCUMENTS else f"t.{name}"
    for name in schema.executions.c.keys()  # noqa: SIM118 - a collection of columns, which iterates over them
    if name not in _UNUSED and not name.endswith("_dependencies")
)
WORKFLOW_RUNS = ", ".join(
    "NULL AS params" if name == "params" else f"t.{name}"
    for name in schema.workflow_runs.c.keys()  # noqa: SIM118 - likewise
)
"""Without their document."""
_IDS = columns(id="int")
_SOME_EXECUTIONS = Statement(f"SELECT {_EXECUTIONS} FROM {{rows}} {{join}} executions t ON t.id = r.id", _IDS)
_SOME_RUNS = Statement(f"SELECT {WORKFLOW_RUNS} FROM {{rows}} {{join}} workflow_runs t ON t.id = r.id", _IDS)
_WHOLE_EXECUTIONS = Statement("SELECT t.* FROM {rows} {join} executions t ON t.id = r.id", _IDS)
_RUNS_BY_KEY = Statement(
    "SELECT t.* FROM {rows} {join} workflow_runs t ON t.public_id = r.public_id", columns(public_id="key")
)
_PLANNED_FOR = Statement("SELECT t.planned_for FROM executions t WHERE t.id = :id")
TASK, WORKFLOW = 0, 1
"""Which kind a run is of, where both are asked for."""
EVERY_STATE = frozenset(ExecutionStatus)
AnyRun = Execution | WorkflowRun


def executions(tx: Tx, filters: ExecutionFilter, page: PageRequest) -> Page[Execution]:
    listing, values = of_executions(tx.dialect, filters)
    if page.before_id is not None:
        listing, more = _following(tx, listing, page.before_id)
        values |= more
    return page_of(tx, listing, page, codec.execution, values)


def workflow_runs(tx: Tx, filters: RunFilter, page: PageRequest) -> Page[WorkflowRun]:
    listing, values = of_workflow_runs(filters)
    if page.before_id is not None:
        listing = replace(listing, conditions=(*listing.conditions, "t.id < :before"))
        values["before"] = page.before_id
    return page_of(tx, listing, page, workflow_run, values)


def all_runs(tx: Tx, tasks: ExecutionFilter | None, workflows: RunFilter | None, page: PageRequest) -> Page[AnyRun]:
    """The ids of the page first, of both kinds together; then what they stand for."""
    parts: list[tuple[int, Listing]] = []
    values: Values = {}
    if tasks is not None:
        listing, values = of_executions(tx.dialect, tasks)
        parts.append((TASK, listing))
    if workflows is not None:
        listing, more = of_workflow_runs(workflows, "run_state")
        parts.append((WORKFLOW, listing))
        values |= more
    reach = page.offset + page.size
    keys = tx.query(_newest(tuple(parts)), size=page.size, offset=page.offset, reach=reach, **values)
    total = counted(tx, tuple(each for _, each in parts), page, len(keys), values)
    return Page(these(tx, [(key.kind, key.id) for key in keys]), total, page.page, page.size)


def these(tx: Tx, keys: Sequence[tuple[int, int]]) -> list[AnyRun]:
    """The runs with these kinds and ids, in their order, without their documents."""
    found: dict[tuple[int, int], AnyRun] = {}
    ids = id_rows(run_id for kind, run_id in keys if kind == TASK)
    found |= {(TASK, row.id): codec.execution(row) for row in tx.query(_SOME_EXECUTIONS, ids)}
    ids = id_rows(run_id for kind, run_id in keys if kind == WORKFLOW)
    found |= {(WORKFLOW, row.id): workflow_run(row) for row in tx.query(_SOME_RUNS, ids)}
    # Where a transaction sees what others commit meanwhile, one of them may have been removed by retention.
    return [found[key] for key in keys if key in found]


def named(tx: Tx, execution_ids: Sequence[int], run_keys: Sequence[str]) -> list[AnyRun]:
    keys = [(key,) for key in sorted(set(run_keys))]
    found: list[AnyRun] = [codec.execution(row) for row in tx.query(_WHOLE_EXECUTIONS, id_rows(execution_ids))]
    return found + [workflow_run(row) for row in tx.query(_RUNS_BY_KEY, keys)]


@lru_cache(maxsize=256)
def _newest(parts: tuple[tuple[int, Listing], ...]) -> Statement:
    """By when they were asked for; of each kind, the newest by id are enough."""
    return Statement(lambda dialect, _: _newest_of(parts, dialect))


def _newest_of(parts: tuple[tuple[int, Listing], ...], dialect: Dialect) -> str:
    branches: list[str] = []
    for kind, listing in parts:
        rest = f"{listing.ordered(dialect)} LIMIT :reach"
        branches += listing.branches(dialect, f"{kind} AS kind, t.id, t.created_at", rest)
    order = ordering("u", ("created_at DESC", "kind", "id DESC"))
    return f"SELECT u.kind, u.id FROM {together(branches)}{order} LIMIT :size OFFSET :offset"


def of_executions(dialect: Dialect, filters: ExecutionFilter) -> tuple[Listing, Values]:
    conditions: list[str] = []
    by_state = filters.job_id is not None and not dialect.has_runs_by_job
    states = filters.statuses or (EVERY_STATE if by_state else frozenset())
    values: Values = state_values(states)
    if filters.job_id is not None:
        conditions.append("t.job_id = :job_id")
        values["job_id"] = filters.job_id
    if filters.planned_from is not None:
        conditions.append("t.planned_for >= :planned_from")
        values["planned_from"] = to_micros(filters.planned_from)
    if filters.planned_to is not None:
        conditions.append("t.planned_for < :planned_to")
        values["planned_to"] = to_micros(filters.planned_to)
    same: tuple[str, ...] = ()
    if not filters.nodes:
        # Runs of jobs have neither. Of the two indexes for it, that of states has no nodes.
        alone = ["workflow_run_id"] if filters.statuses else ["workflow_run_id", "node_id"]
        conditions += [f"t.{name} IS NULL" for name in alone]
        same = tuple(f"{name} DESC" for name in alone) if filters.job_id is None else ()
    return Listing(
        "executions",
        ("id DESC",) if filters.job_id is None else ("planned_for DESC", "id DESC"),
        tuple(conditions),
        len(states),
        "t.*" if filters.documents else _EXECUTIONS,
        index=_index_of_executions(filters, by_state=bool(states)),
        same=same,
        lasting=filters.statuses <= TERMINAL,
    ), values


def _index_of_executions(filters: ExecutionFilter, *, by_state: bool) -> str:
    if filters.job_id is not None:
        return "ix_executions_job_status" if by_state else "ix_executions_job"
    if filters.nodes:
        return ""
    return "ix_executions_status" if by_state else "ix_executions_node"


def _following(tx: Tx, listing: Listing, before_id: int) -> tuple[Listing, Values]:
    """What comes after this one."""
    values: Values = {"before": before_id}
    conditions = (*listing.conditions, "t.id < :before")
    if "planned_for DESC" in listing.order:
        pivot = tx.query(_PLANNED_FOR, id=before_id)
        if pivot and pivot[0].planned_for is not None:
            values["pivot"] = pivot[0].planned_for
            later = "(t.planned_for < :pivot OR t.id < :before)"
            conditions = (*listing.conditions, "t.planned_for <= :pivot", later)
    return replace(listing, conditions=conditions), values


def of_workflow_runs(filters: RunFilter, state: str = "state") -> tuple[Listing, Values]:
    values: Values = state_values(filters.statuses, state)
    conditions: tuple[str, ...] = ()
    index = "ix_workflow_runs_status" if filters.statuses else ""
    if filters.workflow_key is not None:
        conditions = ("t.workflow_key = :workflow_key",)
        index = "ix_workflow_runs_of_status" if filters.statuses else "ix_workflow_runs_of"
        values["workflow_key"] = filters.workflow_key
    return Listing(
        "workflow_runs",
        ("id DESC",),
        conditions,
        len(filters.statuses),
        state=state,
        index=index,
        lasting=filters.statuses <= RUN_TERMINAL,
    ), values
