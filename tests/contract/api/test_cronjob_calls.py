"""Document 003 §8.1: what a task sends to its target, and what is kept of both sides."""

import re

import httpx2
import pytest

from tests.contract.api.conftest import ON_SQLITE
from tests.contract.api.cronjob_world import (
    TASKS,
    a_task,
    closed,
    create,
    done,
    header,
    instant,
    retries,
    run_of,
    trigger,
    triggered,
    until_ended,
    until_run,
)
from tests.contract.api.witness import Target

pytestmark = ON_SQLITE


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"])
def test_the_method_is_the_tasks(api: httpx2.Client, target: Target, method: str) -> None:
    run = triggered(api, target.url("/ok?a=1&b=%20"), http_method=method)
    assert (run["status"], run["response_code"]) == ("SUCCESS", 200)
    (hit,) = target.hits
    assert (hit.method, hit.query, hit.body) == (method, "a=1&b=%20", b"")


def test_a_template_knows_its_run(api: httpx2.Client, target: Target) -> None:
    template = (
        '{"run": {{run_id}}, "task": {{task_id}}, "job": "{{job_id}}", "attempt": {{attempt}}, '
        '"scheduled": "{{scheduled_at}}", "triggered": "{{triggered_at}}", "fixed": {"a": [1]}}'
    )
    task = create(api, target.url(), body_template=template)
    run = until_ended(api, trigger(api, task))
    (hit,) = target.hits
    sent = hit.json()
    assert (sent["run"], sent["task"], sent["attempt"], sent["fixed"]) == (run["id"], task, 1, {"a": [1]})
    assert sent["job"]
    assert instant(sent["scheduled"]) == instant(run["scheduled_time"])
    assert instant(sent["triggered"]) >= instant(sent["scheduled"])
    assert run["request_body"] == hit.text


def test_the_kind_of_a_body_is_inferred_unless_it_is_given(api: httpx2.Client, target: Target) -> None:
    triggered(api, target.url("/ok/json"), body_template='{"run_id": "{{run_id}}"}')
    triggered(api, target.url("/ok/text"), body_template="run {{run_id}}")
    triggered(api, target.url("/ok/given"), body_template="<a/>", headers={"content-type": "application/xml"})
    kinds = {hit.path: hit.headers["content-type"].partition(";")[0] for hit in target.hits}
    assert kinds == {"/ok/json": "application/json", "/ok/text": "text/plain", "/ok/given": "application/xml"}


def test_the_override_of_a_trigger_is_the_body_of_that_run_only(api: httpx2.Client, target: Target) -> None:
    task = create(api, target.url(), body_template="usual")
    over = until_ended(api, trigger(api, task, override_body='{"once": "只此一次"}', force_async=False))
    usual = until_ended(api, trigger(api, task))
    assert [hit.text for hit in target.hits] == ['{"once": "只此一次"}', "usual"]
    assert (over["request_body"], usual["request_body"]) == ('{"once": "只此一次"}', "usual")


def test_a_trigger_may_have_an_empty_body(api: httpx2.Client, target: Target) -> None:
    task = create(api, target.url())
    for answer in (api.post(f"{TASKS}/{task}/trigger", json={}), api.post(f"{TASKS}/{task}/trigger", content=b"")):
        assert until_ended(api, done(answer)["run_id"])["status"] == "SUCCESS"


def test_every_call_says_which_run_it_is_for(api: httpx2.Client, target: Target) -> None:
    task = create(api, target.url("/flaky/1"), retry_policy=retries(2), headers={"X-Team": "data"})
    first = until_ended(api, trigger(api, task))
    second = until_ended(api, trigger(api, task))
    failed, repeated, other = target.hits
    assert failed.headers["x-ksana-run-id"] == repeated.headers["x-ksana-run-id"] == str(first["id"])
    assert other.headers["x-ksana-run-id"] == str(second["id"])
    assert failed.headers["idempotency-key"] == repeated.headers["idempotency-key"]
    assert other.headers["idempotency-key"] != failed.headers["idempotency-key"]
    assert {hit.headers["x-team"] for hit in target.hits} == {"data"}


def test_every_call_can_be_traced(api: httpx2.Client, target: Target) -> None:
    run = triggered(api, target.url())
    (hit,) = target.hits
    assert re.fullmatch(r"00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}", hit.headers["traceparent"])
    assert run["trace_id"] == hit.headers["traceparent"].split("-")[1]


def test_the_headers_that_were_sent_are_kept(api: httpx2.Client, target: Target) -> None:
    run = triggered(api, target.url(), headers={"X-Team": "data"}, body_template="{}")
    (hit,) = target.hits
    for name in ("x-team", "x-ksana-run-id", "idempotency-key", "traceparent", "content-type"):
        assert header(run["request_headers"], name) == hit.headers[name]


def test_a_long_answer_is_kept_whole(api: httpx2.Client, target: Target) -> None:
    run = triggered(api, target.url("/bytes/300000"))
    assert run["response_body"] == "x" * 300_000


def test_a_redirect_is_not_followed(api: httpx2.Client, target: Target) -> None:
    run = triggered(api, target.url("/redirect"), retry_policy=retries(2))
    assert (run["status"], run["response_code"], run["attempt"]) == ("FAILED", 302, 1)
    assert [hit.path for hit in target.hits] == ["/redirect"]


def test_an_async_call_says_where_to_report_in_its_headers_and_its_body(api: httpx2.Client, target: Target) -> None:
    run = trigger(api, create(api, target.url("/async"), exec_type="ASYNC"))
    until_run(api, run, "CALLBACK_PENDING")
    (hit,) = target.hits
    sent = hit.json()
    assert sent["run_id"] == run
    assert sent["callback_url"] == f"{str(api.base_url).rstrip('/')}/api/v1/callbacks/{sent['callback_token']}"
    assert sent["callback_url"] in hit.headers.values()
    assert sent["callback_token"] in hit.headers.values()


def test_an_async_template_places_the_callback_itself(api: httpx2.Client, target: Target) -> None:
    template = '{"back": "{{callback_url}}", "secret": "{{callback_token}}"}'
    run = trigger(api, create(api, target.url("/async"), exec_type="ASYNC", body_template=template))
    until_run(api, run, "CALLBACK_PENDING")
    (hit,) = target.hits
    sent = hit.json()
    assert set(sent) == {"back", "secret"}
    assert sent["back"].endswith(f"/api/v1/callbacks/{sent['secret']}")
    assert closed(httpx2.post(sent["back"], json={"status": "SUCCESS"})) == (run, "SUCCESS")


def test_a_sync_call_offers_no_callback(api: httpx2.Client, target: Target) -> None:
    run = triggered(api, target.url())
    (hit,) = target.hits
    assert not [name for name in hit.headers if "callback" in name]
    assert not run["callback_token"]


def test_a_change_of_the_task_does_not_touch_what_is_kept_of_earlier_runs(api: httpx2.Client, target: Target) -> None:
    task = create(api, target.url("/ok/a"), body_template="a")
    run = until_ended(api, trigger(api, task))
    done(api.put(f"{TASKS}/{task}", json=a_task(target.url("/ok/b"), body_template="b")))
    assert run_of(api, run["id"]) == run
    until_ended(api, trigger(api, task))
    assert [(hit.path, hit.text) for hit in target.hits] == [("/ok/a", "a"), ("/ok/b", "b")]
