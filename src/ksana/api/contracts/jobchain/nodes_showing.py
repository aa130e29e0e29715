"""Nodes of runs as documents 000 (§B2) and 001 (§3.5, §6.3) write them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from ksana.api.times import rfc3339, rfc3339_or_none
from ksana.domain.execution import Attempt, Execution
from ksana.domain.states import DEFERRED, JOBCHAIN_NODE_NAMES, ExecutionStatus
from ksana.domain.workflow import node_of_item
from ksana.domain.workflow_run import NodeRun
from ksana.store.view_requests import NodeBrief
from ksana.store.workflow_requests import RunNodes

_S = ExecutionStatus
"""The reason of a node that has begun to wait for a time of its own."""
_WAITS_AGAIN = frozenset({_S.SCHEDULED, _S.QUEUED})
_NOT_BEGUN = frozenset({_S.PENDING, _S.SCHEDULED, _S.QUEUED})


def nodes_by_id(found: RunNodes) -> Mapping[str, NodeRun]:
    return {node.node_id: node for node in found.nodes}


def in_order(found: RunNodes) -> Iterator[NodeRun]:
    """As the dag has them, items after the node that they belong to."""
    places = {node.id: place for place, node in enumerate(found.snapshot.dag.nodes)}
    yield from sorted(found.nodes, key=lambda node: (places[node_of_item(node.node_id)], node.execution.id))


def status_name(status: ExecutionStatus, *, tried: bool, deferred: bool) -> str:
    """One that has been tried, and waits to be tried again, is RETRYING whatever it waits for; one whose work it is to wait
    is RUNNING."""
    if status is _S.SCHEDULED and deferred:
        return JOBCHAIN_NODE_NAMES[_S.RUNNING]
    if status in _WAITS_AGAIN and tried:
        return JOBCHAIN_NODE_NAMES[_S.RETRYING]
    return JOBCHAIN_NODE_NAMES[status]


def node_status(execution: Execution | NodeBrief) -> str:
    return status_name(execution.status, tried=execution.attempt > 0, deferred=execution.reason == DEFERRED)


def state_shown(node: NodeRun) -> dict[str, Any]:
    return state_of(node.execution)


def state_of(execution: Execution | NodeBrief) -> dict[str, Any]:
    begun = None if execution.status is _S.SKIPPED else execution.started_at
    return {
        "status": node_status(execution),
        "attempt": execution.attempt,
        "lastError": execution.error,
        "startedAt": rfc3339_or_none(begun),
        "endedAt": rfc3339_or_none(execution.ended_at),
    }


def node_shown(node: NodeRun) -> dict[str, Any]:
    """A node of a run; `parentNodeId` is that of an item, `childRunId` that of a node that is a workflow."""
    return {
        "nodeId": node.node_id,
        **state_shown(node),
        "reason": node.execution.reason,
        "readyAt": rfc3339_or_none(node.execution.ready_at),
        "deadlineAt": rfc3339_or_none(node.execution.deadline_at),
        "artifact": node.execution.output,
        "checkpoint": node.checkpoint,
        "parentNodeId": node_of_item(node.node_id) if node.parent_id is not None else None,
        "childRunId": node.child_run,
    }


def node_row(node: NodeRun) -> dict[str, Any]:
    """Document 000's row: with `artifactJson`, which is a text."""
    artifact = node.execution.output
    text = None if artifact is None else orjson.dumps(artifact).decode()
    return {**node_shown(node), "artifactJson": text}


def node_detail(node: NodeRun, attempts: Sequence[Attempt]) -> dict[str, Any]:
    return {**node_row(node), "attempts": [attempt_shown(each) for each in attempts]}


def attempt_shown(attempt: Attempt) -> dict[str, Any]:
    evidence = attempt.evidence
    return {
        "attempt": attempt.number,
        "epoch": attempt.epoch,
        "owner": attempt.owner,
        "status": attempt.status.value,
        "error": attempt.error,
        "startedAt": rfc3339(attempt.started_at),
        "endedAt": rfc3339(attempt.ended_at),
        "request": dict(evidence.request),
        "requestBody": evidence.request_body,
        "responseCode": evidence.response_code,
        "responseHeaders": dict(evidence.response_headers),
        "responseBody": evidence.response_body,
    }


def ordered_shown(run: str, node: NodeRun) -> dict[str, Any]:
    """Document 000's NodeActionResponse."""
    execution = node.execution
    return {"runId": run, "nodeId": node.node_id, "status": node_status(execution), "attempt": execution.attempt}


def retried_shown(run: str, node: NodeRun) -> dict[str, Any]:
    """What the order has put it into, however far it has come since: the attempt that is to be, or is under way."""
    execution = node.execution
    waits = execution.status is _S.PENDING
    return {
        "runId": run,
        "nodeId": node.node_id,
        "status": JOBCHAIN_NODE_NAMES[_S.PENDING if waits else _S.RETRYING],
        "attempt": execution.attempt + (execution.status in _NOT_BEGUN),
    }
