"""Document 002 §6, §15 and §17: what the target receives."""

from datetime import timedelta
from urllib.parse import parse_qsl, unquote

import httpx2
import pytest

from tests.contract.api.conftest import ON_SQLITE, unique
from tests.contract.api.ksana_world import (
    a_job,
    create,
    fetch,
    now,
    order,
    planned,
    read,
    run_id,
    run_now,
    said,
    telling,
    until_status,
    whole_second,
)
from tests.contract.api.witness import Hit, Target

pytestmark = ON_SQLITE
NOTIFY_ORDER = (
    '{\n  "event": "order.received",\n  "job_id": "<filled-by-service>",\n  "run_id": "<filled-by-service>",\n'
    '  "payload": {"order_id": 12345}\n}'
)
"""The body of the example in §17, as it stands there."""


def call(api: httpx2.Client, target: Target, **http: object) -> Hit:
    """Runs a job with this call once; what the target received."""
    given = {"method": "POST", "url": target.url(), **http}
    run_now(api, create(api, a_job(unique("call"), "", http=given))["id"])
    (hit,) = target.hits
    return hit


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"])
def test_the_method_is_the_one_given(method: str, api: httpx2.Client, target: Target) -> None:
    assert call(api, target, method=method).method == method


def test_the_address_is_called_with_its_query(api: httpx2.Client, target: Target) -> None:
    hit = call(api, target, method="GET", url=target.url("/ok/a%20b?x=1&y=%E5%88%B9&x=2"))
    assert unquote(hit.path) == "/ok/a b"
    assert parse_qsl(hit.query) == [("x", "1"), ("y", "刹"), ("x", "2")]


def test_headers_are_passed_through(api: httpx2.Client, target: Target) -> None:
    hit = call(api, target, headers={"X-Token": "abc", "Authorization": "Bearer s3cret", "User-Agent": "mine"})
    assert hit.headers["x-token"] == "abc"
    assert hit.headers["authorization"] == "Bearer s3cret"
    assert hit.headers["user-agent"] == "mine"


@pytest.mark.parametrize(
    "body",
    [
        pytest.param('{"a":1,  "b": [ ] }', id="JSON with its spaces"),
        pytest.param("  plain\n\ttext \n", id="white space"),
        pytest.param("刹那 é", id="not ASCII"),
        pytest.param("a=1&b=2", id="a form"),
        pytest.param("x" * 100_000, id="long"),
    ],
)
def test_the_body_is_sent_as_it_is(body: str, api: httpx2.Client, target: Target) -> None:
    assert call(api, target, body=body).text == body


def test_without_a_body_none_is_sent(api: httpx2.Client, target: Target) -> None:
    assert call(api, target, method="GET").body == b""


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        pytest.param('{"a": 1}', "application/json", id="object"),
        pytest.param("[1, 2]", "application/json", id="list"),
        pytest.param("hello", "text/plain", id="text"),
    ],
)
def test_the_content_type_is_inferred_from_the_body(body: str, kind: str, api: httpx2.Client, target: Target) -> None:
    assert call(api, target, body=body).headers["content-type"].partition(";")[0] == kind


def test_a_content_type_that_is_given_is_kept(api: httpx2.Client, target: Target) -> None:
    hit = call(api, target, body='{"a": 1}', headers={"content-type": "application/vnd.mine+json"})
    assert hit.headers["content-type"] == "application/vnd.mine+json"


def test_each_run_has_an_id_of_its_own(api: httpx2.Client, target: Target) -> None:
    job = create(api, a_job(unique("runs"), target.url()))
    for count in (1, 2, 3):
        order(api, job["id"], "run-now")
        target.wait_hits(count)
    assert len({run_id(hit) for hit in target.hits}) == 3
    assert all(run_id(hit) for hit in target.hits)


def test_the_run_id_is_the_same_over_retries(api: httpx2.Client, target: Target) -> None:
    job = create(api, a_job(unique("retried"), target.url("/flaky/2"), max_retries=2, retry_backoff="50ms"))
    run_now(api, job["id"])
    assert len(target.hits) == 3
    assert len({run_id(hit) for hit in target.hits}) == 1


def test_the_example_of_the_document_is_filled_by_the_service(api: httpx2.Client, target: Target) -> None:
    example = {
        "id": "",
        "name": unique("notify-order"),
        "enabled": True,
        "type": "http",
        "http": {
            "method": "POST",
            "url": target.url(),
            "headers": {"Content-Type": "application/json"},
            "body": NOTIFY_ORDER,
        },
        "schedule": {"kind": "every", "every": "5m"},
        "timeout": "10s",
        "max_retries": 3,
        "retry_backoff": "5s",
    }
    job = create(api, example)
    run_now(api, job["id"])
    (hit,) = target.hits
    payload = {"order_id": 12345}
    assert hit.json() == {
        "event": "order.received",
        "job_id": job["id"],
        "run_id": run_id(hit),
        "payload": payload,
    }
    assert fetch(api, job["id"])["http"]["body"] == NOTIFY_ORDER


def test_what_is_filled_differs_from_run_to_run(api: httpx2.Client, target: Target) -> None:
    job = create(api, a_job(unique("filled"), "", http=telling(target.url())))
    for count in (1, 2):
        order(api, job["id"], "run-now")
        target.wait_hits(count)
    first, second = (hit.json() for hit in target.hits)
    assert first["job_id"] == second["job_id"] == job["id"]
    assert first["run_id"] != second["run_id"]


def test_the_planned_and_the_real_instant_are_filled_too(api: httpx2.Client, target: Target) -> None:
    run_at = whole_second(timedelta(seconds=2))
    schedule = {"kind": "once", "run_at": said(run_at)}
    job = create(api, a_job(unique("instants"), "", http=telling(target.url()), schedule=schedule))
    until_status(api, job["id"], "success")
    (hit,) = target.hits
    assert planned(hit) == run_at
    assert run_at <= read(hit.json()["triggered_at"]) <= now()


def test_a_run_while_another_goes_on_is_a_run_of_its_own(api: httpx2.Client, target: Target) -> None:
    job = create(api, a_job(unique("two"), target.url("/hold")))
    order(api, job["id"], "run-now")
    (first,) = target.wait_held()
    order(api, job["id"], "run-now")
    target.release(first)
    both = target.wait_hits(2)
    target.release(both[1])
    target.wait_held(0)
    assert run_id(both[0]) != run_id(both[1])
    after = until_status(api, job["id"], "success")
    assert after["next_run_at"] == job["next_run_at"]
