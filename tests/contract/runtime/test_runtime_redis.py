"""What is in Redis, key by key, as another client sees it; and a Redis that is damaged, gone, silent or unfit."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from redis.asyncio import Redis

from ksana.domain.errors import RuntimeUnavailable, UnreadableState, UnsafeRuntime
from ksana.runtime import redis_checkpoints
from ksana.runtime.base import Kind, Lifetimes
from ksana.runtime.redis import RedisRuntime
from tests.conftest import StartPrivate
from tests.contract.runtime.test_runtime_state import CONTEXT
from tests.contract.runtime.world import HOUR, NAMESPACE, NOON, checkpoint, plan, task, until
from tests.servers.redis import RedisServer

pytestmark = pytest.mark.redis
PATIENT = timedelta(seconds=10)
IMPATIENT = timedelta(milliseconds=300)
DAY_SECONDS = 86_400
NAMES = [f"tenant-{n}" for n in range(30)]
CHECKPOINT_KEY = f"{NAMESPACE}:ckpt:t"
ODD_NAMES = ("plain", "", '"', "\\", "/", "\x00\x01\x1f\x7f", "\b\f\n\r\t", "阶段", "é", "😀", "</script>", "\u2028")


@pytest.fixture
async def runtime(redis_url: str) -> AsyncIterator[RedisRuntime]:
    async with connected(redis_url) as opened:
        yield opened


@pytest.fixture
async def raw(redis_url: str) -> AsyncIterator[Any]:
    """Another client, which knows nothing of ours."""
    async with Redis.from_url(redis_url, decode_responses=True) as client:
        yield client


@asynccontextmanager
async def connected(url: str, namespace: str = NAMESPACE, patience: timedelta = PATIENT) -> AsyncIterator[RedisRuntime]:
    opened = RedisRuntime.connect(url, namespace, Lifetimes(), timeout=patience)
    try:
        yield opened
    finally:
        await opened.close()


async def fill(runtime: RedisRuntime) -> None:
    await runtime.checkpoints.put("task-1", checkpoint("stage-0", customKey="customValue"))
    await runtime.tasks.save([task()])
    await runtime.plans.save([plan()])
    await runtime.index.put({"tenant-1": "task-1"})
    await runtime.locks.try_acquire("tenant-1", "task-1", Lifetimes().lock)


# The keys -----------------------------------------------------------------------------------------------------------


async def test_the_keys_are_those_of_the_document_and_no_others(runtime: RedisRuntime, raw: Any) -> None:
    await fill(runtime)
    types = {key: await raw.type(key) for key in await raw.keys("*")}
    assert types == {
        "executor:ckpt:task-1": "string",
        "executor:task:task-1": "hash",
        "executor:plan:plan-1": "hash",
        "executor:index:tenant:tenant-1": "string",
        "executor:lock:tenant:tenant-1": "string",
    }


async def test_each_field_is_as_the_document_shows_it(runtime: RedisRuntime, raw: Any) -> None:
    await fill(runtime)
    assert await raw.get("executor:ckpt:task-1") == (
        '{"lastCompletedStageIndex":0,"completedStages":["stage-0"],"contextData":{"customKey":"customValue"},'
        '"savedAt":"2025-11-24T12:00:00","version":1}'
    )
    assert await raw.hgetall("executor:task:task-1") == {
        "taskId": "task-1",
        "tenantId": "tenant-1",
        "planId": "plan-1",
        "status": "RUNNING",
        "pauseRequested": "false",
        "stageNames": '["stage-0","stage-1"]',
        "lastCompletedStageIndex": "0",
        "createdAt": "2025-11-24T12:00:00",
        "updatedAt": "2025-11-24T12:00:00",
    }
    assert await raw.hgetall("executor:plan:plan-1") == {
        "planId": "plan-1",
        "status": "RUNNING",
        "taskIds": '["task-1","task-2"]',
        "progress": "0.5",
        "maxConcurrency": "5",
        "createdAt": "2025-11-24T12:00:00",
        "updatedAt": "2025-11-24T12:00:00",
    }
    assert await raw.get("executor:index:tenant:tenant-1") == "task-1"
    assert await raw.get("executor:lock:tenant:tenant-1") == "task-1"


async def test_numbers_flags_and_fractions_of_a_second_have_one_form(runtime: RedisRuntime, raw: Any) -> None:
    instant = NOON + timedelta(microseconds=120_000)
    await runtime.tasks.save([task(pause_requested=True, stage_names=(), updated_at=instant)])
    await runtime.plans.save([plan("none", progress=0), plan("all", progress=1)])
    fields = await raw.hgetall("executor:task:task-1")
    assert fields["pauseRequested"] == "true"
    assert fields["stageNames"] == "[]"
    assert fields["updatedAt"] == "2025-11-24T12:00:00.120000"
    assert await raw.hget("executor:plan:none", "progress") == "0.0"
    assert await raw.hget("executor:plan:all", "progress") == "1.0"


async def test_every_key_has_its_end_and_each_write_puts_it_off(runtime: RedisRuntime, raw: Any) -> None:
    ends = {
        "executor:ckpt:task-1": 7 * DAY_SECONDS,
        "executor:task:task-1": 30 * DAY_SECONDS,
        "executor:plan:plan-1": 30 * DAY_SECONDS,
        "executor:index:tenant:tenant-1": 30 * DAY_SECONDS,
        "executor:lock:tenant:tenant-1": 9_000,
    }
    await fill(runtime)
    for key, seconds in ends.items():
        assert seconds - 120 < await raw.ttl(key) <= seconds
        await raw.expire(key, 100)
    await fill(runtime)
    await runtime.checkpoints.append("task-1", "stage-1", checkpoint("stage-0", "stage-1", version=2))
    for key, seconds in ends.items():
        assert seconds - 120 < await raw.ttl(key) <= seconds


async def test_a_hash_has_no_field_that_is_not_ours(runtime: RedisRuntime, raw: Any) -> None:
    await raw.hset("executor:task:task-1", mapping={"stranger": "1", "updatedAt": "2020-01-01T00:00:00"})
    await runtime.tasks.save([task()])
    assert "stranger" not in await raw.hgetall("executor:task:task-1")


@pytest.mark.parametrize("context", [{}, CONTEXT, {"a": {}}, {"a": []}, {"n": [1.0, 10**30, 1e22, -0.0]}])
async def test_appended_or_put_a_checkpoint_is_the_same_byte_for_byte(
    runtime: RedisRuntime, raw: Any, context: dict[str, Any]
) -> None:
    await runtime.checkpoints.put("grown", replace(checkpoint(), context_data={"old": 1}))
    for version, last in enumerate(ODD_NAMES, start=2):
        whole = replace(checkpoint(*ODD_NAMES[: version - 1], version=version), context_data=context)
        assert await runtime.checkpoints.append("grown", last, whole)
        await runtime.checkpoints.put("whole", whole)
        assert await raw.get("executor:ckpt:grown") == await raw.get("executor:ckpt:whole")
        assert await runtime.checkpoints.get("grown") == whole


@pytest.mark.parametrize(
    "name", ["other", "exec*", "executo?", "[e]xecutor", "exec\\utor", "e^-x", "executor:task", "executor:lock:tenant"]
)
async def test_namespaces_are_apart(runtime: RedisRuntime, redis_url: str, name: str) -> None:
    await fill(runtime)
    async with connected(redis_url, name) as other:
        assert set((await other.counts()).values()) == {0}
        assert await other.locks.try_acquire("tenant-1", "task-9", HOUR)
        assert await other.locks.all() == {"tenant-1": "task-9"}
        assert await other.tasks.of_tenant("tenant-1") is None
        await other.tasks.save([task("task-9")])
        assert await other.tasks.of_tenant("tenant-1") == task("task-9")
    assert await runtime.tasks.of_tenant("tenant-1") == task()
    assert await runtime.counts() == dict.fromkeys(Kind, 1)
    assert await runtime.locks.all() == {"tenant-1": "task-1"}


# The cache ----------------------------------------------------------------------------------------------------------


async def test_what_has_not_changed_is_parsed_once(runtime: RedisRuntime) -> None:
    await runtime.checkpoints.put("t", checkpoint("a"))
    assert await runtime.checkpoints.get("t") is await runtime.checkpoints.get("t")


async def test_what_another_wrote_is_seen_at_once(runtime: RedisRuntime, redis_url: str, raw: Any) -> None:
    await runtime.checkpoints.put("t", checkpoint("a"))
    assert await runtime.checkpoints.get("t") == checkpoint("a")
    async with connected(redis_url) as other:
        await other.checkpoints.put("t", checkpoint("b", version=2))
    assert await runtime.checkpoints.get("t") == checkpoint("b", version=2)
    older = (await raw.get(CHECKPOINT_KEY)).replace('"b"', '"c"')
    await raw.set(CHECKPOINT_KEY, older)
    assert await runtime.checkpoints.get("t") == checkpoint("c", version=2)
    await raw.flushdb()
    assert await runtime.checkpoints.get("t") is None
    await raw.set(CHECKPOINT_KEY, older)
    assert await runtime.checkpoints.get("t") == checkpoint("c", version=2)


async def test_only_so_many_are_remembered(runtime: RedisRuntime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_checkpoints, "CACHED", 3)
    for name in "abcdef":
        await runtime.checkpoints.put(name, checkpoint(name))
        assert await runtime.checkpoints.get(name) == checkpoint(name)
    assert isinstance(runtime.checkpoints, redis_checkpoints.RedisCheckpoints)
    assert list(runtime.checkpoints._cache) == ["d", "e", "f"]


# Damage -------------------------------------------------------------------------------------------------------------

GOOD: dict[str, Any] = {
    "lastCompletedStageIndex": 0,
    "completedStages": ["a"],
    "contextData": {},
    "savedAt": "2025-11-24T12:00:00",
    "version": 50,
}
DAMAGED = [
    (b"", "NOT_JSON"),
    (b"no json", "NOT_JSON"),
    (json.dumps(GOOD).encode()[:-1], "NOT_JSON"),
    (json.dumps(GOOD).replace('"a"', '"\xff"').encode("latin-1"), "NOT_JSON"),
    (json.dumps(GOOD).replace("{}", '{"n":NaN}').encode(), "NOT_JSON"),
    (b"[1]", "WRONG_FIELD_TYPE"),
    (b"7", "WRONG_FIELD_TYPE"),
    (b"null", "WRONG_FIELD_TYPE"),
    *(
        (json.dumps({key: value for key, value in GOOD.items() if key != name}).encode(), "MISSING_FIELD")
        for name in GOOD
        if name != "version"
    ),
    *((json.dumps({**GOOD, name: None}).encode(), "WRONG_FIELD_TYPE") for name in GOOD),
    *((json.dumps({**GOOD, name: True}).encode(), "WRONG_FIELD_TYPE") for name in GOOD),
    (json.dumps({**GOOD, "completedStages": [1]}).encode(), "WRONG_FIELD_TYPE"),
    (json.dumps({**GOOD, "savedAt": "yesterday"}).encode(), "WRONG_FIELD_TYPE"),
    (json.dumps({**GOOD, "version": 50.5}).encode(), "WRONG_FIELD_TYPE"),
]


@pytest.mark.parametrize(("value", "error_type"), DAMAGED)
async def test_a_damaged_checkpoint_is_told_and_replaced_whatever_its_version(
    runtime: RedisRuntime, raw: Any, value: bytes, error_type: str
) -> None:
    await raw.set(CHECKPOINT_KEY, value)
    for _ in range(2):
        with pytest.raises(UnreadableState) as caught:
            await runtime.checkpoints.get("t")
        assert (caught.value.key, caught.value.error_type) == (CHECKPOINT_KEY, error_type)
    assert await runtime.checkpoints.put("t", checkpoint("b", version=2))
    assert await runtime.checkpoints.get("t") == checkpoint("b", version=2)
    assert await runtime.repaired() == 1
    assert await runtime.repaired() == 0


async def test_a_checkpoint_of_before_there_were_versions_is_read_and_followed(runtime: RedisRuntime, raw: Any) -> None:
    old = json.dumps({key: value for key, value in GOOD.items() if key != "version"}, indent=2)
    await raw.set(CHECKPOINT_KEY, old)
    assert await runtime.checkpoints.get("t") == checkpoint("a", version=0)
    assert await runtime.checkpoints.append("t", "b", checkpoint("a", "b", version=1))
    assert await runtime.checkpoints.get("t") == checkpoint("a", "b", version=1)


async def test_a_checkpoint_of_another_type_is_told_and_replaced(runtime: RedisRuntime, raw: Any) -> None:
    await raw.rpush(CHECKPOINT_KEY, "x")
    with pytest.raises(UnreadableState) as caught:
        await runtime.checkpoints.get("t")
    assert caught.value.error_type == "WRONG_KEY_TYPE"
    assert not await runtime.checkpoints.append("t", "a", checkpoint("a"))
    assert await raw.type(CHECKPOINT_KEY) == "list"
    assert await runtime.checkpoints.put("t", checkpoint("a"))
    assert await runtime.checkpoints.get("t") == checkpoint("a")
    assert await runtime.repaired() == 1


async def test_projections_of_another_type_are_told_and_replaced(runtime: RedisRuntime, raw: Any) -> None:
    await raw.set("executor:task:task-1", "x")
    await raw.sadd("executor:plan:plan-1", "x")
    with pytest.raises(UnreadableState, match="executor:task:task-1: is a string") as caught:
        await runtime.tasks.get(["task-1"])
    assert caught.value.error_type == "WRONG_KEY_TYPE"
    with pytest.raises(UnreadableState, match="executor:plan:plan-1: is a set"):
        await runtime.plans.get(["plan-1"])
    assert await runtime.tasks.of_tenant("tenant-1") is None
    await runtime.tasks.save([task(), task("task-2")])
    await runtime.plans.save([plan()])
    assert await runtime.tasks.get(["task-1"]) == {"task-1": task()}
    assert await runtime.plans.get(["plan-1"]) == {"plan-1": plan()}
    assert await runtime.repaired() == 2


async def test_index_and_lock_of_another_type_count_as_absent_and_are_replaced(runtime: RedisRuntime, raw: Any) -> None:
    await raw.rpush("executor:index:tenant:a", "task-1")
    await raw.hset("executor:lock:tenant:a", "task-1", "x")
    assert await runtime.index.get(["a"]) == {}
    assert not await runtime.locks.exists("a")
    assert await runtime.locks.holders(["a"]) == {}
    assert await runtime.locks.all() == {}
    assert not await runtime.locks.renew("a", "task-1", HOUR)
    await runtime.index.put({"a": "task-1"})
    assert await runtime.locks.try_acquire("a", "task-1", HOUR)
    assert await runtime.index.get(["a"]) == {"a": "task-1"}
    assert await runtime.locks.holders(["a"]) == {"a": "task-1"}
    assert await runtime.repaired() == 2


async def test_index_and_lock_of_another_type_are_gone_when_a_task_lets_go_of_them(
    runtime: RedisRuntime, raw: Any
) -> None:
    await raw.rpush("executor:index:tenant:a", "task-1")
    await raw.hset("executor:lock:tenant:a", "task-1", "x")
    await runtime.index.remove({"a": "task-1"})
    assert not await runtime.locks.release("a", "task-1")
    assert not await raw.exists("executor:index:tenant:a", "executor:lock:tenant:a")


@pytest.mark.parametrize(
    ("field", "value", "error_type"),
    [
        ("status", None, "MISSING_FIELD"),
        ("updatedAt", "soon", "WRONG_FIELD_TYPE"),
        ("pauseRequested", "maybe", "WRONG_FIELD_TYPE"),
        ("lastCompletedStageIndex", "first", "WRONG_FIELD_TYPE"),
        ("stageNames", "a,b", "NOT_JSON"),
        ("stageNames", "{}", "WRONG_FIELD_TYPE"),
    ],
)
async def test_a_damaged_projection_is_told_and_replaced(
    runtime: RedisRuntime, raw: Any, field: str, value: str | None, error_type: str
) -> None:
    await runtime.tasks.save([task(), task("task-2", tenant_id="tenant-2")])
    key = "executor:task:task-1"
    await (raw.hdel(key, field) if value is None else raw.hset(key, field, value))
    with pytest.raises(UnreadableState) as caught:
        await runtime.tasks.get(["task-2", "task-1"])
    assert (caught.value.key, caught.value.error_type) == (key, error_type)
    assert await runtime.tasks.of_tenant("tenant-2") is not None
    await runtime.tasks.save([task()])
    assert await runtime.tasks.get(["task-1"]) == {"task-1": task()}


async def test_scripts_that_the_server_has_forgotten_are_sent_again(runtime: RedisRuntime, raw: Any) -> None:
    await fill(runtime)
    await raw.script_flush()
    await fill(runtime)
    await raw.script_flush()
    assert await runtime.checkpoints.get("task-1") is not None
    assert not await runtime.locks.try_acquire("tenant-1", "task-2", HOUR)


# A server that is gone, silent or unfit -----------------------------------------------------------------------------


async def test_a_server_that_was_killed_is_unavailable_and_works_when_it_is_back(
    private_redis: StartPrivate[RedisServer],
) -> None:
    server = private_redis()
    async with connected(server.url) as runtime:
        await fill(runtime)
        server.kill()
        for _ in range(2):
            with pytest.raises(RuntimeUnavailable):
                await runtime.checkpoints.get("task-1")
            with pytest.raises(RuntimeUnavailable):
                await runtime.tasks.save([task()])
        with pytest.raises(RuntimeUnavailable):
            await runtime.ping()
        server.start()
        await runtime.ping()
        assert await runtime.checkpoints.get("task-1") is None
        await fill(runtime)
        assert await runtime.counts() == dict.fromkeys(Kind, 1)


async def test_a_silent_server_is_unavailable_and_nobody_reads_anothers_answer_afterwards(
    private_redis: StartPrivate[RedisServer],
) -> None:
    server = private_redis()
    async with connected(server.url) as patient:
        await patient.index.put({name: name for name in NAMES})
    async with connected(server.url, patience=IMPATIENT) as runtime:
        await until(lambda: right_answers(runtime))
        server.pause()
        lost = await asyncio.gather(
            *(runtime.index.get([name]) for name in NAMES),
            runtime.checkpoints.get("t"),
            runtime.locks.try_acquire("a", "task-1", HOUR),
            runtime.tasks.save([task(), task("task-2")]),
            return_exceptions=True,
        )
        server.resume()
        assert {type(each) for each in lost} == {RuntimeUnavailable}
        await until(lambda: right_answers(runtime))


async def test_nobody_reads_the_answer_to_one_who_was_cancelled(private_redis: StartPrivate[RedisServer]) -> None:
    server = private_redis()
    async with connected(server.url) as runtime:
        await runtime.index.put({name: name for name in NAMES})
        for turns in range(0, 40, 3):
            await until(lambda: right_answers(runtime))
            server.pause()
            asking = [asyncio.create_task(runtime.index.get([name])) for name in NAMES]
            # One turn of the loop after the other, each a step further into the command.
            for _ in range(turns):
                await asyncio.sleep(0)
            for each in asking:
                each.cancel()
            ended = await asyncio.gather(*asking, return_exceptions=True)
            server.resume()
            assert {type(each) for each in ended} == {asyncio.CancelledError}
        await until(lambda: right_answers(runtime))


async def right_answers(runtime: RedisRuntime) -> bool:
    """Whether everybody is answered, and what they asked for; a server that was silent just now may be slow."""
    answers = await asyncio.gather(*(runtime.index.get([name]) for name in NAMES), return_exceptions=True)
    for name, answer in zip(NAMES, answers, strict=True):
        assert answer == {name: name} or isinstance(answer, RuntimeUnavailable)
    return not any(isinstance(answer, RuntimeUnavailable) for answer in answers)


async def test_a_server_that_evicts_is_refused(private_redis: StartPrivate[RedisServer]) -> None:
    server = private_redis()
    async with connected(server.url) as runtime:
        await runtime.ping()
        server.address.call(0, "CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
        with pytest.raises(UnsafeRuntime, match="CONFIG SET maxmemory-policy noeviction"):
            await runtime.ping()


async def test_a_server_that_takes_no_writes_is_unavailable(private_redis: StartPrivate[RedisServer]) -> None:
    server = private_redis()
    async with connected(server.url) as runtime:
        await fill(runtime)
        server.address.call(0, "CONFIG", "SET", "maxmemory", "1")
        await refuses_writes(runtime, "maxmemory")
        server.address.call(0, "CONFIG", "SET", "maxmemory", "0")
        server.address.call(0, "REPLICAOF", "127.0.0.1", "1")
        await refuses_writes(runtime, "read only")
        server.address.call(0, "REPLICAOF", "NO", "ONE")
        assert await runtime.locks.try_acquire("b", "task-1", HOUR)


async def refuses_writes(runtime: RedisRuntime, match: str) -> None:
    with pytest.raises(RuntimeUnavailable, match=match):
        await runtime.locks.try_acquire("b", "task-1", HOUR)
    with pytest.raises(RuntimeUnavailable, match=match):
        await runtime.tasks.save([task(), task("task-2")])
    assert await runtime.index.get(["tenant-1"]) == {"tenant-1": "task-1"}


async def test_a_wrong_password_is_unavailable_and_is_not_told(private_redis: StartPrivate[RedisServer]) -> None:
    server = private_redis()
    server.address.call(0, "CONFIG", "SET", "requirepass", "sesame")
    for word in (":wrong-word@", ""):
        async with connected(server.url.replace("//", f"//{word}")) as runtime:
            with pytest.raises(RuntimeUnavailable) as caught:
                await runtime.ping()
            assert "wrong-word" not in caught.value.message
    async with connected(server.url.replace("//", "//:sesame@")) as runtime:
        await runtime.ping()


async def test_after_its_end_it_answers_nothing(redis_url: str) -> None:
    async with connected(redis_url) as runtime:
        await runtime.ping()
    with pytest.raises(RuntimeUnavailable):
        await runtime.ping()
    await runtime.close()
