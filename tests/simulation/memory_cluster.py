"""Instances, the work of those that died, and locks. All of it by the database's clock."""

from collections import Counter
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from ksana.domain.clock import EPOCH
from ksana.domain.execution import Execution
from ksana.domain.instance import Instance, InstanceStatus, Lease
from ksana.domain.job import RecoveryRule
from ksana.domain.states import AttemptStatus, ExecutionStatus
from ksana.store.requests import NewInstance, Recovered
from tests.simulation.memory_tables import Move, Tables, move, record_attempt

LOST = "its instance was lost while it ran"
A = InstanceStatus


def join(tables: Tables, new: NewInstance) -> Instance:
    now = tables.now()
    if not tables.shared:
        for other in [each for each in tables.instances.values() if each.status is A.ALIVE]:
            tables.instances[other.id] = replace(other, status=A.DEAD)
        tables.locks = {name: replace(lease, expires_at=EPOCH) for name, lease in tables.locks.items()}
    until, more = now + new.lease, (new.roles, new.queues, new.places, new.address)
    joined = Instance(new.id, new.name, new.version, A.ALIVE, now, now, until, *more)
    tables.instances[new.id] = joined
    return joined


@dataclass(frozen=True, slots=True)
class Beaten:
    """What a heartbeat found, without what only whoever asked knows: how long it took."""

    leads: bool
    now: datetime


def beat(
    tables: Tables, instance_id: str, lease: timedelta, leading: Lease | None, resigning: Lease | None
) -> Beaten | None:
    now, known = tables.now(), tables.instances.get(instance_id)
    if known is None or known.status is not A.ALIVE or known.expires_at <= now:
        return None
    tables.instances[instance_id] = replace(known, heartbeat_at=now, expires_at=now + lease)
    if resigning is not None:
        release_lock(tables, resigning)
    return Beaten(leading is not None and renew_lock(tables, leading, lease) is not None, now)


def leave(tables: Tables, instance_id: str) -> bool:
    known = tables.instances.get(instance_id)
    if known is None or known.status is not A.ALIVE:
        return False
    tables.instances[instance_id] = replace(known, status=A.LEFT, expires_at=tables.now())
    return True


def instances(tables: Tables) -> list[Instance]:
    by_id = sorted(tables.instances.values(), key=lambda each: each.id)
    return sorted(by_id, key=lambda each: each.started_at, reverse=True)


def holdings(tables: Tables) -> dict[str, int]:
    return dict(Counter(row.owner for row in tables.unended() if row.owner is not None))


def next_recovery_at(tables: Tables) -> datetime | None:
    if _orphans(tables):
        return EPOCH
    return min((each.expires_at for each in tables.instances.values() if each.status is A.ALIVE), default=None)


def recover(tables: Tables, now: datetime, limit: int, most_losses: int) -> Recovered:
    dead = _bury(tables)
    orphans = _orphans(tables)[:limit]
    for row in orphans:
        record_attempt(tables, row, AttemptStatus.LOST, now, LOST)
        tables.losses[row.id] += 1
    errors = {row.id: _given_up(tables, row, most_losses) for row in orphans}
    failed = [Move(row, ExecutionStatus.FAILED, now, error=errors[row.id]) for row in orphans if errors[row.id]]
    requeued = [
        Move(row, ExecutionStatus.SCHEDULED, now, ready_at=row.planned_for or row.created_at)
        for row in orphans
        if not errors[row.id]
    ]
    move(tables, [*failed, *requeued])
    return Recovered(dead, requeued=len(requeued), failed=len(failed))


def _orphans(tables: Tables) -> list[Execution]:
    return [row for row in tables.unended() if row.owner is not None and not alive(tables, row.owner)]


def _given_up(tables: Tables, row: Execution, most_losses: int) -> str | None:
    """Why it is not tried again; None: it is."""
    if tables.jobs[row.job_id or 0].spec.recovery is RecoveryRule.FAIL:
        return LOST
    lost = tables.losses[row.id]
    return f"{LOST}, {lost} times: it may be what ends them" if lost >= most_losses else None


def alive(tables: Tables, instance_id: str) -> bool:
    known = tables.instances.get(instance_id)
    return known is not None and known.status is A.ALIVE


def _bury(tables: Tables) -> tuple[str, ...]:
    now = tables.now()
    dead = sorted(each.id for each in tables.instances.values() if each.status is A.ALIVE and each.expires_at <= now)
    for instance_id in dead:
        tables.instances[instance_id] = replace(tables.instances[instance_id], status=A.DEAD)
    return tuple(dead)


# Locks ----------------------------------------------------------------------------------------------------------------


def acquire_lock(tables: Tables, name: str, owner: str, ttl: timedelta) -> Lease | None:
    known, until = tables.locks.get(name), tables.now() + ttl
    if known is None:
        tables.locks[name] = Lease(name, owner, 1, until)
    elif known.expires_at <= tables.now():
        tables.locks[name] = Lease(name, owner, known.token + 1, until)
    elif known.owner == owner:
        tables.locks[name] = replace(known, expires_at=until)
    else:
        return None
    return tables.locks[name]


def renew_lock(tables: Tables, lease: Lease, ttl: timedelta) -> Lease | None:
    if not _holds(tables, lease):
        return None
    tables.locks[lease.name] = replace(tables.locks[lease.name], expires_at=tables.now() + ttl)
    return tables.locks[lease.name]


def release_lock(tables: Tables, lease: Lease) -> bool:
    held = _holds(tables, lease)
    if held:
        tables.locks[lease.name] = replace(tables.locks[lease.name], expires_at=EPOCH)
    return held


def lock(tables: Tables, name: str) -> Lease | None:
    known = tables.locks.get(name)
    return known if known is not None and known.expires_at > tables.now() else None


def _holds(tables: Tables, lease: Lease) -> bool:
    known = lock(tables, lease.name)
    return known is not None and (known.owner, known.token) == (lease.owner, lease.token)
