"""`ksana schedules`."""

from typing import Annotated

from cyclopts import Parameter

from ksana.cli.client.applying import tell_applied
from ksana.cli.client.applying_schedules import SCHEDULE, apply_schedule
from ksana.cli.client.documents import read_document
from ksana.cli.client.flags import Count, File, Limit, Page, said
from ksana.cli.client.server import LOCAL, Answer, Server
from ksana.cli.client.shapes import SCHEDULES
from ksana.cli.client.showing import print_record, print_table
from ksana.domain.errors import InvalidInput


def list_(
    *,
    job: Annotated[str | None, Parameter(name="--job", help="Those of this job.")] = None,
    workflow: Annotated[str | None, Parameter(name="--workflow", help="Those of this workflow.")] = None,
    limit: Limit = 50,
    page: Page = 1,
    server: Server = LOCAL,
) -> int:
    """List schedules."""
    asked = {"jobId": job, "workflowId": workflow, "pageSize": limit, "page": page}
    return server.list_items("schedules list", SCHEDULES, asked)


def show_(schedule: str, /, *, server: Server = LOCAL) -> int:
    """Show a schedule."""
    return server.show_one("schedules show", {"schedule": schedule})


def next_(schedule: str, /, *, count: Count = 5, server: Server = LOCAL) -> int:
    """Print when a schedule is going to fire."""
    return _print_instants(server, server.ask("schedules next", {"schedule": schedule}, {"count": count}))


def preview_(
    *,
    cron: Annotated[str | None, Parameter(name="--cron", help="As '0 9 * * MON-FRI'.")] = None,
    every: Annotated[str | None, Parameter(name="--every", help="A duration, as 10m.")] = None,
    at: Annotated[str | None, Parameter(name="--at", help="Once, as 2026-01-31T12:00:00Z.")] = None,
    timezone: Annotated[str | None, Parameter(name="--timezone", help="As Europe/Zurich.")] = None,
    count: Count = 5,
    server: Server = LOCAL,
) -> int:
    """Print when a schedule would fire, without making one. It is one of --cron, --every and --at."""
    kinds = {"cron": cron, "every": every, "once": at}
    kind = [name for name, value in kinds.items() if value is not None]
    if len(kind) != 1:
        raise InvalidInput("--cron", "say one of --cron, --every and --at")
    body = said(kind=kind[0], cron=cron, every=every, runAt=at, timezone=timezone, count=count)
    return _print_instants(server, server.ask("schedules preview", body=body))


def apply_(file: File, /, *, server: Server = LOCAL) -> int:
    """Change the schedule whose `id` a file has; without one, create it for its `jobId` or `workflowId`, unless that has the same
    already. FILE is YAML or JSON, `-` standard input."""
    return tell_applied(server, SCHEDULE, [apply_schedule(server, read_document(file))])


def pause_(schedule: str, /, *, server: Server = LOCAL) -> int:
    """Hold a schedule."""
    return server.order("schedules pause", {"schedule": schedule}, columns=SCHEDULES)


def resume_(schedule: str, /, *, server: Server = LOCAL) -> int:
    """Let a schedule go on."""
    return server.order("schedules resume", {"schedule": schedule}, columns=SCHEDULES)


def delete_(schedule: str, /, *, server: Server = LOCAL) -> int:
    """Delete a schedule."""
    return server.order("schedules delete", {"schedule": schedule})


def _print_instants(server: Server, answer: Answer) -> int:
    if server.as_json:
        return server.print_raw(answer)
    print_record(answer.document, without=("instants",))
    print_table(answer.part("instants", list), [("PLANNED", "planned"), ("LOCAL", "local"), ("FIRES", "firesAt")])
    return 0
