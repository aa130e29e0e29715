"""What is shown of each kind of thing, where several commands show it."""

from collections.abc import Mapping
from typing import Any

from ksana.cli.client.showing import Column, print_record

JOBS: list[Column] = [
    ("JOB", "jobId"),
    ("NAME", "name"),
    ("TYPE", "type"),
    ("ENABLED", "enabled"),
    ("LAST", "lastRun.status"),
    ("NEXT", "nextRunAt"),
]
ONE_JOB: list[Column] = [("JOB", "jobId"), ("NAME", "name"), ("TYPE", "type"), ("ENABLED", "enabled")]
RUNS: list[Column] = [
    ("RUN", "id"),
    ("STATUS", "status"),
    ("KIND", "kind"),
    ("OF", "target.name"),
    ("TRIGGER", "trigger"),
    ("TENANT", "tenantId"),
    ("CREATED", "createdAt"),
    ("ENDED", "endedAt"),
    ("MILLIS", "durationMillis"),
    ("ERROR", "error"),
]
ATTEMPTS: list[Column] = [
    ("ATTEMPT", "attempt"),
    ("STATUS", "status"),
    ("START", "start_time"),
    ("END", "end_time"),
    ("CODE", "response_code"),
    ("ERROR", "error_message"),
]
NODES: list[Column] = [
    ("NODE", "nodeId"),
    ("STATUS", "status"),
    ("ATTEMPT", "attempt"),
    ("STARTED", "startedAt"),
    ("ENDED", "endedAt"),
    ("ERROR", "lastError"),
]
WORKFLOWS: list[Column] = [
    ("WORKFLOW", "workflowId"),
    ("NAME", "name"),
    ("ENABLED", "enabled"),
    ("VERSION", "version"),
    ("UPDATED", "updatedAt"),
]
SCHEDULES: list[Column] = [
    ("SCHEDULE", "id"),
    ("STATUS", "status"),
    ("JOB", "jobName"),
    ("WORKFLOW", "workflowName"),
    ("WHEN", "description"),
    ("NEXT", "nextFireAt"),
    ("ERROR", "error"),
]
PLANS: list[Column] = [
    ("PLAN", "planId"),
    ("NAME", "name"),
    ("STATUS", "status"),
    ("WHY", "pauseReason"),
    ("TENANTS", "tenants"),
    ("WAVE", "currentWave"),
    ("STARTED", "startedAt"),
    ("ENDED", "endedAt"),
]
TASKS: list[Column] = [
    ("TENANT", "tenantId"),
    ("PLAN", "planId"),
    ("STATUS", "status"),
    ("STAGE", "currentStage"),
    ("DONE", "completedStages"),
    ("OF", "totalStages"),
    ("ERROR", "error"),
]


def print_run(run: Mapping[str, Any]) -> None:
    """A job's with its attempts, a workflow's with its nodes."""
    print_record(run, {"attempts": ATTEMPTS, "nodes": NODES}, without=("dag", "callbacks"))
