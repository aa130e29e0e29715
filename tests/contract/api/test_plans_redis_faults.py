"""The issue and RELIABILITY F14, F15, I8: Redis goes away, comes back empty, freezes or holds nonsense. No task is lost, no stage
counts that ran without its lock, and health and metrics tell."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest
import redis

from tests.conftest import StartPrivate
from tests.contract.api.conftest import ON_SQLITE, empty_database, serving
from tests.contract.api.ksana_world import client_of
from tests.contract.api.plans_world import (
    TYPES,
    Keys,
    calls,
    checkpoint_of,
    create,
    each_seen,
    failing,
    fails,
    fetch,
    health_of,
    held,
    holds,
    metric,
    obeyed,
    release,
    running,
    seen,
    some_tenants,
    states_in,
    task_obeyed,
    task_of,
    until_health,
    until_plan,
    until_task,
)
from tests.contract.api.witness import Target
from tests.process.conftest import ksana
from tests.servers.machine import LOOPBACK
from tests.servers.redis import RedisServer

pytestmark = [ON_SQLITE, pytest.mark.redis]

STAGES = ["one", "two", "three"]
FOREIGN = "task-of-somebody-else"


def on(server: RedisServer) -> dict[str, str]:
    return {"KSANA_EXECUTOR_PERSISTENCE_STORE_TYPE": "redis", "KSANA_REDIS_URL": server.address.url}


@pytest.fixture(scope="module")
def own_redis() -> Iterator[RedisServer]:
    """The module's Redis, which its tests may kill, freeze and empty."""
    server = RedisServer()
    server.start()
    yield server
    server.close()


@pytest.fixture(scope="module")
def settings(own_redis: RedisServer) -> Mapping[str, str]:
    return on(own_redis)


@pytest.fixture
def keys(own_redis: RedisServer, api: httpx2.Client) -> Iterator[Keys]:
    """Redis, whole again after the test before."""
    own_redis.resume()
    if not own_redis.running:
        own_redis.start()
    for command in ("REPLICAOF NO ONE", "CONFIG SET maxmemory 0", "CONFIG SET maxmemory-policy noeviction"):
        own_redis.address.call(0, *command.split())
    until_health(api, "ok")
    with redis.Redis.from_url(own_redis.address.url, decode_responses=True) as client:
        yield Keys(client)


def until_told(api: httpx2.Client, keys: Keys, *, up: bool) -> None:
    """Waits until health and metrics say that Redis is there, or that it is not."""
    until_health(api, "ok" if up else "degraded")
    keys.until(lambda: metric(api, "ksana_runtime_up"), lambda found: found == [float(up)])


# There and not there


@dataclass(frozen=True)
class Fault:
    begin: Callable[[RedisServer], object]
    end: Callable[[RedisServer], object] | None
    """None: it is over as it begins."""


def restart_empty(server: RedisServer) -> None:
    server.kill()
    server.start()


def commands(*words: str) -> Callable[[RedisServer], object]:
    return lambda server: server.address.call(0, *words)


FAULTS = {
    "killed-for-a-while": Fault(RedisServer.kill, RedisServer.start),
    "killed-and-back-empty": Fault(restart_empty, None),
    "flushed": Fault(commands("FLUSHALL"), None),
    "frozen-for-a-while": Fault(RedisServer.pause, RedisServer.resume),
    "full-for-a-while": Fault(commands("CONFIG", "SET", "maxmemory", "1"), commands("CONFIG", "SET", "maxmemory", "0")),
    "read-only-for-a-while": Fault(commands("REPLICAOF", LOOPBACK, "1"), commands("REPLICAOF", "NO", "ONE")),
    "evicting-for-a-while": Fault(
        commands("CONFIG", "SET", "maxmemory-policy", "allkeys-lru"),
        commands("CONFIG", "SET", "maxmemory-policy", "noeviction"),
    ),
}


@pytest.mark.parametrize("fault", list(FAULTS.values()), ids=list(FAULTS))
def test_work_goes_on_whatever_becomes_of_redis_which_is_then_brought_up_to_date(
    api: httpx2.Client, target: Target, own_redis: RedisServer, keys: Keys, fault: Fault
) -> None:
    first, second, third = tenants = some_tenants(3)
    stages = [*calls(target, "one"), *holds(target, "two"), *calls(target, "three")]
    plan = running(api, stages, tenants, maxConcurrency=2)
    held(target, first, "two")
    held(target, second, "two")
    fault.begin(own_redis)
    release(target, first, "two")
    until_task(api, first, "COMPLETED")
    if fault.end is not None:
        until_told(api, keys, up=False)
    release(target, second, "two")
    held(target, third, "two")
    if fault.end is not None:
        assert health_of(api) == "degraded"
        fault.end(own_redis)
    until_told(api, keys, up=True)
    tasks = {tenant: task_of(api, tenant)["taskId"] for tenant in tenants}
    for tenant in (first, second):
        keys.until_task(tasks[tenant], status="COMPLETED", lastCompletedStageIndex="2")
        keys.until_held(tenant, None)
    keys.until_task(tasks[third], status="RUNNING", lastCompletedStageIndex="0")
    keys.until_plan(plan, status="RUNNING")
    keys.until_held(third, tasks[third])
    keys.until(lambda: keys.checkpoint(tasks[third]), lambda found: found and found["completedStages"] == ["one"])
    keys.assert_documented()
    release(target, third, "two")
    until_plan(api, plan, "COMPLETED")
    keys.until_plan(plan, status="COMPLETED")
    assert each_seen(target) == dict.fromkeys(tenants, STAGES)


def test_a_server_starts_without_redis_and_brings_it_up_to_date_when_it_comes(
    back_end: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    target: Target,
    private_redis: StartPrivate[RedisServer],
) -> None:
    late = private_redis()
    late.kill()
    first, second = some_tenants(2)
    with (
        empty_database(back_end, tmp_path, request) as store,
        serving(tmp_path, store, on(late)) as server,
        client_of(server) as api,
        redis.Redis.from_url(late.address.url, decode_responses=True) as client,
    ):
        keys = Keys(client)
        until_told(api, keys, up=False)
        done = running(api, calls(target, *STAGES), [first])
        until_plan(api, done, "COMPLETED")
        plan = running(api, [*calls(target, "one"), *holds(target, "two")], [second])
        held(target, second, "two")
        assert any("redis" in line.lower() and "warning" in line.lower() for line in server.lines), server.lines
        late.start()
        until_told(api, keys, up=True)
        keys.until_plan(done, status="COMPLETED", progress="1.0")
        task = task_of(api, second)["taskId"]
        keys.until_task(task, status="RUNNING", lastCompletedStageIndex="0")
        keys.until_held(second, task)
        assert keys.checkpoint(task) is not None
        keys.assert_documented()
        release(target, second, "two")
        until_plan(api, plan, "COMPLETED")
    assert each_seen(target) == {first: STAGES, second: ["one", "two"]}


def test_a_redis_that_evicts_is_refused_at_the_start_with_the_reason(
    back_end: str, tmp_path: Path, request: pytest.FixtureRequest, private_redis: StartPrivate[RedisServer]
) -> None:
    evicts = private_redis()
    evicts.address.call(0, "CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    with empty_database(back_end, tmp_path, request) as store:
        ended = ksana("serve", "--port", "0", "--database-url", store, cwd=tmp_path, env=on(evicts))
    assert ended.code != 0
    for word in ("maxmemory-policy", "allkeys-lru", "noeviction"):
        assert word in ended.err, ended.err


# Nonsense in a key


@pytest.mark.parametrize("kind", list(TYPES))
def test_a_key_of_a_wrong_type_loses_no_task_and_is_put_right(
    api: httpx2.Client, target: Target, keys: Keys, kind: str
) -> None:
    (tenant,) = some_tenants(1)
    plan = running(api, [*calls(target, "one"), *holds(target, "two"), *calls(target, "three")], [tenant])
    held(target, tenant, "two")
    task = task_of(api, tenant)["taskId"]
    keys.until_task(task, lastCompletedStageIndex="0")
    names = {"index": f"index:tenant:{tenant}", "lock": f"lock:tenant:{tenant}", "plan": f"plan:{plan}"}
    key = f"executor:{names.get(kind, f'{kind}:{task}')}"
    assert keys.client.type(key) == TYPES[kind]
    keys.client.delete(key)
    keys.client.rpush(key, "nonsense")
    target.release_all()
    keys.until(lambda: release_and_ask(api, target, plan), lambda status: status == "COMPLETED")
    keys.until_task(task, status="COMPLETED")
    keys.until_plan(plan, status="COMPLETED")
    keys.until(lambda: keys.client.type(key), lambda found: found in {"none", TYPES[kind]})
    until_told(api, keys, up=True)
    keys.assert_documented()
    allowed = [STAGES, ["one", "two", "two", "three"]] if kind == "lock" else [STAGES]
    assert seen(target, tenant) in allowed


def test_keys_of_a_wrong_type_are_put_right_even_if_nothing_happens_and_counted(
    api: httpx2.Client, target: Target, keys: Keys
) -> None:
    (tenant,) = some_tenants(1)
    plan = running(api, [*calls(target, "one"), *holds(target, "two"), *calls(target, "three")], [tenant])
    held(target, tenant, "two")
    task = task_of(api, tenant)["taskId"]
    keys.until_task(task, lastCompletedStageIndex="0")
    own = [f"plan:{plan}", f"task:{task}", f"ckpt:{task}", f"index:tenant:{tenant}", f"lock:tenant:{tenant}"]
    repaired = sum(metric(api, "ksana_runtime_repairs_total"))
    for key in own:
        keys.client.delete(f"executor:{key}")
        keys.client.rpush(f"executor:{key}", "nonsense")
    right = [TYPES[key.partition(":")[0]] for key in own]
    keys.until(lambda: [keys.client.type(f"executor:{key}") for key in own], lambda found: found == right)
    keys.until_held(tenant, task)
    keys.until(lambda: sum(metric(api, "ksana_runtime_repairs_total")), lambda count: count > repaired)
    keys.until(lambda: release_and_ask(api, target, plan), lambda status: status == "COMPLETED")
    assert seen(target, tenant) in [STAGES, ["one", "two", "two", "three"]]


def test_nonsense_where_nothing_should_be_stops_nobody(api: httpx2.Client, target: Target, keys: Keys) -> None:
    tenants = some_tenants(3)
    plan = create(api, calls(target, *STAGES), tenants)["planId"]
    first, second, third = (task_of(api, tenant)["taskId"] for tenant in tenants)
    keys.until_task(third, status="CREATED")
    keys.client.delete(f"executor:task:{second}")
    for key in (f"lock:tenant:{tenants[0]}", f"ckpt:{first}", f"task:{second}", f"ckpt:{second}"):
        keys.client.rpush(f"executor:{key}", "nonsense")
    keys.client.set(f"executor:ckpt:{third}", "{not json")
    obeyed(api, plan, "start")
    until_plan(api, plan, "COMPLETED")
    for task in (first, second, third):
        keys.until_task(task, status="COMPLETED")
        keys.until(lambda task=task: keys.client.exists(f"executor:ckpt:{task}"), lambda found: not found)  # type: ignore[misc]
    keys.until(lambda: keys.client.exists(f"executor:lock:tenant:{tenants[0]}"), lambda found: not found)
    assert each_seen(target) == dict.fromkeys(tenants, STAGES)


def test_a_checkpoint_that_cannot_be_read_is_read_from_the_database(
    api: httpx2.Client, target: Target, keys: Keys
) -> None:
    (tenant,) = some_tenants(1)
    plan = running(api, [*calls(target, "one"), fails(target, "two"), *calls(target, "three")], [failing(tenant, 1)])
    until_plan(api, plan, "FAILED")
    task = task_of(api, tenant)["taskId"]
    keys.until(lambda: keys.client.exists(f"executor:ckpt:{task}"), bool)
    keys.client.set(f"executor:ckpt:{task}", "{not json")
    assert checkpoint_of(api, tenant)["completedStages"] == ["one"]
    task_obeyed(api, tenant, "retry", fromCheckpoint=True)
    until_plan(api, plan, "COMPLETED")
    assert seen(target, tenant) == ["one", "two", "two", "three"]


def release_and_ask(api: httpx2.Client, target: Target, plan: str) -> str:
    """The plan's status; what it calls meanwhile is answered."""
    target.release_all()
    return str(fetch(api, plan)["status"])


# Locks


def test_a_task_waits_for_a_lock_that_somebody_else_holds(api: httpx2.Client, target: Target, keys: Keys) -> None:
    locked, free = some_tenants(2)
    key = f"executor:lock:tenant:{locked}"
    keys.client.set(key, FOREIGN, nx=True, ex=9000)
    plan = running(api, calls(target, *STAGES), [locked, free])
    until_task(api, locked, "WAITING_FOR_LOCK")
    keys.until_task(task_of(api, locked)["taskId"], status="WAITING_FOR_LOCK")
    until_task(api, free, "COMPLETED")
    assert seen(target, locked) == []
    assert keys.client.get(key) == FOREIGN
    assert fetch(api, plan)["tasks"]["waiting"] == 1
    keys.client.delete(key)
    until_plan(api, plan, "COMPLETED")
    assert each_seen(target) == {locked: STAGES, free: STAGES}
    keys.until(lambda: keys.lock(locked), lambda found: found is None)


def test_a_stage_that_lost_its_lock_does_not_count_and_the_task_waits(
    api: httpx2.Client, target: Target, keys: Keys
) -> None:
    robbed, other = some_tenants(2)
    key = f"executor:lock:tenant:{robbed}"
    stages = [*calls(target, "one"), *holds(target, "two"), *calls(target, "three")]
    plan = running(api, stages, [robbed, other], maxConcurrency=2)
    hit = held(target, robbed, "two")
    keys.client.set(key, FOREIGN, ex=9000)
    target.release(hit)
    waiting = until_task(api, robbed, "WAITING_FOR_LOCK")
    assert (waiting["lastCompletedStageIndex"], waiting["completedStages"]) == (0, 1)
    assert keys.client.get(key) == FOREIGN
    assert seen(target, robbed) == ["one", "two"]
    release(target, other, "two")
    until_task(api, other, "COMPLETED")
    keys.client.delete(key)
    release(target, robbed, "two")
    until_plan(api, plan, "COMPLETED")
    assert states_in(api, plan) == {robbed: "COMPLETED", other: "COMPLETED"}
    assert each_seen(target) == {robbed: ["one", "two", "two", "three"], other: STAGES}
    keys.until(lambda: keys.lock(robbed), lambda found: found is None)


def test_a_lock_that_somebody_took_while_redis_was_away_is_theirs(
    api: httpx2.Client, target: Target, own_redis: RedisServer, keys: Keys
) -> None:
    (tenant,) = some_tenants(1)
    plan = running(api, [*calls(target, "one"), *holds(target, "two")], [tenant])
    hit = held(target, tenant, "two")
    own_redis.kill()
    until_health(api, "degraded")
    own_redis.start()
    keys.client.set(f"executor:lock:tenant:{tenant}", FOREIGN, ex=9000)
    until_health(api, "ok")
    target.release(hit)
    assert until_task(api, tenant, "WAITING_FOR_LOCK")["lastCompletedStageIndex"] == 0
    assert keys.lock(tenant) == FOREIGN
    keys.client.expire(f"executor:lock:tenant:{tenant}", 1)
    release(target, tenant, "two")
    until_plan(api, plan, "COMPLETED")
    assert seen(target, tenant) == ["one", "two", "two"]
