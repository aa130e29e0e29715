"""Document 002 §6 and §17: what an answer, or none, means for the run."""

import httpx2
import pytest

from tests.contract.api.conftest import ON_SQLITE, unique, until
from tests.contract.api.ksana_world import Job, a_job, beats, create, now, order, read, run_now
from tests.contract.api.witness import Target

pytestmark = ON_SQLITE


def job_at(api: httpx2.Client, target: Target, path: str, retries: int = 1, timeout: str = "10s") -> Job:
    call = {"method": "POST", "url": target.url(path)}
    job = a_job(unique("job"), "", http=call, timeout=timeout, max_retries=retries, retry_backoff="50ms")
    return create(api, job)


def ended(api: httpx2.Client, target: Target, job: Job, path: str, status: str, calls: int) -> Job:
    """Runs it, waits for that many calls and that status, and then long enough for one call too many."""
    order(api, job["id"], "run-now")
    target.wait_hits(calls, path)
    until(api, f"/jobs/{job['id']}", lambda job: job["last_status"] == status)
    beats(api, target, 3)
    assert len(target.at(path)) == calls
    after: Job = api.get(f"/jobs/{job['id']}").json()
    assert after["last_status"] == status
    return after


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_2xx_is_a_success(status: int, api: httpx2.Client, target: Target) -> None:
    job = job_at(api, target, f"/status/{status}")
    assert run_now(api, job["id"])["last_error"] == ""
    assert len(target.hits) == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 410, 422, 451])
def test_4xx_is_final_after_one_call(status: int, api: httpx2.Client, target: Target) -> None:
    path = f"/status/{status}"
    job = job_at(api, target, path, retries=3)
    after = run_now(api, job["id"], "failed")
    assert str(status) in after["last_error"]
    assert len(target.hits) == 1


def test_after_a_final_answer_nothing_more_is_called(api: httpx2.Client, target: Target) -> None:
    ended(api, target, job_at(api, target, "/status/400", retries=3), "/status/400", "failed", calls=1)


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_an_answer_that_may_pass_is_retried_and_then_failed(status: int, api: httpx2.Client, target: Target) -> None:
    path = f"/status/{status}"
    after = ended(api, target, job_at(api, target, path), path, "failed", calls=2)
    assert str(status) in after["last_error"]


@pytest.mark.parametrize("retries", [0, 1, 3])
def test_there_are_as_many_retries_as_the_job_says(retries: int, api: httpx2.Client, target: Target) -> None:
    job = job_at(api, target, "/status/503", retries)
    ended(api, target, job, "/status/503", "failed", calls=1 + retries)


def test_a_success_ends_the_retries(api: httpx2.Client, target: Target) -> None:
    after = ended(api, target, job_at(api, target, "/flaky/1", retries=5), "/flaky/1", "success", calls=2)
    assert after["last_error"] == ""


def test_a_target_that_never_answers_is_a_time_out_and_is_retried(api: httpx2.Client, target: Target) -> None:
    job = job_at(api, target, "/never", timeout="300ms")
    after = ended(api, target, job, "/never", "timeout", calls=2)
    assert after["last_error"] != ""
    assert all(hit.gone for hit in target.at("/never"))


def test_a_target_that_drips_is_a_time_out(api: httpx2.Client, target: Target) -> None:
    job = job_at(api, target, "/drip", retries=0, timeout="300ms")
    ended(api, target, job, "/drip", "timeout", calls=1)


def test_a_connection_that_breaks_is_retried_and_then_failed(api: httpx2.Client, target: Target) -> None:
    after = ended(api, target, job_at(api, target, "/reset"), "/reset", "failed", calls=2)
    assert after["last_error"] != ""


def test_a_target_that_is_not_there_is_a_failure(api: httpx2.Client) -> None:
    call = {"method": "GET", "url": "http://127.0.0.1:9/"}
    job = create(api, a_job(unique("nobody"), "", http=call, max_retries=1, retry_backoff="50ms"))
    assert run_now(api, job["id"], "failed")["last_error"] != ""


def test_a_success_wipes_the_error_of_before(api: httpx2.Client, target: Target) -> None:
    job = job_at(api, target, "/flaky/1", retries=0)
    begun = now()
    failed = run_now(api, job["id"], "failed")
    assert failed["last_error"] != ""
    assert read(failed["last_run_at"]) >= begun
    after = run_now(api, job["id"])
    assert after["last_error"] == ""
    assert read(after["last_run_at"]) > read(failed["last_run_at"])
