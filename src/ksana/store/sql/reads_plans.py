"""The questions about plans and the tasks of tenants. Each is bounded: by an index and a limit, by a page, or by one task."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Row, func, select

from ksana.domain.clock import from_micros
from ksana.domain.errors import NotFound
from ksana.domain.plan import PLAN_ENDED, TASK_ACTIVE, Plan, PlanStatus, TaskStatus, TenantTask, WaveTally
from ksana.store.plan_requests import PlanFigures, PlanFilter, ShownAfter, ShownPlan, TaskFilter, TaskStages
from ksana.store.requests import Page, PageRequest
from ksana.store.sql import codec, codec_plans, schema
from ksana.store.sql.codec_workflows import node_run
from ksana.store.sql.paging import Listing, containing, page_of, state_values
from ksana.store.sql.rows import Statement, columns
from ksana.store.sql.statements import outbox, plan_rows
from ksana.store.sql.tx import Tx

_plans, _tasks, _nodes = schema.plans.c, schema.tenant_tasks.c, schema.executions.c
_IDS = columns(id="int")
_PLANS = Statement("SELECT t.id, t.public_id, t.spec FROM {rows} {join} plans t {by_id} ON t.id = r.id", _IDS)
_RUNS = Statement("SELECT t.id, t.public_id FROM {rows} {join} workflow_runs t {by_id} ON t.id = r.id", _IDS)
_SAVED = Statement(
    "SELECT t.workflow_run_id, t.node_id, t.checkpoint FROM {rows} {join} executions t {by_node}"
    " ON t.workflow_run_id = r.id WHERE t.checkpoint IS NOT NULL ORDER BY t.id",
    _IDS,
)
_TASKS = Statement("SELECT t.* FROM {rows} {join} tenant_tasks t {by_id} ON t.id = r.id ORDER BY t.id", _IDS)
_LATEST = Statement(
    "SELECT r.tenant_id, (SELECT max(t.id) FROM tenant_tasks t WHERE t.tenant_id = r.tenant_id) AS id FROM {rows}",
    columns(tenant_id="key"),
)
_HELD = Statement(
    "SELECT t.tenant_id, t.task_id AS id FROM {rows} {join} tenants t ON t.tenant_id = r.tenant_id"
    " WHERE t.task_id IS NOT NULL",
    columns(tenant_id="key"),
)


# Plans ------------------------------------------------------------------------------------------------------------------


def plan_by_key(tx: Tx, key: str) -> Plan:
    found = tx.core(select(schema.plans).where(_plans.public_id == key))
    if not found:
        raise NotFound("plan", key)
    return codec_plans.plan(found[0])


def plans(tx: Tx, filters: PlanFilter, page: PageRequest) -> Page[Plan]:
    conditions: list[str] = []
    values: dict[str, Any] = state_values(filters.statuses)
    if page.before_id is not None:
        conditions.append("t.id < :before")
        values["before"] = page.before_id
    if filters.keyword:
        conditions.append("t.name LIKE :keyword ESCAPE '/'")
        values["keyword"] = containing(filters.keyword)
    listing = Listing("plans", ("id DESC",), tuple(conditions), len(filters.statuses))
    return page_of(tx, listing, page, codec_plans.plan, values)


def plan_waves(tx: Tx, plan: Plan) -> tuple[WaveTally, ...]:
    return plan_rows.tallies(tx, plan)


def plan_counts(tx: Tx, plan_ids: Sequence[int]) -> dict[int, WaveTally]:
    return plan_rows.counts(tx, plan_ids)


# Tasks ------------------------------------------------------------------------------------------------------------------


def tasks(tx: Tx, filters: TaskFilter, page: PageRequest) -> Page[TenantTask]:
    conditions = ["t.plan_id = :plan_id"]
    values: dict[str, Any] = {"plan_id": filters.plan_id, **state_values(filters.statuses)}
    if filters.wave is not None:
        conditions.append("t.wave = :wave")
        values["wave"] = filters.wave
    if filters.keyword:
        conditions.append("t.tenant_id LIKE :keyword ESCAPE '/'")
        values["keyword"] = containing(filters.keyword)
    listing = Listing("tenant_tasks", ("position",), tuple(conditions), len(filters.statuses))
    found: Page[Row[Any]] = page_of(tx, listing, page, lambda row: row, values)
    return Page(_made(tx, found.items), found.total, found.page, found.size)


def tasks_of(tx: Tx, tenant_ids: Sequence[str]) -> dict[str, TenantTask]:
    """The task of each of these tenants: the one that it has, else the last that it had."""
    names = [(each,) for each in sorted(set(tenant_ids))]
    wanted = {row.tenant_id: row.id for row in tx.query(_LATEST, names) if row.id is not None}
    wanted |= {row.tenant_id: row.id for row in tx.query(_HELD, names)}
    rows = tx.query(_TASKS, [(each,) for each in sorted(wanted.values())])
    return {task.tenant_id: task for task in _made(tx, rows)}


def task_of(tx: Tx, tenant_id: str, plan_key: str | None) -> TenantTask:
    if plan_key is None:
        found = tasks_of(tx, [tenant_id])
        if tenant_id not in found:
            raise NotFound("task", tenant_id)
        return found[tenant_id]
    plan = plan_by_key(tx, plan_key)
    rows = tx.core(select(schema.tenant_tasks).where(_tasks.plan_id == plan.id, _tasks.tenant_id == tenant_id))
    if not rows:
        raise NotFound("task", tenant_id)
    return _made(tx, rows)[0]


def task_by_key(tx: Tx, key: str) -> TenantTask:
    rows = tx.core(select(schema.tenant_tasks).where(_tasks.public_id == key))
    if not rows:
        raise NotFound("task", key)
    return _made(tx, rows)[0]


def task_stages(tx: Tx, task_id: int) -> TaskStages:
    rows = tx.query(_TASKS, [(task_id,)])
    if not rows:
        raise NotFound("task", task_id)
    (task,) = _made(tx, rows, checkpoints=True)
    wanted = select(schema.executions).where(_nodes.workflow_run_id == (task.run_id or 0), _nodes.parent_id.is_(None))
    nodes = {row.node_id: node_run(row) for row in tx.core(wanted)} if task.run_id is not None else {}
    return TaskStages(task, [nodes.get(name) for name in task.stage_names])


def _made(tx: Tx, rows: Sequence[Row[Any]], *, checkpoints: bool = False) -> list[TenantTask]:
    plans_ = {row.id: row for row in tx.query(_PLANS, _ids(row.plan_id for row in rows))}
    run_ids = _ids(row.run_id for row in rows if row.run_id is not None)
    keys = {row.id: row.public_id for row in tx.query(_RUNS, run_ids)}
    saved = _saved(tx, run_ids) if checkpoints else {}
    names = sorted({(row.tenant_id,) for row in rows}) if checkpoints else []
    held = {row.id for row in tx.query(_HELD, names)}
    made = []
    for row in rows:
        plan = plans_[row.plan_id]
        spec = codec_plans.plan_spec(plan.spec)
        around = codec_plans.Around(
            plan.public_id, spec, keys.get(row.run_id), saved.get(row.run_id, {}), row.id in held
        )
        made.append(codec_plans.task(row, around))
    return made


def _ids(values: Any) -> list[tuple[int]]:
    return [(each,) for each in sorted(set(values))]


def _saved(tx: Tx, run_ids: list[tuple[int]]) -> dict[int, dict[str, Any]]:
    """What the stages of these runs put into their checkpoints: the keys of objects, anything else under the stage's name."""
    found: dict[int, dict[str, Any]] = {}
    for row in tx.query(_SAVED, run_ids):
        value = codec.from_json(row.checkpoint)
        mine = found.setdefault(row.workflow_run_id, {})
        mine.update(value if isinstance(value, Mapping) else {row.node_id: value})
    return found


# What is shown outside --------------------------------------------------------------------------------------------------


def shown_tasks(tx: Tx, task_ids: Sequence[int]) -> list[TenantTask]:
    return _made(tx, tx.query(_TASKS, _ids(task_ids)), checkpoints=True)


def shown_plans(tx: Tx, plan_ids: Sequence[int]) -> list[ShownPlan]:
    rows = tx.core(select(schema.plans).where(_plans.id.in_(sorted(set(plan_ids))))) if plan_ids else []
    done = plan_rows.progress(tx, [row.id for row in rows]) if rows else {}
    shown = []
    for row in rows:
        number, at = done.get(row.id, (0, row.updated_at))
        last = from_micros(max(at, row.updated_at))
        shown.append(ShownPlan(codec_plans.plan(row), number, _task_keys(tx, row.id), last))
    return shown


def _task_keys(tx: Tx, plan_id: int) -> tuple[str, ...]:
    wanted = select(_tasks.public_id).where(_tasks.plan_id == plan_id).order_by(_tasks.position)
    return tuple(row.public_id for row in tx.core(wanted))


def tasks_after(tx: Tx, after: ShownAfter, since: int, limit: int) -> tuple[list[TenantTask], ShownAfter | None]:
    """Each kind by an index of its own, so that what ended long ago is not looked at."""
    if after.ended_at is None:
        rows = _active_after(tx, after.task_id, limit)
        following = ShownAfter(rows[-1].id) if len(rows) == limit else ShownAfter(ended_at=since)
        return _made(tx, rows, checkpoints=True), following
    later = (_tasks.ended_at > after.ended_at) | (_tasks.id > after.task_id)
    wanted = select(schema.tenant_tasks).where(_tasks.ended_at >= max(since, after.ended_at), later)
    rows = tx.core(wanted.order_by(_tasks.ended_at, _tasks.id).limit(limit))
    last = ShownAfter(rows[-1].id, rows[-1].ended_at) if len(rows) == limit else None
    return _made(tx, rows, checkpoints=True), last


def _active_after(tx: Tx, after_id: int, limit: int) -> list[Row[Any]]:
    found: list[Row[Any]] = []
    for status in sorted(TASK_ACTIVE):
        wanted = select(schema.tenant_tasks).where(_tasks.status == status, _tasks.id > after_id)
        found += tx.core(wanted.order_by(_tasks.id).limit(limit))
    return sorted(found, key=lambda row: int(row.id))[:limit]


def plan_ids_after(tx: Tx, after_id: int, since: int, limit: int) -> list[int]:
    lately = (_plans.ended_at.is_(None)) | (_plans.ended_at >= since)
    wanted = select(_plans.id).where(_plans.id > after_id, lately).order_by(_plans.id).limit(limit)
    return [row.id for row in tx.core(wanted)]


def running_tasks(tx: Tx, after_id: int, limit: int) -> list[tuple[int, str, str]]:
    """Id, key and tenant of those that have their tenant's lock, by id."""
    wanted = select(_tasks.id, _tasks.public_id, _tasks.tenant_id)
    wanted = wanted.where(_tasks.status == TaskStatus.RUNNING, _tasks.id > after_id).order_by(_tasks.id).limit(limit)
    return [(row.id, row.public_id, row.tenant_id) for row in tx.core(wanted)]


_BY_KEY = Statement(
    "SELECT t.public_id, t.status, t.tenant_id FROM {rows} {join} tenant_tasks t ON t.public_id = r.public_id",
    columns(public_id="key"),
)


def task_states(tx: Tx, keys: Sequence[str]) -> dict[str, TaskStatus]:
    """Of these tasks, those that there are."""
    rows = tx.query(_BY_KEY, [(each,) for each in sorted(set(keys))])
    return {row.public_id: TaskStatus(row.status) for row in rows}


def figures(tx: Tx) -> PlanFigures:
    by_plan = select(_plans.status, func.count().label("number")).where(_plans.status.not_in(sorted(PLAN_ENDED)))
    by_task = select(_tasks.status, func.count().label("number")).where(_tasks.status.in_(sorted(TASK_ACTIVE)))
    why = select(_plans.reason, func.count().label("number")).where(_plans.status == PlanStatus.PAUSED)
    oldest = outbox.oldest(tx)
    return PlanFigures(
        {PlanStatus(row.status): row.number for row in tx.core(by_plan.group_by(_plans.status))},
        {TaskStatus(row.status): row.number for row in tx.core(by_task.group_by(_tasks.status))},
        None if oldest is None else from_micros(oldest),
        {row.reason or "": row.number for row in tx.core(why.group_by(_plans.reason))},
    )
