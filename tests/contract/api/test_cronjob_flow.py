"""Document 003 §10: what becomes of a run, on every back end: sync, async, retried, queued, cancelled, fired by cron."""

from datetime import UTC, datetime, timedelta

import httpx2

from tests.contract.api.conftest import until
from tests.contract.api.cronjob_world import (
    ATTEMPT_FIELDS,
    CALLBACKS,
    EVERY_SECOND,
    RUN_FIELDS,
    TASKS,
    assert_error,
    callbacks_of,
    cancel,
    closed,
    create,
    done,
    header,
    instant,
    report,
    retries,
    run_of,
    runs_of,
    trigger,
    triggered,
    until_ended,
    until_run,
)
from tests.contract.api.witness import Target

SECOND = timedelta(seconds=1)


def test_a_triggered_task_calls_its_target_and_succeeds(api: httpx2.Client, target: Target) -> None:
    task = create(api, target.url("/ok"), body_template='{"run_id": "{{run_id}}"}', headers={"X-Team": "data"})
    run = until_ended(api, trigger(api, task))
    assert set(run) >= RUN_FIELDS
    assert (run["status"], run["task_id"], run["attempt"], run["response_code"]) == ("SUCCESS", task, 1, 200)
    (hit,) = target.hits
    assert (hit.method, hit.json()) == ("POST", {"run_id": str(run["id"])})
    assert hit.headers["x-team"] == "data"
    assert run["request_body"] == hit.text
    assert '"ok": true' in run["response_body"]
    assert not run["error_message"]
    assert run["next_retry_time"] is None
    assert run["callback_deadline"] is None
    assert header(run["request_headers"], "x-ksana-run-id") == str(run["id"])
    assert instant(run["created_at"]) <= instant(run["start_time"]) <= instant(run["end_time"])
    assert instant(run["scheduled_time"]) <= instant(run["start_time"])


def test_a_run_that_failed_is_tried_again_and_every_attempt_is_kept(api: httpx2.Client, target: Target) -> None:
    run = triggered(api, target.url("/flaky/1"), retry_policy=retries(3), body_template="attempt {{attempt}}")
    assert (run["status"], run["attempt"], run["response_code"]) == ("SUCCESS", 2, 200)
    first, second = run["attempts"]
    assert set(first) >= ATTEMPT_FIELDS
    assert (first["attempt"], first["response_code"], first["response_body"]) == (1, 503, "status 503")
    assert first["error_message"]
    assert (second["attempt"], second["response_code"]) == (2, 200)
    assert [attempt["request_body"] for attempt in run["attempts"]] == ["attempt 1", "attempt 2"]
    assert [hit.text for hit in target.hits] == ["attempt 1", "attempt 2"]
    assert instant(second["start_time"]) - instant(first["end_time"]) >= 0.9 * SECOND


def test_retries_end_with_failure(api: httpx2.Client, target: Target) -> None:
    run = triggered(api, target.url("/status/500"), retry_policy=retries(1))
    assert (run["status"], run["attempt"], run["response_code"]) == ("FAILED", 2, 500)
    assert run["error_message"]
    assert run["next_retry_time"] is None
    assert len(target.hits) == 2


def test_an_async_run_waits_for_its_callback_by_token(api: httpx2.Client, target: Target) -> None:
    run = trigger(api, create(api, target.url("/async"), exec_type="ASYNC"))
    waiting = until_run(api, run, "CALLBACK_PENDING")
    (hit,) = target.hits
    assert waiting["response_code"] == 202
    assert waiting["end_time"] is None
    wait = instant(waiting["callback_deadline"]) - instant(waiting["start_time"])
    assert 299 * SECOND <= wait <= 310 * SECOND
    answer = httpx2.post(hit.callback.url, json={"status": "SUCCESS", "data": {"rows": 3}, "error_message": ""})
    assert closed(answer) == (run, "SUCCESS")
    assert run_of(api, run)["status"] == "CALLBACK_SUCCESS"
    assert closed(report(api, hit.callback.token)) == (run, "SUCCESS")
    assert callbacks_of(api, run) == ["IGNORED", "RECEIVED"]


def test_an_async_run_is_closed_by_task_and_run_id(api: httpx2.Client, target: Target) -> None:
    task, other = create(api, target.url("/async"), exec_type="ASYNC"), create(api, target.url())
    run = trigger(api, task)
    until_run(api, run, "CALLBACK_PENDING")
    body = {"run_id": run, "status": "FAILED", "data": {}, "error_message": "磁盘满了"}
    assert_error(api.post(CALLBACKS, json={"task_id": other, **body}), 404, "NOT_FOUND")
    assert run_of(api, run)["status"] == "CALLBACK_PENDING"
    assert closed(api.post(CALLBACKS, json={"task_id": task, **body})) == (run, "FAILED")
    ended = run_of(api, run)
    assert (ended["status"], ended["error_message"]) == ("FAILED", "磁盘满了")
    assert closed(api.post(CALLBACKS, json={"task_id": task, **body})) == (run, "FAILED")
    assert callbacks_of(api, run) == ["IGNORED", "RECEIVED"]


def test_a_callback_may_come_before_the_target_has_answered(api: httpx2.Client, target: Target) -> None:
    run = triggered(api, target.url("/async-early"), exec_type="ASYNC")
    assert run["status"] == "CALLBACK_SUCCESS"
    (hit,) = target.wait_for(lambda hits: hits[0].reported)
    assert hit.reported is not None
    assert hit.reported[0] == 200
    assert run_of(api, run["id"])["status"] == "CALLBACK_SUCCESS"


def test_queue_runs_one_after_the_other_in_order(api: httpx2.Client, target: Target) -> None:
    task = create(api, target.url("/hold"))
    runs = [trigger(api, task, override_body=f"no {number}") for number in range(4)]
    for number, run in enumerate(runs):
        (hit,) = target.wait_held()
        assert hit.text == f"no {number}"
        assert run_of(api, run)["status"] == "RUNNING"
        assert [run_of(api, later)["status"] for later in runs[number + 1 :]] == ["SCHEDULED"] * (3 - number)
        target.release(hit)
        until_run(api, run, "SUCCESS")
    assert len(target.hits) == 4


def test_skip_refuses_a_trigger_and_makes_no_row(api: httpx2.Client, target: Target) -> None:
    task = create(api, target.url("/hold"), concurrency_policy="SKIP")
    run = trigger(api, task)
    (hit,) = target.wait_held()
    assert_error(api.post(f"{TASKS}/{task}/trigger"), 409, "CONCURRENCY_LIMIT")
    assert runs_of(api, task)["total"] == 1
    target.release(hit)
    until_run(api, run, "SUCCESS")
    trigger(api, task)
    target.release(target.wait_held()[0])


def test_a_running_run_is_cancelled_and_its_request_aborted(api: httpx2.Client, target: Target) -> None:
    task = create(api, target.url("/hold"))
    running, queued, next_one = trigger(api, task), trigger(api, task), trigger(api, task)
    (hit,) = target.wait_held()
    assert cancel(api, queued) == (queued, "CANCELED")
    assert cancel(api, running) == (running, "CANCELED")
    target.wait_gone(hit)
    assert until_ended(api, running)["status"] == "CANCELED"
    target.release(target.wait_held()[0])
    assert until_ended(api, next_one)["status"] == "SUCCESS"
    assert run_of(api, queued)["status"] == "CANCELED"
    assert len(target.hits) == 2


def test_a_finished_run_cannot_be_cancelled_any_more(api: httpx2.Client, target: Target) -> None:
    run = triggered(api, target.url())
    assert cancel(api, run["id"]) == (run["id"], "SUCCESS")
    assert run_of(api, run["id"]) == run


def test_every_planned_second_is_run_once(api: httpx2.Client, target: Target) -> None:
    body = '{"at": "{{scheduled_at}}", "run": {{run_id}}}'
    asked = datetime.now(UTC)
    task = create(api, target.url(), cron_expr=EVERY_SECOND, body_template=body, concurrency_policy="PARALLEL")
    target.wait_hits(3)
    done(api.patch(f"{TASKS}/{task}/disable"))
    listed = until(api, f"{TASKS}/{task}/runs", lambda page: all(run["status"] == "SUCCESS" for run in page["items"]))
    planned = sorted(instant(run["scheduled_time"]) for run in listed["items"])
    assert planned == [planned[0] + SECOND * number for number in range(len(planned))]
    assert {moment.microsecond for moment in planned} == {0}
    assert planned[0] > asked
    assert sorted(instant(hit.json()["at"]) for hit in target.hits) == planned
    assert sorted(hit.json()["run"] for hit in target.hits) == sorted(run["id"] for run in listed["items"])


def test_a_disabled_task_does_not_fire_and_an_enabled_one_fires_again(api: httpx2.Client, target: Target) -> None:
    task = create(api, target.url("/ok/off"), cron_expr=EVERY_SECOND)
    done(api.patch(f"{TASKS}/{task}/disable"))
    quiet = runs_of(api, task)["total"]
    beside = create(api, target.url("/ok/beside"), cron_expr=EVERY_SECOND)
    target.wait_hits(2, "/ok/beside")
    assert runs_of(api, task)["total"] == quiet
    done(api.patch(f"{TASKS}/{beside}/disable"))
    done(api.patch(f"{TASKS}/{task}/enable"))
    target.wait_hits(quiet + 1, "/ok/off")
    done(api.delete(f"{TASKS}/{task}"))


def test_a_changed_cron_takes_effect_at_once(api: httpx2.Client, target: Target) -> None:
    task = create(api, target.url())
    done(api.patch(f"{TASKS}/{task}", json={"cron_expr": EVERY_SECOND}))
    target.wait_hits(1)
    done(api.delete(f"{TASKS}/{task}"))
