"""Schedules have no names: without an id, a document means the one that says the same, or a further one."""

from collections.abc import Sequence
from typing import Any

from ksana.cli.client.applying import UNCHANGED, Applied, Kind, change, create
from ksana.cli.client.documents import text_of
from ksana.cli.client.server import Server
from ksana.cli.client.shapes import SCHEDULES

SCHEDULE = Kind("schedules", "schedule", "id", "version", SCHEDULES)
_OWNERS = ("jobId", "workflowId")
Document = dict[str, Any]


def apply_schedule(server: Server, wanted: Document) -> Applied:
    """To the schedule whose id the document says; without one, it is created unless its owner has the same. InvalidInput,
    Refusal."""
    key = text_of(wanted, SCHEDULE.key)
    if key is not None:
        return change(server, SCHEDULE, key, wanted)
    return create_unless_same(server, wanted, schedules_of(server, wanted))


def schedules_of(server: Server, wanted: Document) -> list[Document]:
    """Those of the job or workflow that a document names; none if it does not name one, which is refused when it is sent.
    Refusal."""
    owner = {name: wanted[name] for name in _OWNERS if isinstance(wanted.get(name), str | int)}
    return list(server.every_item("schedules list", owner, size="pageSize")) if len(owner) == 1 else []


def create_unless_same(server: Server, wanted: Document, existing: Sequence[Document]) -> Applied:
    """Refusal."""
    found = _same(server, wanted, existing) if existing else None
    if found is None:
        return create(server, SCHEDULE, wanted)
    return Applied(server.ask("schedules show", {"schedule": str(found["id"])}), UNCHANGED)


def _same(server: Server, wanted: Document, existing: Sequence[Document]) -> Document | None:
    from ksana.cli.client.sameness import is_same  # noqa: PLC0415 - only those whose owner has schedules need it

    workflow = wanted.get("workflowId")
    schema = None
    if workflow is not None:
        schema = server.ask("workflows show", {"workflow": str(workflow)}).part("dag", dict).get("paramsSchema")
    return next((each for each in existing if is_same(wanted, each, schema)), None)
