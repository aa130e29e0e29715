"""`ksana failures`."""

from typing import Annotated

from cyclopts import Parameter

from ksana.cli.client.flags import Limit, Reason, said
from ksana.cli.client.server import LOCAL, Server
from ksana.cli.client.showing import Column
from ksana.domain.errors import InvalidInput

_FAILURES: list[Column] = [
    ("KIND", "target.kind"),
    ("ID", "target.id"),
    ("NAME", "target.name"),
    ("COUNT", "count"),
    ("LAST", "lastAt"),
    ("RUN", "lastRunId"),
    ("STATUS", "status"),
    ("ERROR", "error"),
]


def list_(*, limit: Limit = 50, server: Server = LOCAL) -> int:
    """List what failed and nobody has acknowledged, by job, workflow and plan."""
    return server.list_items("failures list", _FAILURES, {"size": limit})


def acknowledge_(
    *,
    job: Annotated[str | None, Parameter(name="--job", help="The failures of this job.")] = None,
    workflow: Annotated[str | None, Parameter(name="--workflow", help="Those of this workflow.")] = None,
    plan: Annotated[str | None, Parameter(name="--plan", help="Those of this plan.")] = None,
    everything: Annotated[bool, Parameter(name="--all", negative="", help="All there are.")] = False,
    until: Annotated[
        str | None,
        Parameter(name="--until", help="Of what ended until then, as 2026-01-31T12:00:00Z; now if not given."),
    ] = None,
    reason: Reason = None,
    server: Server = LOCAL,
) -> int:
    """Say that failures were seen: of one job, workflow or plan, or all of them."""
    named = {"job": job, "workflow": workflow, "plan": plan}
    targets = [{"kind": kind, "id": value} for kind, value in named.items() if value is not None]
    if len(targets) + everything != 1:
        raise InvalidInput("--job", "say one of --job, --workflow, --plan and --all")
    which = {"all": True} if everything else {"target": targets[0]}
    return server.order("failures acknowledge", {}, body={**which, **said(until=until, reason=reason)})
