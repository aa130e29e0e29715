"""`ksana runs`."""

from collections.abc import Sequence
from typing import Annotated, Any

from cyclopts import Parameter

from ksana.cli.client.flags import ANY, Limit, Reason, Which, said
from ksana.cli.client.server import LOCAL, Server, more_of
from ksana.cli.client.shapes import RUNS, print_run
from ksana.cli.client.showing import print_record, write_stream
from ksana.cli.ending import FAILED, tell
from ksana.domain.errors import InvalidInput

Cursor = Annotated[str | None, Parameter(name="--cursor", help="Go on where a list, or an order to many, ended.")]
DryRun = Annotated[bool, Parameter(name="--dry-run", negative="", help="Only say what would become of it.")]


def list_(
    *,
    which: Which = ANY,
    sort: Annotated[str, Parameter(name="--sort", help="newest, longest or shortest first.")] = "newest",
    limit: Limit = 50,
    cursor: Cursor = None,
    server: Server = LOCAL,
) -> int:
    """List runs of jobs and workflows, the newest first."""
    return server.list_items("runs list", RUNS, {**which.query(), "sort": sort, "size": limit, "cursor": cursor})


def show_(run: str, /, *, server: Server = LOCAL) -> int:
    """Show a run, its attempts or nodes."""
    answer = server.ask("runs show", {"run": run})
    if server.as_json:
        return server.print_raw(answer)
    print_run(answer.document)
    return 0


def logs_(
    run: str,
    /,
    *,
    node: Annotated[str | None, Parameter(name="--node", help="The node of a workflow's run.")] = None,
    follow: Annotated[bool, Parameter(name="--follow", negative="", help="Go on until it has ended.")] = False,
    attempt: Annotated[int | None, Parameter(name="--attempt", help="Of this attempt only.")] = None,
    server: Server = LOCAL,
) -> int:
    """Print what a run, or a node of it, has written."""
    if node is None and not run.isdecimal():
        raise InvalidInput("--node", f"say which node of the workflow's run: `ksana runs show {run}` has them")
    key, ids = ("runs logs", {"run": run}) if node is None else ("runs logs --node", {"run": run, "node": node})
    if server.as_json:
        if follow:
            raise InvalidInput("--follow", "goes with text, not with --json")
        return server.print_raw(server.ask(key, ids, {"format": "json", "attempt": attempt}))
    # What is silent for long is no sign that the server has gone: a run may write nothing for hours.
    write_stream(server.stream(key, ids, {"follow": follow or None, "attempt": attempt}, "text/plain", silence=None))
    return 0


def explain_(run: str, /, *, server: Server = LOCAL) -> int:
    """Say why a job's run is not running yet."""
    return server.show_one("runs explain", {"run": run})


def retry_(
    *runs: str,
    which: Which = ANY,
    cursor: Cursor = None,
    dry_run: DryRun = False,
    reason: Reason = None,
    server: Server = LOCAL,
) -> int:
    """Run jobs once more with the same input, or all nodes of workflows' runs that failed: one or several runs, or all
    that match."""
    if len(runs) == 1 and not which.filter() and not dry_run:
        return server.order("runs retry", {"run": runs[0]}, body=said(reason=reason))
    return _order_many(server, "runs retry --many", _many(runs, which, cursor, dry_run=dry_run, reason=reason))


def cancel_(
    *runs: str,
    which: Which = ANY,
    cursor: Cursor = None,
    dry_run: DryRun = False,
    reason: Reason = None,
    server: Server = LOCAL,
) -> int:
    """Cancel runs that have not ended: one or several, or all that match. A workflow's run is stopped, with what runs."""
    return _order_many(server, "runs cancel", _many(runs, which, cursor, dry_run=dry_run, reason=reason))


def stop_(
    run: str,
    /,
    *,
    force: Annotated[bool, Parameter(name="--force", negative="", help="Break off the nodes that run.")] = False,
    reason: Reason = None,
    server: Server = LOCAL,
) -> int:
    """Begin no more nodes of a workflow's run."""
    return server.order("runs stop", {"run": run}, body=said(force=force, reason=reason))


def close_(run: str, /, *, reason: Reason = None, server: Server = LOCAL) -> int:
    """End a workflow's run for good."""
    return server.order("runs close", {"run": run}, body=said(reason=reason))


def resume_(run: str, /, *, reason: Reason = None, server: Server = LOCAL) -> int:
    """Go on with a workflow's run that was stopped."""
    return server.order("runs resume", {"run": run}, body=said(reason=reason))


def retry_failed_(run: str, /, *, reason: Reason = None, server: Server = LOCAL) -> int:
    """Retry all nodes of a workflow's run that failed."""
    return server.order("runs retry-failed", {"run": run}, body=said(reason=reason))


def _many(
    runs: Sequence[str], which: Which, cursor: str | None, *, dry_run: bool, reason: str | None
) -> dict[str, Any]:
    """InvalidInput unless it is either ids or a filter."""
    chosen = which.filter()
    if bool(runs) == bool(chosen):
        raise InvalidInput("RUN", "name runs, or say which with flags as --status and --job; not both")
    which_ones = {"filter": chosen} if chosen else {"ids": list(runs)}
    return {**which_ones, **said(cursor=cursor, reason=reason), "dryRun": dry_run}


def _order_many(server: Server, key: str, body: dict[str, Any]) -> int:
    """Exit 1 if one of them was refused; each is told."""
    answer = server.ask(key, body=body)
    refused = answer.part("refused", list)
    if server.as_json:
        server.print_raw(answer)
    elif answer.part("possible", int) or not refused:
        print_record(answer.document, without=("refused", "next"))
        if more := more_of(answer.document):
            tell(more)
    for each in refused:
        tell(f"{each['message']} ({each['code']})")
    return FAILED if refused else 0
