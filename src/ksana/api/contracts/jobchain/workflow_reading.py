"""From document 001's bodies of workflows to what the commands take."""

from collections.abc import Mapping
from typing import Any

from ksana.api.contracts.jobchain.workflow_models import StartBody, ValidateStored, WorkflowBody, WorkflowChange
from ksana.api.contracts.values import as_json, trace_of
from ksana.domain.errors import InvalidDag, InvalidInput
from ksana.domain.workflow import Workflow
from ksana.engine.commands import StartRequest, WorkflowDraft, WorkflowEdit

FIELDS: Mapping[str, str] = {"id": "workflowId", "idempotency_key": "idempotencyKey", "json": "dag"}
"""This contract's names for what the commands find wrong."""


def read_workflow(body: WorkflowBody) -> WorkflowDraft:
    """A new workflow. InvalidInput."""
    return WorkflowDraft(body.name, keepable(body.dag), body.description or "", body.enabled, body.workflow_id)


def read_edit(body: WorkflowChange, workflow: Workflow) -> WorkflowEdit:
    """What this workflow becomes. InvalidInput."""
    given = body.model_fields_set
    if "workflow_id" in given and body.workflow_id != workflow.key:
        raise InvalidInput("workflowId", "cannot be changed")
    return WorkflowEdit(
        name=body.name if "name" in given else None,
        dag=keepable(body.dag) if "dag" in given else None,
        description=body.description or "" if "description" in given else None,
        enabled=body.enabled if "enabled" in given else None,
        expected_version=body.version,
    )


def keepable(dag: Any) -> Any:
    """A dag that can be kept as it is. InvalidDag."""
    if dag is None:
        raise InvalidDag("dag", "must be an object with nodes")
    try:
        as_json(dag, field="dag")
    except InvalidInput as error:
        raise InvalidDag(error.field, error.reason) from error
    return dag


def dag_to_validate(body: ValidateStored, workflow: Workflow) -> Any:
    """The dag that is given or, if none is, the workflow's own."""
    return keepable(body.dag) if "dag" in body.model_fields_set else workflow.spec.dag.document


def read_start(body: StartBody, idempotency_key: str | None, traceparent: str | None) -> StartRequest:
    """The key may stand in the body or in the header, but not two of them. InvalidInput."""
    keys = {key for key in (body.idempotency_key, idempotency_key) if key is not None}
    if len(keys) > 1:
        raise InvalidInput("idempotencyKey", "is another than that of the header Idempotency-Key")
    params = body.params or {}
    as_json(params, field="params")
    return StartRequest(body.run_id, next(iter(keys), None), params, trace_of(traceparent))
