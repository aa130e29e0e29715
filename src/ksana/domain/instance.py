"""Instances of Ksana and the leases they hold."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

HEARTBEAT = timedelta(seconds=5)
LEASE = timedelta(seconds=15)
"""An instance whose last heartbeat is older than this is dead: its work is taken over."""


class InstanceStatus(StrEnum):
    ALIVE = "ALIVE"
    LEFT = "LEFT"  # stopped cleanly
    DEAD = "DEAD"  # its heartbeat stopped; its epochs no longer count


@dataclass(frozen=True, slots=True)
class Instance:
    id: str
    name: str
    """Host and process id, for people."""
    version: str
    status: InstanceStatus
    started_at: datetime
    heartbeat_at: datetime
    expires_at: datetime
    roles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Lease:
    """A lock that is held until `expires_at`. `token` grows with every new holder, so that a late one can be told apart."""

    name: str
    owner: str
    token: int
    expires_at: datetime
