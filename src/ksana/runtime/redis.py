"""Runtime state in Redis, under the keys of document 004, §6.1, and no others:

    {namespace}:ckpt:{taskId}             string, JSON      {namespace}:index:tenant:{tenantId}   string, taskId
    {namespace}:task:{taskId}             hash              {namespace}:lock:tenant:{tenantId}    string, taskId
    {namespace}:plan:{planId}             hash

Every key has an end, which each write puts off. A server that evicts keys would forget a lock that is held: refused by
`ping`. One server, or one with replicas; a Redis Cluster has no MGET and no pipeline over the keys of several nodes.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Generic, Self

from ksana.domain.errors import RuntimeUnavailable, UnsafeRuntime
from ksana.runtime import documents
from ksana.runtime import redis_scripts as scripts
from ksana.runtime.base import (
    Checkpoints,
    Kind,
    Lifetimes,
    PlanProjections,
    TaskProjection,
    TaskProjections,
    TenantIndex,
    TenantLocks,
)
from ksana.runtime.documents import Form, P
from ksana.runtime.redis_checkpoints import RedisCheckpoints
from ksana.runtime.redis_wire import Wire, fields, is_error, lifetime, plain

TIMEOUT = timedelta(seconds=2)
_KEEPS_ALL = "noeviction"
_WRONG_TYPE = "WRONGTYPE"


class RedisProjections(Generic[P]):
    """Projections of one kind."""

    def __init__(self, wire: Wire, ttl: timedelta, form: Form[P]) -> None:
        self._wire = wire
        self._ttl = ttl
        self._form = form

    async def save(self, projections: Sequence[P]) -> None:
        answers = await self._wire.run_each(scripts.SAVE_FIELDS, [self._call(each) for each in projections])
        self._wire.repaired += sum(answers)

    async def get(self, ids: Sequence[str]) -> Mapping[str, P]:
        keys = [self._wire.key(self._form.kind, each) for each in ids]
        answers = await self._wire.commands([("HGETALL", key) for key in keys], tolerated=_WRONG_TYPE)
        found: dict[str, P] = {}
        for name, key, answer in zip(ids, keys, answers, strict=True):
            if is_error(answer):
                raise documents.wrong_key_type(key, plain(await self._wire.command("TYPE", key)))
            if answer:
                found[name] = self._form.decode(key, fields(answer))
        return found

    def _call(self, projection: P) -> tuple[str, Sequence[str | int]]:
        values = self._form.encode(projection)
        words = [word for pair in values.items() for word in pair]
        key = self._wire.key(self._form.kind, self._form.identify(projection))
        return key, (values["updatedAt"], *lifetime(self._ttl), *words)


class RedisTasks(RedisProjections[TaskProjection]):
    async def of_tenant(self, tenant_id: str) -> TaskProjection | None:
        names = await self._wire.names(Kind.TASK)
        asked = [("HGET", self._wire.key(Kind.TASK, name), "tenantId") for name in names]
        owners = await self._wire.commands(asked, tolerated=_WRONG_TYPE)
        mine = [
            name
            for name, owner in zip(names, owners, strict=True)
            if isinstance(owner, bytes) and plain(owner) == tenant_id
        ]
        tasks = await self.get(mine)
        return max(tasks.values(), key=lambda task: (task.created_at, task.task_id), default=None)


class RedisIndex:
    def __init__(self, wire: Wire, ttl: timedelta) -> None:
        self._wire = wire
        self._ttl = ttl

    async def put(self, entries: Mapping[str, str]) -> None:
        calls = [(self._key(tenant), (task, *lifetime(self._ttl))) for tenant, task in entries.items()]
        self._wire.repaired += sum(await self._wire.run_each(scripts.PUT_TEXT, calls))

    async def get(self, tenant_ids: Sequence[str]) -> Mapping[str, str]:
        return await _texts(self._wire, Kind.INDEX, tenant_ids)

    async def remove(self, entries: Mapping[str, str]) -> None:
        calls = [(self._key(tenant), (task,)) for tenant, task in entries.items()]
        await self._wire.run_each(scripts.REMOVE_TEXT, calls)

    def _key(self, tenant_id: str) -> str:
        return self._wire.key(Kind.INDEX, tenant_id)


class RedisLocks:
    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    async def try_acquire(self, tenant_id: str, task_id: str, ttl: timedelta) -> bool:
        words = (task_id, *lifetime(ttl))
        acquired, repaired = await self._wire.run(scripts.ACQUIRE_LOCK, self._key(tenant_id), words)
        self._wire.repaired += repaired
        return bool(acquired)

    async def renew(self, tenant_id: str, task_id: str, ttl: timedelta) -> bool:
        return bool(await self._wire.run(scripts.RENEW_LOCK, self._key(tenant_id), (task_id, *lifetime(ttl))))

    async def release(self, tenant_id: str, task_id: str) -> bool:
        return bool(await self._wire.run(scripts.REMOVE_TEXT, self._key(tenant_id), (task_id,)))

    async def exists(self, tenant_id: str) -> bool:
        return bool(await self.holders([tenant_id]))

    async def holders(self, tenant_ids: Sequence[str]) -> Mapping[str, str]:
        return await _texts(self._wire, Kind.LOCK, tenant_ids)

    async def all(self) -> Mapping[str, str]:
        return await self.holders(await self._wire.names(Kind.LOCK))

    def _key(self, tenant_id: str) -> str:
        return self._wire.key(Kind.LOCK, tenant_id)


class RedisRuntime:
    """Implements `ksana.runtime.base.RuntimeState`. Connects when it is first asked for something, and again when it must.

    An answer that is lost raises RuntimeUnavailable, and what was asked for may have been done; so it may if whoever asked
    is cancelled.
    """

    name = "redis"

    def __init__(self, wire: Wire, lifetimes: Lifetimes) -> None:
        self._wire = wire
        self.checkpoints: Checkpoints = RedisCheckpoints(wire, lifetimes.checkpoint)
        self.tasks: TaskProjections = RedisTasks(wire, lifetimes.projection, documents.TASKS)
        self.plans: PlanProjections = RedisProjections(wire, lifetimes.projection, documents.PLANS)
        self.index: TenantIndex = RedisIndex(wire, lifetimes.projection)
        self.locks: TenantLocks = RedisLocks(wire)

    @classmethod
    def connect(cls, url: str, namespace: str, lifetimes: Lifetimes, *, timeout: timedelta = TIMEOUT) -> Self:
        """ValueError if the URL is none. Whether a server is there is told by `ping`."""
        return cls(Wire(url, namespace, timeout), lifetimes)

    async def ping(self) -> None:
        if await self._wire.command("PING") not in {b"PONG", True}:
            raise RuntimeUnavailable("Redis: what answers there is no Redis")
        await self._wire.run(scripts.PROBE, self._wire.probe, ())
        memory = await self._wire.command("INFO", "memory")
        policy = plain(memory.get("maxmemory_policy", _KEEPS_ALL))
        if policy != _KEEPS_ALL:
            raise UnsafeRuntime(
                f"Redis would drop keys when its memory is full (maxmemory-policy {policy}), locks among them:"
                f" CONFIG SET maxmemory-policy {_KEEPS_ALL}, or give Ksana a server of its own"
            )

    async def counts(self) -> Mapping[Kind, int]:
        return await self._wire.count()

    async def repaired(self) -> int:
        count, self._wire.repaired = self._wire.repaired, 0
        return count

    async def close(self) -> None:
        await self._wire.close()


async def _texts(wire: Wire, kind: Kind, names: Sequence[str]) -> Mapping[str, str]:
    """Those of these keys that hold a text."""
    values = await wire.texts([wire.key(kind, name) for name in names])
    return {name: value for name, value in zip(names, values, strict=True) if value is not None}
