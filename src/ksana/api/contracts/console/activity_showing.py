"""Runs of jobs and of workflows in one shape, for every list of the console that has both."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Literal

from pydantic import Field

from ksana.api.contracts.shapes import Shown
from ksana.api.times import rfc3339, rfc3339_or_none
from ksana.domain.execution import Execution
from ksana.domain.job import Contract
from ksana.domain.states import CRONJOB_NAMES, JOBCHAIN_RUN_NAMES
from ksana.domain.workflow_run import WorkflowRun
from ksana.store.activity_requests import TargetName, TargetNames
from ksana.store.base import Store

MAX_ERROR = 500
"""Characters of an error in a list."""
_AT = "2026-01-31T12:00:00Z"
AnyRun = Execution | WorkflowRun
RunKind = Literal["job", "workflow"]
TargetKind = Literal["job", "workflow", "plan"]
ActivityStatus = Literal[
    "SCHEDULED",
    "PENDING",
    "RUNNING",
    "RETRYING",
    "CALLBACK_PENDING",
    "STOPPING",
    "SUCCESS",
    "CALLBACK_SUCCESS",
    "FAILED",
    "TIMEOUT",
    "FAILED_TIMEOUT",
    "CANCELED",
    "STOPPED",
    "SKIPPED",
    "CLOSED",
]
"""As documents 003 (a job's run) and 001 (a workflow's) have them."""


class Target(Shown):
    """What a run is of."""

    kind: TargetKind
    id: str = Field(examples=["ping"], description="The job's key, the workflow's id, or the plan's.")
    name: str = Field(examples=["ping"])
    task_id: int | None = Field(examples=[1], description="The number of a job that was made as a task.")
    deleted: bool = Field(description="Whether there is only its history.")


class ActivityItem(Shown):
    """A run of a job or of a workflow."""

    id: str = Field(examples=["42"], description="A number is the run of a job, anything else the run of a workflow.")
    kind: RunKind
    status: ActivityStatus
    target: Target
    trigger: str = Field(examples=["schedule"])
    tenant_id: str | None = Field(description="Of a run that is a tenant's task.")
    plan_id: str | None = Field(description="Likewise.")
    schedule_id: str | None
    planned_for: str | None = Field(examples=[_AT], description="Its schedule's instant, or when it was asked for.")
    created_at: str = Field(examples=[_AT])
    started_at: str | None
    ended_at: str | None
    duration_millis: int | None = Field(examples=[120], description="From its start to its end; null before its end.")
    attempt: int | None = Field(description="Of a job's run.")
    error: str | None = Field(description="The first line of the error.")
    reason: str | None = Field(description="Why it was skipped, canceled, stopped or queued.")


async def shown_all(store: Store, runs: Sequence[AnyRun]) -> list[dict[str, Any]]:
    """These runs, with the names of what they are of."""
    names = await store.target_names(runs)
    return [shown(run, names) for run in runs]


def shown(run: AnyRun, names: TargetNames) -> dict[str, Any]:
    """As `ActivityItem`."""
    own = _of_workflow(run, names) if isinstance(run, WorkflowRun) else _of_job(run, names)
    took = None if run.started_at is None or run.ended_at is None else run.ended_at - run.started_at
    return {
        **own,
        "trigger": run.trigger.value,
        "scheduleId": None if run.schedule_id is None else names.schedules.get(run.schedule_id),
        "plannedFor": rfc3339_or_none(run.planned_for),
        "createdAt": rfc3339(run.created_at),
        "startedAt": rfc3339_or_none(run.started_at),
        "endedAt": rfc3339_or_none(run.ended_at),
        "durationMillis": None if took is None else max(0, took // timedelta(milliseconds=1)),
        "error": first_line(run.error),
        "reason": run.reason,
    }


def _of_job(run: Execution, names: TargetNames) -> dict[str, Any]:
    job_id = run.job_id or 0
    return {
        "id": str(run.id),
        "kind": "job",
        "status": CRONJOB_NAMES[run.status],
        "target": job_target(job_id, names.jobs.get(job_id)),
        "tenantId": None,
        "planId": None,
        "attempt": run.attempt,
    }


def _of_workflow(run: WorkflowRun, names: TargetNames) -> dict[str, Any]:
    of_plan = run.plan_id is not None
    found = names.plans.get(run.plan_id or 0) if of_plan else names.workflows.get(run.workflow_id)
    return {
        "id": run.key,
        "kind": "workflow",
        "status": JOBCHAIN_RUN_NAMES[run.status],
        "target": target("plan" if of_plan else "workflow", run.workflow_key, found),
        "tenantId": run.tenant_id,
        "planId": run.workflow_key if of_plan else None,
        "attempt": None,
    }


def job_target(job_id: int, name: TargetName | None) -> dict[str, Any]:
    """As `Target`: the job with this number, and what it is called if it is still known."""
    task_id = job_id if name is not None and name.contract is Contract.CRONJOB else None
    return {**target("job", str(job_id) if name is None else name.key, name), "taskId": task_id}


def target(kind: TargetKind, key: str, name: TargetName | None) -> dict[str, Any]:
    """As `Target`: by its id, and what it is called if it is still known."""
    known = name or TargetName(key, key, deleted=True)
    return {"kind": kind, "id": key, "name": known.name, "taskId": None, "deleted": known.deleted}


def first_line(error: str | None) -> str | None:
    """The first line that says something, not too long for a list."""
    lines = (error or "").strip().splitlines()
    return lines[0][:MAX_ERROR] if lines else None
