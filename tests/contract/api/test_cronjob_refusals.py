"""Document 003 §9.5 and §13: what is refused, with which code, and that nothing changes by it."""

from typing import Any

import httpx2
import pytest

from tests.contract.api.conftest import ON_SQLITE, unique
from tests.contract.api.cronjob_world import (
    CALLBACKS,
    RUNS,
    TASKS,
    a_task,
    assert_error,
    assert_refused,
    create,
    done,
    fetch,
    runs_of,
)

pytestmark = ON_SQLITE

URL = "http://127.0.0.1:9/never-called"
WRONG: dict[str, tuple[str, Any]] = {
    "name-blank": ("name", "  "),
    "name-empty": ("name", ""),
    "name-too-long": ("name", "n" * 129),
    "name-number": ("name", 7),
    "name-null": ("name", None),
    "description-too-long": ("description", "d" * 513),
    "cron-too-few": ("cron_expr", "* * *"),
    "cron-too-many": ("cron_expr", "* * * * * * *"),
    "cron-words": ("cron_expr", "every other day at noon"),
    "cron-out-of-range": ("cron_expr", "61 * * * * *"),
    "cron-step-of-zero": ("cron_expr", "*/0 * * * * *"),
    "cron-empty": ("cron_expr", ""),
    "cron-number": ("cron_expr", 5),
    "timezone-unknown": ("timezone", "Mars/Olympus"),
    "timezone-empty": ("timezone", ""),
    "exec-type": ("exec_type", "SOMETIMES"),
    "method": ("http_method", "BREW"),
    "method-injection": ("http_method", "GET / HTTP/1.1\r\nX: y\r\n"),
    "url-ftp": ("target_url", "ftp://svc.internal/file"),
    "url-file": ("target_url", "file:///etc/passwd"),
    "url-none": ("target_url", "svc.internal/api"),
    "url-no-host": ("target_url", "http:///api"),
    "headers-list": ("headers", ["X-A: 1"]),
    "template-open": ("body_template", '{"run_id": "{{run_id"}'),
    "template-block": ("body_template", "{% if run_id %}never closed"),
    "timeout-negative": ("timeout_seconds", -1),
    "timeout-zero": ("timeout_seconds", 0),
    "timeout-text": ("timeout_seconds", "soon"),
    "concurrency-negative": ("max_concurrency", -1),
    "concurrency-policy": ("concurrency_policy", "MAYBE"),
    "misfire-policy": ("misfire_policy", "PANIC"),
    "catchup-negative": ("catchup_limit", -1),
    "callback-timeout-negative": ("callback_timeout_sec", -5),
    "callback-method": ("callback_method", "BREW"),
    "unknown": ("cron_exp", "* * * * * *"),
}
EACH_WRONG = pytest.mark.parametrize(("field", "value"), list(WRONG.values()), ids=list(WRONG))


@EACH_WRONG
def test_a_wrong_value_is_named_and_no_task_is_made(api: httpx2.Client, field: str, value: Any) -> None:
    before = done(api.get(TASKS))["total"]
    assert_refused(api.post(TASKS, json={**a_task(URL), field: value}), field)
    assert done(api.get(TASKS))["total"] == before


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
@EACH_WRONG
def test_a_wrong_value_in_a_change_is_named_and_changes_nothing(
    api: httpx2.Client, method: str, field: str, value: Any
) -> None:
    task = create(api, URL)
    before = fetch(api, task)
    body = a_task(URL) if method == "PUT" else {"description": "other"}
    assert_refused(api.request(method, f"{TASKS}/{task}", json={**body, field: value}), field)
    assert fetch(api, task) == before


@pytest.mark.parametrize(
    ("policy", "field"),
    [
        ({"max_retries": -1}, "max_retries"),
        ({"max_retries": 1, "initial_delay": -5}, "initial_delay"),
        ({"max_retries": 1, "max_delay": -5}, "max_delay"),
        ({"max_retries": 1, "strategy": "hopeful"}, "strategy"),
        ({"max_retries": 1, "retries": 2}, "retries"),
    ],
    ids=["max_retries", "initial_delay", "max_delay", "strategy", "unknown"],
)
def test_a_wrong_retry_policy_names_the_part_of_it(api: httpx2.Client, policy: dict[str, Any], field: str) -> None:
    details = assert_error(api.post(TASKS, json=a_task(URL, retry_policy=policy)), 400, "INVALID_ARGUMENT")
    assert details["field"] == f"retry_policy.{field}"


@pytest.mark.parametrize("field", ["name", "cron_expr", "target_url"])
def test_what_a_task_cannot_do_without_is_named(api: httpx2.Client, field: str) -> None:
    body = a_task(URL)
    del body[field]
    assert_refused(api.post(TASKS, json=body), field)


@pytest.mark.parametrize(
    ("cron", "part"),
    [("61 * * * * *", "second"), ("0 60 * * * *", "minute"), ("0 0 25 * * *", "hour"), ("0 0 0 1 13 *", "month")],
)
def test_a_bad_cron_expression_says_which_part_and_why(api: httpx2.Client, cron: str, part: str) -> None:
    message = assert_refused(api.post(TASKS, json=a_task(URL, cron_expr=cron)), "cron_expr")
    assert part in message.lower()


@pytest.mark.parametrize("body", [b"{", b'{"name": }', b"\xff\xfe", b"name=t1"], ids=["open", "gap", "bytes", "form"])
def test_a_body_that_is_not_json_is_told_so(api: httpx2.Client, body: bytes) -> None:
    task = create(api, URL)
    json_type = {"content-type": "application/json"}
    for method, path in (("POST", TASKS), ("PATCH", f"{TASKS}/{task}"), ("PUT", f"{TASKS}/{task}")):
        assert_error(api.request(method, path, content=body, headers=json_type), 400, "INVALID_JSON")
    assert_error(api.post(f"{TASKS}/{task}/trigger", content=body, headers=json_type), 400, "INVALID_JSON")
    assert_error(api.post(CALLBACKS, content=body, headers=json_type), 400, "INVALID_JSON")
    assert runs_of(api, task)["total"] == 0


@pytest.mark.parametrize("body", ["[]", '"text"', "7", "null"], ids=["list", "text", "number", "null"])
def test_a_body_that_is_no_object_is_an_invalid_argument(api: httpx2.Client, body: str) -> None:
    answer = api.post(TASKS, content=body, headers={"content-type": "application/json"})
    assert_error(answer, 400, "INVALID_ARGUMENT")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/{id}"),
        ("PUT", "/{id}"),
        ("PATCH", "/{id}"),
        ("DELETE", "/{id}"),
        ("PATCH", "/{id}/enable"),
        ("PATCH", "/{id}/disable"),
        ("POST", "/{id}/trigger"),
        ("GET", "/{id}/runs"),
    ],
)
def test_a_task_is_found_by_its_number_or_not_at_all(api: httpx2.Client, method: str, path: str) -> None:
    body = {"PUT": a_task(URL), "PATCH": {"description": "x"}}.get(method)
    body = None if path.endswith("able") else body

    def ask(task: str) -> httpx2.Response:
        return api.request(method, TASKS + path.format(id=task), json=body)

    assert_error(ask("abc"), 400, "INVALID_ID")
    assert_error(ask("1.5"), 400, "INVALID_ID")
    assert_error(ask("999999999"), 404, "NOT_FOUND")
    assert ask("9" * 30).status_code in {400, 404}
    assert ask("-1").status_code in {400, 404}


@pytest.mark.parametrize(("method", "path"), [("GET", "/{id}"), ("POST", "/{id}/cancel")])
def test_a_run_that_does_not_exist_is_not_found(api: httpx2.Client, method: str, path: str) -> None:
    assert_error(api.request(method, RUNS + path.format(id="999999999")), 404, "NOT_FOUND")
    # Runs of workflows are found at the same path, by text: that it is no number is no reason to refuse it.
    for other in ("abc", "9" * 30):
        answer = api.request(method, RUNS + path.format(id=other))
        told = (answer.status_code, answer.json()["code"])
        assert told in {(400, "INVALID_ID"), (404, "NOT_FOUND"), (404, "RUN_NOT_FOUND")}


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"status": "SOMETIMES"}, "status"),
        ({"page": "0"}, "page"),
        ({"page": "first"}, "page"),
        ({"page_size": "0"}, "page_size"),
        ({"page_size": "-3"}, "page_size"),
    ],
    ids=["status", "page-0", "page-text", "size-0", "size-negative"],
)
def test_a_wrong_filter_is_named(api: httpx2.Client, params: dict[str, str], field: str) -> None:
    task = create(api, URL)
    assert_refused(api.get(TASKS, params=params), field)
    assert_refused(api.get(f"{TASKS}/{task}/runs", params=params), field)


@pytest.mark.parametrize("field", ["from", "to"])
def test_a_wrong_time_in_a_filter_is_named(api: httpx2.Client, field: str) -> None:
    assert_refused(api.get(f"{TASKS}/{create(api, URL)}/runs", params={field: "yesterday"}), field)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"override": "x"}, "override"),
        ({"force_async": "perhaps"}, "force_async"),
    ],
    ids=["unknown", "force_async"],
)
def test_a_wrong_trigger_is_named_and_makes_no_run(api: httpx2.Client, body: dict[str, Any], field: str) -> None:
    task = create(api, URL)
    assert_refused(api.post(f"{TASKS}/{task}/trigger", json=body), field)
    assert runs_of(api, task)["total"] == 0


def test_a_body_of_two_megabytes_is_too_large(api: httpx2.Client) -> None:
    name = unique("t")
    body = a_task(URL, name=name, body_template="x" * 2_000_000)
    assert_error(api.post(TASKS, json=body), 413)
    assert done(api.get(TASKS, params={"name": name}))["total"] == 0


def test_the_request_id_of_an_error_is_the_callers(api: httpx2.Client) -> None:
    answer = api.get(f"{TASKS}/999999999", headers={"X-Request-Id": "trace-7"})
    assert_error(answer, 404, "NOT_FOUND")
    assert answer.json()["request_id"] == "trace-7"
