"""What goes wrong anywhere in document 001's contract, in its codes and statuses (§1)."""

from pathlib import Path
from typing import Any

import pytest

from ksana.api.contracts.jobchain.problems import CODES, translate
from ksana.api.errors import internal_problem, problem_of
from ksana.domain.errors import (
    DisabledJob,
    IdTaken,
    InvalidDag,
    InvalidInput,
    JobInUse,
    KsanaError,
    NameTaken,
    NodeNotRetryable,
    NotFound,
    RunTerminal,
    StoreError,
    StoreUnavailable,
    UnknownJob,
    VersionMismatch,
    WorkflowDisabled,
)

PAGE = Path(__file__).parents[4] / "docs/reference/http.md"
VERSIONS = {"expected": 1, "actual": 2}

TOLD: list[tuple[KsanaError, int, str, dict[str, Any]]] = [
    (NotFound("job", 7), 404, "JOB_NOT_FOUND", {"jobId": "7"}),
    (NotFound("workflow", "w"), 404, "WORKFLOW_NOT_FOUND", {"workflowId": "w"}),
    (NotFound("run", 7), 404, "RUN_NOT_FOUND", {"runId": "7"}),
    (NotFound("node", "n1"), 404, "NODE_NOT_FOUND", {"nodeId": "n1"}),
    (NotFound("schedule", "s"), 404, "NOT_FOUND", {"kind": "schedule", "id": "s"}),
    (NameTaken("job", "a"), 409, "JOB_NAME_CONFLICT", {"field": "name", "name": "a"}),
    (NameTaken("workflow", "a"), 409, "WORKFLOW_NAME_CONFLICT", {"field": "name", "name": "a"}),
    (IdTaken("run", "r"), 409, "ID_CONFLICT", {"field": "runId", "runId": "r"}),
    (
        VersionMismatch("workflow", "w", expected=1, actual=2),
        409,
        "WORKFLOW_VERSION_CONFLICT",
        {"workflowId": "w", **VERSIONS},
    ),
    (VersionMismatch("job", 7, expected=1, actual=2), 409, "VERSION_CONFLICT", {"jobId": "7", **VERSIONS}),
    (JobInUse("j", ["a"]), 409, "JOB_IN_USE", {"jobId": "j", "workflows": ["a"]}),
    (WorkflowDisabled("w"), 400, "WORKFLOW_DISABLED", {"workflowId": "w"}),
    (InvalidDag("dag.nodes", "is empty"), 400, "WORKFLOW_DAG_INVALID", {"field": "dag.nodes"}),
    (UnknownJob("dag.nodes[0].jobId", "no"), 400, "JOB_NOT_FOUND", {"field": "dag.nodes[0].jobId"}),
    (DisabledJob("dag.nodes[0].jobId", "no"), 400, "JOB_DISABLED", {"field": "dag.nodes[0].jobId"}),
    (RunTerminal("r", "SUCCESS"), 409, "RUN_TERMINAL", {"runId": "r", "status": "SUCCESS"}),
    (
        NodeNotRetryable("r", "n", "RUNNING"),
        409,
        "NODE_NOT_RETRYABLE",
        {"runId": "r", "nodeId": "n", "status": "RUNNING"},
    ),
    (InvalidInput("name", "is blank"), 400, "VALIDATION_ERROR", {"field": "name"}),
    (StoreUnavailable("gone"), 503, "STORE_UNAVAILABLE", {}),
    (StoreError("broken"), 500, "INTERNAL_ERROR", {}),
]


@pytest.mark.parametrize(("error", "status", "code", "details"), TOLD, ids=[each[2] for each in TOLD])
def test_an_error_is_told_in_the_documents_words(
    error: KsanaError, status: int, code: str, details: dict[str, Any]
) -> None:
    problem = translate(problem_of(error))
    assert (problem.status, problem.code, dict(problem.details)) == (status, code, details)


def test_what_nobody_expected_is_an_internal_error() -> None:
    assert translate(internal_problem()).code == "INTERNAL_ERROR"


def test_the_page_names_every_code_of_the_contract() -> None:
    page = PAGE.read_text()
    assert [code for code in CODES.values() if f"`{code}`" not in page] == []
