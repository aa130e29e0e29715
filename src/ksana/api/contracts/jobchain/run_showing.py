"""Runs of workflows as document 001 writes them (§6)."""

from collections.abc import Sequence
from typing import Any

from ksana.api.contracts.jobchain.graphs import Jobs, job_of_snapshot, jobs_of_run
from ksana.api.contracts.jobchain.nodes_showing import in_order, node_shown
from ksana.api.times import rfc3339, rfc3339_or_none
from ksana.domain.errors import NotFound
from ksana.domain.events import Event
from ksana.domain.states import JOBCHAIN_RUN_NAMES, RunStatus
from ksana.domain.workflow import node_of_item
from ksana.domain.workflow_run import WorkflowRun
from ksana.store.base import Store
from ksana.store.workflow_requests import RunNodes

KIND = "workflow"


def run_summary(run: WorkflowRun) -> dict[str, Any]:
    return {
        "runId": run.key,
        "workflowId": run.workflow_key,
        "status": JOBCHAIN_RUN_NAMES[run.status],
        "createdAt": rfc3339(run.created_at),
        "updatedAt": rfc3339(run.updated_at),
        "startedAt": rfc3339_or_none(run.started_at),
        "endedAt": rfc3339_or_none(run.ended_at),
        "kind": KIND,
    }


async def run_detail(store: Store, run: WorkflowRun) -> dict[str, Any]:
    """The whole run, with where it comes from."""
    found = await store.run_nodes(run.id)
    jobs = await jobs_of_run(store, found.snapshot)
    whence = {
        "scheduleId": await _schedule(store, found.run),
        "parent": await parent_shown(store, found.run.parent_execution_id),
    }
    return {**_run(found), **whence, "dag": found.snapshot.dag.document, "nodes": _nodes(found, jobs)}


def _run(found: RunNodes) -> dict[str, Any]:
    run = found.run
    return {
        **run_summary(run),
        "workflowVersion": run.workflow_version,
        "trigger": run.trigger.value,
        "params": dict(run.params),
        "error": run.error,
        "reason": run.reason,
        "plannedFor": rfc3339_or_none(run.planned_for),
        "planId": None if run.plan_id is None else run.workflow_key,
        "tenantId": run.tenant_id,
    }


def _nodes(found: RunNodes, jobs: Jobs) -> list[dict[str, Any]]:
    of_node = {node_id: job_of_snapshot(made, jobs) for node_id, made in found.snapshot.nodes.items()}
    return [{**node_shown(node), "job": of_node[node_of_item(node.node_id)]} for node in in_order(found)]


async def _schedule(store: Store, run: WorkflowRun) -> str | None:
    if run.schedule_id is None:
        return None
    try:
        return (await store.schedule(run.schedule_id)).key
    except NotFound:  # deleted since
        return None


async def parent_shown(store: Store, execution_id: int | None) -> dict[str, Any] | None:
    """As `ParentNode`: where the node with this execution is."""
    if execution_id is None:
        return None
    try:
        node = await store.execution(execution_id)
        above = await store.workflow_run(node.workflow_run_id or 0)
    except NotFound:  # removed by retention
        return None
    return {"runId": above.key, "nodeId": node.node_id}


def run_ordered(run: WorkflowRun, status: RunStatus) -> dict[str, Any]:
    """What an order has put a run into, even if it has gone on since."""
    return {"runId": run.key, "status": JOBCHAIN_RUN_NAMES[status]}


def events_shown(events: Sequence[Event]) -> dict[str, Any]:
    items = [
        {"id": each.id, "type": str(each.type), "at": rfc3339(each.at), "data": dict(each.data)} for each in events
    ]
    return {"items": items}
