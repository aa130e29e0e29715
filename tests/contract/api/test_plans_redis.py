"""Document 004 §6: what an operator sees in Redis, key by key and field by field, at each moment of a task's life."""

import json
import re
from collections.abc import Iterator, Mapping

import httpx2
import pytest
import redis

from tests.contract.api.conftest import ON_SQLITE, empty_database, serving
from tests.contract.api.cronjob_world import assert_error
from tests.contract.api.ksana_world import client_of
from tests.contract.api.plans_world import (
    SLACK,
    TENANTS,
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
    stages_of,
    task_obeyed,
    task_of,
    until_plan,
    until_task,
)
from tests.contract.api.witness import Target
from tests.servers.base import Address

EACH_TYPE = pytest.mark.parametrize("settings", ["redis", "sql", "memory"], indirect=True, scope="module")
ON_REDIS = pytest.mark.parametrize("settings", ["redis"], indirect=True, scope="module")
pytestmark = ON_SQLITE

TASK_FIELDS = {
    "taskId",
    "tenantId",
    "planId",
    "status",
    "pauseRequested",
    "stageNames",
    "lastCompletedStageIndex",
    "createdAt",
    "updatedAt",
}
PLAN_FIELDS = {"planId", "status", "taskIds", "progress", "maxConcurrency", "createdAt", "updatedAt"}
CHECKPOINT_FIELDS = {"lastCompletedStageIndex", "completedStages", "contextData", "savedAt"}
"""§6.2; the issue adds `version`."""
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?")
"""As §6.2 writes it, without a zone: 2025-11-24T10:30:00. §4 writes ISO dates, which may have a fraction."""


@pytest.fixture(scope="module")
def redis_database(redis_server: Address) -> Iterator[str]:
    url = redis_server.create_database()
    yield url
    redis_server.drop_database(url)


@pytest.fixture(scope="module")
def settings(request: pytest.FixtureRequest) -> Mapping[str, str]:
    """Runtime state of the kind asked for."""
    given = {"KSANA_EXECUTOR_PERSISTENCE_STORE_TYPE": request.param}
    if request.param == "redis":
        given["KSANA_REDIS_URL"] = request.getfixturevalue("redis_database")
    return given


@pytest.fixture
def keys(redis_database: str) -> Iterator[Keys]:
    with redis.Redis.from_url(redis_database, decode_responses=True) as client:
        yield Keys(client)


# The life of a task


@ON_REDIS
def test_a_task_that_runs_is_seen_in_every_kind_of_key(api: httpx2.Client, target: Target, keys: Keys) -> None:
    first, second = some_tenants(2)
    plan = create(api, holds(target, "stage-0", "stage-1"), [first, second])
    tasks = {tenant: task_of(api, tenant)["taskId"] for tenant in (first, second)}
    ready = keys.until_plan(plan["planId"], status="READY")
    assert set(ready) == PLAN_FIELDS
    assert json.loads(ready["taskIds"]) == [tasks[first], tasks[second]]
    assert (ready["planId"], ready["maxConcurrency"], float(ready["progress"])) == (plan["planId"], "1", 0)
    created = keys.until_task(tasks[first], status="CREATED", lastCompletedStageIndex="-1")
    assert set(created) == TASK_FIELDS
    keys.until(lambda: keys.index(first), lambda found: found == tasks[first])
    assert keys.lock(first) is None
    obeyed(api, plan["planId"], "start")
    held(target, first, "stage-0")
    keys.until_task(tasks[first], status="RUNNING")
    assert keys.lock(first) == tasks[first]
    assert keys.checkpoint(tasks[first]) is None
    release(target, first, "stage-0")
    held(target, first, "stage-1")
    shown = keys.until_task(tasks[first], lastCompletedStageIndex="0")
    assert {name: shown[name] for name in TASK_FIELDS - {"createdAt", "updatedAt"}} == {
        "taskId": tasks[first],
        "tenantId": first,
        "planId": plan["planId"],
        "status": "RUNNING",
        "pauseRequested": "false",
        "stageNames": '["stage-0","stage-1"]',
        "lastCompletedStageIndex": "0",
    }
    for moment in (shown["createdAt"], shown["updatedAt"], ready["createdAt"], ready["updatedAt"]):
        assert TIME.fullmatch(moment), moment
    saved = keys.until(lambda: keys.checkpoint(tasks[first]), lambda found: found is not None)
    assert set(saved) - {"version"} == CHECKPOINT_FIELDS
    assert (saved["lastCompletedStageIndex"], saved["completedStages"]) == (0, ["stage-0"])
    assert saved["contextData"] == {}
    assert TIME.fullmatch(saved["savedAt"]), saved["savedAt"]
    assert keys.until_plan(plan["planId"], status="RUNNING")["taskIds"] == ready["taskIds"]
    assert keys.lock(first) == keys.index(first) == tasks[first]
    assert keys.lock(second) is None
    assert keys.index(second) == tasks[second]
    keys.assert_documented()
    release(target, first, "stage-1")
    held(target, second, "stage-0")
    assert float(keys.until_plan(plan["planId"], progress="0.5")["progress"]) == 0.5
    done = keys.until_task(tasks[first], status="COMPLETED", lastCompletedStageIndex="1")
    assert set(done) == TASK_FIELDS
    keys.until_held(first, None)
    keys.until(lambda: keys.checkpoint(tasks[first]), lambda found: found is None)
    obeyed(api, plan["planId"], "cancel")
    keys.until_task(tasks[second], status="CANCELLED")
    assert set(keys.until_plan(plan["planId"], status="CANCELLED")) == PLAN_FIELDS
    keys.until_held(second, None)
    keys.assert_documented()


@ON_REDIS
def test_a_request_to_pause_and_the_pause_are_seen(api: httpx2.Client, target: Target, keys: Keys) -> None:
    (tenant,) = some_tenants(1)
    plan = running(api, [*holds(target, "stage-0"), *calls(target, "stage-1")], [tenant])
    held(target, tenant, "stage-0")
    task = task_of(api, tenant)["taskId"]
    obeyed(api, plan, "pause")
    keys.until_task(task, status="RUNNING", pauseRequested="true")
    keys.until_plan(plan, status="PAUSED")
    release(target, tenant, "stage-0")
    keys.until_task(task, status="PAUSED", pauseRequested="false", lastCompletedStageIndex="0")
    saved = keys.checkpoint(task)
    assert saved is not None
    assert saved["completedStages"] == ["stage-0"]
    assert keys.index(tenant) == task
    assert keys.lock(tenant) in {None, task}
    keys.assert_documented()
    obeyed(api, plan, "resume")
    keys.until_task(task, status="COMPLETED")
    keys.until_plan(plan, status="COMPLETED")
    assert float(keys.until_plan(plan, progress="1.0")["progress"]) == 1


@ON_REDIS
def test_a_failed_task_keeps_its_checkpoint_but_neither_index_nor_lock(
    api: httpx2.Client, target: Target, keys: Keys
) -> None:
    (tenant,) = some_tenants(1)
    plan = running(api, [*calls(target, "stage-0"), fails(target, "stage-1")], [failing(tenant, 1)])
    until_plan(api, plan, "FAILED")
    task = task_of(api, tenant)["taskId"]
    keys.until_task(task, status="FAILED", lastCompletedStageIndex="0")
    keys.until_plan(plan, status="FAILED")
    keys.until_held(tenant, None)
    saved = keys.checkpoint(task)
    assert saved is not None
    assert saved["completedStages"] == ["stage-0"]
    assert api.put(f"{TENANTS}/{tenant}/checkpoint", json={"contextData": {"customKey": "v"}}).status_code == 200
    changed = keys.until(lambda: keys.checkpoint(task), lambda found: found and found["contextData"])
    assert changed["contextData"] == {"customKey": "v"}
    assert changed["version"] == checkpoint_of(api, tenant)["version"]
    keys.assert_documented()
    task_obeyed(api, tenant, "retry")
    until_plan(api, plan, "COMPLETED")
    keys.until_task(task, status="COMPLETED")
    keys.until(lambda: keys.checkpoint(task), lambda found: found is None)
    assert seen(target, tenant) == ["stage-0", "stage-1", "stage-1"]


@ON_REDIS
def test_what_an_operator_deletes_by_hand_comes_back(api: httpx2.Client, target: Target, keys: Keys) -> None:
    tenant, waiting, failed = some_tenants(3)
    stages = [*holds(target, "stage-0", "stage-1"), fails(target, "stage-2")]
    plan = running(api, stages, [failing(failed, 1), tenant, waiting])
    for name in ("stage-0", "stage-1"):
        release(target, failed, name)
    release(target, tenant, "stage-0")
    held(target, tenant, "stage-1")
    tasks = {each: task_of(api, each)["taskId"] for each in (tenant, waiting, failed)}
    keys.until_task(tasks[tenant], lastCompletedStageIndex="0")
    keys.until_task(tasks[failed], status="FAILED")
    own = {key for key in keys.all() if any(word in key for word in (plan, *tasks.values(), *tasks))}
    assert len(own) == 4 + 2 + 2 + 1
    keys.client.delete(*own)  # redis-cli --scan --pattern "executor:*" | xargs redis-cli del
    keys.until(keys.all, lambda found: own <= found)
    keys.until_task(tasks[tenant], status="RUNNING", lastCompletedStageIndex="0")
    assert keys.lock(tenant) == keys.index(tenant) == tasks[tenant]
    keys.assert_documented()
    release(target, tenant, "stage-1")
    for name in ("stage-0", "stage-1"):
        release(target, waiting, name)
    until_plan(api, plan, "FAILED")
    task_obeyed(api, failed, "retry")
    until_plan(api, plan, "COMPLETED")
    assert seen(target, tenant) == ["stage-0", "stage-1", "stage-2"]
    assert seen(target, failed) == ["stage-0", "stage-1", "stage-2", "stage-2"]


@pytest.fixture(scope="module")
def other(
    back_end: str,
    settings: Mapping[str, str],
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[httpx2.Client]:
    """A client of another server on the same Redis, in a namespace of its own, whose keys do not live long."""
    folder = tmp_path_factory.mktemp("other")
    given = {
        **settings,
        "KSANA_EXECUTOR_PERSISTENCE_NAMESPACE": "test-executor",
        "KSANA_EXECUTOR_PERSISTENCE_TTL_CHECKPOINT": "2",
        "KSANA_EXECUTOR_PERSISTENCE_TTL_PROJECTION": "7200",
        "KSANA_EXECUTOR_PERSISTENCE_TTL_LOCK": "1800",
    }
    with (
        empty_database(back_end, folder, request) as store,
        serving(folder, store, given) as server,
        client_of(server) as client,
    ):
        yield client


@pytest.fixture
def other_keys(keys: Keys) -> Keys:
    return Keys(keys.client, "test-executor")


@ON_REDIS
def test_namespaces_isolate_two_servers_on_one_redis(
    api: httpx2.Client, other: httpx2.Client, target: Target, keys: Keys, other_keys: Keys
) -> None:
    (tenant,) = some_tenants(1)
    running(api, holds(target, "stage-0"), [tenant])
    held(target, tenant, "stage-0")
    running(other, holds(target, "stage-0", "stage-1"), [tenant])  # the same tenant, in another environment
    target.wait_held(2)
    mine, theirs = task_of(api, tenant)["taskId"], task_of(other, tenant)["taskId"]
    keys.until_task(mine, status="RUNNING")
    other_keys.until_task(theirs, status="RUNNING")
    assert (keys.lock(tenant), other_keys.lock(tenant)) == (mine, theirs)
    assert (keys.task(theirs), other_keys.task(mine)) == ({}, {})
    lives = keys.client.ttl(f"test-executor:task:{theirs}"), keys.client.ttl(f"test-executor:lock:tenant:{tenant}")
    assert 7200 - SLACK < lives[0] <= 7200
    assert 1800 - SLACK < lives[1] <= 1800
    target.release_all()
    held(target, tenant, "stage-1")
    target.release_all()
    until_task(api, tenant, "COMPLETED")
    until_task(other, tenant, "COMPLETED")


@ON_REDIS
def test_a_checkpoint_expires_once_its_task_has_failed_and_not_before(
    other: httpx2.Client, target: Target, other_keys: Keys
) -> None:
    works, failed = some_tenants(2)
    stages = [*calls(target, "one"), fails(target, "two"), *holds(target, "three")]
    plan = running(other, stages, [works, failing(failed, 1)], maxConcurrency=2)
    held(target, works, "three")
    until_task(other, failed, "FAILED")
    assert checkpoint_of(other, failed)["completedStages"] == ["one"]
    other_keys.until(lambda: other.get(f"{TENANTS}/{failed}/checkpoint").status_code, lambda code: code == 404)
    assert_error(other.get(f"{TENANTS}/{failed}/checkpoint"), 404, "CHECKPOINT_NOT_FOUND")
    task = task_of(other, failed)["taskId"]
    other_keys.until(lambda: other_keys.checkpoint(task), lambda found: found is None)
    assert checkpoint_of(other, works)["completedStages"] == ["one", "two"]
    task_obeyed(other, failed, "retry", fromCheckpoint=True)
    release(target, works, "three")
    release(target, failed, "three")
    until_plan(other, plan, "COMPLETED")
    assert each_seen(target) == {works: ["one", "two", "three"], failed: ["one", "two", "one", "two", "three"]}


@ON_REDIS
def test_health_and_metrics_tell_that_redis_is_there(api: httpx2.Client) -> None:
    assert health_of(api) == "ok"
    assert metric(api, "ksana_runtime_up") == [1]


# Whatever keeps it


@EACH_TYPE
def test_the_same_happens_whatever_keeps_the_runtime_state(api: httpx2.Client, target: Target) -> None:
    paused, bad, gone = some_tenants(3)
    stages = [*holds(target, "one"), fails(target, "two"), *holds(target, "three")]
    plan = running(api, stages, [paused, failing(bad, 1), gone], maxConcurrency=3)
    held(target, paused, "one")
    task_obeyed(api, paused, "pause")
    assert task_of(api, paused)["pauseRequested"] is True
    release(target, bad, "one")
    until_task(api, bad, "FAILED")
    assert checkpoint_of(api, bad)["completedStages"] == ["one"]
    held(target, gone, "one")
    task_obeyed(api, gone, "cancel")
    until_task(api, gone, "CANCELLED")
    release(target, paused, "one")
    until_task(api, paused, "PAUSED")
    assert checkpoint_of(api, paused)["completedStages"] == ["one"]
    busy = api.post("/api/v1/plans", json={"name": "busy", "stages": calls(target, "late"), "tenants": [paused]})
    assert assert_error(busy, 409, "TENANT_BUSY")["planId"] == plan
    version = checkpoint_of(api, paused)["version"]
    path = f"{TENANTS}/{paused}/checkpoint"
    assert api.put(path, json={"contextData": {"k": 1}, "version": version}).status_code == 200
    assert_error(api.put(path, json={"contextData": {"k": 2}, "version": version}), 409, "CHECKPOINT_CONFLICT")
    task_obeyed(api, paused, "resume")
    held(target, paused, "three")
    assert checkpoint_of(api, paused)["contextData"] == {"k": 1}
    task_obeyed(api, bad, "retry")
    release(target, bad, "three")
    release(target, paused, "three")
    until_task(api, paused, "COMPLETED")
    until_task(api, bad, "COMPLETED")
    assert fetch(api, plan)["tasks"]["completed"] == 2
    assert set(stages_of(task_of(api, bad)).values()) == {"SUCCESS"}
    assert_error(api.get(path), 404, "CHECKPOINT_NOT_FOUND")
    assert each_seen(target) == {
        paused: ["one", "two", "three"],
        bad: ["one", "two", "two", "three"],
        gone: ["one"],
    }
