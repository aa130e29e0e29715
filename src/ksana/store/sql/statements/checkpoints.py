"""Checkpoints of tasks, as somebody outside changes them: only if nobody has saved them since."""

import orjson

from ksana.domain.errors import CheckpointStale, TaskRefused
from ksana.domain.events import EventType
from ksana.domain.plan import TASK_ACTIVE, TaskStatus
from ksana.store.plan_requests import CheckpointRemoval, ContextChange
from ksana.store.sql.statements.tenant_tasks import TaskNow, context_json

_MAY_HAVE = TASK_ACTIVE | {TaskStatus.FAILED}


def change_context(task: TaskNow, wanted: ContextChange, at: int) -> bool:
    """More keys, or others, in its context. CheckpointStale, TaskRefused."""
    if task.status not in _MAY_HAVE:
        raise TaskRefused(task.row.tenant_id, task.row.public_id, task.status, "given a checkpoint")
    _refuse_stale(task, wanted.expected_version)
    before = orjson.loads(task.context) if task.context else {}
    task.context = context_json({**before, **wanted.context})
    task.save_checkpoint(at)
    task.tell(EventType.TASK_CHECKPOINT_CHANGED)
    return True


def remove_checkpoint(task: TaskNow, wanted: CheckpointRemoval) -> bool:
    """A retry would begin from the first stage. False if there is none. CheckpointStale, TaskRefused."""
    if task.checkpoint_at is None:
        return False
    if task.status is not TaskStatus.FAILED:
        raise TaskRefused(task.row.tenant_id, task.row.public_id, task.status, "without its checkpoint")
    _refuse_stale(task, wanted.expected_version)
    task.forget_checkpoint()
    task.tell(EventType.TASK_CHECKPOINT_CHANGED)
    return True


def _refuse_stale(task: TaskNow, expected: int | None) -> None:
    if expected not in {None, task.checkpoint_version}:
        raise CheckpointStale(task.row.public_id, expected=expected or 0, actual=task.checkpoint_version)
