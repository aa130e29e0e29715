"""The tasks of tenants as a transaction sees them: locked after the runs that they are, changed in memory, written once.

`follow` is where a run becomes a task: whatever happens to a run that is one, its task hears of it in the same transaction.
Locks are taken in this order, everywhere: plan, run, task, tenant.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlalchemy import Row

from ksana.domain.events import EventType
from ksana.domain.plan import TASK_ENDED, TaskMove, TaskStatus, Wish
from ksana.domain.states import RUN_TERMINAL, SUCCEEDED, ExecutionStatus, RunStatus
from ksana.domain.workflow_run import AT_BOUNDARY
from ksana.store.sql.rows import LATER, Statement, brief, columns, to_json, update_by, update_by_id
from ksana.store.sql.statements import outbox
from ksana.store.sql.statements.journal import Happening, fitting, record_events
from ksana.store.sql.tx import Tx

if TYPE_CHECKING:  # runs.py tells us of runs: we must not ask for it
    from ksana.store.sql.statements.runs import RunNow

_IDS = columns(id="int")
_LOCK = Statement(
    "SELECT t.* FROM {rows} {join} tenant_tasks t {by_id} ON t.id = r.id ORDER BY t.id {for_update}", _IDS
)
_TASK = columns(
    id="int",
    status="text",
    wish="text",
    asked_for="int",
    ready_at="int",
    run_id="int",
    generation="int",
    last_completed="int",
    context="text",
    checkpoint_at="int",
    checkpoint_version="int",
    fence="int",
    error="text",
    reason="text",
    started_at="int",
    ended_at="int",
    told_at="int",
)
_WRITE = update_by_id(
    "tenant_tasks",
    _TASK,
    version="t.version + 1",
    updated_at=LATER,
    **{name: f"r.{name}" for name, _ in _TASK if name != "id"},
)
_STAGES = Statement(
    "SELECT t.workflow_run_id, t.node_id, t.status FROM {rows} {join} executions t {by_node} ON t.workflow_run_id = r.id"
    " WHERE t.parent_id IS NULL ORDER BY t.workflow_run_id, t.id",
    _IDS,
)
_TENANT = columns(tenant_id="key")
LOCK_TENANTS = Statement(
    "SELECT t.tenant_id, t.task_id, t.fence FROM {rows} {join} tenants t ON t.tenant_id = r.tenant_id"
    " ORDER BY t.tenant_id {for_update}",
    _TENANT,
)
_HELD = columns(tenant_id="key", task_id="int")
_FREE_TENANTS = update_by("t.tenant_id = r.tenant_id AND t.task_id = r.task_id", "tenants", _HELD, task_id="NULL")
TAKE_TENANTS = update_by("t.tenant_id = r.tenant_id", "tenants", _HELD, task_id="r.task_id")
_TOKENS = Statement(
    "SELECT t.tenant_id, t.fence FROM {rows} {join} tenants t ON t.tenant_id = r.tenant_id ORDER BY t.tenant_id",
    _TENANT,
)
_PASSED = SUCCEEDED | {ExecutionStatus.SKIPPED}
_TOLD = {
    TaskStatus.CREATED: EventType.TASK_RESUMED,
    TaskStatus.WAITING_FOR_LOCK: EventType.TASK_WAITING,
    TaskStatus.RUNNING: EventType.TASK_STARTED,
    TaskStatus.PAUSED: EventType.TASK_PAUSED,
    TaskStatus.COMPLETED: EventType.TASK_COMPLETED,
    TaskStatus.FAILED: EventType.TASK_FAILED,
    TaskStatus.CANCELLED: EventType.TASK_CANCELLED,
}


@dataclass(slots=True)
class TaskNow:
    """A task that the transaction has locked, as it stands by now."""

    row: Row[Any]
    status: TaskStatus
    wish: Wish | None
    asked_for: bool
    ready_at: int | None
    run_id: int | None
    generation: int
    last_completed: int
    context: str | None
    checkpoint_at: int | None
    checkpoint_version: int
    fence: int
    error: str | None
    reason: str | None
    started_at: int | None
    ended_at: int | None
    told_at: int | None
    told: list[tuple[EventType, Mapping[str, Any]]] = field(default_factory=list)
    changed: bool = False

    @property
    def id(self) -> int:
        return int(self.row.id)

    @property
    def has_ended(self) -> bool:
        return self.status in TASK_ENDED

    def tell(self, event: EventType, data: Mapping[str, Any] | None = None) -> None:
        self.told.append((event, data or {}))
        self.changed = True

    def move(
        self, target: TaskStatus, at: int, data: Mapping[str, Any] | None = None, event: EventType | None = None
    ) -> None:
        """IllegalTransition if there is no such way."""
        TaskMove(frozenset({self.status}), target)
        self.status, self.told_at = target, at if target is TaskStatus.RUNNING else None
        self.ended_at = at if target in TASK_ENDED else None
        if target is not TaskStatus.RUNNING:
            self.wish = None
        if target in {TaskStatus.COMPLETED, TaskStatus.CANCELLED}:
            self.forget_checkpoint()
        elif target is TaskStatus.FAILED and self.checkpoint_at is not None:
            self.save_checkpoint(at)  # it lives from now on
        self.tell(event or _TOLD[target], data)

    def save_checkpoint(self, at: int) -> None:
        self.checkpoint_at, self.checkpoint_version, self.changed = at, self.checkpoint_version + 1, True

    def forget_checkpoint(self) -> None:
        """It would begin from its first stage; the version goes on, so that a late writer is refused."""
        self.context, self.changed = None, True
        if self.checkpoint_at is not None:
            self.checkpoint_at, self.checkpoint_version = None, self.checkpoint_version + 1


def lock(tx: Tx, task_ids: Iterable[int]) -> dict[int, TaskNow]:
    """These tasks, locked until the end of the transaction, in the order of their ids."""
    ids = [(each,) for each in sorted(set(task_ids))]
    return {row.id: _now(row) for row in tx.query(_LOCK, ids)} if ids else {}


def _now(row: Row[Any]) -> TaskNow:
    return TaskNow(
        row,
        TaskStatus(row.status),
        None if row.wish is None else Wish(row.wish),
        bool(row.asked_for),
        row.ready_at,
        row.run_id,
        row.generation,
        row.last_completed,
        row.context,
        row.checkpoint_at,
        row.checkpoint_version,
        row.fence,
        row.error,
        row.reason,
        row.started_at,
        row.ended_at,
        row.told_at,
    )


def write(tx: Tx, tasks: Iterable[TaskNow], at: int) -> None:
    """What has changed of them, and that it has. Those that have ended let go of their tenants."""
    changed = sorted((task for task in tasks if task.changed), key=lambda task: task.id)
    if not changed:
        return
    tx.run(_WRITE, [_row(task) for task in changed], at=at)
    record_events(tx, at, [_happening(task, event, data) for task in changed for event, data in task.told])
    # Also what is no event: whatever changes is shown.
    shown = [(task, event) for task in changed for event, _ in task.told or [(EventType.TASK_CHANGED, {})]]
    outbox.add(tx, at, [(event, task.row.plan_id, task.id) for task, event in shown])
    ended = sorted((task.row.tenant_id, task.id) for task in changed if task.has_ended)
    if ended:
        tx.run(_FREE_TENANTS, ended)
    for task in changed:
        task.changed, task.told = False, []


def _row(task: TaskNow) -> tuple[Any, ...]:
    return (
        task.id,
        task.status,
        task.wish,
        int(task.asked_for),
        task.ready_at,
        task.run_id,
        task.generation,
        task.last_completed,
        task.context,
        task.checkpoint_at,
        task.checkpoint_version,
        task.fence,
        brief(task.error),
        fitting(task.reason, 255) if task.reason else None,
        task.started_at,
        task.ended_at,
        task.told_at,
    )


def _happening(task: TaskNow, event: EventType, data: Mapping[str, Any]) -> Happening:
    return (event, f"task/{task.id}", {"tenant": task.row.tenant_id, **data})


# From runs to tasks -----------------------------------------------------------------------------------------------------


def follow(tx: Tx, runs: Sequence["RunNow"], at: int) -> None:
    """What has become of these runs, to the tasks that they are. A run that its task has left behind is not heard."""
    mine = {run.row.task_id: run for run in runs if run.row.task_id is not None}
    if not mine:
        return
    tasks = [task for task in lock(tx, mine).values() if task.run_id == mine[task.id].id]
    passed = _passed(tx, [task.run_id for task in tasks if task.run_id is not None])
    for task in tasks:
        run = mine[task.id]
        _count_stages(task, run, passed[run.id], at)
        if task.status is TaskStatus.RUNNING and run.status in RUN_TERMINAL:
            _end(task, run, at)
    write(tx, tasks, at)


def _passed(tx: Tx, run_ids: Iterable[int]) -> dict[int, int]:
    """How many stages of each run are done, from the first on."""
    counts = dict.fromkeys(run_ids, 0)
    open_ = set(counts)
    for row in tx.query(_STAGES, [(each,) for each in sorted(counts)]):
        if row.workflow_run_id in open_ and row.status in _PASSED:
            counts[row.workflow_run_id] += 1
        else:
            open_.discard(row.workflow_run_id)
    return counts


def _count_stages(task: TaskNow, run: "RunNow", passed: int, at: int) -> None:
    names = list(run.snapshot.nodes)
    for index in range(task.last_completed + 1, passed):
        task.last_completed = index
        task.save_checkpoint(at)
        task.tell(EventType.TASK_STAGE_COMPLETED, {"stage": names[index], "index": index})


def _end(task: TaskNow, run: "RunNow", at: int) -> None:
    wish, said, task.reason = task.wish, task.reason, None
    task.error = None if run.error is None else run.error.replace("node ", "stage ", 1)
    if run.status is RunStatus.SUCCESS:
        task.move(TaskStatus.COMPLETED, at)
    elif run.status is RunStatus.FAILED:
        task.move(TaskStatus.FAILED, at, {"error": task.error})
    elif run.status is RunStatus.CLOSED or wish is Wish.CANCEL:
        task.reason = said or run.reason
        task.move(TaskStatus.CANCELLED, at, {"reason": task.reason})
    elif wish is Wish.LOCK_LOST:
        task.reason = Wish.LOCK_LOST
        task.move(TaskStatus.WAITING_FOR_LOCK, at)
    elif wish is None and run.reason != AT_BOUNDARY:
        task.error = task.error or f"a stage was stopped: {run.reason or 'by hand'}"
        task.move(TaskStatus.FAILED, at, {"error": task.error})
    elif wish is None:
        # It was asked to pause, and to go on before it had.
        task.asked_for = True
        task.move(TaskStatus.CREATED, at)
    else:
        task.reason = wish
        task.move(TaskStatus.PAUSED, at)


def checkpoints_saved(tx: Tx, runs: Sequence["RunNow"], at: int) -> None:
    """Stages of these runs have saved something to go on from: it is part of their tasks' checkpoints."""
    mine = {run.row.task_id: run for run in runs if run.row.task_id is not None}
    tasks = [task for task in lock(tx, mine).values() if task.run_id == mine[task.id].id] if mine else []
    for task in tasks:
        task.save_checkpoint(at)
        task.tell(EventType.TASK_CHECKPOINT_CHANGED)
    write(tx, tasks, at)


def fenced_out(tx: Tx, runs: Iterable["RunNow"]) -> set[int]:
    """Those of these runs that no longer have the lock they began under: nothing that they did since may count."""
    held = [run for run in runs if run.row.task_id is not None]
    if not held:
        return set()
    rows = tx.query(_TOKENS, sorted({(run.row.tenant_id,) for run in held}))
    tokens = {row.tenant_id: row.fence for row in rows}
    return {run.id for run in held if tokens.get(run.row.tenant_id) != run.row.fence}


def context_json(value: Mapping[str, Any]) -> str | None:
    return to_json(dict(value)) if value else None
