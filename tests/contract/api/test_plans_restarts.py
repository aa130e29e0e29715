"""The issue: `kill -9` in the middle of a plan; after the restart every tenant finishes, and no completed stage runs again."""

import signal
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import httpx2
import pytest
import redis

from tests.contract.api.conftest import ON_SQLITE, empty_database, serving, until
from tests.contract.api.ksana_world import client_of
from tests.contract.api.plans_world import (
    TENANTS,
    Json,
    Keys,
    calls,
    counts,
    create,
    each_seen,
    events_at,
    failing,
    fails,
    fetch,
    held,
    holds,
    obeyed,
    release,
    running,
    some_tenants,
    stage_of,
    task_obeyed,
    task_of,
    tasks_in,
    tenant_of,
    until_plan,
    until_task,
)
from tests.contract.api.witness import Hit, Target

pytestmark = ON_SQLITE

NAMES = ["s0", "s1", "s2", "s3", "s4"]
MOST = 10


def answer_calls(target: Target, most: int, over: Callable[[Sequence[Hit]], object]) -> None:
    """Answers what is held, all of it at a time, until it is over; looks each time whether there are too many."""
    while True:
        hits = target.wait_for(lambda hits: over(hits) or any(hit.held for hit in hits), 40)
        if over(hits):
            return
        open_calls = [hit for hit in hits if hit.held]
        assert len(open_calls) <= most, open_calls
        assert max(Counter(map(tenant_of, open_calls)).values(), default=0) <= 1, open_calls
        for hit in open_calls:
            target.release(hit)
        target.wait_for(lambda _, answered=open_calls: not any(hit.held for hit in answered))  # type: ignore[misc]


def test_a_plan_goes_on_after_a_kill_and_no_completed_stage_runs_again(
    back_end: str, tmp_path: Path, request: pytest.FixtureRequest, target: Target
) -> None:
    tenants = some_tenants(60)
    calls_in_all = len(tenants) * len(NAMES)
    with empty_database(back_end, tmp_path, request) as store:
        with serving(tmp_path, store, {}) as server, client_of(server) as api:
            plan = running(api, holds(target, *NAMES), tenants, maxConcurrency=MOST)
            answer_calls(target, MOST, lambda hits: len(hits) >= calls_in_all // 3)
            before = {task["tenantId"]: task["completedStages"] for task in tasks_in(api, plan)}
            server.end(signal.SIGKILL)
            left = [hit for hit in target.hits if hit.held]
            target.wait_for(lambda _: not any(hit.held for hit in left))
        in_flight = {(tenant_of(hit), stage_of(hit)) for hit in target.hits if hit.gone}
        with serving(tmp_path, store, {}) as server, client_of(server) as api:
            answer_calls(target, MOST, lambda hits: all_seen(hits, tenants) and not any(hit.held for hit in hits))
            ended = until_plan(api, plan, "COMPLETED")
            assert ended["tasks"] == counts(completed=len(tenants))
    times = Counter((tenant_of(hit), stage_of(hit)) for hit in target.hits)
    acknowledged = {(tenant, name) for tenant, completed in before.items() for name in NAMES[:completed]}
    assert len(acknowledged) > 20
    assert {call for call in acknowledged if times[call] != 1} == set()
    assert set(times) == {(tenant, name) for tenant in tenants for name in NAMES}
    assert max(times.values()) <= 2
    assert len([call for call in times if times[call] == 2 and call not in in_flight]) <= MOST  # answered as it died
    for stages in each_seen(target).values():
        assert stages == sorted(stages)


def all_seen(hits: Sequence[Hit], tenants: Sequence[str]) -> bool:
    last = {tenant_of(hit) for hit in hits if stage_of(hit) == NAMES[-1] and not hit.gone}
    return len(last) == len(tenants)


def test_what_was_ordered_and_shown_holds_over_a_kill_and_redis_is_brought_up_to_date(
    back_end: str, tmp_path: Path, request: pytest.FixtureRequest, redis_url: str, target: Target
) -> None:
    paused, asked, bad, ready, gone, once = some_tenants(6)
    stages = [*calls(target, "one"), *holds(target, "two"), fails(target, "three")]
    settings = {"KSANA_EXECUTOR_PERSISTENCE_STORE_TYPE": "redis", "KSANA_REDIS_URL": redis_url}
    with (
        empty_database(back_end, tmp_path, request) as store,
        redis.Redis.from_url(redis_url, decode_responses=True) as client,
    ):
        keys = Keys(client)
        with serving(tmp_path, store, settings) as server, client_of(server) as api:
            plan = running(api, stages, [paused, asked, failing(bad, 1), gone], maxConcurrency=4)
            waits = create(api, calls(target, "one"), [ready])
            at_most_once = running(api, [{**holds(target, "two")[0], "recovery": "fail"}], [once])
            held(target, once, "two")
            order_in_second(api, target, paused, "pause")
            release(target, paused, "two")
            until_task(api, paused, "PAUSED")
            release(target, bad, "two")
            until_task(api, bad, "FAILED")
            order_in_second(api, target, gone, "cancel")
            until_task(api, gone, "CANCELLED")
            order_in_second(api, target, asked, "pause")
            told = shown(api, paused, bad, gone)
            tasks = {task["tenantId"]: task["taskId"] for task in tasks_in(api, plan)}
            assert keys.lock(asked) == tasks[asked]
            server.end(signal.SIGKILL)
        assert keys.lock(asked) == tasks[asked]  # for hours, if it were for Redis alone
        client.delete(*(key for key in keys.all() if ":lock:" not in key))
        with serving(tmp_path, store, settings) as server, client_of(server) as api:
            assert shown(api, paused, bad, gone) == told
            assert fetch(api, waits["planId"]) == waits
            found = task_of(api, asked)  # the stage was broken off: the task may stop before it begins again, or after
            assert found["pauseRequested"] or found["status"] == "PAUSED", found
            until(api, f"{TENANTS}/{asked}/task", lambda task: rests(task, target))
            keys.until_task(tasks[asked], status="PAUSED")
            keys.until_task(tasks[paused], status="PAUSED", lastCompletedStageIndex="1")
            keys.until_task(tasks[bad], status="FAILED", lastCompletedStageIndex="1")
            keys.until_task(tasks[gone], status="CANCELLED")
            keys.until(lambda: keys.checkpoint(tasks[bad]), lambda saved: saved and len(saved["completedStages"]) == 2)
            keys.until_plan(waits["planId"], status="READY")
            keys.assert_documented()
            until_plan(api, at_most_once, "FAILED")
            for tenant, what in ((asked, "resume"), (paused, "resume"), (bad, "retry")):  # the recovery flow of §7.3
                task_obeyed(api, tenant, what)
                until(api, f"{TENANTS}/{tenant}/task", lambda task: rests(task, target, "COMPLETED"))
            obeyed(api, waits["planId"], "start")
            until_plan(api, waits["planId"], "COMPLETED")
    assert each_seen(target) == {
        paused: ["one", "two", "three"],
        asked: ["one", "two", "two", "three"],
        bad: ["one", "two", "three", "three"],
        gone: ["one", "two"],
        ready: ["one"],
        once: ["two"],
    }


def rests(task: Json, target: Target, status: str = "PAUSED") -> bool:
    """Whether a task is in this state; what it calls meanwhile is answered."""
    target.release_all()
    return bool(task["status"] == status)


def order_in_second(api: httpx2.Client, target: Target, tenant: str, what: str) -> None:
    """An order to a tenant that is in its second stage."""
    held(target, tenant, "two")
    task_obeyed(api, tenant, what)


def shown(api: httpx2.Client, *tenants: str) -> list[Json | list[Json]]:
    """What the API says of tenants at rest, checkpoints and events included."""
    tasks = [task_of(api, tenant) for tenant in tenants]
    events = [events_at(api, f"{TENANTS}/{tenant}/task/events") for tenant in tenants]
    return [*tasks, *events]
