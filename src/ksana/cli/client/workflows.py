"""`ksana workflows`."""

from typing import Annotated

from cyclopts import Parameter

from ksana.cli.client.applying import Kind, apply_named, tell_applied
from ksana.cli.client.documents import read_document
from ksana.cli.client.flags import Enabled, File, Json, Keyword, Limit, Page, Wait, read_json, said
from ksana.cli.client.server import LOCAL, Server
from ksana.cli.client.shapes import WORKFLOWS
from ksana.cli.client.showing import Column, print_record
from ksana.cli.client.waiting import wait_for

_NODES: list[Column] = [("NODE", "id"), ("JOB", "jobId"), ("TYPE", "type"), ("AFTER", "dependsOn")]
_WORKFLOW = Kind("workflows", "workflow", "workflowId", "updatedAt", WORKFLOWS, own_ids=True)


def list_(
    *, keyword: Keyword = None, enabled: Enabled = None, limit: Limit = 50, page: Page = 1, server: Server = LOCAL
) -> int:
    """List workflows."""
    asked = {"keyword": keyword, "enabled": enabled, "size": limit, "page": page}
    return server.list_items("workflows list", WORKFLOWS, asked)


def show_(workflow: str, /, *, server: Server = LOCAL) -> int:
    """Show a workflow and its nodes."""
    answer = server.ask("workflows show", {"workflow": workflow})
    if server.as_json:
        return server.print_raw(answer)
    found = answer.document
    print_record({**found, "nodes": answer.part("dag", dict).get("nodes")}, {"nodes": _NODES}, without=("dag",))
    return 0


def start_(
    workflow: str,
    /,
    *,
    params: Annotated[Json, Parameter(name="--params", help="What the run is given: JSON, or @FILE.")] = None,
    run_id: Annotated[str | None, Parameter(name="--run-id", help="How the run is to be known.")] = None,
    wait: Wait = False,
    server: Server = LOCAL,
) -> int:
    """Start a run of a workflow, and print its id."""
    body = said(params=read_json(params, "--params"), runId=run_id)
    answer = server.ask("workflows start", {"workflow": workflow}, body=body)
    return wait_for(server, answer.part("runId", str)) if wait else server.tell_one(answer)


def enable_(workflow: str, /, *, server: Server = LOCAL) -> int:
    """Let a workflow be started."""
    return server.order("workflows enable", {"workflow": workflow}, columns=WORKFLOWS)


def disable_(workflow: str, /, *, server: Server = LOCAL) -> int:
    """Keep a workflow from being started."""
    return server.order("workflows disable", {"workflow": workflow}, columns=WORKFLOWS)


def validate_(file: File, /, *, server: Server = LOCAL) -> int:
    """Check a workflow's graph, without keeping it. FILE is YAML or JSON, `-` standard input."""
    return server.order("workflows validate", {}, body=read_document(file))


def apply_(file: File, /, *, server: Server = LOCAL) -> int:
    """Make a workflow what a file describes: `workflowId`, or `name`, says which; if there is none, it is created. FILE is YAML
    or JSON, `-` standard input."""
    return tell_applied(server, _WORKFLOW, [apply_named(server, _WORKFLOW, read_document(file))])


def delete_(workflow: str, /, *, server: Server = LOCAL) -> int:
    """Delete a workflow."""
    return server.order("workflows delete", {"workflow": workflow})
