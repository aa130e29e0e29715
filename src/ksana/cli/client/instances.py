"""`ksana instances`."""

from typing import Annotated

from cyclopts import Parameter

from ksana.cli.client.server import LOCAL, Server
from ksana.cli.client.showing import Column

_INSTANCES: list[Column] = [
    ("INSTANCE", "instanceId"),
    ("NAME", "name"),
    ("STATUS", "status"),
    ("LEADS", "leads"),
    ("ROLES", "roles"),
    ("QUEUES", "queues"),
    ("RUNNING", "running"),
    ("PLACES", "places"),
    ("VERSION", "version"),
    ("HEARTBEAT", "heartbeatAt"),
]


def instances_(
    *,
    status: Annotated[str | None, Parameter(name="--status", help="ALIVE, LEFT or DEAD.")] = None,
    server: Server = LOCAL,
) -> int:
    """List the instances of Ksana, and who leads."""
    return server.list_items("instances", _INSTANCES, {"status": status})
