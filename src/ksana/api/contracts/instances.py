"""`/api/v1/instances`: who lives, who leads, who holds what."""

from typing import Any, Literal

from pydantic import BaseModel, Field

from ksana.api.app import Contract
from ksana.api.contracts.console.origins import OriginShown, origins_shown
from ksana.api.routing import new_router
from ksana.api.services import Services
from ksana.api.times import rfc3339
from ksana.domain.errors import NotFound
from ksana.domain.instance import LEADER, Instance, InstanceStatus, Lease
from ksana.store.base import Store

MOST_SHOWN = 500
# ruff: noqa: N815 - the contract's spelling


class InstanceBody(BaseModel):
    """One process of Ksana."""

    instanceId: str
    name: str
    version: str
    status: Literal["ALIVE", "LEFT", "DEAD"] = Field(
        description="LEFT: it stopped in order. DEAD: its heartbeat stopped."
    )
    roles: list[str]
    queues: list[str] = Field(description="Which its workers serve.")
    places: int = Field(description="How many executions its workers take at once.")
    running: int = Field(description="How many it runs now.")
    leads: bool
    address: str = Field(description="Where its API is, as it knows itself.")
    startedAt: str
    heartbeatAt: str
    expiresAt: str = Field(description="When it is taken for dead unless its heart beats again.")


class WorkBody(OriginShown):
    """An execution that it runs: a job's run, or a node of a workflow's."""

    execution: int


class InstanceDetail(InstanceBody):
    executions: list[int] = Field(description=f"What it runs now, at most {MOST_SHOWN}.")
    work: list[WorkBody] = Field(description="The same, by the ids that clients know.")


class LeaderBody(BaseModel):
    """Who goes first. The term grows with every new leader."""

    instanceId: str
    term: int
    expiresAt: str


class InstancesBody(BaseModel):
    items: list[InstanceBody]
    leader: LeaderBody | None = Field(description="Null while nobody leads.")


def instances_contract(services: Services) -> Contract:
    router, store = new_router("Instances"), services.store

    @router.get("/api/v1/instances", summary="Who lives, leads and holds what")
    async def instances(status: Literal["ALIVE", "LEFT", "DEAD"] | None = None) -> InstancesBody:
        """Newest first, those that are gone too until retention removes them."""
        leader, running = await store.lock(LEADER), await store.holdings()
        found = [each for each in await store.instances() if status is None or each.status == status]
        items = [InstanceBody(**_shown(each, leader, running.get(each.id, 0))) for each in found]
        return InstancesBody(items=items, leader=None if leader is None else _leader(leader))

    @router.get("/api/v1/instances/{instance_id}", summary="One instance and what it runs")
    async def instance(instance_id: str) -> InstanceDetail:
        found = await _find(store, instance_id)
        held = [claim.execution_id for claim in await store.claims_of(instance_id, MOST_SHOWN)]
        running = (await store.holdings()).get(instance_id, 0)
        origins = await origins_shown(store, [f"execution/{each}" for each in held])
        work = [{"execution": each, **origins[f"execution/{each}"]} for each in held]
        shown = _shown(found, await store.lock(LEADER), running)
        return InstanceDetail.model_validate({**shown, "executions": held, "work": work})

    return Contract(router)


async def _find(store: Store, instance_id: str) -> Instance:
    for each in await store.instances():
        if each.id == instance_id:
            return each
    raise NotFound("instance", instance_id)


def _leader(lease: Lease) -> LeaderBody:
    return LeaderBody(instanceId=lease.owner, term=lease.token, expiresAt=rfc3339(lease.expires_at))


def _shown(each: Instance, leader: Lease | None, running: int) -> dict[str, Any]:
    return {
        "instanceId": each.id,
        "name": each.name,
        "version": each.version,
        "status": each.status.value,
        "roles": list(each.roles),
        "queues": list(each.queues),
        "places": each.places,
        "running": running,
        "leads": leader is not None and leader.owner == each.id and each.status is InstanceStatus.ALIVE,
        "address": each.address,
        "startedAt": rfc3339(each.started_at),
        "heartbeatAt": rfc3339(each.heartbeat_at),
        "expiresAt": rfc3339(each.expires_at),
    }
