"""`ksana plans`."""

from typing import Annotated

from cyclopts import Parameter

from ksana.cli.client.documents import read_document
from ksana.cli.client.flags import File, FromStart, Keyword, Limit, Page, Reason, Statuses, said
from ksana.cli.client.server import LOCAL, Server
from ksana.cli.client.shapes import PLANS
from ksana.cli.client.showing import Column

_WAVES: list[Column] = [
    ("WAVE", "wave"),
    ("STATUS", "status"),
    ("TENANTS", "tenants"),
    ("WAITING", "tasks.waiting"),
    ("RUNNING", "tasks.running"),
    ("COMPLETED", "tasks.completed"),
    ("FAILED", "tasks.failed"),
]


def list_(
    *, status: Statuses = None, keyword: Keyword = None, limit: Limit = 50, page: Page = 1, server: Server = LOCAL
) -> int:
    """List plans."""
    return server.list_items("plans list", PLANS, {"status": status, "keyword": keyword, "size": limit, "page": page})


def show_(plan: str, /, *, server: Server = LOCAL) -> int:
    """Show a plan and its waves."""
    return server.show_one("plans show", {"plan": plan}, {"waves": _WAVES})


def create_(file: File, /, *, server: Server = LOCAL) -> int:
    """Create the plan that a file describes; a `planId` that there is already is refused. FILE is YAML or JSON, `-` standard
    input."""
    return server.order("plans create", {}, body=read_document(file), columns=PLANS)


def start_(plan: str, /, *, reason: Reason = None, server: Server = LOCAL) -> int:
    """Start a plan."""
    return server.order("plans start", {"plan": plan}, body=said(reason=reason), columns=PLANS)


def pause_(
    plan: str,
    /,
    *,
    tasks: Annotated[bool, Parameter(name="--tasks", negative="", help="Hold those under way, too.")] = False,
    reason: Reason = None,
    server: Server = LOCAL,
) -> int:
    """Begin with no more tenants."""
    return server.order("plans pause", {"plan": plan}, body=said(tasks=tasks, reason=reason), columns=PLANS)


def resume_(
    plan: str,
    /,
    *,
    override: Annotated[
        bool, Parameter(name="--override", negative="", help="Although a gate or the failure budget says no.")
    ] = False,
    reason: Reason = None,
    server: Server = LOCAL,
) -> int:
    """Go on."""
    return server.order("plans resume", {"plan": plan}, body=said(override=override, reason=reason), columns=PLANS)


def cancel_(plan: str, /, *, reason: Reason = None, server: Server = LOCAL) -> int:
    """Cancel a plan and its tasks."""
    return server.order("plans cancel", {"plan": plan}, body=said(reason=reason), columns=PLANS)


def retry_failed_(plan: str, /, *, from_start: FromStart = False, reason: Reason = None, server: Server = LOCAL) -> int:
    """Retry all tenants that failed, from their checkpoints or from the first stage."""
    body = said(fromCheckpoint=not from_start, reason=reason)
    return server.order("plans retry-failed", {"plan": plan}, body=body, columns=[*PLANS, ("RETRIED", "retried")])
