"""The words of document 004 for its tests: plans, their stages, tenants and waves, orders to them, and what is seen of them."""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import httpx2
import pytest

from tests.contract.api.conftest import ANSWER_SECONDS, BACK_ENDS, PAUSE_SECONDS, unique, until
from tests.contract.api.cronjob_world import assert_error, done
from tests.contract.api.witness import Hit, Target

Json = dict[str, Any]

PLANS = "/api/v1/plans"
TENANTS = "/api/v1/tenants"
RUNS = "/api/v1/runs"

ON_STORES = pytest.mark.parametrize("back_end", BACK_ENDS[:3], indirect=True, scope="module")
"""Every store that keeps plans; the JSON file of document 002 does not."""

DETAIL = {
    "planId",
    "name",
    "description",
    "status",
    "pauseReason",
    "message",
    "stages",
    "maxConcurrency",
    "onBusy",
    "failureBudget",
    "params",
    "tenants",
    "progress",
    "tasks",
    "waves",
    "currentWave",
    "createdAt",
    "startedAt",
    "endedAt",
    "updatedAt",
}
COUNTS = {"waiting", "running", "paused", "completed", "failed", "cancelled"}
WAVE = {"wave", "size", "percent", "pauseAfter", "gate", "tenants", "status", "tasks"}
TASK = {
    "taskId",
    "tenantId",
    "planId",
    "status",
    "pauseRequested",
    "wave",
    "stageNames",
    "lastCompletedStageIndex",
    "completedStages",
    "totalStages",
    "currentStage",
    "progress",
    "attempt",
    "runId",
    "error",
    "reason",
    "hasCheckpoint",
    "createdAt",
    "startedAt",
    "endedAt",
    "updatedAt",
}
TASK_DETAIL = TASK | {"params", "stages", "checkpoint"}
STAGE = {"name", "index", "status", "attempts", "output", "error", "startedAt", "endedAt"}
CHECKPOINT = {
    "taskId",
    "tenantId",
    "planId",
    "version",
    "lastCompletedStageIndex",
    "completedStages",
    "contextData",
    "savedAt",
    "expiresAt",
}
ENDED = {"COMPLETED", "FAILED", "CANCELLED"}
NOBODY = "nobody-has-this-id"

DAY = 24 * 3600
TTL = {"ckpt": 7 * DAY, "task": 30 * DAY, "plan": 30 * DAY, "index": 30 * DAY, "lock": 9000}
"""§6.1, in seconds."""
SLACK = 600
"""Seconds of its time to live that a key may have used up."""
TYPES = {"ckpt": "string", "task": "hash", "plan": "hash", "index": "string", "lock": "string"}


# Definitions


def stage(name: str, url: str, /, config: Json | None = None, **given: Any) -> Json:
    """A stage that makes a request whose path ends with the tenant and the stage."""
    where = f"{url}/{{{{ params.tenantId }}}}/{name}"
    return {"name": name, "type": "http", "config": {"method": "POST", "url": where, **(config or {})}, **given}


def calls(target: Target, *names: str) -> list[Json]:
    """Stages that succeed."""
    return [stage(name, target.url("/ok")) for name in names]


def holds(target: Target, *names: str) -> list[Json]:
    """Stages that last until the test lets them go."""
    return [stage(name, target.url("/hold"), timeout="5m") for name in names]


def fails(target: Target, name: str, **given: Any) -> Json:
    """A stage that fails as often as the tenant's parameter `fails` says."""
    return stage(name, target.url("/flaky/{{ params.fails }}"), **given)


def failing(tenant: str, times: int = 99) -> Json:
    """A tenant whose stages `fails` do so."""
    return {"tenantId": tenant, "params": {"fails": times}}


def some_tenants(count: int) -> list[str]:
    """Tenants that no other test has."""
    prefix = unique("tenant")
    return [f"{prefix}-{number:03d}" for number in range(count)]


def a_plan(stages: Sequence[Json], tenants: Sequence[str | Json], /, **given: Any) -> Json:
    return {
        "name": unique("plan"),
        "stages": list(stages),
        "tenants": list(tenants),
        "params": {"fails": 0},
        **given,
    }


def create(api: httpx2.Client, stages: Sequence[Json], tenants: Sequence[str | Json], /, **given: Any) -> Json:
    """A new plan."""
    answer = api.post(PLANS, json=a_plan(stages, tenants, **given))
    assert answer.status_code == 201, f"{answer.status_code} {answer.text}"
    return done(answer)


def running(api: httpx2.Client, stages: Sequence[Json], tenants: Sequence[str | Json], /, **given: Any) -> str:
    """The id of a new plan that starts by itself."""
    return str(create(api, stages, tenants, autoStart=True, **given)["planId"])


# What is seen of them


def fetch(api: httpx2.Client, plan: str) -> Json:
    answer = api.get(f"{PLANS}/{plan}")
    assert answer.status_code == 200, answer.text
    return done(answer)


def until_plan(api: httpx2.Client, plan: str, *statuses: str, timeout: float = 20) -> Json:
    """Waits until a plan has one of these statuses, and no other final one before."""
    found: Json = until(api, f"{PLANS}/{plan}", lambda body: body["status"] in {*statuses, *ENDED}, timeout)
    assert found["status"] in statuses, found
    return found


def find(api: httpx2.Client, path: str = PLANS, /, **query: Any) -> Json:
    """A page."""
    answer = api.get(path, params=query)
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) == {"page", "size", "total", "items"}
    return done(answer)


def tasks_in(api: httpx2.Client, plan: str, **query: Any) -> list[Json]:
    """The tasks of a plan, as the list shows them."""
    items: list[Json] = find(api, f"{PLANS}/{plan}/tasks", size=500, **query)["items"]
    return items


def states_in(api: httpx2.Client, plan: str) -> dict[str, str]:
    """The status of each tenant of a plan."""
    return {task["tenantId"]: task["status"] for task in tasks_in(api, plan)}


def task_of(api: httpx2.Client, tenant: str, **query: str) -> Json:
    answer = api.get(f"{TENANTS}/{tenant}/task", params=query)
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) == TASK_DETAIL
    return done(answer)


def until_task(api: httpx2.Client, tenant: str, *statuses: str, timeout: float = 20, **query: str) -> Json:
    """Waits until a tenant's task has one of these statuses."""
    path = f"{TENANTS}/{tenant}/task"
    found: Json = until(api, path, lambda body: body["status"] in statuses, timeout, **query)
    return found


def checkpoint_of(api: httpx2.Client, tenant: str) -> Json:
    answer = api.get(f"{TENANTS}/{tenant}/checkpoint")
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) == CHECKPOINT
    return done(answer)


def stages_of(task: Json) -> dict[str, str]:
    """The status of each stage of a task."""
    return {each["name"]: each["status"] for each in task["stages"]}


def events_at(api: httpx2.Client, path: str, **query: Any) -> list[Json]:
    """What happened, oldest first."""
    answer = api.get(path, params=query)
    assert answer.status_code == 200, answer.text
    items: list[Json] = answer.json()["items"]
    return items


def counts(**given: int) -> dict[str, int]:
    """How many tasks are in each state; those not named are none."""
    return dict.fromkeys(COUNTS, 0) | given


# Orders


def order(api: httpx2.Client, plan: str, what: str, **body: Any) -> httpx2.Response:
    """`start`, `pause`, `resume`, `cancel` or `retry-failed`."""
    path = f"{PLANS}/{plan}:{what}"
    return api.post(path, json=body) if body else api.post(path)


def obeyed(api: httpx2.Client, plan: str, what: str, **body: Any) -> Json:
    """An order that is taken; the answer is the plan."""
    answer = order(api, plan, what, **body)
    assert answer.status_code == 200, f"{answer.status_code} {answer.text}"
    assert set(answer.json()) >= DETAIL
    assert answer.json()["planId"] == plan
    return done(answer)


def task_order(api: httpx2.Client, tenant: str, what: str, **body: Any) -> httpx2.Response:
    """`pause`, `resume`, `retry` or `cancel`."""
    path = f"{TENANTS}/{tenant}/task:{what}"
    return api.post(path, json=body) if body else api.post(path)


def task_obeyed(api: httpx2.Client, tenant: str, what: str, **body: Any) -> Json:
    """An order that is taken; the answer is the task."""
    answer = task_order(api, tenant, what, **body)
    assert answer.status_code == 200, f"{answer.status_code} {answer.text}"
    assert set(answer.json()) == TASK_DETAIL
    assert answer.json()["tenantId"] == tenant
    return done(answer)


def assert_refused(answer: httpx2.Response, field: str) -> None:
    """400 VALIDATION_ERROR with the field named."""
    details = assert_error(answer, 400, "VALIDATION_ERROR")
    assert field in str(details.get("field")), answer.text
    assert field in answer.json()["message"], answer.text


# What the target saw


def tenant_of(hit: Hit) -> str:
    return hit.path.split("/")[-2]


def stage_of(hit: Hit) -> str:
    return hit.path.split("/")[-1]


def seen(target: Target, tenant: str) -> list[str]:
    """The stages that the target was called for, for this tenant, in order."""
    return [stage_of(hit) for hit in target.hits if tenant_of(hit) == tenant]


def each_seen(target: Target) -> dict[str, list[str]]:
    """Those of every tenant."""
    return {tenant: seen(target, tenant) for tenant in {tenant_of(hit) for hit in target.hits}}


def held(target: Target, tenant: str, name: str) -> Hit:
    """Waits until this tenant's call of this stage is held."""

    def those(hits: Iterable[Hit]) -> list[Hit]:
        return [hit for hit in hits if hit.held and (tenant_of(hit), stage_of(hit)) == (tenant, name)]

    return those(target.wait_for(those))[-1]


def release(target: Target, tenant: str, name: str, status: int = 200) -> None:
    """Answers this tenant's call of this stage, which is held or will be."""
    hit = held(target, tenant, name)
    target.release(hit, status)
    target.wait_for(lambda _: not hit.held)


def release_each(target: Target, tenants: Iterable[str], *stages: str) -> None:
    """Answers all calls of these tenants, one after the other."""
    for tenant in tenants:
        for name in stages:
            release(target, tenant, name)


def drive(target: Target, left: Mapping[str, int], most: int) -> None:
    """Answers calls one by one until each tenant has had so many. As many as there may be are open at each moment, no more,
    and no two of one tenant."""
    wanted = Counter(dict(left))
    while wanted:
        open_calls = target.wait_held(min(most, len(wanted)))
        assert len({tenant_of(hit) for hit in open_calls}) == len(open_calls), open_calls
        hit = open_calls[0]
        target.release(hit)
        target.wait_for(lambda _, hit=hit: not hit.held)  # type: ignore[misc]
        wanted.subtract([tenant_of(hit)])
        wanted += Counter()


def report(hit: Hit, status: str = "SUCCESS", **body: Any) -> None:
    """The callback of an asynchronous stage."""
    answer = httpx2.post(hit.callback.url, json={"status": status, **body}, timeout=ANSWER_SECONDS)
    assert answer.status_code == 200, answer.text


# Health


def health_of(api: httpx2.Client) -> str:
    """What `/health` says; degraded runtime state is no reason to take the server out of service: 200."""
    answer = api.get("/health")
    assert answer.status_code == 200, answer.text
    return str(answer.json()["status"])


def until_health(api: httpx2.Client, status: str, timeout: float = 20) -> None:
    until(api, "/health", lambda body: body["status"] == status, timeout)


def metric(api: httpx2.Client, name: str) -> list[float]:
    """The values of a metric, one for each set of labels."""
    lines = api.get("/metrics").text.splitlines()
    return [float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith((f"{name} ", f"{name}{{"))]


# Redis


class Keys:
    """Redis as `redis-cli` shows it."""

    def __init__(self, client: Any, namespace: str = "executor") -> None:
        self.client = client
        self.namespace = namespace

    def all(self) -> set[str]:
        return set(self.client.scan_iter(f"{self.namespace}:*", count=1000))

    def task(self, task: str) -> dict[str, str]:
        found: dict[str, str] = self.client.hgetall(f"{self.namespace}:task:{task}")
        return found

    def plan(self, plan: str) -> dict[str, str]:
        found: dict[str, str] = self.client.hgetall(f"{self.namespace}:plan:{plan}")
        return found

    def checkpoint(self, task: str) -> Json | None:
        text = self.client.get(f"{self.namespace}:ckpt:{task}")
        return None if text is None else json.loads(text)

    def index(self, tenant: str) -> str | None:
        found: str | None = self.client.get(f"{self.namespace}:index:tenant:{tenant}")
        return found

    def lock(self, tenant: str) -> str | None:
        found: str | None = self.client.get(f"{self.namespace}:lock:tenant:{tenant}")
        return found

    def until(self, read: Callable[[], Any], condition: Callable[[Any], object]) -> Any:
        """Projections follow their events; not for long."""
        deadline = time.monotonic() + 10
        while True:
            found = read()
            if condition(found):
                return found
            assert time.monotonic() < deadline, f"still {found}; the keys are {sorted(self.all())}"
            time.sleep(PAUSE_SECONDS)

    def until_task(self, task: str, **fields: str) -> dict[str, str]:
        """Waits until a task's hash has these values."""
        found: dict[str, str] = self.until(lambda: self.task(task), lambda seen: fields.items() <= seen.items())
        return found

    def until_plan(self, plan: str, **fields: str) -> dict[str, str]:
        found: dict[str, str] = self.until(lambda: self.plan(plan), lambda seen: fields.items() <= seen.items())
        return found

    def until_held(self, tenant: str, task: str | None) -> None:
        """Waits until a tenant's index and lock name this task, or are not there."""
        self.until(lambda: (self.index(tenant), self.lock(tenant)), lambda found: found == (task, task))

    def assert_documented(self) -> None:
        """Nothing is there but what §6.1 lists, of the type it says and with the time to live it says."""
        for key in self.client.scan_iter("*", count=1000):
            if key.startswith("test-executor:"):  # another environment's
                continue
            kind = key.removeprefix(f"{self.namespace}:").partition(":")[0]
            assert kind in TYPES, f"{key} is none of the keys of §6.1"
            lives = self.client.ttl(key)
            if lives != -2:  # it went as we looked
                assert self.client.type(key) in {TYPES[kind], "none"}, key
                assert TTL[kind] - SLACK < lives <= TTL[kind], (key, lives)
