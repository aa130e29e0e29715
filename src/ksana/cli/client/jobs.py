"""`ksana jobs`."""

from typing import Annotated

from cyclopts import Parameter

from ksana.cli.client.applying import Kind, apply_named, tell_applied
from ksana.cli.client.documents import read_document
from ksana.cli.client.flags import Enabled, File, Json, Keyword, Limit, Page, Reason, Wait, read_json, said
from ksana.cli.client.job_schedules import set_schedules, taken_schedules, tell_with_schedules, try_schedules
from ksana.cli.client.server import LOCAL, Server
from ksana.cli.client.shapes import JOBS, ONE_JOB
from ksana.cli.client.waiting import wait_for

_JOB = Kind("jobs", "job", "jobId", "updatedAt", ONE_JOB)


def list_(
    *,
    keyword: Keyword = None,
    type_: Annotated[str | None, Parameter(name="--type", help="Those of this type, as http.")] = None,
    enabled: Enabled = None,
    limit: Limit = 50,
    page: Page = 1,
    server: Server = LOCAL,
) -> int:
    """List jobs, with how their last run ended and when the next is due."""
    asked = {"keyword": keyword, "type": type_, "enabled": enabled, "size": limit, "page": page, "include": "runs"}
    return server.list_items("jobs list", JOBS, asked)


def show_(job: str, /, *, server: Server = LOCAL) -> int:
    """Show a job."""
    return server.show_one("jobs show", {"job": job})


def run_(
    job: str,
    /,
    *,
    given: Annotated[Json, Parameter(name="--input", help="In place of the usual input: JSON, or @FILE.")] = None,
    wait: Wait = False,
    reason: Reason = None,
    server: Server = LOCAL,
) -> int:
    """Run a job now, whatever its schedules say, and print the run's id."""
    answer = server.ask("jobs run", {"job": job}, body=said(input=read_json(given, "--input"), reason=reason))
    return wait_for(server, answer.part("runId", str)) if wait else server.tell_one(answer)


def enable_(job: str, /, *, server: Server = LOCAL) -> int:
    """Let a job run: its schedules go on, and workflows may name it."""
    return server.order("jobs enable", {"job": job}, columns=ONE_JOB)


def disable_(job: str, /, *, server: Server = LOCAL) -> int:
    """Hold a job's schedules, and keep workflows from naming it."""
    return server.order("jobs disable", {"job": job}, columns=ONE_JOB)


def apply_(file: File, /, *, server: Server = LOCAL) -> int:
    """Make a job what a file describes: `jobId`, or `name`, says which; if none has that name, it is created. With `schedules`, a
    list, these are its schedules from then on. FILE is YAML or JSON, `-` standard input."""
    wanted = read_document(file)
    schedules = taken_schedules(wanted)
    if schedules is None:
        return tell_applied(server, _JOB, [apply_named(server, _JOB, wanted)])
    try_schedules(server, schedules)
    job = apply_named(server, _JOB, wanted)
    return tell_with_schedules(server, _JOB, job, set_schedules(server, job.answer.part("jobId", str), schedules))


def delete_(job: str, /, *, server: Server = LOCAL) -> int:
    """Delete a job and its schedules."""
    return server.order("jobs delete", {"job": job})
