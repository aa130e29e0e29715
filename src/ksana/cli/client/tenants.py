"""`ksana tenants`."""

from typing import Annotated

from cyclopts import Parameter

from ksana.cli.client.flags import FromStart, Plan, Reason, said
from ksana.cli.client.server import LOCAL, Server
from ksana.cli.client.shapes import TASKS
from ksana.cli.client.showing import Column

_STAGES: list[Column] = [
    ("STAGE", "name"),
    ("STATUS", "status"),
    ("ATTEMPTS", "attempts"),
    ("STARTED", "startedAt"),
    ("ENDED", "endedAt"),
    ("ERROR", "error"),
]


def show_(tenant: str, /, *, plan: Plan = None, server: Server = LOCAL) -> int:
    """Show a tenant's task and its stages."""
    return server.show_one("tenants show", {"tenant": tenant}, {"stages": _STAGES}, {"planId": plan})


def checkpoint_(tenant: str, /, *, plan: Plan = None, server: Server = LOCAL) -> int:
    """Show from where a tenant's task would go on."""
    return server.show_one("tenants checkpoint", {"tenant": tenant}, query={"planId": plan})


def remove_checkpoint_(
    tenant: str,
    /,
    *,
    plan: Plan = None,
    version: Annotated[int | None, Parameter(name="--version", help="Only if this is still its version.")] = None,
    server: Server = LOCAL,
) -> int:
    """Let a tenant's task that failed begin from its first stage."""
    return server.order("tenants remove-checkpoint", {"tenant": tenant}, {"planId": plan, "version": version})


def pause_(tenant: str, /, *, plan: Plan = None, reason: Reason = None, server: Server = LOCAL) -> int:
    """Hold a tenant's task at the next stage boundary."""
    return server.order("tenants pause", {"tenant": tenant}, {"planId": plan}, said(reason=reason), TASKS)


def resume_(tenant: str, /, *, plan: Plan = None, reason: Reason = None, server: Server = LOCAL) -> int:
    """Let a tenant's task go on."""
    return server.order("tenants resume", {"tenant": tenant}, {"planId": plan}, said(reason=reason), TASKS)


def cancel_(tenant: str, /, *, plan: Plan = None, reason: Reason = None, server: Server = LOCAL) -> int:
    """Cancel a tenant's task."""
    return server.order("tenants cancel", {"tenant": tenant}, {"planId": plan}, said(reason=reason), TASKS)


def retry_(
    tenant: str,
    /,
    *,
    plan: Plan = None,
    from_start: FromStart = False,
    reason: Reason = None,
    server: Server = LOCAL,
) -> int:
    """Retry a tenant's task, from its checkpoint or from the first stage."""
    body = said(fromCheckpoint=not from_start, reason=reason)
    return server.order("tenants retry", {"tenant": tenant}, {"planId": plan}, body, TASKS)
