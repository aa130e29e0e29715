"""What went wrong, in document 001's codes (§1)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ksana.api.errors import Problem
from ksana.domain.errors import IdTaken, JobInUse, KsanaError, NameTaken, NotFound, VersionMismatch, WorkflowDisabled

CODES: Mapping[tuple[str, str], str] = {
    (NotFound.code, "job"): "JOB_NOT_FOUND",
    (NotFound.code, "workflow"): "WORKFLOW_NOT_FOUND",
    (NotFound.code, "run"): "RUN_NOT_FOUND",
    (NotFound.code, "node"): "NODE_NOT_FOUND",
    (NameTaken.code, "job"): "JOB_NAME_CONFLICT",
    (NameTaken.code, "workflow"): "WORKFLOW_NAME_CONFLICT",
    (VersionMismatch.code, "workflow"): "WORKFLOW_VERSION_CONFLICT",
}
"""By the domain's code and the kind of thing that it is about; any other code is shown as it is."""

STATUSES: Mapping[str, int] = {WorkflowDisabled.code: 400}
"""Where document 001's is not that of the error's kind."""

IDS: Mapping[str, str] = {"job": "jobId", "workflow": "workflowId", "run": "runId", "node": "nodeId"}
"""What the id of each kind is called."""

KINDS: Mapping[str, str] = {JobInUse.code: "job"}
"""Of what kind the `id` is where the details do not say it."""


def translate(problem: Problem) -> Problem:
    """The same problem in this contract's words."""
    if problem.status == 500:
        return replace(problem, code=KsanaError.code)
    kind = str(problem.details.get("kind") or KINDS.get(problem.code))
    if kind not in IDS:
        return _with_status(problem)
    code = CODES.get((problem.code, kind), problem.code)
    return _with_status(replace(problem, code=code, details=_details(problem, kind)))


def _with_status(problem: Problem) -> Problem:
    return replace(problem, status=STATUSES.get(problem.code, problem.status))


def _details(problem: Problem, kind: str) -> dict[str, Any]:
    """Without `kind`, which the code tells; ids are texts here."""
    details = {name: value for name, value in problem.details.items() if name not in {"kind", "id"}}
    if "id" in problem.details:
        details[IDS[kind]] = str(problem.details["id"])
    if problem.code == IdTaken.code:
        details["field"] = IDS[kind]
    return details
