"""Instances of Ksana and the leases they hold."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

HEARTBEAT = timedelta(seconds=5)
LEASE = timedelta(seconds=15)
"""An instance whose last heartbeat is older than this is dead: its work is taken over."""


MARGIN = timedelta(seconds=3)
"""How long before its lease ends an instance that cannot renew it stops: others must not find it still working."""
MOST_LOSSES = 5
"""After how many attempts that ended with their instance an execution is given up: it may be what ends them."""
LEADER = "leader"
"""The lock that the leader holds; its token is the leader's term."""


class Role(StrEnum):
    """What an instance does."""

    API = "api"  # answers the contracts' paths
    SCHEDULER = "scheduler"  # turns planned instants into work, and may lead
    WORKER = "worker"  # does the work of its queues


ALL_ROLES = (Role.API, Role.SCHEDULER, Role.WORKER)


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
    queues: tuple[str, ...] = ()
    """Which its workers serve."""
    places: int = 0
    """How many executions its workers take at once."""
    address: str = ""
    """Where its API is."""


@dataclass(frozen=True, slots=True)
class Pulse:
    """What a heartbeat found: that the instance's lease was renewed, whether the leader's was, and what time it is."""

    leads: bool
    now: datetime
    """By the clock that leases follow."""
    read_at: float
    """When that was read, by this process's monotonic clock."""
    doubt: float
    """For how many seconds it may have been under way."""


@dataclass(frozen=True, slots=True)
class Lease:
    """A lock that is held until `expires_at`. `token` grows with every new holder, so that a late one can be told apart."""

    name: str
    owner: str
    token: int
    expires_at: datetime
