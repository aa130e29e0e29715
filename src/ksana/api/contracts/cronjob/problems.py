"""What went wrong, in document 003's codes (§9.5, §13) and with its names of fields."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ksana.api.contracts.cronjob.names import shown
from ksana.api.errors import Problem
from ksana.domain.errors import Conflict, InvalidInput

CODES: Mapping[str, str] = {"VALIDATION_ERROR": "INVALID_ARGUMENT", "JSON_PARSE_ERROR": "INVALID_JSON"}


class CallbackStale(Conflict):
    """A report on an attempt that is no longer the one waited for, of a run that has not ended."""

    code = "CALLBACK_STALE"


def translate(problem: Problem) -> Problem:
    """The same problem in this contract's words."""
    if problem.status == 500:
        return replace(problem, code="INTERNAL")
    problem = _fields_renamed(_kind_renamed(problem))
    return replace(problem, code=CODES.get(problem.code, problem.code))


def _kind_renamed(problem: Problem) -> Problem:
    """A job is a task here."""
    details: dict[str, Any] = dict(problem.details)
    if details.get("kind") == "job":
        details["kind"] = "task"
    named = problem.status in {404, 409} and problem.message.startswith("job ")
    message = f"task {problem.message.removeprefix('job ')}" if named else problem.message
    return replace(problem, details=details, message=message)


def _fields_renamed(problem: Problem) -> Problem:
    """What the domain refused names its own fields; what the shapes refused (`errors`) has this contract's already."""
    field = problem.details.get("field")
    if problem.code != InvalidInput.code or not isinstance(field, str) or "errors" in problem.details:
        return problem
    name = shown(field)
    message = problem.message
    if message.startswith(f"{field}: "):
        message = f"{name}: {message.removeprefix(f'{field}: ')}"
    return replace(problem, message=message, details={**problem.details, "field": name})
