"""What happened, as rows written in the transaction that made it happen. Everything that listens reads these rows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any


class EventType(StrEnum):
    """Past tense: `<what>.<happened>`."""

    JOB_CREATED = "job.created"
    JOB_CHANGED = "job.changed"
    JOB_DELETED = "job.deleted"
    WORKFLOW_CREATED = "workflow.created"
    WORKFLOW_CHANGED = "workflow.changed"
    WORKFLOW_ENABLED = "workflow.enabled"
    WORKFLOW_DISABLED = "workflow.disabled"
    WORKFLOW_DELETED = "workflow.deleted"
    RUN_REQUESTED = "run.requested"
    RUN_STARTED = "run.started"
    RUN_STOPPING = "run.stopping"
    RUN_REOPENED = "run.reopened"
    RUN_CLOSED = "run.closed"
    RUN_ENDED = "run.ended"
    NODE_RETRIED = "node.retried"
    NODE_COMPLETED = "node.completed"
    NODE_SKIPPED = "node.skipped"
    NODE_DELEGATED = "node.delegated"
    SCHEDULE_CREATED = "schedule.created"
    SCHEDULE_CHANGED = "schedule.changed"
    SCHEDULE_PAUSED = "schedule.paused"
    SCHEDULE_RESUMED = "schedule.resumed"
    SCHEDULE_PARKED = "schedule.parked"
    SCHEDULE_DELETED = "schedule.deleted"
    OCCURRENCE_SKIPPED = "occurrence.skipped"
    EXECUTION_REQUESTED = "execution.requested"
    EXECUTION_ENDED = "execution.ended"
    EXECUTION_RETRYING = "execution.retrying"
    EXECUTION_DEFERRED = "execution.deferred"
    EXECUTION_AWAITING_CALLBACK = "execution.awaiting_callback"
    EXECUTION_RECOVERED = "execution.recovered"
    EXECUTION_CANCELED = "execution.canceled"
    CALLBACK_RECEIVED = "callback.received"
    PLAN_CREATED = "plan.created"
    PLAN_STARTED = "plan.started"
    PLAN_WAVE_STARTED = "plan.wave_started"
    PLAN_PAUSED = "plan.paused"
    PLAN_RESUMED = "plan.resumed"
    PLAN_REOPENED = "plan.reopened"
    PLAN_RETRIED = "plan.retried"
    PLAN_COMPLETED = "plan.completed"
    PLAN_FAILED = "plan.failed"
    PLAN_CANCELLED = "plan.cancelled"
    TASK_CREATED = "task.created"
    TASK_WAITING = "task.waiting"
    TASK_STARTED = "task.started"
    TASK_STAGE_COMPLETED = "task.stage_completed"
    TASK_PROGRESSED = "task.progressed"
    TASK_PAUSE_REQUESTED = "task.pause_requested"
    TASK_PAUSED = "task.paused"
    TASK_RESUMED = "task.resumed"
    TASK_RETRIED = "task.retried"
    TASK_COMPLETED = "task.completed"
    TASK_FAILED = "task.failed"
    TASK_CANCELLED = "task.cancelled"
    TASK_CHANGED = "task.changed"
    TASK_CHECKPOINT_CHANGED = "task.checkpoint_changed"
    FAILURES_ACKNOWLEDGED = "failures.acknowledged"
    INSTANCE_JOINED = "instance.joined"
    INSTANCE_LEFT = "instance.left"
    INSTANCE_LOST = "instance.lost"


@dataclass(frozen=True, slots=True)
class Event:
    id: int
    type: EventType | str
    """A text that is none of them was written by a newer version."""
    at: datetime
    subject: str
    """The thing it happened to, as `kind/id`."""
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Actor:
    """Who asked for a change, for the audit entry that is written with it."""

    name: str = "anonymous"
    address: str = ""
    request_id: str = ""
    reason: str = ""


SYSTEM = Actor(name="ksana")
