"""The words of document 003 for its tests: tasks, runs, their fields, and the refusals."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import httpx2

from tests.contract.api.conftest import unique, until

Json = dict[str, Any]

TASKS = "/api/v1/tasks"
RUNS = "/api/v1/runs"
CALLBACKS = "/api/v1/callbacks"

NEW_YEAR = "0 0 1 1 *"
EVERY_SECOND = "* * * * * *"

TASK_FIELDS = {
    "id",
    "name",
    "description",
    "cron_expr",
    "timezone",
    "exec_type",
    "http_method",
    "target_url",
    "headers",
    "body_template",
    "timeout_seconds",
    "retry_policy",
    "max_concurrency",
    "concurrency_policy",
    "misfire_policy",
    "catchup_limit",
    "callback_method",
    "callback_timeout_sec",
    "status",
    "version",
    "created_at",
    "updated_at",
}
"""§8.1, where `headers_json` and `retry_policy_json` are the columns of what §9.1 calls `headers` and `retry_policy`."""
RUN_FIELDS = {
    "id",
    "task_id",
    "scheduled_time",
    "start_time",
    "end_time",
    "status",
    "attempt",
    "request_headers",
    "request_body",
    "response_code",
    "response_body",
    "error_message",
    "next_retry_time",
    "callback_token",
    "callback_deadline",
    "trace_id",
    "created_at",
    "updated_at",
}
"""§8.2."""
ATTEMPT_FIELDS = {
    "attempt",
    "status",
    "start_time",
    "end_time",
    "request_headers",
    "request_body",
    "response_code",
    "response_body",
    "error_message",
}
"""Promised: every attempt's request, response and error is kept and shown; named as in §8.2."""
ENDED = {"SUCCESS", "FAILED", "TIMEOUT", "CALLBACK_SUCCESS", "FAILED_TIMEOUT", "CANCELED", "SKIPPED"}
EXAMPLE: Json = {
    "name": "sync_stats",
    "description": "统计同步",
    "cron_expr": "0 */5 * * *",
    "exec_type": "SYNC",
    "http_method": "POST",
    "target_url": "http://svc.internal/api/sync",
    "headers": {"Content-Type": "application/json"},
    "body_template": '{"run_id": "{{run_id}}"}',
    "timeout_seconds": 10,
    "retry_policy": {"max_retries": 3, "initial_delay": 5, "strategy": "exponential", "max_delay": 60},
    "max_concurrency": 1,
    "concurrency_policy": "QUEUE",
    "misfire_policy": "FIRE_NOW",
    "catchup_limit": 5,
}
"""The request of §9.1, word for word."""


def retries(times: int, delay: float = 1, strategy: str = "fixed", longest: float = 60) -> Json:
    return {"max_retries": times, "initial_delay": delay, "strategy": strategy, "max_delay": longest}


def a_task(url: str, **given: Any) -> Json:
    """What a client sends: a POST that is due at New Year, unless told otherwise."""
    return {
        "name": unique("task"),
        "cron_expr": NEW_YEAR,
        "exec_type": "SYNC",
        "http_method": "POST",
        "target_url": url,
        "timeout_seconds": 10,
        **given,
    }


def done(answer: httpx2.Response) -> Json:
    """The body of an answer that says yes; the document does not say which of the 2xx."""
    assert answer.is_success, f"{answer.status_code} {answer.text}"
    body: Json = answer.json()
    return body


def create(api: httpx2.Client, url: str, **given: Any) -> int:
    """The id of a new task."""
    return int(done(api.post(TASKS, json=a_task(url, **given)))["id"])


def fetch(api: httpx2.Client, task: int) -> Json:
    return done(api.get(f"{TASKS}/{task}"))


def known(task: Json) -> Json:
    """A task's fields of the document; what else it tells (its next instant, its last run) moves by itself."""
    return {field: task[field] for field in TASK_FIELDS}


def trigger(api: httpx2.Client, task: int, **given: Any) -> int:
    """The id of the run that a trigger makes."""
    answer = api.post(f"{TASKS}/{task}/trigger", json=given) if given else api.post(f"{TASKS}/{task}/trigger")
    return int(done(answer)["run_id"])


def run_of(api: httpx2.Client, run: int) -> Json:
    return done(api.get(f"{RUNS}/{run}"))


def runs_of(api: httpx2.Client, task: int, **params: str | int) -> Json:
    return done(api.get(f"{TASKS}/{task}/runs", params=params))


def until_run(api: httpx2.Client, run: int, *statuses: str, timeout: float = 20) -> Json:
    """Waits until a run has one of these statuses."""
    found: Json = until(api, f"{RUNS}/{run}", lambda body: body["status"] in statuses, timeout)
    return found


def until_ended(api: httpx2.Client, run: int, timeout: float = 20) -> Json:
    return until_run(api, run, *ENDED, timeout=timeout)


def triggered(api: httpx2.Client, url: str, **given: Any) -> Json:
    """A new task, triggered once, as its run ends."""
    return until_ended(api, trigger(api, create(api, url, **given)))


def cancel(api: httpx2.Client, run: int) -> tuple[int, str]:
    """Which run the answer to a cancel names, and its status."""
    answer = done(api.post(f"{RUNS}/{run}/cancel"))
    return answer["run_id"], answer["status"]


def report(api: httpx2.Client, token: str, **body: Any) -> httpx2.Response:
    """The callback of §9.3, by its token."""
    return api.post(f"{CALLBACKS}/{token}", json={"status": "SUCCESS", **body})


def closed(answer: httpx2.Response) -> tuple[int, str]:
    """Which run the answer to a callback names, and how it ended; always with 200."""
    assert answer.status_code == 200, f"{answer.status_code} {answer.text}"
    return answer.json()["run_id"], answer.json()["final_status"]


def callbacks_of(api: httpx2.Client, run: int) -> list[str]:
    """The statuses of the callbacks kept for a run (§8.3), sorted."""
    return sorted(callback["status"] for callback in run_of(api, run)["callbacks"])


def instant(text: str) -> datetime:
    """An instant of an answer: it says its zone."""
    read = datetime.fromisoformat(text)
    assert read.utcoffset() == timedelta(0), text
    return read


def header(headers: Mapping[str, str], name: str) -> str:
    """A header, whatever the case of its name."""
    return {key.lower(): value for key, value in headers.items()}[name.lower()]


def assert_error(answer: httpx2.Response, status: int, code: str | None = None) -> Json:
    """The one envelope of §9.5; its details."""
    assert answer.status_code == status, f"{answer.status_code} {answer.text}"
    envelope: Json = answer.json()
    assert set(envelope) >= {"code", "message", "details", "request_id"}
    assert code is None or envelope["code"] == code, envelope
    assert envelope["message"]
    assert envelope["request_id"] == answer.headers["x-request-id"]
    return envelope["details"] or {}


def assert_refused(answer: httpx2.Response, field: str) -> str:
    """400 INVALID_ARGUMENT with the field named; what it says about it."""
    details = assert_error(answer, 400, "INVALID_ARGUMENT")
    assert details.get("field") == field, answer.text
    message: str = answer.json()["message"]
    assert field in message
    return message
