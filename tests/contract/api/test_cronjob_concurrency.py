"""Document 003 §7.4 and §9.2: how many runs of a task go on at once, and how any of them is cancelled."""

import httpx2
import pytest

from tests.contract.api.conftest import ON_SQLITE, until
from tests.contract.api.cronjob_world import (
    EVERY_SECOND,
    TASKS,
    assert_error,
    cancel,
    create,
    done,
    report,
    retries,
    run_of,
    runs_of,
    trigger,
    until_ended,
    until_run,
)
from tests.contract.api.witness import Target

pytestmark = ON_SQLITE


def test_parallel_ignores_the_limit(api: httpx2.Client, target: Target) -> None:
    task = create(api, target.url("/hold"), concurrency_policy="PARALLEL", max_concurrency=1)
    runs = [trigger(api, task) for _ in range(3)]
    target.wait_held(3)
    assert {run_of(api, run)["status"] for run in runs} == {"RUNNING"}
    target.release_all()
    assert {until_ended(api, run)["status"] for run in runs} == {"SUCCESS"}


def test_a_raised_limit_applies_to_those_that_wait(api: httpx2.Client, target: Target) -> None:
    task = create(api, target.url("/hold"), max_concurrency=2)
    runs = [trigger(api, task) for _ in range(4)]
    target.wait_held(2)
    assert [run_of(api, run)["status"] for run in runs[2:]] == ["SCHEDULED", "SCHEDULED"]
    done(api.patch(f"{TASKS}/{task}", json={"max_concurrency": 3}))
    target.wait_held(3)
    assert run_of(api, runs[3])["status"] == "SCHEDULED"
    done(api.patch(f"{TASKS}/{task}", json={"concurrency_policy": "PARALLEL"}))
    target.wait_held(4)
    target.release_all()
    assert {until_ended(api, run)["status"] for run in runs} == {"SUCCESS"}


def test_a_retrying_run_keeps_its_place(api: httpx2.Client, target: Target) -> None:
    task = create(api, target.url("/flaky/1"), retry_policy=retries(1))
    first, second = trigger(api, task, override_body="first"), trigger(api, task, override_body="second")
    until_ended(api, second)
    assert [hit.text for hit in target.hits] == ["first", "first", "second"]
    assert run_of(api, first)["status"] == "SUCCESS"


@pytest.mark.parametrize("exec_type", ["SYNC", "ASYNC"])
def test_skip_counts_whoever_has_not_ended(api: httpx2.Client, target: Target, exec_type: str) -> None:
    path, waits = ("/async", "CALLBACK_PENDING") if exec_type == "ASYNC" else ("/status/503", "RETRYING")
    policy = retries(1, delay=60)
    task = create(api, target.url(path), concurrency_policy="SKIP", exec_type=exec_type, retry_policy=policy)
    run = trigger(api, task)
    until_run(api, run, waits)
    assert_error(api.post(f"{TASKS}/{task}/trigger"), 409, "CONCURRENCY_LIMIT")
    assert runs_of(api, task)["total"] == 1
    if exec_type == "ASYNC":
        report(api, target.hits[0].callback.token)
    else:
        cancel(api, run)
    cancel(api, trigger(api, task))


def test_a_planned_instant_that_is_skipped_is_a_row_with_its_reason(api: httpx2.Client, target: Target) -> None:
    task = create(api, target.url("/hold"), cron_expr=EVERY_SECOND, concurrency_policy="SKIP")
    skipped = until(api, f"{TASKS}/{task}/runs", lambda page: page["total"] >= 2, status="SKIPPED")
    done(api.patch(f"{TASKS}/{task}/disable"))
    assert {run["status"] for run in skipped["items"]} == {"SKIPPED"}
    for run in skipped["items"]:
        detail = run_of(api, run["id"])
        assert detail["error_message"] or detail["reason"]
        assert detail["start_time"] is None
    assert len(target.hits) == 1
    target.release_all()


def test_a_retrying_run_is_cancelled(api: httpx2.Client, target: Target) -> None:
    task = create(api, target.url("/status/503"), retry_policy=retries(3))
    run = until_run(api, trigger(api, task), "RETRYING")["id"]
    assert cancel(api, run) == (run, "CANCELED")
    ended = run_of(api, run)
    assert (ended["status"], ended["next_retry_time"]) == ("CANCELED", None)
    assert ended["end_time"]


def test_a_run_that_waits_for_its_callback_is_cancelled(api: httpx2.Client, target: Target) -> None:
    run = trigger(api, create(api, target.url("/async"), exec_type="ASYNC"))
    until_run(api, run, "CALLBACK_PENDING")
    assert cancel(api, run) == (run, "CANCELED")
    assert run_of(api, run)["status"] == "CANCELED"


def test_a_run_is_cancelled_once(api: httpx2.Client, target: Target) -> None:
    run = trigger(api, create(api, target.url("/hold")))
    (hit,) = target.wait_held()
    assert cancel(api, run) == (run, "CANCELED")
    target.wait_gone(hit)
    before = until_ended(api, run)
    assert cancel(api, run) == (run, "CANCELED")
    assert run_of(api, run) == before


def test_a_failed_run_stays_failed_when_it_is_cancelled(api: httpx2.Client, target: Target) -> None:
    run = until_ended(api, trigger(api, create(api, target.url("/status/404"))))
    assert cancel(api, run["id"]) == (run["id"], "FAILED")
    assert run_of(api, run["id"]) == run
