"""The flags that the client's commands share, and how what they are given is read."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter, validators

from ksana.domain.errors import InvalidInput

_ANYTHING = Parameter(allow_leading_hyphen=True)
_AT_LEAST_ONE = Parameter(validator=validators.Number(gte=1))
_RFC3339 = "as 2026-01-31T12:00:00Z"
Reason = Annotated[str | None, _ANYTHING, Parameter(name="--reason", help="Why; it is kept with the order.")]
Limit = Annotated[int, _AT_LEAST_ONE, Parameter(name="--limit", help="How many to show.")]
Page = Annotated[int, _AT_LEAST_ONE, Parameter(name="--page", help="Which page of so many.")]
Count = Annotated[int, _AT_LEAST_ONE, Parameter(name="--count", help="How many instants.")]
Keyword = Annotated[str | None, Parameter(name="--keyword", help="Those with this in their name.")]
Enabled = Annotated[
    bool | None, Parameter(name="--enabled", negative="--disabled", help="Only those that are, or are not.")
]
Wait = Annotated[bool, Parameter(name="--wait", negative="", help="Until it has ended; exit 1 unless it succeeded.")]
FromStart = Annotated[
    bool, Parameter(name="--from-start", negative="", help="From the first stage, not from the checkpoint.")
]
Plan = Annotated[str | None, Parameter(name="--plan", help="The task in this plan; else the active or the latest one.")]
Statuses = Annotated[str | None, Parameter(name="--status", help="Names of states, separated by commas.")]
Json = Annotated[str | None, _ANYTHING]
File = Annotated[str, _ANYTHING]
"""`-` is standard input."""


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Which:
    """Which runs."""

    status: Statuses = None
    kind: Annotated[str | None, Parameter(name="--kind", help="job or workflow.")] = None
    job: Annotated[str | None, Parameter(name="--job", help="Runs of this job.")] = None
    workflow: Annotated[str | None, Parameter(name="--workflow", help="Runs of this workflow.")] = None
    tenant: Annotated[str | None, Parameter(name="--tenant", help="Runs that are this tenant's tasks.")] = None
    trigger: Annotated[str | None, Parameter(name="--trigger", help="schedule, manual, workflow or plan.")] = None
    since: Annotated[str | None, Parameter(name="--from", help=f"Made then or later, {_RFC3339}.")] = None
    until: Annotated[str | None, Parameter(name="--to", help=f"Made before then, {_RFC3339}.")] = None

    def query(self) -> dict[str, str | int | bool | None]:
        """As the API names it."""
        return {
            "status": self.status,
            "kind": self.kind,
            "jobId": self.job,
            "workflowId": self.workflow,
            "tenantId": self.tenant,
            "trigger": self.trigger,
            "from": self.since,
            "to": self.until,
        }

    def filter(self) -> dict[str, Any]:
        """As the body of an order names it; empty if nothing was said."""
        said: dict[str, Any] = {name: value for name, value in self.query().items() if value is not None}
        if self.status is not None:
            said["status"] = [name.strip() for name in self.status.split(",") if name.strip()]
        return said


ANY = Which()


def said(**given: Any) -> dict[str, Any]:
    """A body of what was given."""
    return {name: value for name, value in given.items() if value is not None}


def read_json(text: str | None, flag: str) -> Any:
    """What a flag says: JSON, or `@FILE` that holds it (`@-`: standard input). InvalidInput."""
    if text is None:
        return None
    if text.startswith("@"):
        text = read_text(text[1:], flag)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(flag, f"is not JSON: {error}") from None


def read_text(name: str, what: str) -> str:
    """A file, or standard input for `-`. InvalidInput."""
    try:
        return sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:  # ValueError: not UTF-8, or a name that no file has
        raise InvalidInput(what, f"{name!r} cannot be read: {getattr(error, 'strerror', None) or error}") from None
