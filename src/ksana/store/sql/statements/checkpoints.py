"""Checkpoints of tasks, as somebody outside changes them: only if nobody has saved them since."""

from datetime import timedelta

import orjson

from ksana.domain.errors import CheckpointStale, InvalidInput, TaskRefused
from ksana.domain.events import EventType
from ksana.domain.plan import TASK_ACTIVE, TaskStatus
from ksana.store.plan_requests import CheckpointRemoval, ContextChange
from ksana.store.sql.statements.tenant_tasks import TaskNow, context_json

MAX_CONTEXT = 1_000_000
_MICROSECOND = timedelta(microseconds=1)
_MAY_HAVE = TASK_ACTIVE | {TaskStatus.FAILED}


def change_context(task: TaskNow, wanted: ContextChange, at: int) -> bool:
    """More keys, or others, in its context. CheckpointStale, TaskRefused."""
    if task.status not in _MAY_HAVE:
        raise TaskRefused(task.row.tenant_id, task.row.public_id, task.status, "given a checkpoint")
    _refuse_stale(task, wanted.expected_version)
    if task.status is TaskStatus.FAILED and expired(task, wanted.checkpoint_life, at):
        _begin_anew(task)
    before = orjson.loads(task.context) if task.context else {}
    task.context = context_json({**before, **wanted.context})
    if len(task.context or "") > MAX_CONTEXT:
        raise InvalidInput("contextData", f"is larger than {MAX_CONTEXT} characters in all")
    task.save_checkpoint(at)
    task.tell(EventType.TASK_CHECKPOINT_CHANGED)
    return True


def remove_checkpoint(task: TaskNow, wanted: CheckpointRemoval, at: int) -> bool:
    """A retry would begin from the first stage. False if there is none. CheckpointStale, TaskRefused."""
    if task.status is not TaskStatus.FAILED:
        raise TaskRefused(task.row.tenant_id, task.row.public_id, task.status, "without its checkpoint")
    if task.checkpoint_at is None or expired(task, wanted.checkpoint_life, at):
        return False
    _refuse_stale(task, wanted.expected_version)
    _begin_anew(task)
    task.tell(EventType.TASK_CHECKPOINT_CHANGED)
    return True


def _begin_anew(task: TaskNow) -> None:
    """Whatever its run has done: a retry would do all of it again."""
    task.forget_checkpoint()
    task.run_id, task.last_completed = None, -1


def expired(task: TaskNow, life: timedelta, at: int) -> bool:
    """Whether it is too old to go on from."""
    return task.checkpoint_at is not None and at - task.checkpoint_at >= life // _MICROSECOND


def _refuse_stale(task: TaskNow, expected: int | None) -> None:
    if expected not in {None, task.checkpoint_version}:
        raise CheckpointStale(task.row.public_id, expected=expected or 0, actual=task.checkpoint_version)
