"""Tenants' tasks and their checkpoints as document 004 writes them."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from ksana.api.contracts.jobchain.nodes_showing import state_shown
from ksana.api.contracts.plans.plan_showing import share
from ksana.api.services import Services
from ksana.api.times import rfc3339, rfc3339_or_none
from ksana.domain.plan import TaskStatus, TenantTask
from ksana.domain.workflow_run import NodeRun
from ksana.store.plan_requests import TaskStages

UNDER_WAY = frozenset({TaskStatus.RUNNING, TaskStatus.PAUSED, TaskStatus.FAILED})
_NOT_BEGUN = {"status": "PENDING", "attempts": 0, "output": None, "error": None, "startedAt": None, "endedAt": None}


@dataclass(frozen=True, slots=True)
class TaskShowing:
    """How tasks look at a moment: a checkpoint may have run out by then."""

    checkpoint_life: timedelta
    now: datetime

    @classmethod
    def by(cls, services: Services) -> "TaskShowing":
        return cls(services.settings.executor.persistence.ttl.checkpoint, services.clock.now())

    def summary(self, task: TenantTask) -> dict[str, Any]:
        done, names = task.last_completed + 1, task.stage_names
        current = task.status in UNDER_WAY and done < len(names)
        return {
            "taskId": task.key,
            "tenantId": task.tenant_id,
            "planId": task.plan_key,
            "status": task.status.value,
            "pauseRequested": task.pause_requested,
            "wave": task.wave + 1,
            "stageNames": list(names),
            "lastCompletedStageIndex": task.last_completed,
            "completedStages": done,
            "totalStages": len(names),
            "currentStage": names[done] if current else None,
            "progress": share(done, len(names)),
            "attempt": task.generation,
            "runId": task.run_key,
            "error": task.error,
            "reason": task.reason,
            "hasCheckpoint": self._kept(task),
            "createdAt": rfc3339(task.created_at),
            "startedAt": rfc3339_or_none(task.started_at),
            "endedAt": rfc3339_or_none(task.ended_at),
            "updatedAt": rfc3339(task.updated_at),
        }

    def detail(self, found: TaskStages) -> dict[str, Any]:
        task = found.task
        named = zip(task.stage_names, found.stages, strict=True)
        return {
            **self.summary(task),
            "params": dict(task.params),
            "stages": [_stage(index, name, node) for index, (name, node) in enumerate(named)],
            "checkpoint": self.checkpoint(task),
        }

    def checkpoint(self, task: TenantTask) -> dict[str, Any] | None:
        """None if there is none, or not any more."""
        saved = task.checkpoint
        if saved is None or not self._kept(task):
            return None
        ends = saved.saved_at + self.checkpoint_life if task.status is TaskStatus.FAILED else None
        return {
            "taskId": task.key,
            "tenantId": task.tenant_id,
            "planId": task.plan_key,
            "version": saved.version,
            "lastCompletedStageIndex": saved.last_completed,
            "completedStages": list(saved.completed),
            "contextData": dict(saved.context),
            "savedAt": rfc3339(saved.saved_at),
            "expiresAt": rfc3339_or_none(ends),
        }

    def _kept(self, task: TenantTask) -> bool:
        return task.checkpoint_at(self.now, self.checkpoint_life) is not None


def _stage(index: int, name: str, node: NodeRun | None) -> dict[str, Any]:
    if node is None:
        return {"name": name, "index": index, **_NOT_BEGUN}
    state = state_shown(node)
    return {
        "name": name,
        "index": index,
        "status": state["status"],
        "attempts": state["attempt"],
        "output": node.execution.output,
        "error": state["lastError"],
        "startedAt": state["startedAt"],
        "endedAt": state["endedAt"],
    }
