"""`ksana nodes`."""

from typing import Annotated

from cyclopts import Parameter

from ksana.cli.client.flags import Json, Reason, read_json, said
from ksana.cli.client.server import LOCAL, Server


def retry_(run: str, node: str, /, *, reason: Reason = None, server: Server = LOCAL) -> int:
    """Run a node once more."""
    return server.order("nodes retry", {"run": run, "node": node}, body=said(reason=reason))


def complete_(
    run: str,
    node: str,
    /,
    *,
    output: Annotated[Json, Parameter(name="--output", help="What it made, for other nodes: JSON, or @FILE.")] = None,
    reason: Reason = None,
    server: Server = LOCAL,
) -> int:
    """Count a node as succeeded, with this output."""
    made = {} if output is None else {"artifact": read_json(output, "--output")}  # null is an output, too
    body = made | said(reason=reason)
    return server.order("nodes complete", {"run": run, "node": node}, body=body)


def skip_(run: str, node: str, /, *, reason: Reason = None, server: Server = LOCAL) -> int:
    """Leave a node out."""
    return server.order("nodes skip", {"run": run, "node": node}, body=said(reason=reason))
