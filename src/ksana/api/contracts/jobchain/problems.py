"""What went wrong, in document 001's codes (§1); on `/chains` with document 000's statuses and words (§B0)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ksana.api.contracts.wording import Wording
from ksana.api.errors import Problem
from ksana.domain.errors import (
    InvalidDag,
    JobInUse,
    NameTaken,
    NotFound,
    VersionMismatch,
    WorkflowDisabled,
)

CODES: Mapping[tuple[str, str], str] = {
    (NotFound.code, "job"): "JOB_NOT_FOUND",
    (NotFound.code, "workflow"): "WORKFLOW_NOT_FOUND",
    (NotFound.code, "run"): "RUN_NOT_FOUND",
    (NotFound.code, "node"): "NODE_NOT_FOUND",
    (NameTaken.code, "job"): "JOB_NAME_CONFLICT",
    (NameTaken.code, "workflow"): "WORKFLOW_NAME_CONFLICT",
    (VersionMismatch.code, "workflow"): "WORKFLOW_VERSION_CONFLICT",
    (NotFound.code, "version"): "VERSION_NOT_FOUND",
}

STATUSES: Mapping[str, int] = {WorkflowDisabled.code: 400}

IDS: Mapping[str, str] = {
    "job": "jobId",
    "workflow": "workflowId",
    "run": "runId",
    "node": "nodeId",
    "version": "version",
}

KINDS: Mapping[str, str] = {JobInUse.code: "job"}


translate = Wording(CODES, IDS, KINDS, STATUSES).translate
"""The same problem in this contract's words."""


# Document 000 -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ChainRule:
    """How `/chains` shows one of document 001's codes; `message` replaces its own."""

    code: str
    status: int
    message: str | None = None


CHAIN_RULES: Mapping[str, ChainRule] = {
    "WORKFLOW_NOT_FOUND": ChainRule("CHAIN_NOT_FOUND", 400),
    "WORKFLOW_NAME_CONFLICT": ChainRule("CHAIN_NAME_CONFLICT", 400),
    "WORKFLOW_VERSION_CONFLICT": ChainRule("VERSION_CONFLICT", 409, "chain version conflict or not found"),
    WorkflowDisabled.code: ChainRule("CHAIN_DISABLED", 409, "chain is disabled"),
    InvalidDag.code: ChainRule("CHAIN_DAG_INVALID", 400),
}
_NO_NODES = "dag.nodes: "
"""Document 000 says only `dag must have nodes`."""


def translate_chain(problem: Problem) -> Problem:
    """The same problem in document 000's words, its message as `error` beside the envelope."""
    problem = translate(problem)
    rule = CHAIN_RULES.get(problem.code, ChainRule(problem.code, problem.status))
    message = rule.message or _chain_message(problem.message)
    details = {"chainId" if name == "workflowId" else name: value for name, value in problem.details.items()}
    extra = {**problem.extra, "error": message}
    return replace(problem, code=rule.code, status=rule.status, message=message, details=details, extra=extra)


def _chain_message(message: str) -> str:
    if message.startswith("workflow "):
        return f"chain {message.removeprefix('workflow ')}"
    return message.removeprefix(_NO_NODES)
