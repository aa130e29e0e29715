"""A run of a workflow. Its nodes are executions."""

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import Any

from ksana.domain.execution import Execution, Trigger
from ksana.domain.states import RunStatus
from ksana.domain.values import immutable

FAIL_FAST = "fail_fast"
RUN_TIMEOUT = "timeout"
STOPPED_BY_ITSELF = frozenset({FAIL_FAST, RUN_TIMEOUT})
"""Reasons for which a run stops, and has failed."""
AT_BOUNDARY = "pause_requested"
"""The reason for which a tenant's task stops between two stages: what was under way counts as if nothing had been asked."""
OWN_REASONS = STOPPED_BY_ITSELF | {AT_BOUNDARY}
"""Words that mean something here, and that a person's reason must not be."""


@immutable
class WorkflowRun:
    """A stored run. Its nodes are executions."""

    id: int
    key: str
    workflow_id: int
    workflow_key: str
    workflow_version: int
    status: RunStatus
    trigger: Trigger
    created_at: datetime
    updated_at: datetime
    schedule_id: int | None = None
    planned_for: datetime | None = None
    parent_execution_id: int | None = None
    """The node of another run that this one works for."""
    depth: int = 0
    params: Mapping[str, Any] = field(default_factory=dict)
    error: str | None = None
    reason: str | None = None
    """Why it was stopped, closed or queued."""
    deadline_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    plan_id: int | None = None
    tenant_id: str | None = None
    """Of a run that is a tenant's task."""


@immutable
class NodeRun:
    """A node of a run as it stands: its execution, and what it is by the snapshot. Items have `parent_id`."""

    execution: Execution
    node_id: str
    checkpoint: Any = None
    parent_id: int | None = None
    child_run: str | None = None
    """The run of a node that is a workflow."""


def ended_status(status: RunStatus, reason: str | None, failed: int, stopped: int) -> RunStatus:
    """What a run becomes when its last node has ended."""
    if status is RunStatus.STOPPING and reason != AT_BOUNDARY:
        return RunStatus.FAILED if reason in STOPPED_BY_ITSELF else RunStatus.STOPPED
    if failed:
        return RunStatus.FAILED
    return RunStatus.STOPPED if stopped else RunStatus.SUCCESS
