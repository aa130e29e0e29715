"""Instances and locks. `{now}` is the database's clock wherever several instances share it."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import insert, select

from ksana.domain.errors import KsanaError
from ksana.domain.events import EventType
from ksana.domain.instance import Instance, InstanceStatus, Lease
from ksana.store.requests import NewInstance
from ksana.store.sql import codec, schema
from ksana.store.sql.rows import Statement, storable
from ksana.store.sql.statements.journal import record_events
from ksana.store.sql.tx import Tx

_MICROSECOND = timedelta(microseconds=1)
_ALIVE = InstanceStatus.ALIVE

BEAT = Statement(
    "UPDATE instances SET heartbeat_at = {now}, expires_at = {now} + :lease"
    f" WHERE id = :id AND status = '{_ALIVE}' AND expires_at > {{now}}"
)
_LEAVE = Statement(
    f"UPDATE instances SET status = '{InstanceStatus.LEFT}', expires_at = {{now}} WHERE id = :id AND status = '{_ALIVE}'"
)
# Who held them can only be gone.
_FREE_ALL = Statement("UPDATE locks SET expires_at = 0 WHERE expires_at > 0")
_ALONE = Statement(f"UPDATE instances SET status = '{InstanceStatus.DEAD}' WHERE status = '{_ALIVE}'")
# A lock that ran out is taken over with a greater token; who still holds it keeps the token.
_TAKE = Statement(
    "UPDATE locks SET token = token + 1, owner = :owner, expires_at = {now} + :ttl"
    " WHERE name = :name AND expires_at <= {now}"
)
_KEEP = Statement(
    "UPDATE locks SET expires_at = {now} + :ttl WHERE name = :name AND owner = :owner AND expires_at > {now}"
)
_RENEW = Statement(
    "UPDATE locks SET expires_at = {now} + :ttl"
    " WHERE name = :name AND owner = :owner AND token = :token AND expires_at > {now}"
)
_RELEASE = Statement(
    "UPDATE locks SET expires_at = 0 WHERE name = :name AND owner = :owner AND token = :token AND expires_at > {now}"
)
_MAKE = Statement("INSERT INTO locks (name, owner, token, expires_at) VALUES (:name, :owner, 1, {now} + :ttl)")
_HELD = Statement("SELECT * FROM locks WHERE name = :name AND expires_at > {now}")
_KNOWN = Statement("SELECT 1 FROM locks WHERE name = :name")


@dataclass(frozen=True, slots=True)
class Acquisition:
    name: str
    owner: str
    ttl: timedelta


@dataclass(frozen=True, slots=True)
class Renewal:
    lease: Lease
    ttl: timedelta


def join(tx: Tx, news: list[NewInstance]) -> list[Instance | KsanaError]:
    return [_join(tx, new) for new in news]


def _join(tx: Tx, new: NewInstance) -> Instance:
    if not tx.dialect.shared:
        tx.run(_ALONE)
        tx.run(_FREE_ALL)
    now = tx.now()
    values = {
        "id": new.id,
        "name": (storable(new.name) or "")[:255],
        "version": new.version,
        "roles": ",".join(new.roles),
        "status": _ALIVE.value,
        "started_at": now,
        "heartbeat_at": now,
        "expires_at": now + new.lease // _MICROSECOND,
        "queues": ",".join(new.queues),
        "places": new.places,
        "address": new.address[:255],
    }
    tx.core_run(insert(schema.instances).values(values))
    record_events(tx, now, [(EventType.INSTANCE_JOINED, f"instance/{new.id}", {"name": new.name})])
    return codec.instance(tx.core(select(schema.instances).where(schema.instances.c.id == new.id))[0])


def beat(
    tx: Tx, instance_id: str, lease: timedelta, leading: Lease | None, resigning: Lease | None
) -> tuple[bool, bool]:
    """Whether the instance's lease was renewed, and whether the lock that it leads by was."""
    if tx.changed(BEAT, id=instance_id, lease=lease // _MICROSECOND) != 1:
        return False, False
    if resigning is not None:
        tx.run(_RELEASE, **_holder(resigning))
    return True, leading is not None and tx.changed(_RENEW, ttl=lease // _MICROSECOND, **_holder(leading)) == 1


def leave(tx: Tx, ids: list[str]) -> list[bool | KsanaError]:
    left: list[bool | KsanaError] = [tx.changed(_LEAVE, id=instance_id) == 1 for instance_id in ids]
    gone = [instance_id for instance_id, was_alive in zip(ids, left, strict=True) if was_alive]
    record_events(tx, tx.clock, [(EventType.INSTANCE_LEFT, f"instance/{instance_id}", None) for instance_id in gone])
    return left


def acquire(tx: Tx, acquisitions: list[Acquisition]) -> list[Lease | KsanaError | None]:
    return [_acquire(tx, wanted) for wanted in acquisitions]


def _acquire(tx: Tx, wanted: Acquisition) -> Lease | None:
    values: dict[str, Any] = {
        "name": wanted.name,
        "owner": wanted.owner,
        "ttl": wanted.ttl // _MICROSECOND,
    }
    if not tx.query(_KNOWN, name=wanted.name):
        tx.run(_MAKE, **values)
    elif not tx.changed(_TAKE, **values) and not tx.changed(_KEEP, **values):
        return None
    return _read(tx, wanted.name)


def renew(tx: Tx, renewals: list[Renewal]) -> list[Lease | KsanaError | None]:
    return [_renew(tx, wanted) for wanted in renewals]


def _renew(tx: Tx, wanted: Renewal) -> Lease | None:
    ttl = wanted.ttl // _MICROSECOND
    return _read(tx, wanted.lease.name) if tx.changed(_RENEW, ttl=ttl, **_holder(wanted.lease)) else None


def release(tx: Tx, leases: list[Lease]) -> list[bool | KsanaError]:
    return [tx.changed(_RELEASE, **_holder(lease)) == 1 for lease in leases]


def held(tx: Tx, name: str) -> Lease | None:
    found = tx.query(_HELD, name=name)
    return codec.lease(found[0]) if found else None


def _holder(lease: Lease) -> dict[str, Any]:
    return {"name": lease.name, "owner": lease.owner, "token": lease.token}


def _read(tx: Tx, name: str) -> Lease:
    return codec.lease(tx.core(select(schema.locks).where(schema.locks.c.name == name))[0])
