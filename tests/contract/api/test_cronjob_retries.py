"""Document 003 §11: which answers are tried again and when, what is final, and what takes too long."""

from datetime import timedelta
from functools import partial

import httpx2
import pytest

from tests.contract.api.conftest import ON_SQLITE, until
from tests.contract.api.cronjob_world import (
    Json,
    cancel,
    create,
    instant,
    retries,
    run_of,
    trigger,
    triggered,
    until_run,
)
from tests.contract.api.witness import Target
from tests.servers.machine import free_port

pytestmark = ON_SQLITE

SECOND = timedelta(seconds=1)


def wait_of(run: Json) -> timedelta:
    """How long a RETRYING run waits, from the end of its last attempt."""
    return instant(run["next_retry_time"]) - instant(run["attempts"][-1]["end_time"])


def waits_after(attempt: int, run: Json) -> bool:
    return (run["status"], run["attempt"]) == ("RETRYING", attempt)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 410, 422])
def test_other_answers_of_4xx_are_final(api: httpx2.Client, target: Target, status: int) -> None:
    run = triggered(api, target.url(f"/status/{status}"), retry_policy=retries(3))
    assert (run["status"], run["attempt"], run["response_code"]) == ("FAILED", 1, status)
    assert run["error_message"]
    assert len(target.hits) == 1


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_408_429_and_5xx_are_tried_again(api: httpx2.Client, target: Target, status: int) -> None:
    task = create(api, target.url(f"/status/{status}"), retry_policy=retries(3, delay=60))
    run = until_run(api, trigger(api, task), "RETRYING")
    assert (run["attempt"], run["response_code"], run["end_time"]) == (1, status, None)
    assert 59 * SECOND <= wait_of(run) <= 62 * SECOND
    cancel(api, run["id"])


@pytest.mark.parametrize("path", ["/reset", "refused"])
def test_a_broken_connection_is_tried_again(api: httpx2.Client, target: Target, path: str) -> None:
    url = f"http://127.0.0.1:{free_port()}/" if path == "refused" else target.url(path)
    run = until_run(api, trigger(api, create(api, url, retry_policy=retries(1, delay=60))), "RETRYING")
    assert run["error_message"]
    assert run["response_code"] is None
    cancel(api, run["id"])


@pytest.mark.parametrize("status", [200, 201, 202, 204, 206])
def test_every_answer_of_2xx_is_a_success(api: httpx2.Client, target: Target, status: int) -> None:
    run = triggered(api, target.url(f"/status/{status}"))
    assert (run["status"], run["response_code"]) == ("SUCCESS", status)


@pytest.mark.parametrize(
    ("policy", "first", "second"),
    [
        (retries(2, delay=1, strategy="fixed"), 1, 1),
        (retries(2, delay=1, strategy="exponential"), 1, 2),
        (retries(2, delay=1, strategy="exponential", longest=1), 1, 1),
    ],
    ids=["fixed", "exponential", "no-longer-than-the-longest"],
)
def test_waits_grow_by_the_strategy(api: httpx2.Client, target: Target, policy: Json, first: int, second: int) -> None:
    run = trigger(api, create(api, target.url("/status/503"), retry_policy=policy))
    for attempt, seconds in ((1, first), (2, second)):
        waiting = until(api, f"/api/v1/runs/{run}", partial(waits_after, attempt))
        assert seconds * SECOND - 0.2 * SECOND <= wait_of(waiting) <= (seconds + 0.8) * SECOND
    assert until_run(api, run, "FAILED")["attempt"] == 3


def test_the_target_may_say_when_to_try_again(api: httpx2.Client, target: Target) -> None:
    task = create(api, target.url("/retry-after/30"), retry_policy=retries(2, delay=1))
    run = until_run(api, trigger(api, task), "RETRYING")
    assert 29 * SECOND <= wait_of(run) <= 32 * SECOND
    cancel(api, run["id"])


@pytest.mark.parametrize("path", ["/never", "/drip"])
def test_what_takes_longer_than_its_time_is_broken_off(api: httpx2.Client, target: Target, path: str) -> None:
    task = create(api, target.url(path), timeout_seconds=1)
    first, second = trigger(api, task), trigger(api, task)
    run = until_run(api, first, "TIMEOUT")
    assert (run["attempt"], bool(run["error_message"])) == (1, True)
    target.wait_gone(target.hits[0])
    target.wait_hits(2)
    assert until_run(api, second, "TIMEOUT")["end_time"]


def test_a_timeout_is_tried_again(api: httpx2.Client, target: Target) -> None:
    task = create(api, target.url("/never"), timeout_seconds=1, retry_policy=retries(1, delay=60))
    run = until_run(api, trigger(api, task), "RETRYING")
    assert run["attempt"] == 1
    cancel(api, run["id"])
    assert run_of(api, run["id"])["status"] == "CANCELED"
