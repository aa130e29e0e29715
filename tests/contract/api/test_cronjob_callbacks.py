"""Document 003 §9.3: callbacks come twice, late, early, wrong, at once, or not at all; the first that counts decides."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest

from tests.contract.api.conftest import ON_SQLITE
from tests.contract.api.cronjob_world import (
    CALLBACKS,
    RUNS,
    TASKS,
    assert_error,
    assert_refused,
    callbacks_of,
    cancel,
    closed,
    create,
    instant,
    report,
    retries,
    run_of,
    trigger,
    triggered,
    until_ended,
    until_run,
)
from tests.contract.api.witness import Target

pytestmark = ON_SQLITE

UNKNOWN_TOKEN = "0123456789abcdef0123456789abcdef"


def pending(api: httpx2.Client, target: Target, path: str = "/async", **given: Any) -> tuple[int, int, str]:
    """A new async task whose run waits for its callback: task, run and token."""
    task = create(api, target.url(path), exec_type="ASYNC", **given)
    run = trigger(api, task)
    until_run(api, run, "CALLBACK_PENDING")
    return task, run, [hit.callback.token for hit in target.hits if hit.headers["x-ksana-run-id"] == str(run)][-1]


def test_a_failed_callback_fails_the_run(api: httpx2.Client, target: Target) -> None:
    _, run, token = pending(api, target)
    assert closed(report(api, token, status="FAILED", error_message="no such tenant")) == (run, "FAILED")
    ended = run_of(api, run)
    assert (ended["status"], ended["error_message"]) == ("FAILED", "no such tenant")
    assert ended["end_time"]


def test_a_callback_is_kept_with_its_headers_and_body(api: httpx2.Client, target: Target) -> None:
    _, run, token = pending(api, target)
    body = '{"status": "SUCCESS", "data": {"行": 3}}'
    headers = {"content-type": "application/json", "X-From": "svc"}
    closed(api.post(f"{CALLBACKS}/{token}", content=body.encode(), headers=headers))
    (kept,) = run_of(api, run)["callbacks"]
    assert (kept["status"], kept["body"]) == ("RECEIVED", body)
    assert {name.lower(): value for name, value in kept["headers"].items()}["x-from"] == "svc"
    assert instant(kept["received_at"]) >= instant(run_of(api, run)["start_time"])


def test_another_result_does_not_undo_the_first(api: httpx2.Client, target: Target) -> None:
    _, run, token = pending(api, target)
    assert closed(report(api, token)) == (run, "SUCCESS")
    before = run_of(api, run)
    assert closed(report(api, token, status="FAILED", error_message="too late")) == (run, "SUCCESS")
    after = run_of(api, run)
    assert (after["status"], after["error_message"], after["end_time"]) == (
        "CALLBACK_SUCCESS",
        before["error_message"],
        before["end_time"],
    )
    assert callbacks_of(api, run) == ["IGNORED", "RECEIVED"]


def test_of_many_at_once_one_counts(api: httpx2.Client, target: Target) -> None:
    _, run, token = pending(api, target)
    with ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(lambda _: report(api, token), range(30)))
    assert {closed(answer) for answer in answers} == {(run, "SUCCESS")}
    assert callbacks_of(api, run) == ["IGNORED"] * 29 + ["RECEIVED"]


def test_no_callback_in_time_is_a_failure_and_a_late_one_changes_nothing(api: httpx2.Client, target: Target) -> None:
    _, run, token = pending(api, target, callback_timeout_sec=1)
    ended = until_ended(api, run)
    assert ended["status"] == "FAILED_TIMEOUT"
    assert ended["error_message"]
    late = report(api, token)
    assert late.status_code in {200, 409, 410}
    assert late.status_code != 200 or closed(late) == (run, "FAILED_TIMEOUT")
    assert run_of(api, run)["status"] == "FAILED_TIMEOUT"
    assert callbacks_of(api, run) == ["IGNORED"]


def test_a_callback_after_a_cancel_changes_nothing(api: httpx2.Client, target: Target) -> None:
    task, run, token = pending(api, target)
    following = trigger(api, task)
    assert run_of(api, following)["status"] == "SCHEDULED"
    assert cancel(api, run) == (run, "CANCELED")
    late = report(api, token)
    assert late.status_code in {200, 409, 410}
    assert late.status_code != 200 or closed(late) == (run, "CANCELED")
    assert run_of(api, run)["status"] == "CANCELED"
    until_run(api, following, "CALLBACK_PENDING")
    cancel(api, following)


def test_the_token_of_the_first_attempt_cannot_close_the_second(api: httpx2.Client, target: Target) -> None:
    _, run, token = pending(api, target, "/async-flaky/1", retry_policy=retries(2))
    first, second = target.hits
    assert first.callback.token != second.callback.token == token
    assert report(api, first.callback.token).status_code in {404, 409, 410}
    assert run_of(api, run)["status"] == "CALLBACK_PENDING"
    assert closed(report(api, token)) == (run, "SUCCESS")


def test_an_unknown_token_is_not_found(api: httpx2.Client) -> None:
    for token in (UNKNOWN_TOKEN, "x", "%00", "a" * 500):
        assert_error(report(api, token), 404, "NOT_FOUND")


def test_an_unknown_run_is_not_found(api: httpx2.Client, target: Target) -> None:
    task, run, _ = pending(api, target)
    for ids in ({"task_id": task, "run_id": 999_999_999}, {"task_id": 999_999_999, "run_id": run}):
        assert_error(api.post(CALLBACKS, json={**ids, "status": "SUCCESS"}), 404, "NOT_FOUND")
    assert run_of(api, run)["status"] == "CALLBACK_PENDING"
    cancel(api, run)


def test_a_sync_run_is_not_closed_from_outside(api: httpx2.Client, target: Target) -> None:
    task = create(api, target.url("/hold"))
    run = trigger(api, task)
    (hit,) = target.wait_held()
    answer = api.post(CALLBACKS, json={"task_id": task, "run_id": run, "status": "FAILED"})
    assert answer.status_code in {400, 404, 409}
    target.release(hit)
    assert until_ended(api, run)["status"] == "SUCCESS"


@pytest.mark.parametrize(
    ("body", "field"),
    [({}, "status"), ({"status": "PERHAPS"}, "status"), ({"status": None}, "status"), ({"status": 1}, "status")],
    ids=["missing", "unknown", "null", "number"],
)
def test_a_callback_without_a_result_is_refused_and_the_run_goes_on_waiting(
    api: httpx2.Client, target: Target, body: dict[str, Any], field: str
) -> None:
    task, run, token = pending(api, target)
    assert_refused(api.post(f"{CALLBACKS}/{token}", json=body), field)
    assert_refused(api.post(CALLBACKS, json={"task_id": task, "run_id": run, **body}), field)
    assert run_of(api, run)["status"] == "CALLBACK_PENDING"
    assert closed(report(api, token)) == (run, "SUCCESS")


@pytest.mark.parametrize("field", ["task_id", "run_id"])
def test_a_callback_by_ids_needs_both(api: httpx2.Client, field: str) -> None:
    body = {"task_id": 1, "run_id": 1, "status": "SUCCESS"}
    del body[field]
    assert_refused(api.post(CALLBACKS, json=body), field)


def test_a_sync_task_can_be_triggered_as_async(api: httpx2.Client, target: Target) -> None:
    task = create(api, target.url("/ok"))
    run = trigger(api, task, force_async=True)
    until_run(api, run, "CALLBACK_PENDING")
    assert closed(report(api, target.hits[0].callback.token)) == (run, "SUCCESS")
    assert until_ended(api, trigger(api, task))["status"] == "SUCCESS"


def test_an_async_task_whose_call_fails_waits_for_nothing(api: httpx2.Client, target: Target) -> None:
    run = triggered(api, target.url("/status/404"), exec_type="ASYNC")
    assert (run["status"], run["response_code"]) == ("FAILED", 404)


def test_tokens_are_long_and_never_the_same(api: httpx2.Client, target: Target) -> None:
    tokens = [pending(api, target)[2] for _ in range(3)]
    assert len(set(tokens)) == 3
    assert all(len(token) >= 32 for token in tokens)


def test_a_token_is_known_to_the_target_alone(api: httpx2.Client, target: Target) -> None:
    task, run, token = pending(api, target)
    for path in (f"{RUNS}/{run}", f"{TASKS}/{task}/runs", f"{TASKS}/{task}"):
        assert token not in api.get(path).text
    assert closed(report(api, token)) == (run, "SUCCESS")
