"""Document 003 §9.1: tasks are created, read, listed, changed, switched and deleted, on every back end."""

from typing import Any

import httpx2
import pytest

from tests.contract.api.conftest import unique
from tests.contract.api.cronjob_world import (
    EXAMPLE,
    TASK_FIELDS,
    TASKS,
    a_task,
    assert_error,
    create,
    done,
    fetch,
    instant,
    known,
    trigger,
)

URL = "http://127.0.0.1:9/never-called"
CHANGES: list[tuple[str, Any]] = [
    ("description", "更新描述"),
    ("timezone", "Asia/Shanghai"),
    ("exec_type", "ASYNC"),
    ("http_method", "PUT"),
    ("target_url", "http://svc.internal/other?a=b"),
    ("headers", {"X-Team": "data", "Content-Type": "text/plain"}),
    ("body_template", "{{run_id}} of {{task_id}}"),
    ("timeout_seconds", 7),
    ("retry_policy", {"max_retries": 2, "initial_delay": 4, "strategy": "fixed", "max_delay": 9}),
    ("max_concurrency", 3),
    ("concurrency_policy", "SKIP"),
    ("concurrency_policy", "PARALLEL"),
    ("misfire_policy", "SKIP"),
    ("misfire_policy", "CATCH_UP_LIMITED"),
    ("catchup_limit", 9),
    ("callback_method", "PUT"),
    ("callback_timeout_sec", 60),
]
EACH_CHANGE = pytest.mark.parametrize(("field", "value"), CHANGES, ids=[f"{n}-{i}" for i, (n, _) in enumerate(CHANGES)])


def test_the_answer_to_a_creation_has_the_id_and_the_name(api: httpx2.Client) -> None:
    name = unique("t")
    answer = api.post(TASKS, json=a_task(URL, name=name))
    assert answer.status_code in {200, 201}
    assert answer.json()["name"] == name
    assert isinstance(answer.json()["id"], int)


def test_the_example_of_the_document_is_kept_as_it_was_given(api: httpx2.Client) -> None:
    given = {**EXAMPLE, "name": unique("sync_stats")}
    task = fetch(api, done(api.post(TASKS, json=given))["id"])
    assert {field: task[field] for field in given} == {**given, "cron_expr": "0 0 */5 * * *"}


def test_a_task_shows_every_field_of_the_document(api: httpx2.Client) -> None:
    task = fetch(api, create(api, URL))
    assert set(task) >= TASK_FIELDS
    assert instant(task["created_at"]) <= instant(task["updated_at"])


def test_what_is_not_given_has_the_defaults_of_the_document(api: httpx2.Client) -> None:
    body = {"name": unique("t"), "cron_expr": "*/30 * * * * *", "exec_type": "SYNC", "http_method": "GET"}
    task = fetch(api, done(api.post(TASKS, json={**body, "target_url": URL}))["id"])
    try:
        defaults = {
            "description": "",
            "timezone": "UTC",
            "max_concurrency": 1,
            "concurrency_policy": "QUEUE",
            "misfire_policy": "FIRE_NOW",
            "callback_method": "POST",
            "callback_timeout_sec": 300,
            "timeout_seconds": 15,
            "status": "ENABLED",
            "version": 1,
        }
        assert {field: task[field] for field in defaults} == defaults
        assert task["retry_policy"]["max_retries"] == 0
        assert not task["headers"]
        assert not task["body_template"]
    finally:
        api.delete(f"{TASKS}/{task['id']}")


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("*/5 * * * *", "0 */5 * * * *"),
        ("0 0 1 1 *", "0 0 0 1 1 *"),
        ("7 */20 3,4 1 1 *", "7 */20 3,4 1 1 *"),
        ("0 0 9-17/2 1 1 *", "0 0 9-17/2 1 1 *"),
    ],
    ids=["five", "five-fixed", "six", "range"],
)
def test_a_cron_expression_is_kept_with_six_fields(api: httpx2.Client, given: str, kept: str) -> None:
    task = create(api, URL, cron_expr=given)
    assert fetch(api, task)["cron_expr"] == kept
    done(api.delete(f"{TASKS}/{task}"))


@EACH_CHANGE
def test_patch_changes_one_field_and_leaves_the_others(api: httpx2.Client, field: str, value: Any) -> None:
    task = create(api, URL)
    before = known(fetch(api, task))
    answer = done(api.patch(f"{TASKS}/{task}", json={field: value}))
    assert (answer["updated"], answer["id"], answer[field]) == (True, task, value)
    after = known(fetch(api, task))
    moved = {"updated_at", "version", field}
    assert after[field] == value
    assert {k: v for k, v in after.items() if k not in moved} == {k: v for k, v in before.items() if k not in moved}
    assert after["version"] == before["version"] + 1
    assert instant(after["updated_at"]) >= instant(before["updated_at"])


def test_patch_changes_the_name(api: httpx2.Client) -> None:
    task, name = create(api, URL), unique("renamed")
    assert done(api.patch(f"{TASKS}/{task}", json={"name": name}))["name"] == name
    assert fetch(api, task)["name"] == name


def test_patch_changes_description_and_cron_as_in_phase_1(api: httpx2.Client) -> None:
    task = create(api, URL)
    answer = done(api.patch(f"{TASKS}/{task}", json={"description": "更新描述", "cron_expr": "*/10 3 1 1 *"}))
    assert answer["updated"] is True
    assert fetch(api, task)["cron_expr"] == "0 */10 3 1 1 *"


def test_put_replaces_the_whole_task(api: httpx2.Client) -> None:
    task = create(api, URL, description="before", headers={"X-A": "1"}, max_concurrency=4)
    given = {**a_task(URL), **{field: value for field, value in CHANGES if field not in {"headers", "description"}}}
    done(api.put(f"{TASKS}/{task}", json=given))
    after = fetch(api, task)
    assert {field: after[field] for field in given} == {**given, "cron_expr": "0 0 0 1 1 *"}
    assert not after["headers"]
    assert not after["description"]


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_a_change_of_another_version_is_refused_and_changes_nothing(api: httpx2.Client, method: str) -> None:
    task = create(api, URL)
    body = a_task(URL) if method == "PUT" else {}
    first = done(api.request(method, f"{TASKS}/{task}", json={**body, "description": "a", "version": 1}))
    assert first["version"] == 2
    before = fetch(api, task)
    assert_error(api.request(method, f"{TASKS}/{task}", json={**body, "description": "b", "version": 1}), 409)
    assert fetch(api, task) == before


def test_a_task_is_switched_off_and_on(api: httpx2.Client) -> None:
    task = create(api, URL)
    for word, status in (("disable", "DISABLED"), ("disable", "DISABLED"), ("enable", "ENABLED")):
        assert done(api.patch(f"{TASKS}/{task}/{word}"))["status"] == status
        assert fetch(api, task)["status"] == status


def test_a_deleted_task_is_gone_and_its_runs_stay(api: httpx2.Client) -> None:
    name = unique("t")
    task = create(api, URL, name=name)
    run = trigger(api, task)
    assert done(api.delete(f"{TASKS}/{task}"))["deleted"] is True
    assert_error(api.get(f"{TASKS}/{task}"), 404, "NOT_FOUND")
    assert_error(api.patch(f"{TASKS}/{task}", json={"description": "x"}), 404, "NOT_FOUND")
    assert_error(api.patch(f"{TASKS}/{task}/enable"), 404, "NOT_FOUND")
    assert_error(api.post(f"{TASKS}/{task}/trigger"), 404, "NOT_FOUND")
    assert_error(api.delete(f"{TASKS}/{task}"), 404, "NOT_FOUND")
    assert done(api.get(TASKS, params={"name": name}))["total"] == 0
    assert done(api.get(f"/api/v1/runs/{run}"))["task_id"] == task


def test_a_name_is_taken_once(api: httpx2.Client) -> None:
    name = unique("t")
    create(api, URL, name=name)
    other = create(api, URL)
    assert_error(api.post(TASKS, json=a_task(URL, name=name)), 409)
    assert_error(api.patch(f"{TASKS}/{other}", json={"name": name}), 409)
    assert done(api.get(TASKS, params={"name": name}))["total"] == 1
    assert fetch(api, other)["name"] != name


def test_tasks_are_listed_by_page(api: httpx2.Client) -> None:
    created = [create(api, URL) for _ in range(3)]
    total = done(api.get(TASKS, params={"status": "ENABLED", "page_size": 1}))["total"]
    seen: list[int] = []
    for page in range(1, total + 1):
        body = done(api.get(TASKS, params={"status": "ENABLED", "page": page, "page_size": 1}))
        assert (body["page"], body["page_size"], body["total"], len(body["items"])) == (page, 1, total, 1)
        seen += [item["id"] for item in body["items"]]
    assert len(set(seen)) == total
    assert set(created) <= set(seen)
    assert done(api.get(TASKS, params={"status": "ENABLED", "page": total + 1, "page_size": 1}))["items"] == []


def test_a_page_has_twenty_unless_told_otherwise(api: httpx2.Client) -> None:
    body = done(api.get(TASKS))
    assert (body["page"], body["page_size"]) == (1, 20)
    assert len(body["items"]) == min(20, body["total"])


def test_tasks_are_listed_by_status_and_name(api: httpx2.Client) -> None:
    name = unique("t")
    task = create(api, URL, name=name)

    def found(**params: str) -> list[int]:
        body = done(api.get(TASKS, params={"name": name, **params}))
        assert body["total"] == len(body["items"])
        return [item["id"] for item in body["items"]]

    assert (found(), found(status="ENABLED"), found(status="DISABLED")) == ([task], [task], [])
    done(api.patch(f"{TASKS}/{task}/disable"))
    assert (found(status="ENABLED"), found(status="DISABLED")) == ([], [task])


def test_a_listed_task_is_as_its_detail(api: httpx2.Client) -> None:
    name = unique("t")
    task = create(api, URL, name=name)
    (item,) = done(api.get(TASKS, params={"name": name}))["items"]
    detail = fetch(api, task)
    assert {field: item[field] for field in ("id", "name", "cron_expr", "status")} == {
        field: detail[field] for field in ("id", "name", "cron_expr", "status")
    }
