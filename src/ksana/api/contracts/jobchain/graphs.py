"""Workflows and runs as graphs (document 001 §3): nodes with their jobs, and edges."""

from collections.abc import Iterable, Mapping
from typing import Any

from ksana.api.contracts.jobchain.nodes_showing import nodes_by_id, state_shown
from ksana.api.contracts.jobchain.retries import retry_shown
from ksana.domain.errors import NotFound
from ksana.domain.job import Job
from ksana.domain.retry import RetryPolicy
from ksana.domain.states import JOBCHAIN_RUN_NAMES
from ksana.domain.workflow import Dag, Node, Snapshot, SnapshotNode, Workflow
from ksana.store.base import Store
from ksana.store.workflow_requests import RunNodes

Jobs = Mapping[str, Job]
"""By the name under which a node has it."""


async def jobs_of_workflow(store: Store, workflow: Workflow) -> Jobs:
    """Those that its nodes name: by their key or by document 003's integer."""
    named = {node.job for node in workflow.spec.dag.nodes if node.job is not None}
    found = dict(await store.jobs_by_keys(sorted(named)))
    for name in named - found.keys():
        if name.isascii() and name.isdigit():
            try:
                found[name] = await store.job(int(name))
            except NotFound:
                continue
    return found


async def jobs_of_run(store: Store, snapshot: Snapshot) -> Jobs:
    """Those that its nodes ran with, as far as they are still there."""
    return await store.jobs_by_keys(sorted({each.job_key for each in snapshot.nodes.values() if each.job_key}))


def workflow_graph(workflow: Workflow, jobs: Jobs) -> dict[str, Any]:
    dag = workflow.spec.dag
    return {
        "workflowId": workflow.key,
        "version": workflow.version,
        "nodes": [_node(node, _job_of_node(node, jobs), _retry_of_node(node, jobs)) for node in dag.nodes],
        "edges": edges_shown(dag),
    }


def run_graph(found: RunNodes, jobs: Jobs) -> dict[str, Any]:
    run, snapshot, standing = found.run, found.snapshot, nodes_by_id(found)
    nodes = []
    for node in snapshot.dag.nodes:
        now, drawn = standing[node.id], snapshot_node(node, snapshot.nodes[node.id], jobs)
        artifact = now.execution.output
        nodes.append({**drawn, "state": state_shown(now), "artifact": artifact, "checkpoint": now.checkpoint})
    return {
        "runId": run.key,
        "workflowId": run.workflow_key,
        "status": JOBCHAIN_RUN_NAMES[run.status],
        "nodes": nodes,
        "edges": edges_shown(snapshot.dag),
    }


def snapshot_node(node: Node, made: SnapshotNode, jobs: Jobs) -> dict[str, Any]:
    """A node of a run, without where it stands."""
    return _node(node, job_of_snapshot(made, jobs), made.spec.retry)


def _node(node: Node, job: dict[str, Any], retry: RetryPolicy) -> dict[str, Any]:
    return {
        "nodeId": node.id,
        "job": job,
        "dependsOn": list(node.depends_on),
        "retry": retry_shown(retry),
        "triggerRule": node.trigger_rule.value,
        "when": node.when,
    }


def edges_shown(dag: Dag) -> list[dict[str, Any]]:
    return [edge for node in dag.nodes for edge in _edges_to(node.id, node.depends_on)]


def _edges_to(node: str, needed: Iterable[str]) -> list[dict[str, Any]]:
    return [{"from": each, "to": node, "type": "DEPENDS_ON", "index": index} for index, each in enumerate(needed)]


def job_of_snapshot(made: SnapshotNode, jobs: Jobs) -> dict[str, Any]:
    """The job that a node of a run has: as it is now or, if it is gone, as it was."""
    if made.job_key is None:
        return _inline(made.node.id, made.spec.type)
    job = jobs.get(made.job_key)
    return _gone(made.job_key, made.spec.name, made.spec.type) if job is None else _job(job)


def _job_of_node(node: Node, jobs: Jobs) -> dict[str, Any]:
    if node.job is None:
        return _inline(node.id, node.type)
    job = jobs.get(node.job)
    return _gone(node.job, node.job, None) if job is None else _job(job)


def _retry_of_node(node: Node, jobs: Jobs) -> RetryPolicy:
    if node.retry is not None:
        return node.retry
    job = None if node.job is None else jobs.get(node.job)
    return RetryPolicy() if job is None else job.spec.retry


def _job(job: Job) -> dict[str, Any]:
    spec = job.spec
    return {
        "jobId": job.key,
        "name": spec.name,
        "type": spec.type,
        "enabled": spec.enabled,
        "description": spec.description,
    }


def _inline(node_id: str, kind: str | None) -> dict[str, Any]:
    return {"jobId": None, "name": node_id, "type": kind, "enabled": True, "description": ""}


def _gone(key: str, name: str, kind: str | None) -> dict[str, Any]:
    return {"jobId": key, "name": name, "type": kind, "enabled": False, "description": ""}
