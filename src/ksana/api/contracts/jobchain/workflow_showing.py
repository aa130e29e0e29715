"""Workflows and their versions as document 001 writes them (§5)."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ksana.api.times import rfc3339
from ksana.domain.states import JOBCHAIN_RUN_NAMES
from ksana.domain.workflow import Workflow, WorkflowSummary, WorkflowVersion
from ksana.domain.workflow_run import WorkflowRun
from ksana.store.requests import Page

T = TypeVar("T")


def workflows_shown(page: Page[WorkflowSummary], more: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """`more`: what else is to be shown of each, by its id."""
    return page_shown(page, lambda each: {**workflow_summary(each), **more.get(each.key, {})})


def page_shown(page: Page[T], shown: Callable[[T], dict[str, Any]]) -> dict[str, Any]:
    items = [shown(item) for item in page.items]
    return {"page": page.page, "size": page.size, "total": page.total or 0, "items": items}


def workflow_summary(workflow: WorkflowSummary) -> dict[str, Any]:
    return {
        "workflowId": workflow.key,
        "name": workflow.name,
        "description": workflow.description,
        "enabled": workflow.enabled,
        "version": workflow.version,
        "createdAt": rfc3339(workflow.created_at),
        "updatedAt": rfc3339(workflow.updated_at),
    }


def workflow_shown(workflow: Workflow) -> dict[str, Any]:
    """The whole workflow, its dag as it was given."""
    return {
        "workflowId": workflow.key,
        "name": workflow.spec.name,
        "description": workflow.spec.description,
        "enabled": workflow.enabled,
        "version": workflow.version,
        "dag": workflow.spec.dag.document,
        "createdAt": rfc3339(workflow.created_at),
        "updatedAt": rfc3339(workflow.updated_at),
    }


def version_summary(version: WorkflowVersion) -> dict[str, Any]:
    return {
        "version": version.version,
        "name": version.spec.name,
        "description": version.spec.description,
        "createdAt": rfc3339(version.created_at),
        "createdBy": version.created_by,
    }


def version_shown(version: WorkflowVersion) -> dict[str, Any]:
    return {**version_summary(version), "dag": version.spec.dag.document}


def started_shown(run: WorkflowRun) -> dict[str, Any]:
    return {
        "runId": run.key,
        "workflowId": run.workflow_key,
        "status": JOBCHAIN_RUN_NAMES[run.status],
        "createdAt": rfc3339(run.created_at),
    }
