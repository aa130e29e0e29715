"""PUT and PATCH: what is replaced, what stays, and who came first."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import httpx2
import pytest
from tests.contract.store.world import ANNA, http_spec
from tests.unit.api.cronjob.conftest import TASK, Desk, created, refusal

from ksana.domain.job import Contract
from ksana.domain.retry import RetryPolicy
from ksana.domain.schedule import ScheduleKind, ScheduleSpec
from ksana.engine.commands import JobDraft, JobEdit, ScheduleDraft
from ksana.engine.queries import JobView

CHANGING = {"version", "updated_at", "updated", "next_run_time", "schedule"}


@pytest.mark.parametrize(
    "change",
    [
        {"name": "renamed"},
        {"description": "d"},
        {"description": None},
        {"cron_expr": "0 0 6 * * *"},
        {"timezone": "Europe/Berlin"},
        {"exec_type": "SYNC"},
        {"http_method": "POST"},
        {"target_url": "http://b/"},
        {"headers": {"X-B": "2"}},
        {"headers": None},
        {"body_template": "{{run_id}}"},
        {"body_template": None},
        {"timeout_seconds": 7},
        {"max_concurrency": 9},
        {"concurrency_policy": "PARALLEL"},
        {"misfire_policy": "FIRE_NOW"},
        {"catchup_limit": 1},
        {"callback_method": "PUT"},
        {"callback_timeout_sec": 1},
        {"status": "DISABLED"},
        {"recovery": "retry"},
        {"queue_limit": 1},
        {"follow_redirects": False},
        {"labels": {}},
        {"start_at": None},
        {"end_at": "2027-01-01T00:00:00Z"},
        {"jitter": 2},
        {"connect_timeout": None},
        {},
    ],
)
async def test_a_patch_changes_what_it_names_and_keeps_the_rest(
    change: dict[str, Any], client: httpx2.AsyncClient
) -> None:
    before = await created(
        client,
        description="first",
        exec_type="ASYNC",
        headers={"X-A": "1"},
        body_template="a",
        retry_policy={"max_retries": 2, "initial_delay": 3, "strategy": "fixed", "max_delay": 4},
        misfire_policy="CATCH_UP_LIMITED",
        concurrency_policy="SKIP",
        recovery="fail",
        follow_redirects=True,
        connect_timeout=5,
        labels={"a": "b"},
        start_at="2026-06-01T00:00:00Z",
        jitter=1,
    )
    answer = await client.patch("/api/v1/tasks/1", json=change)
    assert answer.status_code == 200, answer.text
    after = answer.json()
    assert after["updated"] is True
    empty = {"description": "", "headers": {}}
    wanted = {name: empty.get(name) if value is None else value for name, value in change.items()}
    assert {name: after[name] for name in change} == wanted
    untouched = set(before) - set(change) - CHANGING
    assert {name: after[name] for name in untouched} == {name: before[name] for name in untouched}
    assert after["version"] == (1 if all(before[name] == value for name, value in wanted.items()) else 2)


async def test_part_of_a_retry_policy_keeps_its_other_parts(client: httpx2.AsyncClient) -> None:
    await created(client, retry_policy={"max_retries": 2, "initial_delay": 3, "strategy": "fixed", "max_delay": 4})
    after = (await client.patch("/api/v1/tasks/1", json={"retry_policy": {"max_retries": 5}})).json()
    assert after["retry_policy"] == {"max_retries": 5, "initial_delay": 3, "strategy": "fixed", "max_delay": 4}
    answer = await client.patch("/api/v1/tasks/1", json={"retry_policy": {"initial_delay": 9}})
    assert refusal(answer) == (400, "INVALID_ARGUMENT", "retry_policy.max_delay")
    after = (await client.patch("/api/v1/tasks/1", json={"retry_policy": None})).json()
    assert after["retry_policy"]["max_retries"] == 0


async def test_a_patch_keeps_what_document_003_has_no_word_for(desk: Desk, client: httpx2.AsyncClient) -> None:
    policy = RetryPolicy(max_attempts=4, delay=timedelta(seconds=1), multiplier=3.0)
    config = {"url": "http://a/", "body": {"deep": [1]}}
    spec = replace(http_spec("job"), contract=Contract.JOBCHAIN, worker_queue="gpu", retry=policy, config=config)
    every = ScheduleSpec(kind=ScheduleKind.EVERY, every=timedelta(minutes=1), anchor=desk.clock.now())
    made = await desk.services.jobs.create(JobDraft(spec, ScheduleDraft(every)), ANNA)
    assert (await client.patch("/api/v1/tasks/1", json={"description": "new", "timezone": "Asia/Tokyo"})).is_success
    view = await desk.services.queries.job(1)
    assert view.job.spec == replace(made.job.spec, description="new")
    assert view.schedule is not None
    assert view.schedule.spec == replace(every, timezone="Asia/Tokyo")
    after = (await client.patch("/api/v1/tasks/1", json={"cron_expr": "@daily"})).json()
    assert (after["schedule"]["kind"], after["schedule"]["every"]) == ("cron", None)


async def test_a_job_without_a_schedule_can_be_given_one(desk: Desk, client: httpx2.AsyncClient) -> None:
    await desk.services.jobs.create(JobDraft(http_spec("job")), ANNA)
    answer = await client.patch("/api/v1/tasks/1", json={"timezone": "Asia/Tokyo"})
    assert refusal(answer) == (400, "INVALID_ARGUMENT", "cron_expr")
    after = (await client.patch("/api/v1/tasks/1", json={"cron_expr": "0 9 * * *", "timezone": "Asia/Tokyo"})).json()
    assert (after["cron_expr"], after["timezone"]) == ("0 0 9 * * *", "Asia/Tokyo")


@pytest.mark.parametrize("name", ["name", "cron_expr", "target_url", "status", "max_concurrency", "timezone"])
async def test_what_cannot_be_nothing_is_not_taken_as_nothing(name: str, client: httpx2.AsyncClient) -> None:
    before = await created(client)
    answer = await client.patch("/api/v1/tasks/1", json={name: None})
    assert refusal(answer) == (400, "INVALID_ARGUMENT", name)
    assert (await client.get("/api/v1/tasks/1")).json() == before


@pytest.mark.parametrize("name", ["id", "created_at", "deleted", "colour"])
async def test_a_patch_of_what_there_is_not_is_refused(name: str, client: httpx2.AsyncClient) -> None:
    await created(client)
    assert refusal(await client.patch("/api/v1/tasks/1", json={name: 1})) == (400, "INVALID_ARGUMENT", name)


async def test_put_gives_defaults_to_what_it_does_not_name(desk: Desk, client: httpx2.AsyncClient) -> None:
    await created(client, description="d", headers={"a": "b"}, timeout_seconds=3, jitter=1, timezone="Asia/Tokyo")
    after = (await client.put("/api/v1/tasks/1", json={**TASK, "name": "t2"})).json()
    assert after["updated"] is True
    fresh = await created(client)
    same = set(fresh) - CHANGING - {"id", "key", "name", "created_at"}
    assert {name: after[name] for name in same} == {name: fresh[name] for name in same}
    assert refusal(await client.put("/api/v1/tasks/1", json={"name": "x"}))[2] in {"cron_expr", "target_url"}
    assert (await desk.services.queries.job(1)).job.spec.contract is Contract.CRONJOB


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
async def test_a_version_that_is_no_longer_the_tasks_is_a_conflict(method: str, client: httpx2.AsyncClient) -> None:
    await created(client)
    body = TASK if method == "PUT" else {}
    first = await client.request(method, "/api/v1/tasks/1", json={**body, "description": "a", "version": 1})
    assert first.json()["version"] == 2
    second = await client.request(method, "/api/v1/tasks/1", json={**body, "description": "b", "version": 1})
    assert refusal(second) == (409, "VERSION_CONFLICT", None)
    assert (await client.get("/api/v1/tasks/1")).json()["description"] == "a"
    huge = await client.request(method, "/api/v1/tasks/1", json={**body, "version": 2**60})
    assert refusal(huge) == (400, "INVALID_ARGUMENT", "version")


async def test_another_change_that_comes_between_is_kept(
    desk: Desk, client: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await created(client)
    real, pending = type(desk.services.jobs).change, ["somebody else's"]

    async def raced(self: Any, job_id: int, edit: JobEdit, actor: Any) -> JobView:
        if pending:
            spec = replace((await desk.services.queries.job(job_id)).job.spec, description=pending.pop())
            await real(self, job_id, JobEdit(spec), actor)
        return await real(self, job_id, edit, actor)

    monkeypatch.setattr(type(desk.services.jobs), "change", raced)
    after = (await client.patch("/api/v1/tasks/1", json={"timeout_seconds": 4})).json()
    assert (after["description"], after["timeout_seconds"], after["version"]) == ("somebody else's", 4, 3)
